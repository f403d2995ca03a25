//! The requests of a random history, with their answers.

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use harness::{Agent, Answer, bounded};

/// A client: one of two editors, REST or a `run`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Editor(usize),
    Rest,
    Run,
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A prompt with this text, which is answered at the end of the turn.
    Prompt(String),
    /// A prompt with this text, which is answered at the start of the turn.
    Begin(String),
    /// A message with this text.
    Message(String),
    /// A message with this text, for the running turn.
    Steer(String),
    Remove(String),
    /// Another text for a queued message.
    Edit(String, String),
    Title(String),
    Mode,
    Cancel,
    Close,
    Load,
}

/// The answer to a request.
pub enum Reaction {
    /// An editor has the answer to this id, or receives it later.
    Expected(Value),
    Exchange(JoinHandle<std::io::Result<Answer>>),
    Accepted(Value),
    Refused(Value),
    /// The process was killed before it answered, or gives no answers.
    Unknown,
}

pub struct Request {
    pub origin: Origin,
    pub wish: Wish,
    /// The id of the request of an editor that was not killed.
    pub id: Option<Value>,
    pub reaction: Reaction,
}

impl Request {
    pub fn new(origin: Origin, wish: Wish, reaction: Reaction) -> Request {
        let id = if let Reaction::Expected(id) = &reaction { Some(id.clone()) } else { None };
        Request { origin, wish, id, reaction }
    }

    pub fn accepted(&self) -> Option<&Value> {
        match &self.reaction {
            Reaction::Accepted(result) => Some(result),
            _ => None,
        }
    }

    /// Describes the request and its answer in one line.
    pub fn describe(&self) -> String {
        let answer = match &self.reaction {
            Reaction::Expected(id) => format!("no answer to {id}"),
            Reaction::Exchange(_) => "no answer".into(),
            Reaction::Accepted(result) => format!("ok {result}"),
            Reaction::Refused(error) => format!("error {error}"),
            Reaction::Unknown => "unknown".into(),
        };
        format!("{:?} {:?}: {answer}", self.origin, self.wish)
    }
}

/// Returns the answer to a request of an editor among the received frames.
fn answer_in(frames: &[Value], id: &Value) -> Option<Reaction> {
    let frame = frames.iter().find(|frame| frame["id"] == *id && frame.get("method").is_none())?;
    Some(match frame.get("error") {
        Some(error) => Reaction::Refused(error.clone()),
        None => Reaction::Accepted(frame["result"].clone()),
    })
}

/// Records the answers that an editor has received.
pub fn collect(requests: &mut [Request], editor: usize, frames: &[Value]) {
    for request in requests.iter_mut().filter(|request| request.origin == Origin::Editor(editor)) {
        if let Reaction::Expected(id) = &request.reaction
            && let Some(reaction) = answer_in(frames, id)
        {
            request.reaction = reaction;
        }
    }
}

/// Records that an editor was killed: the answers that it did not write are unknown.
pub fn forget(requests: &mut [Request], editor: usize) {
    for request in requests.iter_mut().filter(|request| request.origin == Origin::Editor(editor)) {
        request.id = None;
        if let Reaction::Expected(_) = request.reaction {
            request.reaction = Reaction::Unknown;
        }
    }
}

/// Reads until an editor has received all answers.
pub async fn receive(agent: &mut Agent, ids: Vec<Value>) {
    for id in ids {
        let _ = agent.answer(&id).await;
    }
}

/// Waits for the answers to the requests of REST.
pub async fn receive_rest(exchanges: Vec<(usize, JoinHandle<std::io::Result<Answer>>)>) -> Vec<(usize, Reaction)> {
    let mut reactions = Vec::new();
    for (number, exchange) in exchanges {
        let reaction = match bounded("an answer of REST", exchange).await.expect("an answer of REST") {
            Err(_) => Reaction::Unknown,
            Ok(answer) if answer.status < 400 => {
                let body = serde_json::from_str(&answer.body).unwrap_or(Value::Null);
                Reaction::Accepted(body)
            }
            Ok(answer) => {
                let mut error = answer.json()["error"].clone();
                error["status"] = json!(answer.status);
                Reaction::Refused(error)
            }
        };
        reactions.push((number, reaction));
    }
    reactions
}
