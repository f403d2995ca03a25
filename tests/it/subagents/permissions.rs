//! Permission requests of subagents, which clients of the parent answer, and narrower rights.

use serde_json::{Value, json};

use harness::log::bodies;
use harness::steps::{bash, calls, says, task};
use harness::subagents::{children, define};
use harness::{Agent, Home, Reply};

async fn until_asked(agent: &mut Agent) -> Value {
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await["params"].clone()
}

/// A parent with one call of a subagent that touches the file `made`.
fn touching(home: &Home, head: &str) -> Value {
    define(home, "worker", head, json!([bash("touch made"), {"text": "finished"}]));
    json!([calls(&[task("worker", "work")]), says("finished", "ok")])
}

#[tokio::test]
async fn client_of_parent_answers() {
    let cases: &[(&str, Reply, bool, &str)] = &[
        ("allowed", Reply::Pick("allow_once"), true, "allow_once"),
        ("rejected", Reply::Pick("reject_once"), false, "reject_once"),
        ("a broken client", Reply::Error, false, "denied"),
    ];
    for (name, reply, made, outcome) in cases {
        let home = Home::new();
        let steps = touching(&home, "");
        let (mut agent, session) = home.session(steps, &[]).await;
        agent.replies.push_back(reply.clone());
        let prompt = agent.prompt(&session, "go").await;
        let asked = until_asked(&mut agent).await;
        assert_eq!(asked["sessionId"], session.as_str(), "{name}: {asked}");
        assert_eq!(asked["toolCall"]["title"], "worker: `touch made`", "{name}: {asked}");
        assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn", "{name}");
        assert_eq!(home.get("made").is_some(), *made, "{name}");
        let child = children(&mut agent, &session).await.remove(0);
        agent.finish().await;
        for id in [&session, &child] {
            let log = home.log(id).await;
            let (requested, resolved) = (bodies(&log, "permission.requested"), bodies(&log, "permission.resolved"));
            assert_eq!((requested.len(), resolved.len()), (1, 1), "{name}: {log:#?}");
            assert_eq!(requested[0]["permissionId"], resolved[0]["permissionId"], "{name}: {log:#?}");
            assert_eq!(resolved[0]["outcome"], *outcome, "{name}: {log:#?}");
        }
    }
}

#[tokio::test]
async fn always_answer_applies_to_parent_and_later_subagents() {
    let home = Home::new();
    define(&home, "worker", "", json!([bash("touch made"), bash("touch made"), {"text": "finished"}]));
    let steps = json!([calls(&[task("worker", "one")]), calls(&[task("worker", "two")]), bash("touch made"), {"text": "ok"}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.replies.push_back(Reply::Pick("allow_always"));
    agent.otherwise = Reply::Pick("reject_once");
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    let asked = agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").count();
    assert_eq!(asked, 1);
    agent.finish().await;
}

#[tokio::test]
async fn remembered_rules_of_the_parent_apply() {
    for (reply, made) in [("allow_always", true), ("reject_always", false)] {
        let home = Home::new();
        define(&home, "worker", "mode: auto\n", json!([bash("touch made"), {"text": "finished"}]));
        let steps = json!([bash("touch made"), bash("rm -f made"), calls(&[task("worker", "work")]), {"text": "ok"}]);
        let (mut agent, session) = home.session(steps, &[]).await;
        agent.replies.extend([Reply::Pick(reply), Reply::Pick("allow_once")]);
        agent.otherwise = Reply::Pick("reject_once");
        agent.turn(&session, "go").await;
        assert_eq!(home.get("made").is_some(), made, "{reply}");
        agent.finish().await;
    }
}

#[tokio::test]
async fn call_of_subagent_is_denied_without_a_client() {
    let home = Home::new();
    let model = home.script(touching(&home, ""));
    let ran = home.run(&["run", "--model", &model, "go"], "").await;
    assert_eq!((ran.code, home.get("made")), (4, None), "{ran:?}");
}

#[tokio::test]
async fn mode_is_never_looser_than_that_of_the_parent() {
    // Mode of the parent, of the definition, of the call; whether the call asks, and is run.
    let cases: &[(&str, &str, &str, bool, bool)] = &[
        ("ask", "auto", "", true, false),
        ("ask", "", "auto", true, false),
        ("auto", "", "", false, true),
        ("auto", "plan", "", false, false),
        ("auto", "", "plan", false, false),
        ("plan", "auto", "auto", false, false),
        ("auto", "ask", "", true, false),
    ];
    for case @ (parent, definition, call, asks, made) in cases {
        let home = Home::new();
        let head = if definition.is_empty() { String::new() } else { format!("mode: {definition}\n") };
        let mut steps = touching(&home, &head);
        if !call.is_empty() {
            steps[0]["tool_calls"][0]["input"]["mode"] = json!(call);
        }
        let (mut agent, session) = home.session(steps, &["--mode", parent]).await;
        agent.otherwise = Reply::Pick("reject_once");
        agent.turn(&session, "go").await;
        let asked = agent.frames.iter().any(|frame| frame["method"] == "session/request_permission");
        assert_eq!((asked, home.get("made").is_some()), (*asks, *made), "{case:?}");
        agent.finish().await;
    }
}

#[tokio::test]
async fn http_client_of_parent_answers() {
    let home = Home::new();
    let steps = touching(&home, "");
    let server = home.serve_script(steps, &[]).await;
    let session = server.new_session(&home).await;
    let mut events = server.follow(&session).events().await;
    server.begin(&session, "go").await;
    events.until("permission.requested").await;
    let listed = server.get(&format!("/v1/permissions?sessionId={session}")).expect(200).await;
    let asked = &listed["permissions"][0];
    assert_eq!(asked["toolCall"]["title"], "worker: `touch made`", "{listed}");
    assert_eq!(server.get(&format!("/v1/sessions/{session}")).expect(200).await["waiting"], true);
    let id = asked["permissionId"].as_str().unwrap();
    server.post(&format!("/v1/permissions/{id}"), &json!({"outcome": "allow_once"})).expect(200).await;
    events.until("turn.completed").await;
    assert!(home.get("made").is_some());
    let listed = server.get("/v1/permissions").expect(200).await;
    assert_eq!(listed["permissions"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn deadline_denies_and_cancel_ends_the_request() {
    let home = Home::new();
    home.config("[permissions]\ntimeout_s = 1\n");
    let steps = touching(&home, "");
    let (mut agent, session) = home.session_of_program(steps, &[]).await;
    agent.otherwise = Reply::Never;
    assert_eq!(agent.turn(&session, "go").await.0, "cancelled");
    assert_eq!((home.get("made"), agent.asked.len()), (None, 0), "the question is withdrawn");
    let child = children(&mut agent, &session).await.remove(0);
    agent.finish().await;
    for id in [&session, &child] {
        let log = home.log(id).await;
        assert_eq!(bodies(&log, "turn.cancelled")[0]["cause"], "unanswered", "{log:#?}");
    }

    let home = Home::new();
    let steps = touching(&home, "");
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.otherwise = Reply::Never;
    let prompt = agent.prompt(&session, "go").await;
    until_asked(&mut agent).await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "cancelled");
    assert_eq!((home.get("made"), agent.asked.len()), (None, 0), "the question is withdrawn");
    let view = agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
    assert_eq!((&view["status"], &view["waiting"]), (&json!("idle"), &json!(false)), "{view}");
    agent.finish().await;
}

#[tokio::test]
async fn request_after_the_turn_of_the_parent_belongs_to_no_turn() {
    let home = Home::new();
    home.config("[permissions]\nrules = [{ pattern = \"touch made\", policy = \"ask\" }]\n");
    let child = json!([bash("until [ -e go ]; do sleep 0.01; done"), bash("touch made"), {"text": "finished"}]);
    define(&home, "worker", "", child);
    let call = json!({"name": "task", "input": {"agent": "worker", "prompt": "work", "background": true}});
    let steps = json!([calls(&[call]), {"text": "started"}, says("finished", "It is done.")]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    agent.otherwise = Reply::Pick("allow_once");
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    home.put("go", "");
    while !harness::text(&agent.updates(&session), "agent_message_chunk").contains("It is done.") {
        agent.until_update("agent_message_chunk").await;
    }
    agent.finish().await;
    let log = home.log(&session).await;
    for kind in ["permission.requested", "permission.resolved"] {
        let events: Vec<&Value> = log.iter().filter(|event| event["body"]["type"] == kind).collect();
        assert_eq!((events.len(), events[0].get("turnId")), (1, None), "{kind}: {events:#?}");
    }
}
