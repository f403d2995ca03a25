//! Reads of sessions that other processes own, release and delete. A read does not take ownership.

use serde_json::{Value, json};

use harness::{Agent, Events, Home, Server};

/// Maximum number of requests before a wait fails.
const LOOKS_MAX: usize = 2000;

fn slow() -> Value {
    json!([{"text": "word ".repeat(2000), "chunk_chars": 1, "delay_ms": 5}])
}

async fn start_initialized(home: &Home, steps: Value) -> Agent {
    let mut agent = home.start(&["--model", &home.script(steps)]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent
}

/// Kinds of the events until the end of the stream.
async fn rest(mut events: Events) -> Vec<String> {
    events.rest().await.iter().map(|shown| shown.kind().to_string()).collect()
}

/// Requests the session until the answer is 404.
async fn until_gone(server: &Server, session: &str) {
    for _ in 0..LOOKS_MAX {
        let answer = server.get(&format!("/v1/sessions/{session}")).send().await;
        if answer.status == 404 {
            assert_eq!(answer.error(), (404, "not_found".into()));
            return;
        }
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    panic!("{session} is still there");
}

/// The owner is killed during a turn. A reader sees the end of the turn, and the restarted owner
/// can open the session at once.
#[tokio::test]
async fn reader_does_not_take_session_of_killed_agent() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    for (early, looks) in [(true, ""), (true, "/messages"), (false, ""), (false, "/messages"), (false, "/turns")] {
        let (mut agent, session) = home.session(slow(), &[]).await;
        let path = format!("/v1/sessions/{session}{looks}");
        let reader = if early { Some(server.follow(&session).events().await) } else { None };
        agent.prompt(&session, "go").await;
        agent.until_update("agent_message_chunk").await;
        if early {
            server.get(&path).expect(200).await;
        }
        agent.kill().await;
        server.get(&path).expect(200).await;
        let mut reader = match reader {
            Some(reader) => reader,
            None => server.follow(&session).events().await,
        };
        reader.until("turn.interrupted").await;

        let mut agent = start_initialized(&home, json!([{"expect": "again", "text": "went on"}])).await;
        let (stop, _) = agent.turn(&session, "again").await;
        assert_eq!(stop, "end_turn", "{early} {looks}");
        let seen = reader.until("turn.completed").await;
        assert!(seen.iter().all(|shown| shown.kind() != "turn.interrupted"), "{seen:#?}");
        server.get(&path).expect(200).await;
        agent.finish().await;
    }
    server.stop().await;
}

/// Repeats the test above with a server as the owner of the session.
#[tokio::test]
async fn reader_does_not_take_session_of_killed_server() {
    let home = Home::new();
    let watcher = home.serve_script(json!([]), &[]).await;
    let owner = home.serve_script(slow(), &[]).await;
    let session = owner.new_session(&home).await;
    let mut reader = watcher.follow(&session).events().await;
    owner.begin(&session, "go").await;
    reader.until("message.delta").await;
    owner.kill().await;
    reader.until("turn.interrupted").await;
    let owner = home.serve_script(json!([{"expect": "again", "text": "went on"}]), &[]).await;
    owner.prompt(&session, "again").expect(200).await;
    reader.until("turn.completed").await;
    watcher.prompt(&session, "to the owner").expect(200).await;
    assert_eq!(reader.until("turn.completed").await.last().unwrap().event["body"]["stopReason"], "end_turn");
    owner.stop().await;
    watcher.stop().await;
}

/// A session that another process deletes is gone in this process, in every state of the session
/// here.
#[tokio::test]
async fn session_deleted_by_another_process_is_not_found() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let mut agent = start_initialized(&home, json!([{"text": "one"}])).await;
    for (looked, followed, prompts) in
        [(true, true, false), (true, false, false), (true, false, true), (true, true, true), (false, false, true)]
    {
        let session = agent.new_session(&home).await;
        agent.turn(&session, "go").await;
        let path = format!("/v1/sessions/{session}");
        if looked {
            server.get(&path).expect(200).await;
        }
        let reader = if followed { Some(server.follow(&session).events().await) } else { None };
        agent.call("session/delete", json!({"sessionId": session})).await;
        if prompts {
            assert_eq!(server.prompt(&session, "mine").send().await.error(), (404, "not_found".into()));
        }
        until_gone(&server, &session).await;
        if let Some(reader) = reader {
            let seen = rest(reader).await;
            assert_eq!(seen.iter().filter(|kind| *kind == "session.deleted").count(), 1, "{seen:?}");
        }
        assert_eq!(server.prompt(&session, "mine").send().await.error(), (404, "not_found".into()));
        assert_eq!(server.follow(&session).send().await.error(), (404, "not_found".into()));
    }
    agent.finish().await;
    server.stop().await;
}

/// A reader far behind in a deleted session reaches the end of the stream.
#[tokio::test]
async fn slow_reader_reaches_end_of_deleted_session() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "one"}]), &[]).await;
    let session = server.new_session(&home).await;
    server.post(&format!("/v1/sessions/{session}/close"), &json!({})).expect(200).await;
    crate::extension_methods::fill(&home, 50_000, 2);
    // These readers have small receive buffers and are at the start of the log.
    let mut readers = Vec::new();
    for after in [0, 3, 2000] {
        let mut connection = server.follow(&session).header("last-event-id", &after.to_string()).open_narrow().await;
        let head = connection.head().await.unwrap();
        let mut events = Events::new(connection, head);
        assert!(events.next().await.unwrap().id > after);
        readers.push(events);
    }
    let early = server.get(&format!("/v1/sessions/{session}/events?types=session.*")).events().await;
    server.ask("DELETE", &format!("/v1/sessions/{session}")).expect(200).await;
    for reader in readers {
        assert_eq!(rest(reader).await.last().map(String::as_str), Some("session.deleted"));
    }
    rest(early).await;
    server.stop().await;
}

/// The stream of all sessions reports a deletion to connected readers and to later ones.
#[tokio::test]
async fn stream_of_all_sessions_reports_deletion() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "one", "chunk_chars": 1}]), &[]).await;
    let kept = server.new_session(&home).await;
    let mut live = server.get("/v1/events").events().await;
    let cursor = live.history().await.last().unwrap().id;
    let session = server.new_session(&home).await;
    server.prompt(&session, "go").expect(200).await;
    server.ask("DELETE", &format!("/v1/sessions/{session}")).expect(200).await;
    let deleted = live.until("session.deleted").await.pop().unwrap();
    assert_eq!(deleted.event["sessionId"], session.as_str());
    for after in [0, cursor, cursor + 1] {
        let shown = { server.get("/v1/events").header("last-event-id", &after.to_string()).events().await }.history().await;
        let of_deleted: Vec<_> = shown.iter().filter(|shown| shown.event["sessionId"] == session.as_str()).collect();
        assert_eq!(of_deleted, [&deleted], "after {after}");
    }
    server.stop().await;

    // After a day the log contains no event of the session, and history still reaches its end.
    assert_eq!(home.sql("UPDATE sessions SET updated_ms = 1 WHERE head = 0 RETURNING id").len(), 1);
    let server = home.serve_script(json!([{"text": "one"}]), &[]).await;
    for after in [0, cursor, deleted.id] {
        let mut all = server.get("/v1/events").header("last-event-id", &after.to_string()).events().await;
        let shown = all.history().await;
        assert!(shown.iter().all(|shown| shown.event["sessionId"] == kept.as_str()), "{shown:#?}");
        server.prompt(&kept, "go").expect(200).await;
        assert!(all.until("turn.completed").await[0].id > deleted.id);
    }
    server.stop().await;
}
