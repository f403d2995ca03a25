//! The status of agents: per session, per directory and over all, pushed to subscribers.

use serde_json::{Value, json};

use harness::{Events, Home, Reply};

const ASKS: &str = "until [ -e go ]; do sleep 0.01; done";

fn steps() -> Value {
    json!([{"tool_calls": [{"name": "bash", "input": {"command": ASKS}}]}, {"text": "done"}])
}

/// Reads until the status over all is `wanted`. Returns the rows of that event.
async fn until(events: &mut Events, wanted: &str) -> Value {
    loop {
        let event = events.status().await;
        assert_eq!(event["type"], "agent.status");
        if event["status"] == wanted {
            return event;
        }
    }
}

#[tokio::test]
async fn changes_are_pushed_and_a_new_subscriber_gets_everything() {
    let home = Home::new();
    let server = home.serve_script(steps(), &["--mode", "ask"]).await;
    let mut early = server.get("/v1/events?types=agent.status").events().await;
    let first = early.status().await;
    let rows = |status: &str, session: &str| json!([[{"cwd": home.work(), "status": status}], [{"sessionId": session, "cwd": home.work(), "status": status}]]);
    let told = |event: &Value| json!([event["directories"], event["sessions"]]);
    assert_eq!((&first["complete"], &first["status"], told(&first)), (&json!(true), &json!("none"), json!([[], []])));
    let session = server.new_session(&home).await;
    let idle = until(&mut early, "idle").await;
    assert_eq!((idle.get("complete"), told(&idle)), (None, rows("idle", &session)));

    server.begin(&session, "go").await;
    assert_eq!(told(&until(&mut early, "waiting").await), rows("waiting", &session));
    let mut late = server.get("/v1/events").events().await;
    let all = late.status().await;
    assert_eq!((&all["complete"], &all["status"], told(&all)), (&json!(true), &json!("waiting"), rows("waiting", &session)));
    let status = server.get("/v1/status").expect(200).await;
    assert_eq!((&status["status"], &status["directories"][0]["status"]), (&json!("waiting"), &json!("waiting")));
    assert_eq!(status["url"], format!("http://{}", server.address));
    let metrics = server.get("/metrics").send().await.body;
    assert!(metrics.contains("nuncio_agents{status=\"waiting\"} 1\n"), "{metrics}");

    let asked = server.get("/v1/permissions").expect(200).await["permissions"][0]["permissionId"].clone();
    let path = format!("/v1/permissions/{}", asked.as_str().unwrap());
    server.post(&path, &json!({"outcome": "allow_once"})).expect(200).await;
    assert_eq!(told(&until(&mut early, "busy").await), rows("busy", &session));
    home.put("go", "");
    assert_eq!(told(&until(&mut early, "idle").await), rows("idle", &session));
    server.post(&format!("/v1/sessions/{session}/close"), &json!({})).expect(200).await;
    assert_eq!(told(&until(&mut early, "none").await), rows("none", &session));
    let mut socket = server.socket().await;
    let subscription = socket.call("_nuncio/events/follow", json!({"types": "agent.*"})).await;
    let told = socket.told("_nuncio/events/event", &subscription).await.unwrap();
    assert_eq!((&told["status"]["complete"], &told["status"]["sessions"]), (&json!(true), &json!([])));
    drop(socket);
    // A stream of other events has no status.
    let mut other = server.get("/v1/events?types=turn.*").events().await;
    server.stop().await;
    while let Some(frame) = other.frame().await {
        assert!(!matches!(frame, harness::Frame::Status(_)), "{frame:?}");
    }
}

#[tokio::test]
async fn sessions_of_other_processes_and_limited_tokens() {
    let home = Home::new();
    let server = home.serve(&[]).await;
    home.put("inner/a", "");
    let made = home.run(&["token", "new", "narrow", "--root", home.work().join("inner").to_str().unwrap()], "").await;
    let narrow = server.with_token(made.stdout.trim());
    let mut all = server.get("/v1/events?types=agent.*").events().await;
    assert_eq!(all.status().await["status"], "none");
    let (mut agent, session) = home.session(steps(), &["--mode", "ask"]).await;
    agent.otherwise = Reply::Never;
    agent.prompt(&session, "go").await;
    let waiting = until(&mut all, "waiting").await;
    assert_eq!(waiting["sessions"], json!([{"sessionId": session, "cwd": home.work(), "status": "waiting"}]));
    let seen = narrow.get("/v1/events").events().await.status().await;
    assert_eq!((&seen["status"], &seen["sessions"], &seen["directories"]), (&json!("none"), &json!([]), &json!([])));
    assert_eq!(narrow.get("/v1/status").expect(200).await["status"], "none");
    // The process dies without closing its session.
    agent.kill().await;
    assert_eq!(until(&mut all, "none").await["sessions"][0]["status"], "none");
    server.stop().await;
}
