//! Looking at a session is not having it: what other processes work in, let go and delete.

use serde_json::{Value, json};

use crate::harness::{Agent, Events, Home, Server};

/// More requests than any of these waits takes.
const LOOKS_MAX: usize = 2000;

fn slow() -> Value {
    json!([{"text": "word ".repeat(2000), "chunk_chars": 1, "delay_ms": 5}])
}

async fn initialized(home: &Home, steps: Value) -> Agent {
    let mut agent = home.start(&["--model", &home.script(steps)]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent
}

/// Kinds of the events up to the end of the stream.
async fn rest(mut events: Events) -> Vec<String> {
    events.rest().await.iter().map(|shown| shown.kind().to_string()).collect()
}

/// Asks until it is gone.
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

/// The owner dies in the midst of a turn. Whoever looks on sees the turn's end, and the owner's next life has the session at once.
#[tokio::test]
async fn who_looks_on_does_not_take_what_was_killed() {
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

        let mut agent = initialized(&home, json!([{"expect": "again", "text": "went on"}])).await;
        let (stop, _) = agent.turn(&session, "again").await;
        assert_eq!(stop, "end_turn", "{early} {looks}");
        let seen = reader.until("turn.completed").await;
        assert!(seen.iter().all(|shown| shown.kind() != "turn.interrupted"), "{seen:#?}");
        server.get(&path).expect(200).await;
        agent.finish().await;
    }
    server.stop().await;
}

/// The same between two servers.
#[tokio::test]
async fn who_looks_on_leaves_it_to_the_next_server() {
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
    let busy = watcher.prompt(&session, "mine").send().await;
    assert_eq!((busy.error(), &busy.json()["error"]["details"]["ownerPid"]), ((409, "session_busy".into()), &json!(owner.pid)));
    owner.stop().await;
    watcher.stop().await;
}

/// What another process deletes is gone here, too, whatever this one knew of it.
#[tokio::test]
async fn what_another_process_deletes_is_gone() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let mut agent = initialized(&home, json!([{"text": "one"}])).await;
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

/// A reader that is far behind when its session is deleted comes to the end.
#[tokio::test]
async fn a_reader_far_behind_comes_to_the_end_of_what_was_deleted() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "one"}]), &[]).await;
    let session = server.new_session(&home).await;
    server.post(&format!("/v1/sessions/{session}/close"), &json!({})).expect(200).await;
    crate::rows::fill(&home, 50_000, 2);
    // Readers that take hardly anything in, and are at the beginning yet.
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

/// The stream of all sessions says that one was deleted, to those who were there and to those who come behind it.
#[tokio::test]
async fn the_stream_of_all_tells_of_the_deleted() {
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

    // A day later nothing of it is there, and history still comes to its end.
    let db = rusqlite::Connection::open(home.data().join("nuncio.db")).unwrap();
    assert_eq!(db.execute("UPDATE sessions SET updated_ms = 1 WHERE head = 0", []).unwrap(), 1);
    drop(db);
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
