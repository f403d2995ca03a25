//! What a session may do is signed: rows that someone else writes to the store widen nothing, and
//! ordinary use keeps what the user allowed.

mod keys;
mod ordinary;
mod rows;

use serde_json::{Value, json};

use harness::{Agent, Home, Reply, literal};

/// The title of the notice about what was dropped.
const DROPPED: &str = "Settings of the session were dropped";

/// Adds an event to the log of a session, as someone does who can write to the database.
fn append(home: &Home, session: &str, text: &str) {
    let (text, id) = (literal(text), literal(session));
    home.sql(&format!(
        "INSERT INTO events (session, seq, at_ms, delta, body) SELECT key, head + 1, 1, FALSE, {text} FROM sessions WHERE id = {id}; \
         UPDATE sessions SET head = head + 1 WHERE id = {id}"
    ));
}

/// Returns the stored text of the events of a session whose text contains `part`, oldest first.
fn stored(home: &Home, session: &str, part: &str) -> Vec<String> {
    let (of, part) = (of(session), literal(&format!("%{part}%")));
    home.sql(&format!("SELECT body FROM events WHERE {of} AND body LIKE {part} ORDER BY seq"))
}

/// Returns the condition for the events of a session.
fn of(session: &str) -> String {
    format!("session = (SELECT key FROM sessions WHERE id = {})", literal(session))
}

/// A model that runs a command, and says that it has.
fn runs(command: &str) -> Value {
    json!([{"tool_calls": [{"name": "bash", "input": {"command": command}}]}, {"text": "ran it"}])
}

/// Starts a process whose model runs `touch made`, and prompts the session. The client rejects what
/// it is asked. Returns whether it was asked.
async fn asks(home: &Home, session: &str) -> bool {
    let mut agent = started(home).await;
    agent.turn(session, "go").await;
    let asked = agent.questions() > 0;
    agent.finish().await;
    assert_eq!(home.get("made").is_none(), asked, "a rejected command ran, or an allowed one did not");
    asked
}

/// Starts a process whose model runs `touch made`, and whose client rejects what it is asked.
async fn started(home: &Home) -> Agent {
    let model = home.script(runs("touch made"));
    let mut agent = home.start(&["--model", &model]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.otherwise = Reply::Pick("reject_once");
    agent
}

/// Returns the description of the notice about what was dropped, if there is one.
async fn dropped(home: &Home, session: &str) -> Option<String> {
    let log = home.log(session).await;
    let mut notices = log.iter().map(|event| &event["body"]).filter(|body| body["title"] == DROPPED);
    let said = notices.next().map(|notice| notice["description"].as_str().unwrap().to_owned());
    assert!(notices.next().is_none(), "said twice: {log:?}");
    said
}

async fn set_mode(agent: &mut Agent, session: &str, mode: &str) {
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
}

/// A session in which the user chose these modes, one after the other.
async fn session_with_modes(home: &Home, modes: &[&str]) -> String {
    let (mut agent, session) = home.session(json!([]), &[]).await;
    for mode in modes {
        set_mode(&mut agent, &session, mode).await;
    }
    agent.finish().await;
    session
}
