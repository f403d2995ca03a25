//! Every method with a `sessionId`, on a session of another process: same result, same events and
//! same updates as in the process that owns the session.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cases::{CASES, Case, Step, Turns};
use super::compare::{Normal, difference};
use super::peer::{Kind, Peer};
use super::{home, release, says, waits};
use harness::steps::asks;
use harness::{Home, session_updates};

/// The processes that own the session.
const OWNERS: [Kind; 3] = [Kind::Stdio, Kind::Rest, Kind::Run];

/// Methods that belong to a session without a `sessionId` in their params, and the method that
/// streams, which is in no schema.
const IMPLICIT: &[&str] = &["_nuncio/events/follow", "_nuncio/permission/answer"];

#[test]
fn every_method_of_a_session_has_a_case() {
    let methods: Value = serde_json::from_str(include_str!("../../../schema/methods.json")).unwrap();
    let methods = methods.as_object().unwrap().iter();
    let scoped = methods.filter(|(_, method)| !method["params"]["properties"]["sessionId"].is_null());
    let scoped: BTreeSet<&str> = scoped.map(|(name, _)| name.as_str()).chain(IMPLICIT.iter().copied()).collect();
    let cases: BTreeSet<&str> = CASES.iter().map(|case| case.method).collect();
    let missing: Vec<_> = scoped.difference(&cases).collect();
    assert!(missing.is_empty(), "add a case for {missing:?} to CASES in tests/it/peers/cases.rs");
    let unknown: Vec<_> = cases.difference(&scoped).collect();
    assert!(unknown.is_empty(), "{unknown:?} have no sessionId, or do not exist");
}

/// The steps of the model, and the flags of the processes.
fn script(turns: Turns) -> (Value, &'static [&'static str]) {
    let auto = &["--mode", "auto"];
    let long = json!({"tool_calls": [{"name": "bash", "input": {"command": "seq 20000"}}]});
    match turns {
        Turns::Quick => (json!([says("base"), says("first"), says("second")]), &[]),
        Turns::Waiting => (json!([says("base"), waits(), says("first"), says("second")]), auto),
        Turns::Asking => (json!([says("base"), asks(), says("first"), says("second")]), &[]),
        Turns::Artifact => (json!([says("base"), long, says("first")]), auto),
    }
}

/// Replaces the placeholders of params or of a command.
async fn fill(template: &str, peer: &mut Peer, home: &Home, session: &str) -> String {
    let mut text = template.replace("{session}", session).replace("{cwd}", home.work().to_str().unwrap());
    let lookups = [
        ("{turn}", "_nuncio/session/turns", "/turns/0/turnId"),
        ("{message}", "_nuncio/session/queue", "/messages/0/messageId"),
        ("{permission}", "_nuncio/permission/list", "/permissions/0/permissionId"),
        ("{attachment}", "_nuncio/attachment/list", "/attachments/0/uri"),
        ("{artifact}", "_nuncio/artifact/list", "/artifacts/0/name"),
    ];
    for (placeholder, method, pointer) in lookups {
        if text.contains(placeholder) {
            let found = peer.call(method, json!({"sessionId": session})).await;
            let value = found.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {placeholder}: {found}"));
            text = text.replace(placeholder, value);
        }
    }
    text
}

async fn step(step: &Step, peer: &mut Peer, home: &Home, session: &str) {
    match step {
        Step::Call(method, params) => {
            let params = fill(params, peer, home, session).await;
            peer.call(method, serde_json::from_str(&params).unwrap()).await;
        }
        Step::Ended => drop(peer.until(session, "not busy", |view| view["status"] != "busy" && view["queued"] == 0).await),
        Step::Running => drop(peer.until(session, "running", |_| home.get("started").is_some()).await),
        Step::Asked => drop(peer.asked(session).await),
        Step::Release => release(home).await,
    }
}

/// The result of a case, the events after the first turn, and the updates that an editor received.
struct Outcome {
    /// None if the transport does not serve the method.
    result: Option<Value>,
    events: Vec<Value>,
    /// The events without `by`, which names the client.
    of_any_client: Vec<Value>,
    updates: Vec<Value>,
}

/// Where the call comes from, when it does not come from the process that owns the session.
#[derive(Clone, Copy, PartialEq)]
enum Caller {
    /// A client of another process.
    Client(Kind),
    /// A command. A client of another process makes the other calls.
    Command,
}

impl Caller {
    /// The process that makes the calls of the preparation.
    fn kind(self) -> Kind {
        match self {
            Caller::Client(kind) => kind,
            Caller::Command => Kind::Rest,
        }
    }
}

/// Runs a case. Without a caller, the client of the owner makes the call.
async fn run(case: &'static Case, owner: Kind, caller: Option<Caller>) -> Outcome {
    let home = home();
    let (steps, flags) = script(case.turns);
    let model = home.script(steps);
    let mut owner = Peer::start(owner, &home, &model, flags).await;
    let session = owner.new_session(&home).await;
    let mut other = match caller {
        None => None,
        Some(caller) => Some(Peer::start(caller.kind(), &home, &model, flags).await),
    };
    let peer = other.as_mut().unwrap_or(&mut owner);
    peer.attend(&home, &session).await;
    let seen = match peer {
        Peer::Stdio(agent) => agent.frames.len(),
        _ => 0,
    };
    for before in case.before {
        step(before, peer, &home, &session).await;
    }
    let called = if caller == Some(Caller::Command) {
        let mut command = Vec::new();
        for word in case.command {
            command.push(fill(word, peer, &home, &session).await);
        }
        let ran = home.run(&command.iter().map(String::as_str).collect::<Vec<_>>(), "").await;
        assert_eq!(ran.code, 0, "{command:?}: {ran:?}");
        Some(Ok(Value::Null))
    } else {
        let params = fill(case.params, peer, &home, &session).await;
        peer.request(case.method, serde_json::from_str(&params).unwrap()).await
    };
    if called.is_some() {
        for after in case.after {
            step(after, peer, &home, &session).await;
        }
    } else {
        // Not served: end the turn that the preparation started.
        peer.call("session/close", json!({"sessionId": session})).await;
    }
    if let Peer::Stdio(agent) = peer
        && !["session/close", "session/delete"].contains(&case.method)
    {
        // The answer of a change comes after all updates before it.
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": "accept-edits"})).await;
    }
    let mut normal = Normal::new(&home);
    let updates = match peer {
        Peer::Stdio(agent) => normal.updates(&session_updates(&agent.frames[seen..], &session)),
        _ => Vec::new(),
    };
    let result = called.map(|called| match called {
        Ok(mut value) if value["turns"][0].is_object() => {
            // The turn of the prompt "base" names the client of the owner.
            value["turns"][0].as_object_mut().unwrap().shift_remove("by");
            json!({"result": normal.value(&value)})
        }
        Ok(Value::Array(events)) => json!({"result": normal.events(after_base(&events))}),
        Ok(value) => json!({"result": normal.value(&value)}),
        Err(error) => json!({"error": normal.value(&error)}),
    });
    if let Some(other) = other {
        other.finish().await;
    }
    // A deleted session has no log.
    let log = home.run(&["sessions", "show", &session, "--json"], "").await.lines();
    let mut of_any_client = after_base(&log).to_vec();
    of_any_client.iter_mut().for_each(|event| drop(event["body"].as_object_mut().unwrap().shift_remove("by")));
    let of_any_client = Normal::new(&home).events(&of_any_client);
    let events = normal.events(after_base(&log));
    owner.finish().await;
    Outcome { result, events, of_any_client, updates }
}

/// The events after the first turn.
fn after_base(log: &[Value]) -> &[Value] {
    &log[log.iter().position(super::ends_turn).map_or(0, |end| end + 1)..]
}

/// The differences between the outcome in one process and the outcome with two processes.
fn compare(case: &Case, expected: &Outcome, mut found: Outcome, caller: Caller) -> Vec<String> {
    if caller == Caller::Command {
        let [expected, found] = [&expected.of_any_client, &found.of_any_client].map(|events| Value::from(events.clone()));
        return difference("events", &expected, &found).into_iter().collect();
    }
    let (Some(expected_result), Some(result)) = (&expected.result, &found.result) else { return Vec::new() };
    if case.method == "session/delete" && expected.updates.starts_with(&found.updates) {
        // The last events can be deleted before another process reads them.
        found.updates.clone_from(&expected.updates);
    }
    let differences = [
        difference("the answer", expected_result, result),
        difference("events", &expected.events.clone().into(), &found.events.into()),
        difference("updates", &expected.updates.clone().into(), &found.updates.into()),
    ];
    differences.into_iter().flatten().collect()
}

/// Compares the outcomes of a case with each kind of owner to its outcome in one process.
async fn differences(case: &'static Case, caller: Caller) -> Vec<String> {
    let expected = tokio::spawn(run(case, caller.kind(), None));
    let owners = OWNERS.map(|owner| (owner, tokio::spawn(run(case, owner, Some(caller)))));
    let expected = match expected.await {
        Ok(expected) => expected,
        Err(error) => return vec![format!("in one process: {}", panic_message(error))],
    };
    let mut findings = Vec::new();
    for (owner, found) in owners {
        let found = match found.await {
            Ok(found) => compare(case, &expected, found, caller),
            Err(error) => vec![panic_message(error)],
        };
        findings.extend(found.into_iter().map(|finding| format!("owner {owner:?}: {finding}")));
    }
    findings
}

fn panic_message(error: tokio::task::JoinError) -> String {
    let panic = error.into_panic();
    let text = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
    text.unwrap_or_else(|| "a panic".into())
}

/// Number of tests that share the cases of one kind of caller.
const PARTS: usize = 4;

/// Runs a part of the cases with one kind of caller, and reports every difference. `NUNCIO_CASE`
/// selects the cases of the methods that contain it.
async fn check(caller: Caller, part: usize) {
    let only = std::env::var("NUNCIO_CASE").unwrap_or_default();
    let mut findings = Vec::new();
    for case in CASES.iter().skip(part).step_by(PARTS) {
        if case.method.contains(&only) && (caller != Caller::Command || !case.command.is_empty()) {
            let found = differences(case, caller).await;
            findings.extend(found.iter().map(|finding| format!("{} {}\n    {finding}", case.method, case.params)));
        }
    }
    assert!(findings.is_empty(), "{} differences\n{}", findings.len(), findings.join("\n"));
}

/// A module with the tests of one kind of caller.
macro_rules! callers {
    ($($name:ident: $caller:expr;)*) => {$(
        mod $name {
            use super::{Caller, Kind, check};

            const CALLER: Caller = $caller;

            #[tokio::test]
            async fn first_part() {
                check(CALLER, 0).await;
            }

            #[tokio::test]
            async fn second_part() {
                check(CALLER, 1).await;
            }

            #[tokio::test]
            async fn third_part() {
                check(CALLER, 2).await;
            }

            #[tokio::test]
            async fn fourth_part() {
                check(CALLER, 3).await;
            }
        }
    )*};
}

callers! {
    stdio: Caller::Client(Kind::Stdio);
    rest: Caller::Client(Kind::Rest);
    rpc: Caller::Client(Kind::Rpc);
}

#[tokio::test]
async fn commands_work_on_sessions_of_every_process() {
    for part in 0..PARTS {
        check(Caller::Command, part).await;
    }
}
