//! The owner of a session is killed during a turn: the callers get the real end, the next prompt
//! works at once, and no acknowledged prompt is lost.

use serde_json::{Value, json};

use super::peer::{Kind, Peer};
use super::{assert_complete, endless, home, kind, message, prompt, says, waits};
use harness::{Agent, Home, bounded};

/// The script of the owner's model: the first turn ends, the second one does not.
fn owners() -> Value {
    json!([says("base"), endless()])
}

/// A session of `owner`, and a client of another process that attends it.
async fn started(owner: Kind, caller: Kind, steps: Value, flags: &[&str]) -> (Home, Peer, Peer, String) {
    let home = home();
    let mut owner = Peer::start(owner, &home, &home.script(steps), flags).await;
    let session = owner.new_session(&home).await;
    let mut other = Peer::start(caller, &home, &home.script(json!([says("taken over"), says("again")])), flags).await;
    other.attend(&home, &session).await;
    (home, owner, other, session)
}

/// The prompt that is in progress.
enum SentPrompt {
    Stdio(Value),
    Http(tokio::task::JoinHandle<harness::Answer>),
}

/// Sends a prompt without waiting for its answer.
async fn send(peer: &mut Peer, session: &str, text: &str) -> SentPrompt {
    if let Peer::Stdio(agent) = peer {
        return SentPrompt::Stdio(agent.prompt(session, text).await);
    }
    let ask = peer.bridge().prompt(session, text);
    SentPrompt::Http(tokio::spawn(async move { ask.send().await }))
}

/// Waits until a message is in the session, and returns the id of its turn. A prompt whose message
/// is not in the session yet runs again after the owner was killed.
async fn accepted(peer: &mut Peer, session: &str, text: &str) -> String {
    let find = async {
        loop {
            let list = peer.call("_nuncio/session/messages", json!({"sessionId": session})).await;
            let found = list["messages"].as_array().unwrap().iter().find(|one| one["parts"][0]["text"] == text);
            if let Some(message) = found {
                return message["turnId"].as_str().expect("the id of the turn").to_owned();
            }
            tokio::task::yield_now().await;
        }
    };
    bounded("the message", find).await
}

/// Asserts that the answer to a prompt reports the turn as interrupted.
async fn assert_interrupted(peer: &mut Peer, sent: SentPrompt, turn: &str) {
    match (peer, sent) {
        (Peer::Stdio(agent), SentPrompt::Stdio(id)) => {
            let error = agent.answer(&id).await.expect_err("the turn was interrupted");
            assert!(error.to_string().contains("interrupted") && error.to_string().contains(turn), "{error}");
        }
        (_, SentPrompt::Http(answer)) => {
            let answer = bounded("the answer to the prompt", answer).await.unwrap();
            assert!(answer.status >= 400, "{answer:?}");
            assert!(answer.body.contains("interrupted") && answer.body.contains(turn), "{answer:?}");
        }
        _ => unreachable!(),
    }
}

/// Sends a prompt and waits for the end of its turn.
async fn turn(peer: &mut Peer, session: &str, text: &str) {
    assert_eq!(peer.call("session/prompt", prompt(session, text)).await["stopReason"], "end_turn", "{text}");
}

async fn killed_during_a_forwarded_prompt(owner: Kind, caller: Kind) {
    let (home, owner, mut other, session) = started(owner, caller, owners(), &[]).await;
    let sent = send(&mut other, &session, "go").await;
    let id = accepted(&mut other, &session, "go").await;
    let view = other.view(&session).await;
    assert_eq!((&view["status"], &view["turnId"]), (&json!("busy"), &json!(id)), "{view}");
    owner.kill().await;
    assert_interrupted(&mut other, sent, &id).await;
    let view = other.view(&session).await;
    assert_eq!(view["lastTurn"]["turnId"], id, "{view}");
    assert_eq!((&view["lastTurn"]["status"], &view["waiting"]), (&json!("interrupted"), &json!(false)), "{view}");
    turn(&mut other, &session, "next").await;
    other.finish().await;
    let log = home.log(&session).await;
    assert_complete(&log);
    let ends: Vec<&str> = log.iter().filter(|event| super::ends_turn(event)).map(kind).collect();
    assert_eq!(ends, ["turn.completed", "turn.interrupted", "turn.completed"]);
    // The interrupted prompt was not repeated.
    assert_eq!(log.iter().filter(|event| event["body"]["parts"][0]["text"] == "go").count(), 1);
}

#[tokio::test]
async fn stdio_client_gets_the_end_of_a_killed_editors_turn() {
    killed_during_a_forwarded_prompt(Kind::Stdio, Kind::Stdio).await;
}

#[tokio::test]
async fn rest_client_gets_the_end_of_a_killed_editors_turn() {
    killed_during_a_forwarded_prompt(Kind::Stdio, Kind::Rest).await;
}

#[tokio::test]
async fn stdio_client_gets_the_end_of_a_killed_servers_turn() {
    killed_during_a_forwarded_prompt(Kind::Rest, Kind::Stdio).await;
}

#[tokio::test]
async fn rest_client_gets_the_end_of_a_killed_run_turn() {
    killed_during_a_forwarded_prompt(Kind::Run, Kind::Rest).await;
}

/// A turn of the owner's own client: the other process follows it, and takes over after the kill.
#[tokio::test]
async fn next_prompt_works_at_once_after_the_owner_was_killed() {
    for (kind_of_owner, caller) in [(Kind::Stdio, Kind::Rest), (Kind::Rest, Kind::Stdio), (Kind::Run, Kind::Rpc)] {
        let (home, mut owner, mut other, session) = started(kind_of_owner, caller, owners(), &[]).await;
        match &mut owner {
            Peer::Run(run) => run.say(json!({"type": "message", "content": "go"})).await,
            owner => drop(owner.call("_nuncio/session/message", message(&session, "go")).await),
        }
        other.until(&session, "busy", |view| view["status"] == "busy").await;
        owner.kill().await;
        // No waiting: the first prompt after the kill runs.
        turn(&mut other, &session, "next").await;
        other.finish().await;
        assert_complete(&home.log(&session).await);
    }
}

/// Messages that the owner acknowledged to a client of another process survive the owner.
#[tokio::test]
async fn acknowledged_prompts_are_never_lost() {
    for owner in [Kind::Stdio, Kind::Rest, Kind::Run] {
        let (home, owner, mut other, session) = started(owner, Kind::Rest, owners(), &[]).await;
        let started = other.bridge().begin(&session, "acknowledged 0").await;
        let mut accepted = vec!["acknowledged 0".to_string()];
        let bridge = other.bridge().clone();
        let path = format!("/v1/sessions/{session}/messages");
        for number in 1..5 {
            let text = format!("acknowledged {number}");
            bridge.post(&path, &json!({"parts": [{"type": "text", "text": text}]})).expect(202).await;
            accepted.push(text);
        }
        owner.kill().await;
        let ended = other.until(&session, "not busy", |view| view["status"] != "busy").await;
        assert_eq!(
            (&ended["lastTurn"]["turnId"], &ended["lastTurn"]["status"]),
            (&json!(started), &json!("interrupted")),
            "{ended}"
        );
        turn(&mut other, &session, "next").await;
        other.until(&session, "idle", |view| view["status"] == "idle" && view["queued"] == 0).await;
        let messages = other.call("_nuncio/session/messages", json!({"sessionId": session})).await;
        let said: Vec<&str> =
            messages["messages"].as_array().unwrap().iter().filter_map(|one| one["parts"][0]["text"].as_str()).collect();
        for text in &accepted {
            assert_eq!(said.iter().filter(|one| *one == text).count(), 1, "{text}: {said:?}");
        }
        other.finish().await;
        assert_complete(&home.log(&session).await);
    }
}

/// A prompt with `Idempotency-Key` that was acknowledged is not run again.
#[tokio::test]
async fn repeated_prompt_with_the_same_key_starts_no_second_turn() {
    let (home, owner, other, session) = started(Kind::Stdio, Kind::Rest, owners(), &[]).await;
    let ask = other.bridge().prompt(&session, "once").header("prefer", "respond-async").header("idempotency-key", "key-1");
    let first = ask.expect(202).await;
    owner.kill().await;
    assert_eq!(ask.expect(202).await, first);
    other.finish().await;
    let log = home.log(&session).await;
    assert_eq!(log.iter().filter(|event| event["body"]["parts"][0]["text"] == "once").count(), 1);
    assert_complete(&log);
}

/// The command of the killed owner ends with it, and its call is closed with an unknown effect.
#[tokio::test]
async fn call_of_a_killed_owner_fails_with_unknown_effect() {
    let steps = json!([says("base"), waits()]);
    let (home, owner, mut other, session) = started(Kind::Stdio, Kind::Stdio, steps, &["--mode", "auto"]).await;
    let Peer::Stdio(agent) = &mut other else { unreachable!() };
    let running = agent.prompt(&session, "go").await;
    let executing = |frame: &Value| frame["params"]["update"]["status"] == "in_progress";
    agent.until("the running command", executing).await;
    owner.kill().await;
    agent.answer(&running).await.expect_err("the turn was interrupted");
    assert_call_failed(agent, &session);
    turn(&mut other, &session, "next").await;
    other.finish().await;
    let log = home.log(&session).await;
    let completed = log.iter().find(|event| kind(event) == "tool.completed").expect("the call is closed");
    assert_eq!((&completed["body"]["status"], &completed["body"]["effect"]), (&json!("failed"), &json!("unknown")));
    assert_complete(&log);
}

fn assert_call_failed(agent: &Agent, session: &str) {
    let updates = agent.updates(session);
    let call = harness::tool(&updates, 0);
    assert_eq!(call["status"], "failed", "{call}");
}

/// The caller is killed during its forwarded prompt: the owner goes on, and nothing is lost.
#[tokio::test]
async fn turn_goes_on_when_the_caller_is_killed() {
    let steps = json!([says("base"), waits(), says("after")]);
    let (home, mut owner, mut other, session) = started(Kind::Rest, Kind::Rest, steps, &["--mode", "auto"]).await;
    other.bridge().begin(&session, "go").await;
    other.until(&session, "busy", |view| view["status"] == "busy").await;
    other.kill().await;
    super::release(&home).await;
    let view = owner.until(&session, "idle", |view| view["status"] == "idle").await;
    assert_eq!((&view["lastTurn"]["status"], &view["lastTurn"]["stopReason"]), (&json!("completed"), &json!("end_turn")), "{view}");
    owner.finish().await;
    assert_complete(&home.log(&session).await);
}
