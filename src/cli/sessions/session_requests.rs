//! `nuncio sessions requests`: a model request of a session as it was sent.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::json;

use super::stored::each_event;
use crate::api::App;
use crate::cli::terminal::output::{print, print_json, print_stderr};
use crate::context::request_record::ModelRequestRecord;
use crate::error::{Error, Result};
use crate::event::{Body, Event, StepEnd, StepStart};
use crate::id::{Seq, SessionId, TurnId};
use crate::model::{Message, Request, SentRequest};
use crate::session::{SessionState, Sessions};

/// A model request in the log.
struct LoggedRequest {
    started: Seq,
    turn: TurnId,
    step: u32,
    model: String,
    /// The digest of its record.
    record: Option<String>,
}

#[derive(Default)]
struct LoggedRequests(Vec<LoggedRequest>);

impl LoggedRequests {
    fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::StepStarted(StepStart { step, model, request }) => self.0.extend(event.turn_id.clone().map(|turn| {
                LoggedRequest { started: event.seq, turn, step: *step, model: model.clone(), record: request.clone() }
            })),
            Body::StepCompleted(StepEnd { step, request: Some(request), .. }) => {
                let of_step = |logged: &&mut LoggedRequest| logged.step == *step && Some(&logged.turn) == event.turn_id.as_ref();
                if let Some(logged) = self.0.iter_mut().rev().find(of_step) {
                    logged.record = Some(request.clone());
                }
            }
            _ => {}
        }
    }

    /// Returns the request with this number in this turn; the last one if they are not given.
    fn find(&self, id: &SessionId, turn: Option<&str>, step: Option<u32>) -> Result<&LoggedRequest> {
        let last = self.0.last().ok_or_else(|| Error::not_found(format!("session {id} has sent no model request")))?;
        let turn = match turn {
            None => &last.turn,
            Some(start) => {
                let found: HashSet<&TurnId> =
                    self.0.iter().map(|logged| &logged.turn).filter(|turn| turn.as_str().starts_with(start)).collect();
                match *found.into_iter().collect::<Vec<_>>() {
                    [turn] => turn,
                    [] => return Err(Error::not_found(format!("no turn of session {id} with model requests starts with {start}"))),
                    _ => return Err(Error::invalid_params(format!("several turns of session {id} start with {start}"))),
                }
            }
        };
        let mut of_turn = self.0.iter().filter(|logged| logged.turn == *turn);
        let steps = of_turn.clone().count();
        let found = match step {
            None => of_turn.next_back(),
            Some(step) => of_turn.find(|logged| logged.step == step),
        };
        found.ok_or_else(|| Error::not_found(format!("the model requests of turn {turn} have the numbers 1 to {steps}")))
    }
}

/// Prints a model request of a stored session: its URL, its headers with masked keys, and its body.
pub(crate) async fn print_request(
    app: &App,
    sessions: &Sessions,
    id: &SessionId,
    turn: Option<&str>,
    step: Option<u32>,
) -> Result<()> {
    let (mut logged, mut state) = (LoggedRequests::default(), SessionState::default());
    each_event(sessions, id, |event| {
        logged.apply(event);
        state.apply(event);
        Ok(())
    })
    .await?;
    if let Some(agent) = state.settings.agent {
        return Err(Error::not_found(format!("{agent} works in session {id}: it sends its model requests itself")));
    }
    let chosen = logged.find(id, turn, step)?;
    let mut state = SessionState::default();
    each_event(sessions, id, |event| {
        if event.seq < chosen.started {
            state.apply(event);
        }
        Ok(())
    })
    .await?;
    print_stderr(format!("turn {}, step {}, {}\n", chosen.turn, chosen.step, chosen.model));
    let messages = state.history.messages();
    match sent_request(app, sessions, id, chosen, &messages, state.refused.clone()).await? {
        ShownRequest::Complete(SentRequest { url, headers, body }) => {
            let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
            print(format!("POST {url}\n{headers}\n"))?;
            print_json(String::from_utf8_lossy(&body) + "\n")
        }
        ShownRequest::Incomplete(why, content) => {
            print(format!("# {why}\n\n"))?;
            print_json(content + "\n")
        }
    }
}

enum ShownRequest {
    Complete(SentRequest),
    /// Why the request is not known as it was sent, and the content that is known, as JSON.
    Incomplete(String, String),
}

/// A request as the session made it, with its record; or why it is not known.
pub(in crate::cli) enum RebuiltRequest {
    Known(Box<(ModelRequestRecord, Request)>),
    Unknown(String),
}

/// Rebuilds the request of a step. `record` is the digest of its record, `conversation` the
/// conversation when the step started.
pub(in crate::cli) async fn rebuilt_request(
    sessions: &Sessions,
    id: &SessionId,
    record: Option<&str>,
    conversation: &[Arc<Message>],
    refused: Arc<HashSet<String>>,
) -> Result<RebuiltRequest> {
    let unknown = |why: &str| Ok(RebuiltRequest::Unknown(why.into()));
    let Some(record) = record else {
        return unknown(
            "an earlier version of nuncio sent this request: the system prompt, the tools, the URL and the headers are missing",
        );
    };
    let files = sessions.shared_files();
    let text = async |digest: &str| files.request_text(id, digest).await;
    let Some(record) = text(record).await? else {
        return unknown(
            "the session was imported, or its files were removed: the system prompt, the tools, the URL and the headers are missing",
        );
    };
    let record: ModelRequestRecord = match serde_json::from_str(&record) {
        Ok(record) => record,
        Err(error) => {
            return unknown(&format!("another version of nuncio sent this request, which this one cannot read: {error}"));
        }
    };
    let (Some(system), Some(tools)) = (text(&record.system).await?, text(&record.tools).await?) else {
        return unknown("files of the session were removed: the system prompt and the tools are missing");
    };
    let unreadable = |error| Error::internal(format!("reading a recorded request: {error}"));
    let tools = serde_json::from_str(&tools).map_err(unreadable)?;
    let mut others = HashMap::new();
    for digest in record.other_messages() {
        let Some(message) = text(digest).await? else {
            return unknown("files of the session were removed: messages that the conversation does not have are missing");
        };
        others.insert(digest.to_owned(), serde_json::from_str(&message).map_err(unreadable)?);
    }
    let request = record.request(system.into(), tools, conversation, &others, refused)?;
    Ok(RebuiltRequest::Known(Box::new((record, request))))
}

async fn sent_request(
    app: &App,
    sessions: &Sessions,
    id: &SessionId,
    chosen: &LoggedRequest,
    conversation: &[Arc<Message>],
    refused: Arc<HashSet<String>>,
) -> Result<ShownRequest> {
    let record = chosen.record.as_deref();
    let (record, request) = match rebuilt_request(sessions, id, record, conversation, refused).await? {
        RebuiltRequest::Known(known) => *known,
        RebuiltRequest::Unknown(why) => {
            return Ok(ShownRequest::Incomplete(why, json!({ "messages": conversation }).to_string()));
        }
    };
    let Some(form) = &record.form else {
        let content = json!({ "system": request.system, "tools": request.tools, "messages": request.messages });
        return Ok(ShownRequest::Incomplete(format!("{} received this request without HTTP", chosen.model), content.to_string()));
    };
    if record.version != env!("CARGO_PKG_VERSION") {
        print_stderr(format!("sent by nuncio {}: the encoding of this version may differ\n", record.version));
    }
    let sent = SentRequest::new(form, request, app.services.models.image_converter()).await;
    sent.map(ShownRequest::Complete).map_err(|error| Error::internal(format!("encoding the request: {}", error.message)))
}
