//! Event streams: history, then live events without gaps or duplicates; cursors that stay valid.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::net::sockopt::tcp_user_timeout;
use rustix::net::{SocketAddrAny, getpeername};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use serde_json::{Value, json};

use harness::{Events, Home, Server, StreamEvent, needs_linux};

fn slow_text(text: &str) -> Value {
    json!({"text": text, "chunk_chars": 1, "delay_ms": 15})
}

fn events(shown: &[StreamEvent]) -> Vec<Value> {
    shown.iter().map(|shown| shown.event.clone()).collect()
}

/// Asserts that the next event of the stream directly follows `shown`.
async fn assert_continues(events: &mut Events, shown: &[StreamEvent]) -> u64 {
    let last = shown.last().unwrap().id;
    let next = events.next().await.unwrap().id;
    assert_eq!(next, last + 1);
    last
}

#[tokio::test]
async fn stream_sends_history_then_live_events() {
    let home = Home::new();
    // The second turn ends after the file `go` exists.
    let wait = json!({"name": "bash", "input": {"command": "until [ -e go ]; do sleep 0.01; done"}});
    let mut second = slow_text("klmnopqrst");
    second["tool_calls"] = json!([wait]);
    let steps = json!([slow_text("abcdefghij"), second, slow_text("done"), slow_text("uvwxyz")]);
    let server = home.serve_script(steps, &["--mode", "auto"]).await;
    let session = server.new_session(&home).await;
    server.prompt(&session, "a").expect(200).await;
    // One reader connects before a turn, one during the turn, one after the turn.
    let mut early = server.follow(&session).events().await;
    let mut seen = early.history().await;
    assert_eq!(early.synced, Some(seen.last().unwrap().id));
    server.begin(&session, "b").await;
    seen.extend(early.until("message.delta").await);
    let mut middle = server.follow(&session).events().await;
    let mut live = middle.history().await;
    home.put("go", "");
    live.extend(middle.until("turn.completed").await);
    seen.extend(early.until("turn.completed").await);
    assert!(middle.synced.is_some_and(|cursor| cursor < live.last().unwrap().id && cursor >= seen[0].id));
    let mut late = server.follow(&session).events().await;
    let history = late.history().await;
    let log = home.log(&session).await;
    for shown in [&seen, &live, &history] {
        assert_eq!(events(shown), log);
        assert!(shown.iter().all(|shown| shown.event["seq"] == shown.id), "{shown:?}");
    }
    drop(early);
    server.begin(&session, "c").await;
    assert_eq!(assert_continues(&mut late, &history).await, assert_continues(&mut middle, &live).await);
    late.until("turn.completed").await;
    server.stop().await;
    // The stream ends properly when the server stops.
    assert!(late.next().await.is_none());
}

#[tokio::test]
async fn stream_is_filtered_by_cursor_type_and_turn() {
    let home = Home::new();
    home.put("a.txt", "one\n");
    let read = json!({"name": "read", "input": {"file_path": "a.txt"}});
    let server =
        home.serve_script(json!([{"text": "reads", "tool_calls": [read]}, slow_text("end"), slow_text("second")]), &[]).await;
    let session = server.new_session(&home).await;
    server.prompt(&session, "a").expect(200).await;
    let turn = server.begin(&session, "b").await;
    let all = server.follow(&session).events().await;
    let head = { all }.until("turn.completed").await.len() as u64;
    let log = { server.follow(&session).events().await }.until("turn.completed").await;
    assert_eq!(log.len() as u64, head);
    let mut whole = server.follow(&session).events().await;
    whole.until("turn.completed").await;
    whole.until("turn.completed").await;
    let log = home.log(&session).await;
    let path = format!("/v1/sessions/{session}/events");
    type Keep<'a> = Box<dyn Fn(&Value) -> bool + 'a>;
    let kind = |event: &Value| event["body"]["type"].as_str().unwrap().to_string();
    let after = |cursor: u64| -> Keep<'_> { Box::new(move |event| event["seq"].as_u64().unwrap() > cursor) };
    let cases: Vec<(&str, &str, Keep<'_>)> = vec![
        ("", "", after(0)),
        ("?after=0", "", after(0)),
        ("?after=3", "", after(3)),
        ("?after=3", "5", after(5)),
        ("?after=5", "3", after(3)),
        ("?after=99999", "3", after(3)),
        ("", "7", after(7)),
        ("?types=tool.*", "", Box::new(|event| kind(event).starts_with("tool."))),
        ("?types=tool.started,turn.*", "", Box::new(|event| kind(event) == "tool.started" || kind(event).starts_with("turn."))),
        (
            "?types=tool.started%2C%20turn.completed",
            "",
            Box::new(|event| ["tool.started", "turn.completed"].contains(&kind(event).as_str())),
        ),
        ("?types=nothing", "", Box::new(|_| false)),
        ("?types=*", "", after(0)),
        ("?turn=nobody", "", Box::new(|_| false)),
        ("?turn={t}", "", Box::new(|event| event["turnId"] == turn.as_str())),
        (
            "?turn={t}&types=message.completed&after=4",
            "",
            Box::new(|event| event["turnId"] == turn.as_str() && kind(event) == "message.completed"),
        ),
    ];
    for (query, last, keep) in cases {
        let mut ask = server.get(&format!("{path}{}", query.replace("{t}", &turn)));
        if !last.is_empty() {
            ask = ask.header("last-event-id", last);
        }
        let expected: Vec<Value> = log.iter().filter(|event| keep(event)).cloned().collect();
        assert_eq!(events(&ask.events().await.history().await), expected, "{query} {last}");
    }
    server.stop().await;
}

/// A cursor that is not a number of this stream is an error.
#[tokio::test]
async fn invalid_cursors_are_refused() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let session = server.new_session(&home).await;
    let of_session = format!("/v1/sessions/{session}/events");
    for path in [of_session.as_str(), "/v1/events"] {
        for cursor in [
            "1000",
            "-1",
            "x",
            "1.5",
            "1e3",
            "0x1",
            "99999999999999999999",
            "9223372036854775808",
            "18446744073709551615",
            "9007199254740993",
            "%00",
        ] {
            let by_query = server.get(&format!("{path}?after={cursor}")).send().await;
            assert_eq!(by_query.error(), (400, "invalid_params".into()), "{path} {cursor}");
            let by_header = server.get(path).header("last-event-id", cursor).send().await;
            assert_eq!(by_header.error(), (400, "invalid_params".into()), "{path} {cursor}");
        }
        for query in ["after=", "after=1&after=1", "wrong=1", "sessionid=x", "types=a&types=b"] {
            let answer = server.get(&format!("{path}?{query}")).send().await;
            assert_eq!(answer.error(), (400, "invalid_params".into()), "{path} {query}");
        }
        // An empty cursor is the start of the stream.
        server.get(path).header("last-event-id", "").events().await.history().await;
    }
    server.stop().await;
}

/// A stream stays open when its session is closed and ends when the session is deleted.
#[tokio::test]
async fn stream_stays_open_after_close() {
    let home = Home::new();
    let server = home.serve_script(json!([slow_text("one")]), &[]).await;
    let session = server.new_session(&home).await;
    let mut reader = server.follow(&session).events().await;
    for _ in 0..5 {
        server.prompt(&session, "go").expect(200).await;
        server.ask("POST", &format!("/v1/sessions/{session}/close")).expect(200).await;
        reader.until("session.closed").await;
    }
    server.prompt(&session, "go").expect(200).await;
    reader.until("turn.completed").await;
    let facts: Vec<Value> = home.log(&session).await;
    let mut late = server.follow(&session).events().await;
    assert_eq!(events(&late.history().await), facts);

    server.ask("DELETE", &format!("/v1/sessions/{session}")).expect(200).await;
    for reader in [&mut reader, &mut late] {
        assert!(reader.rest().await.iter().all(|shown| shown.kind() == "session.deleted"));
    }
    assert_eq!(server.follow(&session).send().await.error(), (404, "not_found".into()));
    server.stop().await;
}

/// History without the pruned deltas still contains the whole messages.
#[tokio::test]
async fn pruned_deltas_keep_the_messages() {
    let home = Home::new();
    let server = home.serve_script(json!([slow_text("abcdefghijklmnop")]), &[]).await;
    let session = server.new_session(&home).await;
    server.prompt(&session, "go").expect(200).await;
    let before = { server.follow(&session).events().await }.history().await;
    let deltas: Vec<u64> = before.iter().filter(|shown| shown.kind() == "message.delta").map(|shown| shown.id).collect();
    assert!(deltas.len() > 2, "{before:?}");
    server.ask("POST", &format!("/v1/sessions/{session}/close")).expect(200).await;
    let facts: Vec<&StreamEvent> = before.iter().filter(|shown| shown.kind() != "message.delta").collect();
    for after in [0, deltas[0], deltas[1], *deltas.last().unwrap()] {
        let shown = { server.get(&format!("/v1/sessions/{session}/events?after={after}")).events().await }.history().await;
        let expected: Vec<&StreamEvent> = facts.iter().filter(|shown| shown.id > after).copied().collect();
        let (last, facts) = shown.split_last().unwrap();
        assert_eq!(facts.iter().collect::<Vec<_>>(), expected, "after {after}");
        assert_eq!(last.kind(), "session.closed");
    }
    server.stop().await;
}

/// The stream of all sessions has each event once, in an order that survives a restart.
#[tokio::test]
async fn stream_of_all_sessions_keeps_order_across_restart() {
    let home = Home::new();
    let server = home.serve_script(json!([slow_text("abcdefgh")]), &[]).await;
    let mut live = server.get("/v1/events").events().await;
    live.history().await;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(server.new_session(&home).await);
    }
    futures_util::future::join_all(sessions.iter().map(|session| async { server.prompt(session, "go").expect(200).await })).await;
    let mut seen = Vec::new();
    for _ in &sessions {
        seen.extend(live.until("turn.completed").await);
    }
    let again = { server.get("/v1/events").events().await }.history().await;
    assert_eq!(again, seen);
    for session in &sessions {
        let of_session: Vec<Value> = events(&seen).into_iter().filter(|event| event["sessionId"] == session.as_str()).collect();
        assert_eq!(of_session, home.log(session).await);
    }
    let cursor = seen[seen.len() / 2].id;
    server.kill().await;
    let server = home.serve_script(json!([slow_text("abcdefgh")]), &[]).await;
    let mut resumed = server.get("/v1/events?types=message.*,turn.*").header("last-event-id", &cursor.to_string()).events().await;
    let selected = |one: &&StreamEvent| one.id > cursor && (one.kind().starts_with("message.") || one.kind().starts_with("turn."));
    let expected: Vec<StreamEvent> = seen.iter().filter(selected).cloned().collect();
    assert_eq!(resumed.history().await, expected);
    let turn = server.begin(&sessions[0], "again").await;
    assert!(resumed.until("turn.completed").await.iter().all(|shown| shown.event["turnId"] == turn.as_str()));
    server.stop().await;
}

/// A stream shows the events that another process adds to a session.
#[tokio::test]
async fn stream_shows_events_of_another_process() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([slow_text("abcdefghij"), slow_text("klm")]), &[]).await;
    let server = home.serve_script(json!([slow_text("mine")]), &[]).await;
    let mut one = server.follow(&session).events().await;
    let mut all = server.get("/v1/events").events().await;
    one.history().await;
    all.history().await;
    let mut seen: [Vec<StreamEvent>; 2] = Default::default();
    for text in ["a", "b"] {
        agent.turn(&session, text).await;
        seen[0].extend(one.until("turn.completed").await);
        seen[1].extend(all.until("turn.completed").await);
    }
    let log = home.log(&session).await;
    assert_eq!(events(&seen[0]), log[1..]);
    assert_eq!(events(&seen[1]), log[1..]);
    // This server opens the session after the other process exits, and the readers continue.
    agent.finish().await;
    server.prompt(&session, "c").expect(200).await;
    let last = one.until("turn.completed").await;
    assert_eq!(events(&last), home.log(&session).await[log.len()..]);
    server.stop().await;
}

/// The stream of a token with roots ends when the session moves outside the roots, and shows no
/// events from there.
#[tokio::test]
async fn stream_ends_when_its_session_leaves_the_roots_of_the_token() {
    let home = Home::new();
    for dir in ["inner", "other"] {
        std::fs::create_dir_all(home.work().join(dir)).unwrap();
    }
    let server = home.serve_script(json!([slow_text("inside"), slow_text("outside")]), &[]).await;
    let (inner, other) = (home.work().join("inner"), home.work().join("other"));
    let made = home.run(&["token", "new", "narrow", "--root", inner.to_str().unwrap()], "").await;
    let narrow = server.with_token(made.stdout.trim());
    let session = server.post("/v1/sessions", &json!({"cwd": inner})).expect(201).await["sessionId"].as_str().unwrap().to_string();
    let mut events = narrow.follow(&session).events().await;
    let mut all = narrow.get("/v1/events").events().await;
    server.prompt(&session, "a").expect(200).await;
    events.until("turn.completed").await;
    all.until("turn.completed").await;
    server.post(&format!("/v1/sessions/{session}/resume"), &json!({"cwd": other})).expect(200).await;
    server.prompt(&session, "b").expect(200).await;
    let seen = events.rest().await;
    assert!(seen.iter().all(|shown| !shown.event.to_string().contains("other")), "{seen:?}");
    assert!(seen.iter().all(|shown| shown.kind() == "session.updated"), "{seen:?}");
    assert_eq!(narrow.follow(&session).send().await.error(), (403, "forbidden".into()));
    // The stream of all sessions continues with the sessions inside the roots.
    let next = narrow.post("/v1/sessions", &json!({"cwd": inner})).expect(201).await;
    let shown = all.until("session.created").await;
    assert_eq!(shown.last().unwrap().event["sessionId"], next["sessionId"]);
    assert!(shown.iter().all(|shown| !shown.event.to_string().contains("outside")), "{shown:?}");
    server.stop().await;
}

#[tokio::test]
async fn proxies_are_told_not_to_buffer_streams() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "done"}]), &[]).await;
    let session = server.new_session(&home).await;
    server.prompt(&session, "go").expect(200).await;
    let paths = [format!("/v1/sessions/{session}/events"), "/v1/events".into()];
    let asks =
        paths.iter().map(|path| server.get(path)).chain([server.prompt(&session, "go").header("accept", "text/event-stream")]);
    for ask in asks {
        let mut connection = ask.open().await;
        let head = connection.head().await.unwrap();
        let header = |name| head.header(name);
        assert_eq!((header("content-type"), header("x-accel-buffering")), (Some("text/event-stream"), Some("no")), "{head:?}");
    }
    let answer = server.get(&format!("/v1/sessions/{session}")).send().await;
    assert_eq!(answer.header("x-accel-buffering"), None, "{answer:?}");
    server.stop().await;
}

/// A client whose machine is gone acknowledges nothing. Without this limit, the kernel waits for it
/// for about 15 minutes, and so does a permission request that it could answer.
#[tokio::test]
async fn stream_to_a_machine_that_is_gone_ends_within_two_heartbeats() {
    needs_linux!("socket options");
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "ok"}]), &[]).await;
    let session = server.new_session(&home).await;
    let mut client = std::net::TcpStream::connect(server.address).unwrap();
    let request = format!(
        "GET /v1/sessions/{session}/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        server.address, server.token
    );
    client.write_all(request.as_bytes()).unwrap();
    let mut head = [0; 12];
    client.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    let limit = server_sockets(&server).into_iter().find_map(|socket| {
        let peer = getpeername(&socket).ok().flatten()?;
        (peer == SocketAddrAny::from(client.local_addr().unwrap())).then(|| tcp_user_timeout(&socket).unwrap())
    });
    assert_eq!(limit, Some(30_000), "milliseconds");
    server.stop().await;
}

/// Returns copies of the sockets of the server.
fn server_sockets(server: &Server) -> Vec<OwnedFd> {
    let process = pidfd_open(server.process(), PidfdFlags::empty()).unwrap();
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.pid)).unwrap().flatten();
    let sockets = open.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|name| name.to_string_lossy().starts_with("socket:")));
    let number = |fd: std::fs::DirEntry| fd.file_name().to_string_lossy().parse().unwrap();
    sockets.filter_map(|fd| pidfd_getfd(&process, number(fd), PidfdGetfdFlags::empty()).ok()).collect()
}
