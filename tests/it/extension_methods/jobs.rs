//! The background jobs of a session, over ACP and REST.

use serde_json::{Value, json};

use super::refused;
use harness::Home;

fn start(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command, "background": true}})
}

#[tokio::test]
async fn jobs_are_listed_read_and_killed() {
    let home = Home::new();
    let steps = json!([{"tool_calls": [start("echo one; sleep 60"), start("echo two; exit 3")]}, {"text": "started"}]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let of = |job: &str| json!({"sessionId": session, "job": job});
    let none = json!({"jobs": []});
    assert_eq!(agent.call("_nuncio/session/jobs", json!({"sessionId": session})).await, none);
    let prompt = agent.prompt(&session, "go").await;
    agent.answer(&prompt).await.unwrap();
    let ended = loop {
        let part = agent.call("_nuncio/session/jobs/output", of("2")).await;
        if part["running"] == false {
            break part;
        }
    };
    let expected = json!({
        "job": "2", "command": "echo two; exit 3", "running": false, "exitCode": 3, "next": 4, "text": "two\n", "missed": 0, "more": 0,
    });
    assert_eq!(ended, expected);
    let later = agent.call("_nuncio/session/jobs/output", json!({"sessionId": session, "job": "2", "since": 2})).await;
    assert_eq!((&later["text"], &later["next"]), (&json!("o\n"), &json!(4)));
    let killed = agent.call("_nuncio/session/jobs/kill", of("1")).await;
    assert_eq!(killed, json!({"job": "1", "command": "echo one; sleep 60", "running": false}));
    let listed = agent.call("_nuncio/session/jobs", json!({"sessionId": session})).await;
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 2, "{listed}");
    let session = json!({"sessionId": session});
    refused(
        &mut agent,
        &[
            ("_nuncio/session/jobs/kill", of("9"), -32002, "there is no job 9; there are jobs 1, 2"),
            ("_nuncio/session/jobs/output", of("x"), -32002, "there is no job x"),
            ("_nuncio/session/background", session.clone(), -32602, "no command runs"),
            ("_nuncio/session/jobs", json!({"sessionId": "sess_none"}), -32002, "not found"),
        ],
    )
    .await;
    agent.finish().await;
}
