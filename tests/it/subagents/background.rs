//! Subagents in the background, which report later.

use serde_json::{Value, json};

use harness::log::bodies;
use harness::steps::{bash, calls, says};
use harness::subagents::define;
use harness::{Agent, Home, text};

/// A call of `task` in the background.
fn background(agent: &str, prompt: &str) -> Value {
    json!({"name": "task", "input": {"agent": agent, "prompt": prompt, "background": true}})
}

async fn until_text(agent: &mut Agent, session: &str, expected: &str) {
    while !text(&agent.updates(session), "agent_message_chunk").contains(expected) {
        agent.until_update("agent_message_chunk").await;
    }
}

#[tokio::test]
async fn report_starts_a_turn_of_an_idle_parent() {
    let home = Home::new();
    define(&home, "worker", "", json!([bash("until [ -e go ]; do sleep 0.01; done"), {"text": "The number is 42."}]));
    let steps = json!([
        calls(&[background("worker", "work")]),
        says("in the background", "I wait for it."),
        says("The number is 42.", "It is 42."),
    ]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let (stop, updates) = agent.turn(&session, "start").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "I wait for it."));
    home.put("go", "");
    until_text(&mut agent, &session, "It is 42.").await;
    agent.finish().await;
    let log = home.log(&session).await;
    let order: Vec<&str> = log.iter().map(|event| event["body"]["type"].as_str().unwrap()).collect();
    let place = |kind: &str| order.iter().position(|known| *known == kind).unwrap_or_else(|| panic!("{kind}: {order:?}"));
    assert!(place("child.started") < place("turn.completed") && place("turn.completed") < place("child.completed"), "{order:?}");
    assert_eq!(bodies(&log, "child.started")[0]["background"], true);
    assert_eq!(bodies(&log, "turn.started").len(), 2);
}

#[tokio::test]
async fn report_steers_a_running_turn() {
    let home = Home::new();
    define(&home, "worker", "", json!([{"text": "The number is 42."}]));
    // The parent waits until the report is queued: it is in the log after the child's end.
    let wait = "until [ -e reported ]; do sleep 0.01; done";
    let steps = json!([calls(&[background("worker", "work")]), bash(wait), says("The number is 42.", "It is 42.")]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let prompt = agent.prompt(&session, "start").await;
    loop {
        let view = agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
        if view["queued"] == 1 {
            break;
        }
    }
    home.put("reported", "");
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
    assert!(text(&agent.updates(&session), "agent_message_chunk").ends_with("It is 42."));
    agent.finish().await;
    assert_eq!(bodies(&home.log(&session).await, "turn.started").len(), 1);
}

#[tokio::test]
async fn cancel_and_close_end_background_subagents() {
    for how in ["session/cancel", "session/close", "shutdown"] {
        let home = Home::new();
        define(&home, "worker", "", json!([bash("touch running; exec sleep 1000")]));
        let steps = json!([calls(&[background("worker", "work")]), {"text": "started"}]);
        let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
        agent.turn(&session, "go").await;
        home.appears("running").await;
        match how {
            "session/cancel" => {
                agent.notify(how, json!({"sessionId": session})).await;
                // The report is appended to the conversation and starts no turn.
                loop {
                    let messages = agent.call("_nuncio/session/messages", json!({"sessionId": session})).await;
                    if messages.to_string().contains("was cancelled") {
                        break;
                    }
                }
            }
            "session/close" => drop(agent.call(how, json!({"sessionId": session})).await),
            _ => {}
        }
        agent.finish().await;
        let log = home.log(&session).await;
        assert_eq!(bodies(&log, "child.completed")[0]["status"], "cancelled", "{how}: {log:#?}");
        assert_eq!(bodies(&log, "turn.started").len(), 1, "{how}: {log:#?}");
    }
}
