//! A table of refusals: each is tried in a session whose earlier answers came over other protocols,
//! for a prompt, for a compaction, and after a restart. The session must work again each time.

mod rows;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use harness::provider::{Exchange, KEY, Protocol, Provider, ReceivedRequest, place};
use harness::wires::{WIRES, Wire};
use harness::{Agent, Home};

use super::told;
use rows::Outcome::{Compacted, Failed, Repaired, Repeated};
use rows::{ABSENT, PNG, ROWS, Row, TEXT};

/// Size of a conversation that the provider accepts in the row of the overflow, in bytes.
const WINDOW: usize = 10_500;

/// What happens in the session.
#[derive(Clone, Copy, Debug)]
enum Step {
    Prompt,
    Compact,
    Resume,
}

const STEPS: [Step; 3] = [Step::Prompt, Step::Compact, Step::Resume];

fn error(protocol: Protocol, row: &Row, at: usize, received: &ReceivedRequest) -> Exchange {
    let place = place(&received.body, row.needles[at], protocol == Protocol::Anthropic);
    let tools = received.body.pointer("/tools/0/functionDeclarations").unwrap_or(&received.body["tools"]);
    let is_grep = |tool: &Value| tool["name"] == "grep" || tool["function"]["name"] == "grep";
    let tool = tools.as_array().and_then(|tools| tools.iter().position(is_grep)).unwrap_or_default();
    let words = row.words[at].replace("{place}", &place).replace("{tool}", &tool.to_string());
    let (code, status) = (row.code, row.status[at]);
    let body = match protocol {
        Protocol::Anthropic => json!({ "type": "error", "error": { "type": code, "message": words } }),
        Protocol::Gemini => json!({ "error": { "code": status, "message": words, "status": "INVALID_ARGUMENT" } }),
        Protocol::Ollama => json!({ "error": words }),
        _ => json!({ "error": { "message": words, "type": code, "param": null, "code": code } }),
    };
    Exchange::error(status, &body.to_string()).header("retry-after", "0")
}

fn ollama_or_events(wire: &Wire, events: &[&str]) -> Exchange {
    match wire.protocol {
        Protocol::Ollama => Exchange::new(200, "application/x-ndjson", events.iter().map(|line| format!("{line}\n")).collect()),
        _ => Exchange::events(events),
    }
}

/// A provider of a dialect with a path for each row of the table.
struct RefusingProvider {
    provider: Provider,
    /// Whether it refuses at all.
    refuses: Arc<AtomicBool>,
    /// The rows of the requests that it refused.
    refused: Arc<Mutex<Vec<&'static str>>>,
}

impl RefusingProvider {
    async fn start(at: usize) -> RefusingProvider {
        let wire = &WIRES[at];
        let provider = Provider::start(wire.protocol, Vec::new()).await;
        let (refuses, refused) = (Arc::new(AtomicBool::new(true)), Arc::new(Mutex::new(Vec::new())));
        let (is_refusing, log, mut seen) = (refuses.clone(), refused.clone(), BTreeSet::new());
        provider.respond(move |received| {
            let row = ROWS.iter().find(|row| received.path.starts_with(&format!("/{}/", row.name))).expect("a row");
            let is_refused = match row.outcome {
                Repaired | Failed => received.text.contains(row.needles[at]),
                Repeated => seen.insert((row.name, received.text.clone())),
                Compacted => told(received).len() > WINDOW,
            };
            if is_refusing.load(Ordering::Relaxed) && is_refused {
                log.lock().expect("no panic").push(row.name);
                return error(wire.protocol, row, at, received);
            }
            let is_first = told(received).contains("think first") && !told(received).contains("Two files.");
            let has_own = received.text.contains(row.needles[at]);
            match row.reasons && is_first && !has_own && !is_refusing.load(Ordering::Relaxed) {
                true => ollama_or_events(wire, wire.rich),
                false => ollama_or_events(wire, wire.plain),
            }
        });
        RefusingProvider { provider, refuses, refused }
    }

    /// Returns how many requests of a row were refused since the last call.
    fn take(&self, row: &Row) -> usize {
        let mut refused = self.refused.lock().expect("no panic");
        let count = refused.iter().filter(|name| **name == row.name).count();
        refused.clear();
        count
    }
}

fn setting(name: &str, protocol: Protocol, base_url: &str) -> String {
    let protocol = protocol.as_str();
    format!("[providers.{name}]\nprotocol = \"{protocol}\"\nbase_url = \"{base_url}\"\napi_key_command = [\"echo\", \"{KEY}\"]\n")
}

async fn set_model(agent: &mut Agent, session: &str, model: &str) {
    agent.call("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": model})).await;
}

/// Creates a session in which each other dialect has answered a prompt with reasoning and calls.
async fn history(agent: &mut Agent, home: &Home, at: usize) -> String {
    let session = agent.new_session(home).await;
    for (other, wire) in WIRES.iter().enumerate().filter(|(other, _)| *other != at) {
        set_model(agent, &session, &format!("history{other}/{}", wire.model)).await;
        let image = json!({ "type": "image", "mimeType": "image/png", "data": PNG });
        let text = json!({ "type": "text", "text": format!("read a and b, {other}") });
        let more = if other == (at + 1) % WIRES.len() { vec![image, json!({ "type": "text", "text": TEXT })] } else { Vec::new() };
        let prompt: Vec<Value> = [vec![text], more].concat();
        agent.call("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await;
    }
    session
}

/// Sends a prompt. Returns the stop reason, or the message of the error.
async fn turn(agent: &mut Agent, session: &str, text: &str) -> Result<String, String> {
    let id = agent.prompt(session, text).await;
    let answer = agent.answer(&id).await.map_err(|error| error["message"].as_str().unwrap_or_default().to_owned())?;
    Ok(answer["stopReason"].as_str().unwrap_or_default().to_owned())
}

/// Runs a cell of the table. Returns what is wrong.
async fn cell(agent: &mut Agent, refusing: &RefusingProvider, row: &Row, at: usize, step: Step, session: &str) -> Option<String> {
    refusing.refuses.store(true, Ordering::Relaxed);
    refusing.take(row);
    // Other sessions do not have the same prompt, so that no request is sent twice.
    let prompt = match step {
        Step::Prompt | Step::Resume => format!("go on, {step:?}"),
        Step::Compact => "/compact".to_owned(),
    };
    let answer = turn(agent, session, &prompt).await;
    let refused = refusing.take(row);
    let is_absent = row.needles[at] == ABSENT;
    let fits = match (row.outcome, step) {
        _ if is_absent => answer.is_ok() && refused == 0,
        // The request for a summary has no tools, and its images are text.
        (Repaired, Step::Compact) => answer.is_ok() && refused <= 1,
        (Repaired, Step::Prompt) => answer.is_ok() && refused == 1,
        (Repaired, Step::Resume) => answer.is_ok() && refused == usize::from(!row.kept),
        (Repeated, _) => answer.is_ok() && refused == 1,
        // The request for a summary may be too large, too.
        (Compacted, _) => answer.is_ok() && (1..=3).contains(&refused),
        (Failed, _) => answer.as_ref().is_err_and(|words| words.contains(row.words[at])) && refused == 1,
    };
    // What was refused is not sent again; what cannot be repaired was a matter of time.
    refusing.refuses.store(matches!(row.outcome, Repaired | Compacted), Ordering::Relaxed);
    let later = turn(agent, session, &format!("and now, {step:?}")).await;
    let again = refusing.take(row);
    let is_repeated = again > 0 && !(again == 1 && refused == 0);
    let wrong = !fits || later.as_deref() != Ok("end_turn") || is_repeated;
    let name = row.name;
    wrong.then(|| {
        format!("{name} {:?} {step:?}: {answer:?}, {refused} refused; then {later:?}, {again} refused", WIRES[at].protocol)
    })
}

/// Runs the table for a dialect. Each cell has a fork of one session.
async fn table(at: usize) {
    let home = Home::new();
    let refusing = RefusingProvider::start(at).await;
    let mut config = String::new();
    let mut others = Vec::new();
    for (other, wire) in WIRES.iter().enumerate().filter(|(other, _)| *other != at) {
        let provider = Provider::start(wire.protocol, [wire.rich, wire.plain].map(Exchange::events).into()).await;
        config += &setting(&format!("history{other}"), wire.protocol, &provider.base_url);
        others.push(provider);
    }
    for row in ROWS {
        config += &setting(row.name, WIRES[at].protocol, &format!("{}/{}", refusing.provider.base_url, row.name));
    }
    home.config(&config);
    home.put("a", &"what stands in a\n".repeat(120));
    home.put("b", &"what stands in b\n".repeat(120));
    let mut agent = home.start(&["--thinking", "low", "--model", &format!("{}/{}", ROWS[0].name, WIRES[at].model)]).await;
    agent.call("initialize", json!({ "protocolVersion": 1 })).await;
    let session = history(&mut agent, &home, at).await;
    let (mut wrong, mut resumed) = (Vec::new(), Vec::new());
    for row in ROWS {
        for step in STEPS {
            let params = json!({ "sessionId": session, "cwd": home.work(), "mcpServers": [] });
            let fork = agent.call("session/fork", params).await["sessionId"].as_str().expect("an id").to_owned();
            set_model(&mut agent, &fork, &format!("{}/{}", row.name, WIRES[at].model)).await;
            if row.reasons {
                refusing.refuses.store(false, Ordering::Relaxed);
                turn(&mut agent, &fork, &format!("think first, {step:?}")).await.expect("a turn");
            }
            match step {
                Step::Prompt | Step::Compact => wrong.extend(cell(&mut agent, &refusing, row, at, step, &fork).await),
                Step::Resume => resumed.push((row, fork)),
            }
        }
    }
    agent.kill().await;
    let mut agent = home.start(&["--thinking", "low"]).await;
    agent.call("initialize", json!({ "protocolVersion": 1 })).await;
    for (row, fork) in resumed {
        agent.load(&home, &fork).await;
        wrong.extend(cell(&mut agent, &refusing, row, at, Step::Resume, &fork).await);
    }
    agent.finish().await;
    refusing.provider.finish_unchecked().await;
    for provider in others {
        provider.finish_unchecked().await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn refusals_of_anthropic() {
    table(0).await;
}

#[tokio::test]
async fn refusals_of_chat_completions() {
    table(1).await;
}

#[tokio::test]
async fn refusals_of_responses() {
    table(2).await;
}

#[tokio::test]
async fn refusals_of_gemini() {
    table(3).await;
}

#[tokio::test]
async fn refusals_of_ollama() {
    table(4).await;
}
