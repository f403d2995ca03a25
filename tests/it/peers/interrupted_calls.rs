//! Calls to the owner of a session that is killed, or that ends, while the call is on its way.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::peer::{Kind, Peer};
use super::{assert_complete, editor, home, kind, message, prompt, says, sockets, waits};
use harness::{Agent, Direction, Home, Proxy, bounded, pause, poll};

/// A session of an editor, behind a proxy, and another editor that has loaded it.
async fn behind_proxy(steps: Value) -> (Home, Agent, Proxy, Agent, String) {
    let home = home();
    let mut owner = editor(&home, &home.script(steps), &["--mode", "auto"]).await;
    let made = owner.call("session/new", json!({"cwd": home.work(), "mcpServers": []})).await;
    let session = made["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(owner.turn(&session, "base").await.0, "end_turn");
    let proxy = Proxy::start(&sockets(&home)[0], &home.data().join("owner.sock"));
    let mut other = editor(&home, &home.script(json!([says("taken over"), says("again")])), &["--mode", "auto"]).await;
    other.load(&home, &session).await;
    (home, owner, proxy, other, session)
}

#[tokio::test]
async fn cancel_applies_to_a_prompt_whose_owner_dies() {
    let (home, owner, proxy, mut other, session) = behind_proxy(json!([says("base")])).await;
    proxy.hold(Direction::ToOwner);
    let sent = other.prompt(&session, "go").await;
    other.notify("session/cancel", json!({"sessionId": session})).await;
    // Both messages are handled before this call.
    other.call("session/list", json!({})).await;
    owner.kill().await;
    drop(proxy);
    let answer = other.answer(&sent).await.unwrap();
    assert_eq!(answer["stopReason"], "cancelled", "{answer}");
    assert_eq!(other.turn(&session, "next").await.0, "end_turn");
    other.finish().await;
    let log = home.log(&session).await;
    assert_complete(&log);
    assert!(!log.iter().any(|event| event["body"]["parts"][0]["text"] == "go"), "the cancelled prompt ran");
}

/// A process that has taken the session of a dead owner runs the call that the owner did not get.
#[tokio::test]
async fn prompt_runs_in_the_process_that_took_the_session() {
    let (home, owner, proxy, mut other, session) = behind_proxy(json!([says("base")])).await;
    proxy.hold(Direction::ToOwner);
    let sent = other.prompt(&session, "go").await;
    // `other` handles messages in order: it has sent the prompt when it answers this call.
    other.call("session/list", json!({})).await;
    let pid = Pid::from_raw(other.pid as i32).unwrap();
    pause(pid).await;
    owner.kill().await;
    let mut third = editor(&home, &home.script(json!([says("taken"), says("gone on")])), &[]).await;
    third.load(&home, &session).await;
    assert_eq!(third.turn(&session, "take").await.0, "end_turn");
    drop(proxy);
    kill_process(pid, Signal::CONT).unwrap();
    let answer = other.answer(&sent).await.unwrap();
    assert_eq!(answer["stopReason"], "end_turn", "{answer}");
    other.finish().await;
    third.finish().await;
    let log = home.log(&session).await;
    assert_complete(&log);
    assert_eq!(log.iter().filter(|event| event["body"]["parts"][0]["text"] == "go").count(), 1, "{:?}", super::kinds(&log));
}

#[tokio::test]
async fn change_of_a_queued_message_is_made_once_if_the_owner_dies_before_it_answers() {
    for method in ["_nuncio/session/queue/remove", "_nuncio/session/queue/edit"] {
        let (home, mut owner, proxy, mut other, session) = behind_proxy(json!([says("base"), waits()])).await;
        owner.prompt(&session, "wait").await;
        home.appears("started").await;
        let queued = other.call("_nuncio/session/message", message(&session, "queued")).await;
        proxy.hold(Direction::ToCaller);
        let mut params = json!({"sessionId": session, "messageId": queued["messageId"]});
        if method.ends_with("edit") {
            params["delivery"] = json!("steer");
        }
        let sent = other.send(method, params).await;
        let wanted = if method.ends_with("edit") { "message.edited" } else { "message.removed" };
        let count = || home.sql(&format!("SELECT count(*) FROM events WHERE body LIKE '%\"{wanted}\"%'"));
        poll("the change", || count() == ["1"]).await;
        owner.kill().await;
        drop(proxy);
        let answer = other.answer(&sent).await;
        assert!(answer.is_ok(), "{method}: {answer:?}");
        assert_eq!(count(), ["1"], "{method}");
        other.finish().await;
        assert_complete(&home.log(&session).await);
    }
}

#[tokio::test]
async fn prompt_runs_elsewhere_if_the_owner_is_a_run_that_ends() {
    let home = home();
    // The job survives the signal that asks it to end, so that the run ends late.
    let job = "trap '' TERM; while :; do sleep 0.1; done";
    let start = json!({"tool_calls": [{"name": "bash", "input": {"command": job, "background": true}}]});
    let model = home.script(json!([start, says("base")]));
    let mut run = home.spawn(&["run", "--model", &model, "--json", "--mode", "auto", "--no-wait", "go"]);
    drop(run.stdin.take());
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines();
    let first = bounded("the first event", lines.next_line()).await.unwrap().unwrap();
    let session = serde_json::from_str::<Value>(&first).unwrap()["sessionId"].as_str().unwrap().to_owned();
    let read = tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let answers: Vec<_> = (0..40).map(|number| says(&format!("answer {number}"))).collect();
    let mut other = Peer::start(Kind::Stdio, &home, &home.script(json!(answers)), &["--mode", "auto"]).await;
    other.attend(&home, &session).await;
    for number in 0..20 {
        let answer = other.call("session/prompt", prompt(&session, &format!("prompt {number}"))).await;
        assert_eq!(answer["stopReason"], "end_turn", "prompt {number}");
    }
    assert!(bounded("the end of run", run.wait()).await.unwrap().code().is_some());
    bounded("the end of the output", read).await.unwrap();
    other.finish().await;
    let log = home.log(&session).await;
    assert_complete(&log);
    assert!(!log.iter().any(|event| kind(event) == "turn.cancelled"), "{:?}", super::kinds(&log));
}

/// The owner handles a call that was sent with the greeting, also if it greets too late.
#[tokio::test]
async fn call_to_an_owner_that_greets_late_is_not_refused() {
    let (home, owner, proxy, other, session) = behind_proxy(json!([says("base"), says("late")])).await;
    other.finish().await;
    let mut other = editor(&home, &home.script(json!([says("taken over")])), &[]).await;
    proxy.hold(Direction::ToCaller);
    let error = other.request("_nuncio/session/message", message(&session, "go")).await.unwrap_err();
    assert_eq!(error["data"]["code"], "timeout", "{error}");
    assert!(error["message"].as_str().unwrap().contains("may still take effect"), "{error}");
    proxy.release();
    other.finish().await;
    owner.finish().await;
    let log = home.log(&session).await;
    assert_complete(&log);
    assert!(log.iter().any(|event| event["body"]["parts"][0]["text"] == "go"), "the owner did not handle the call");
}
