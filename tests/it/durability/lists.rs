//! Lists and views of sessions that another process owns: status, last turn, pending tool calls and
//! permission requests, also after a crash.

use serde_json::{Value, json};

use harness::steps::bash_call;
use harness::{Agent, Bridge, Home, Reply, Server, on_postgres};

async fn question(agent: &mut Agent) {
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
}

/// The activity of the only listed session. Asserts that the view of the session has the same.
async fn activity(server: &Bridge, session: &str) -> Value {
    let listed = server.get("/v1/sessions?empty=true").expect(200).await["sessions"][0].clone();
    let viewed = server.get(&format!("/v1/sessions/{session}")).expect(200).await;
    let fields = |of: &Value| ["status", "waiting", "lastTurn", "pendingToolCalls"].map(|field| of[field].clone());
    assert_eq!(fields(&listed), fields(&viewed), "the list and the view differ");
    listed
}

/// Asserts status, `waiting` and the status of the last turn.
fn check(activity: &Value, status: &str, waiting: bool, last_turn: Option<&str>) {
    assert_eq!((&activity["status"], &activity["waiting"]), (&json!(status), &json!(waiting)), "{activity}");
    assert_eq!(activity["lastTurn"]["status"], json!(last_turn), "{activity}");
}

fn calls(activity: &Value) -> Vec<[&str; 3]> {
    let calls = activity["pendingToolCalls"].as_array().unwrap_or_else(|| panic!("{activity}")).iter();
    calls.map(|call| ["title", "kind", "status"].map(|field| call[field].as_str().unwrap())).collect()
}

async fn permissions(server: &Bridge, query: &str) -> Vec<Value> {
    let listed = server.get(&format!("/v1/permissions{query}")).expect(200).await;
    listed["permissions"].as_array().unwrap().clone()
}

#[tokio::test]
async fn activity_of_session_is_listed_by_every_process() {
    let home = Home::new();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, home.work().join("pipe"), mode).unwrap();
    let error = json!({"error": {"status": 400, "times": 9}});
    let steps = json!([{"tool_calls": [bash_call("cat pipe")]}, {"text": "done"}, error]);
    let (mut agent, session) = home.session(steps, &[]).await;
    let server = home.serve_script(json!([]), &[]).await;
    agent.otherwise = Reply::Never;
    let idle = activity(&server, &session).await;
    check(&idle, "idle", false, None);
    assert_eq!(idle["pendingToolCalls"], json!([]), "{idle}");

    let prompt = agent.prompt(&session, "go").await;
    question(&mut agent).await;
    let waiting = activity(&server, &session).await;
    check(&waiting, "busy", true, Some("running"));
    assert_eq!(calls(&waiting), [["`cat pipe`", "execute", "pending"]], "{waiting}");
    let open = permissions(&server, "").await;
    assert_eq!(open.len(), 1, "{open:?}");
    let own = agent.call("_nuncio/permission/list", json!({})).await;
    assert_eq!(own["permissions"], json!(open));
    assert_eq!(permissions(&server, &format!("?sessionId={session}")).await, open);

    let answer = json!({"permissionId": open[0]["permissionId"], "outcome": "allow_once"});
    agent.call("_nuncio/permission/answer", answer).await;
    agent.until("the running call", |frame| frame["params"]["update"]["status"] == "in_progress").await;
    let running = activity(&server, &session).await;
    check(&running, "busy", false, Some("running"));
    assert_eq!(calls(&running), [["`cat pipe`", "execute", "in_progress"]], "{running}");
    assert_eq!(permissions(&server, "").await, Vec::<Value>::new());

    std::fs::write(home.work().join("pipe"), "text\n").unwrap();
    agent.answer(&prompt).await.unwrap();
    let done = activity(&server, &session).await;
    check(&done, "idle", false, Some("completed"));
    assert_eq!((&done["lastTurn"]["stopReason"], calls(&done).len()), (&json!("end_turn"), 0), "{done}");
    assert_eq!(done["lastTurn"]["turnId"], running["lastTurn"]["turnId"]);

    let prompt = agent.prompt(&session, "fail").await;
    agent.answer(&prompt).await.unwrap_err();
    let failed = activity(&server, &session).await;
    check(&failed, "idle", false, Some("failed"));
    assert_eq!(failed["lastTurn"]["error"]["code"], "model_error", "{failed}");
    assert!(!failed["lastTurn"]["error"]["message"].as_str().unwrap().is_empty(), "{failed}");

    agent.call("session/close", json!({"sessionId": session})).await;
    let closed = activity(&server, &session).await;
    check(&closed, "none", false, Some("failed"));
    assert_eq!(closed["lastTurn"], failed["lastTurn"]);
    agent.finish().await;
    server.stop().await;
}

/// A killed owner leaves a turn, a permission request and a tool call in the row of its session.
#[tokio::test]
async fn session_of_killed_process_is_listed_as_interrupted() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"tool_calls": [bash_call("true")]}]), &[]).await;
    let server = home.serve_script(json!([]), &[]).await;
    agent.otherwise = Reply::Never;
    agent.prompt(&session, "go").await;
    question(&mut agent).await;
    agent.kill().await;
    let listed = async |server: &Server| server.get("/v1/sessions").expect(200).await["sessions"][0].clone();
    let dead = listed(&server).await;
    check(&dead, "none", false, Some("interrupted"));
    assert_eq!(calls(&dead).len(), 0, "{dead}");
    assert_eq!(permissions(&server, "").await, Vec::<Value>::new());
    assert_eq!(permissions(&server, &format!("?sessionId={session}")).await, Vec::<Value>::new());
    let list = home.run(&["sessions", "list", "--json"], "").await;
    check(&list.lines()[0], "none", false, Some("interrupted"));
    if !on_postgres() {
        // A later process with the same id does not own the session.
        home.set_owner(&session, &server.pid.to_string());
    }
    check(&listed(&server).await, "none", false, Some("interrupted"));

    check(&activity(&server, &session).await, "none", false, Some("interrupted"));
    server.prompt(&session, "go on").expect(200).await;
    let after = activity(&server, &session).await;
    check(&after, "idle", false, Some("completed"));
    assert_eq!(calls(&after).len(), 0, "{after}");
    server.stop().await;
}

#[tokio::test]
async fn permission_requests_of_other_processes_are_listed_within_roots() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"tool_calls": [bash_call("true")]}]), &[]).await;
    agent.otherwise = Reply::Never;
    let prompt = agent.prompt(&session, "go").await;
    question(&mut agent).await;
    let server = home.serve_script(json!([]), &[]).await;
    let other = home.put("../other/x", "").parent().unwrap().to_path_buf();
    for (root, count, status) in [(home.work(), 1, 200), (other, 0, 403)] {
        let name = format!("token-{count}");
        let made = home.run(&["token", "new", &name, "--role", "observer", "--root", root.to_str().unwrap()], "").await;
        assert_eq!(made.code, 0, "{made:?}");
        let limited = server.with_token(made.stdout.trim());
        assert_eq!(permissions(&limited, "").await.len(), count, "{}", root.display());
        let of_session = limited.get(&format!("/v1/permissions?sessionId={session}")).send().await;
        assert_eq!(of_session.status, status, "{of_session:?}");
    }
    let busy = home.run(&["sessions", "list"], "").await;
    assert!(busy.stdout.contains("[waiting] go"), "{busy:?}");
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "cancelled");
    check(&activity(&server, &session).await, "idle", false, Some("cancelled"));
    let idle = home.run(&["sessions", "list"], "").await;
    assert!(idle.stdout.contains("[idle] go"), "{idle:?}");
    agent.finish().await;
    server.stop().await;
}

/// Forked and imported sessions, and sessions from a store of an older version, have a last turn.
#[tokio::test]
async fn copied_and_older_sessions_have_last_turn() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "one"}]), &[]).await;
    agent.turn(&session, "go").await;
    let forked = agent.call("session/fork", json!({"sessionId": session})).await["sessionId"].clone();
    agent.finish().await;
    let exported = home.run(&["sessions", "export", &session], "").await;
    let imported = home.run(&["sessions", "import", "-"], &exported.stdout).await;
    assert_eq!(imported.code, 0, "{imported:?}");
    let list = home.run(&["sessions", "list", "--json"], "").await.lines();
    let ids: Vec<&Value> = list.iter().map(|line| &line["sessionId"]).collect();
    assert!(list.len() == 3 && ids.contains(&&forked), "{list:?}");
    list.iter().for_each(|line| check(line, "none", false, Some("completed")));

    needs_sqlite!("migrates an older store of SQLite");
    let older = "DROP TABLE workspaces; ALTER TABLE events DROP COLUMN message_id; ALTER TABLE events DROP COLUMN event_type; ALTER TABLE events DROP COLUMN call; DROP INDEX sessions_waiting; DROP INDEX sessions_children; ALTER TABLE sessions DROP COLUMN parent; ALTER TABLE sessions DROP COLUMN turn; ALTER TABLE sessions DROP COLUMN waiting; \
                 ALTER TABLE sessions DROP COLUMN summary; ALTER TABLE sessions DROP COLUMN archived; PRAGMA user_version = 3";
    home.sql(older);
    // The last turn of an old row is unknown until the session changes.
    let server = home.serve_script(json!([]), &[]).await;
    let rows = server.get("/v1/sessions").expect(200).await["sessions"].as_array().unwrap().clone();
    assert_eq!(rows.len(), 3);
    rows.iter().for_each(|row| check(row, "none", false, None));
    let viewed = server.get(&format!("/v1/sessions/{session}")).expect(200).await;
    check(&viewed, "none", false, Some("completed"));
    server.ask("PUT", &format!("/v1/sessions/{session}/mode")).json(&json!({"modeId": "plan"})).expect(200).await;
    check(&activity(&server, &session).await, "idle", false, Some("completed"));
    server.stop().await;
    let reopened = home.run(&["sessions", "list", "--json"], "").await.lines();
    check(&reopened[0], "none", false, Some("completed"));
}
