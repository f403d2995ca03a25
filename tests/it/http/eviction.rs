//! Sessions that other clients close and prompt again, prompts between two turns, and eviction of
//! idle sessions.

use serde_json::{Value, json};

use harness::peak_kib;
use harness::{Connection, Home, Reply, Server, bounded, session_updates, text};
use harness::{marked, marker};

fn text_step(text: &str) -> Value {
    json!({ "text": text })
}

/// An editor receives the updates of its session after another client closes and prompts the
/// session.
#[tokio::test]
async fn editor_receives_updates_after_other_client_closes_and_prompts() {
    let home = Home::new();
    let ask = json!({"text": "asks", "tool_calls": [{"name": "bash", "input": {"command": "true"}}]});
    // The script starts at its first step each time the session opens.
    let model = home.script(json!([ask, text_step("allowed")]));
    let (mut agent, bridge) = home.start_with_bridge(&["--model", &model]).await;
    agent.otherwise = Reply::Pick("allow_once");
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = agent.new_session(&home).await;
    let close = bridge.post(&format!("/v1/sessions/{session}/close"), &json!({}));
    agent.turn(&session, "mine").await;
    for round in 0..5 {
        close.expect(200).await;
        let before = agent.frames.len();
        bridge.begin(&session, &format!("round {round}")).await;
        // The editor answers the permission request.
        while !text(&session_updates(&agent.frames[before..], &session), "agent_message_chunk").ends_with("allowed") {
            agent.until_update("agent_message_chunk").await;
        }
        let updates = session_updates(&agent.frames[before..], &session);
        assert_eq!(text(&updates, "user_message_chunk"), format!("round {round}"));
        assert_eq!(text(&updates, "agent_message_chunk"), "asksallowed");
        bridge.follow(&session).events().await.until("turn.completed").await;
    }
    agent.finish().await;
}

/// An editor that closes a session receives no further updates of the session.
#[tokio::test]
async fn editor_receives_no_updates_after_its_own_close() {
    let home = Home::new();
    let (mut agent, bridge) = home.start_with_bridge(&["--model", &home.script(json!([text_step("one"), text_step("two")]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = agent.new_session(&home).await;
    let other = agent.new_session(&home).await;
    for closed_before in [false, true] {
        agent.turn(&session, "mine").await;
        if closed_before {
            // Another client closes the session first.
            bridge.post(&format!("/v1/sessions/{session}/close"), &json!({})).expect(200).await;
        }
        agent.call("session/close", json!({"sessionId": session})).await;
        let before = agent.frames.len();
        for text in ["not", "for", "it"] {
            bridge.prompt(&session, text).expect(200).await;
            agent.turn(&other, "meanwhile").await;
        }
        assert_eq!(session_updates(&agent.frames[before..], &session), Vec::<Value>::new());
        // The editor receives the session again when it loads the session.
        let replayed = agent.load(&home, &session).await;
        assert!(text(&replayed, "user_message_chunk").ends_with("notforit"), "{replayed:?}");
    }
    agent.finish().await;
}

/// The texts of the user messages of each turn, in order.
async fn user_texts(server: &Server, session: &str) -> Vec<Vec<String>> {
    let mut turns: Vec<Vec<String>> = Vec::new();
    for shown in { server.follow(session).events().await }.history().await {
        match shown.kind() {
            "turn.started" => turns.push(Vec::new()),
            "message.completed" if shown.event["body"]["role"] == "user" => {
                let said = shown.event["body"]["parts"][0]["text"].as_str().unwrap();
                turns.last_mut().unwrap().push(said.into());
            }
            _ => {}
        }
    }
    turns
}

/// A prompt at the end of a turn does not take queued messages into its own turn.
#[tokio::test]
async fn prompt_between_turns_does_not_take_queued_messages() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "abcdefgh", "chunk_chars": 1, "delay_ms": 1}]), &[]).await;
    for round in 0..30 {
        let session = server.new_session(&home).await;
        let mut reader = server.follow(&session).events().await;
        server.begin(&session, "first").await;
        for text in ["one", "two", "three"] {
            let message = json!({"parts": [{"type": "text", "text": text}], "delivery": "queue"});
            server.post(&format!("/v1/sessions/{session}/messages"), &message).expect(202).await;
        }
        let between = server.prompt(&session, "between").header("prefer", "respond-async");
        let hammer = async {
            // This client retries continuously. The other client prompts at the end of the turn.
            let mut connection = Connection::open(server.address).await.unwrap();
            loop {
                let answer = between.over(&mut connection).await;
                if answer.status == 202 {
                    return;
                }
                assert_eq!(answer.error(), (409, "session_busy".into()));
            }
        };
        let at_its_moment = async {
            if round % 2 == 0 {
                reader.until("turn.completed").await;
                let answer = server.prompt(&session, "moment").header("prefer", "respond-async").send().await;
                assert!(answer.status == 202 || answer.error() == (409, "session_busy".into()), "{answer:?}");
                return usize::from(answer.status == 202);
            }
            0
        };
        let ((), more) = bounded("both prompts", async { tokio::join!(hammer, at_its_moment) }).await;
        let mut all = server.follow(&session).events().await;
        for _ in 0..5 + more {
            all.until("turn.completed").await;
        }
        let mut turns = user_texts(&server, &session).await;
        assert!(turns.iter().all(|said| said.len() == 1), "round {round}: {turns:?}");
        turns.retain(|said| !["between", "moment"].contains(&said[0].as_str()));
        assert_eq!(turns.concat(), ["first", "one", "two", "three"], "round {round}");
        server.post(&format!("/v1/sessions/{session}/close"), &json!({})).expect(200).await;
    }
    server.stop().await;
}

/// Returns true if no process owns the session, as another process sees it.
async fn is_free(home: &Home, session: &str) -> bool {
    let listed = home.run(&["sessions", "list", "--json"], "").await.stdout;
    let mut sessions = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    sessions.find(|listed| listed["sessionId"] == session).unwrap()["status"] == "none"
}

/// The server evicts the least recently used session, but no session with a reader.
#[tokio::test]
async fn least_recently_used_session_is_evicted() {
    let home = Home::new();
    home.config("[http]\nmax_sessions = 2\n");
    let server = home.serve_script(json!([text_step("one")]), &[]).await;
    let open = async || server.get("/v1/status").expect(200).await["sessions"]["open"].as_u64().unwrap();
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(server.new_session(&home).await);
    }
    for _ in 0..5 {
        for session in &sessions {
            server.prompt(session, "go").expect(200).await;
            assert!(open().await <= 2);
        }
    }
    let free = [is_free(&home, &sessions[0]).await, is_free(&home, &sessions[1]).await, is_free(&home, &sessions[2]).await];
    assert_eq!(free, [true, false, false]);

    // The first session has a reader and is not evicted.
    let mut reader = server.follow(&sessions[0]).events().await;
    reader.history().await;
    for session in sessions[1..].iter().cycle().take(6) {
        server.prompt(session, "go").expect(200).await;
    }
    server.prompt(&sessions[0], "go").expect(200).await;
    reader.until("turn.completed").await;
    assert!(!is_free(&home, &sessions[0]).await);
    // Two sessions with readers leave no room until one reader disconnects.
    let second = server.follow(&sessions[1]).events().await;
    for _ in 0..3 {
        assert_eq!(server.prompt(&sessions[2], "go").send().await.error(), (503, "overloaded".into()));
    }
    drop(second);
    let mut tries = 0..100;
    while server.prompt(&sessions[2], "go").send().await.status != 200 {
        assert!(tries.next().is_some(), "the reader is gone, and its session is not");
    }
    server.prompt(&sessions[0], "go").expect(200).await;
    reader.until("turn.completed").await;
    server.stop().await;
}

/// A session with a background job is in use.
#[tokio::test]
async fn session_with_a_background_job_is_not_evicted() {
    let home = Home::new();
    home.config("[http]\nmax_sessions = 2\n");
    let marker = marker();
    let job = json!({"command": format!("sleep 600 {marker}"), "background": true});
    let steps = json!([{"tool_calls": [{"name": "bash", "input": job}]}, text_step("started")]);
    let server = home.serve_script(steps, &["--mode", "auto"]).await;
    let busy = server.new_session(&home).await;
    server.prompt(&busy, "go").expect(200).await;
    let start = async {
        while marked(&marker).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    bounded("the job", start).await;
    let others = [server.new_session(&home).await, server.new_session(&home).await];
    for session in others.iter().cycle().take(6) {
        server.get(&format!("/v1/sessions/{session}")).expect(200).await;
    }
    assert!(!marked(&marker).is_empty());
    assert!(!is_free(&home, &busy).await);
    server.stop().await;
    assert!(marked(&marker).is_empty());
}

/// A request uses a session only for a short time and causes no refusals of other requests.
#[tokio::test]
async fn concurrent_reads_of_more_sessions_than_the_limit_succeed() {
    let home = Home::new();
    home.config("[http]\nmax_sessions = 2\n");
    let server = home.serve_script(json!([]), &[]).await;
    let mut sessions = Vec::new();
    for _ in 0..5 {
        sessions.push(server.new_session(&home).await);
    }
    let look = async |first: usize| {
        let mut connection = Connection::open(server.address).await.unwrap();
        for session in sessions.iter().cycle().skip(first).take(200) {
            let answer = server.get(&format!("/v1/sessions/{session}")).over(&mut connection).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    };
    tokio::join!(look(0), look(1), look(2), look(3));
    server.stop().await;
}

/// An evicted session can be used again at once, without `session_busy` or `overloaded` errors.
#[tokio::test]
async fn evicted_session_can_be_used_at_once() {
    let home = Home::new();
    home.config("[http]\nmax_sessions = 4\n");
    let server = home.serve_script(json!([{"text": "abcdefgh", "chunk_chars": 1}]), &[]).await;
    // A stream of all sessions reads the open sessions during the test.
    let mut all = server.get("/v1/events").events().await;
    all.history().await;
    let mut sessions = Vec::new();
    for _ in 0..8 {
        sessions.push(server.new_session(&home).await);
    }
    let works = async |mine: &[String]| {
        for session in mine.iter().cycle().take(80) {
            server.prompt(session, "go").expect(200).await;
        }
    };
    let creates = async {
        for _ in 0..80 {
            server.new_session(&home).await;
        }
    };
    tokio::join!(works(&sessions[..4]), works(&sessions[4..]), creates);
    for _ in 0..160 {
        all.until("turn.completed").await;
    }
    server.stop().await;
}

/// The size of a message that links one attachment many times is limited.
#[tokio::test]
async fn attachment_linked_many_times_is_too_large() {
    use base64::Engine;
    const TIMES: usize = 500;
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let session = server.new_session(&home).await;
    let mut uris = Vec::new();
    // The text is embedded in the message. The binary file is only named.
    for (name, content) in [("a.txt", vec![b'a'; 1 << 20]), ("b.bin", vec![0xff; 4 << 20])] {
        let file = json!({"name": name, "data": base64::engine::general_purpose::STANDARD.encode(content)});
        let added = server.post(&format!("/v1/sessions/{session}/attachments"), &file).expect(201).await;
        uris.push(added["uri"].clone());
    }
    let before = peak_kib(server.pid);
    for uri in &uris {
        let link = json!({"type": "resource_link", "name": "x", "uri": uri});
        for (path, parts) in [("prompt", "prompt"), ("messages", "parts")] {
            let message = json!({parts: vec![&link; TIMES]});
            let answer = server.post(&format!("/v1/sessions/{session}/{path}"), &message).send().await;
            assert_eq!(answer.error(), (413, "too_large".into()), "{path} {uri}");
        }
    }
    let grown = peak_kib(server.pid) - before;
    assert!(grown < 64 << 10, "{grown} KiB more");
    assert_eq!(user_texts(&server, &session).await, Vec::<Vec<String>>::new());
    // A message with one link is accepted.
    let few = json!({"prompt": [{"type": "resource_link", "name": "x", "uri": uris[0]}]});
    server.post(&format!("/v1/sessions/{session}/prompt"), &few).expect(200).await;
    server.stop().await;
}
