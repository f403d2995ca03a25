//! Order across processes: requests on one connection take effect in the order in which they were
//! sent, and a response follows the last update of its turn.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::{assert_complete, editor, endless, kinds, prompt, says, sockets};
use harness::frame;
use harness::steps::asks;
use harness::{Agent, Home, bounded, session_updates, text};

/// An editor that owns a session, and an editor of another process that loaded it.
async fn two_editors(steps: Value) -> (Home, Agent, Agent, String) {
    let home = Home::new();
    let model = home.script(steps);
    let mut owner = editor(&home, &model, &[]).await;
    let session = owner.new_session(&home).await;
    let mut other = editor(&home, &home.script(json!([says("taken over")])), &[]).await;
    other.load(&home, &session).await;
    (home, owner, other, session)
}

/// The stop reasons of pipelined requests, the texts of the agent between their answers, and the
/// user messages of the turns that ran.
async fn pipelined(agent: &mut Agent, session: &str, requests: &str, ids: &[u64]) -> Vec<String> {
    let before = agent.frames.len();
    agent.raw(requests.as_bytes()).await;
    for id in ids {
        agent.answer(&json!(id)).await.unwrap_or_else(|error| panic!("{id}: {error}"));
    }
    let mut order = Vec::new();
    for frame in &agent.frames[before..] {
        let update = &frame["params"]["update"];
        if frame["params"]["sessionId"] == session && update["sessionUpdate"] == "agent_message_chunk" {
            order.push(update["content"]["text"].as_str().unwrap().to_string());
        } else if frame.get("result").is_some() {
            order.push(format!("{} {}", frame["id"], frame["result"]["stopReason"].as_str().unwrap()));
        }
    }
    // A waiting prompt may be answered before the turn that ran.
    let cancelled = order.iter().take_while(|entry| entry.ends_with("cancelled")).count();
    order[..cancelled].sort();
    order
}

#[tokio::test]
async fn pipelined_prompt_cancel_and_prompt_keep_their_order() {
    // Slow enough for the cancel to arrive before the first answer.
    let steps = || json!(vec![json!({"text": "said", "delay_ms": 600}); 4]);
    let requests = |session: &str| {
        frame(1001, "session/prompt", prompt(session, "one"))
            + &frame(1002, "session/prompt", prompt(session, "two"))
            + &frame(0, "session/cancel", json!({"sessionId": session}))
            + &frame(1003, "session/prompt", prompt(session, "three"))
            + &frame(1004, "session/prompt", prompt(session, "four"))
    };
    let ids = [1001, 1002, 1003, 1004];
    let home = Home::new();
    let mut alone = editor(&home, &home.script(steps()), &[]).await;
    let session = alone.new_session(&home).await;
    let expected = pipelined(&mut alone, &session, &requests(&session), &ids).await;
    assert_eq!(expected, ["1001 cancelled", "1002 cancelled", "said", "1003 end_turn", "said", "1004 end_turn"]);
    alone.finish().await;

    for _ in 0..5 {
        let (home, owner, mut other, session) = two_editors(steps()).await;
        assert_eq!(pipelined(&mut other, &session, &requests(&session), &ids).await, expected);
        other.finish().await;
        owner.finish().await;
        assert_complete(&home.log(&session).await);
    }
}

/// A hundred forwarded prompts, each cancelled by the next line.
#[tokio::test]
async fn cancel_right_after_forwarded_prompt_always_cancels_it() {
    let steps: Vec<Value> = (0..100).map(|_| json!({"text": "slow", "delay_ms": 60_000})).collect();
    let (home, owner, mut other, session) = two_editors(json!(steps)).await;
    for id in 1000..1100 {
        let both = frame(id, "session/prompt", prompt(&session, "go")) + &frame(0, "session/cancel", json!({"sessionId": session}));
        other.raw(both.as_bytes()).await;
        assert_eq!(other.answer(&json!(id)).await.unwrap()["stopReason"], "cancelled", "prompt {id}");
    }
    other.finish().await;
    owner.finish().await;
    assert_complete(&home.log(&session).await);
}

#[tokio::test]
async fn cancel_request_ends_a_forwarded_prompt() {
    let (home, mut owner, mut other, session) = two_editors(json!([endless(), asks(), says("after"), says("last")])).await;
    let id = other.prompt(&session, "one").await;
    other.until_update("agent_message_chunk").await;
    other.notify("$/cancel_request", json!({"requestId": id})).await;
    assert_eq!(other.answer(&id).await.unwrap()["stopReason"], "cancelled");
    // A waiting prompt is withdrawn alone; the running turn goes on.
    let running = owner.prompt(&session, "two").await;
    owner.until("a question", |frame| frame["method"] == "session/request_permission").await;
    let waiting = other.prompt(&session, "three").await;
    let last = other.prompt(&session, "four").await;
    other.notify("$/cancel_request", json!({"requestId": waiting})).await;
    assert_eq!(other.answer(&waiting).await.unwrap()["stopReason"], "cancelled");
    let open = other.call("_nuncio/permission/list", json!({})).await["permissions"][0]["permissionId"].clone();
    other.call("_nuncio/permission/answer", json!({"permissionId": open, "outcome": "allow_once"})).await;
    assert_eq!(owner.answer(&running).await.unwrap()["stopReason"], "end_turn");
    assert_eq!(other.answer(&last).await.unwrap()["stopReason"], "end_turn");
    other.finish().await;
    owner.finish().await;
    let log = home.log(&session).await;
    assert_complete(&log);
    assert!(!log.iter().any(|event| event["body"]["parts"][0]["text"] == "three"), "a withdrawn prompt ran");
}

/// The answer to a forwarded prompt comes after all updates of its turn and before all others.
#[tokio::test]
async fn answer_follows_all_updates_of_its_turn() {
    let long = json!({"thinking": "hm", "text": "x".repeat(2000), "chunk_chars": 1, "tool_calls": [{"name": "list"}]});
    let steps: Vec<Value> = (0..10).flat_map(|_| [long.clone(), says("done")]).collect();
    let (_home, mut owner, mut other, session) = two_editors(json!(steps)).await;
    for _ in 0..5 {
        let (stop, updates) = other.turn(&session, "go").await;
        assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk")), ("end_turn", "x".repeat(2000) + "done"));
        let after = other.frames.len();
        other.call("session/list", json!({})).await;
        assert_eq!(
            session_updates(&other.frames[after..], &session),
            Vec::<Value>::new(),
            "an update after the answer to its prompt"
        );
        // A prompt of the owner: the other editor sees the message and the answer.
        let before = other.frames.len();
        owner.turn(&session, "from the owner").await;
        while !text(&session_updates(&other.frames[before..], &session), "agent_message_chunk").ends_with("done") {
            other.until_update("agent_message_chunk").await;
        }
        let seen = session_updates(&other.frames[before..], &session);
        assert_eq!(text(&seen, "user_message_chunk"), "from the owner");
        assert_eq!(text(&seen, "agent_message_chunk"), "x".repeat(2000) + "done");
    }
    // The owner's client saw the other client's prompts too, and none of them twice.
    owner.call("session/list", json!({})).await;
    let updates = owner.updates(&session);
    assert_eq!(text(&updates, "user_message_chunk"), "go".repeat(5));
    other.finish().await;
    owner.finish().await;
}

/// The answer of a call that changes the session comes after the update that shows the change.
#[tokio::test]
async fn answer_of_a_forwarded_change_follows_its_update() {
    let (_home, owner, mut other, session) = two_editors(json!([])).await;
    for mode in ["auto", "plan", "ask"].iter().cycle().take(15) {
        let before = other.frames.len();
        other.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        let updates = session_updates(&other.frames[before..], &session);
        assert!(updates.iter().any(|update| update["currentModeId"] == *mode), "{mode}: {updates:?}");
        let view = other.call("_nuncio/session/get", json!({"sessionId": session})).await;
        assert_eq!(view["mode"], *mode, "a read after a change shows an older state");
    }
    other.finish().await;
    owner.finish().await;
}

/// A server prompts a session whose owner streams: the events of the turn arrive on one stream, in
/// all three forms of the REST response.
#[tokio::test]
async fn all_forms_of_a_rest_prompt_are_forwarded() {
    let home = Home::new();
    let mut owner = editor(&home, &home.script(json!([says("one"), says("two"), says("three")])), &[]).await;
    let session = owner.new_session(&home).await;
    let server = home.serve_script(json!([says("taken over")]), &[]).await;
    let mut events = server.follow(&session).events().await;
    assert_eq!(server.prompt(&session, "a").expect(200).await["stopReason"], "end_turn");
    let turn = server.begin(&session, "b").await;
    while events.until("turn.completed").await.last().unwrap().event["turnId"] != turn.as_str() {}
    let shown = server.prompt(&session, "c").header("accept", "text/event-stream").events().await.rest().await;
    let all: Vec<Value> = shown.into_iter().map(|shown| shown.event).collect();
    let kinds = kinds(&all);
    assert_eq!((kinds.first(), kinds.last()), (Some(&"turn.started"), Some(&"turn.completed")), "{kinds:?}");
    assert!(all.iter().any(|event| event["body"]["parts"][0]["text"] == "three"), "{all:#?}");
    // A busy session refuses a prompt of REST, as in one process.
    drop(events);
    server.stop().await;
    owner.finish().await;
    assert_complete(&home.log(&session).await);
}

#[tokio::test]
async fn rest_prompt_to_a_busy_session_of_another_process_is_refused() {
    let home = Home::new();
    let mut owner = editor(&home, &home.script(json!([asks()])), &[]).await;
    let session = owner.new_session(&home).await;
    let server = home.serve_script(json!([]), &[]).await;
    let running = owner.prompt(&session, "go").await;
    owner.until("a question", |frame| frame["method"] == "session/request_permission").await;
    assert_eq!(server.prompt(&session, "again").send().await.error(), (409, "session_busy".into()));
    server.post(&format!("/v1/sessions/{session}/cancel"), &json!({})).send().await;
    assert_eq!(owner.answer(&running).await.unwrap()["stopReason"], "cancelled");
    server.stop().await;
    owner.finish().await;
}

/// The socket of an owner, taken by the test: it receives the calls of another process and answers
/// them in any order.
struct PosedOwner {
    lines: Lines<BufReader<OwnedReadHalf>>,
    output: OwnedWriteHalf,
}

impl PosedOwner {
    /// Accepts the connection of the other process, and answers its greeting.
    async fn accept(listener: tokio::net::UnixListener) -> PosedOwner {
        loop {
            let (input, output) = listener.accept().await.unwrap().0.into_split();
            let mut owner = PosedOwner { lines: BufReader::new(input).lines(), output };
            // A process also connects without sending anything, to check whether the owner listens.
            if let Some(greeting) = owner.next().await {
                owner.answer(&greeting["id"], json!({"pid": std::process::id()})).await;
                tokio::spawn(async move { while listener.accept().await.is_ok() {} });
                return owner;
            }
        }
    }

    /// The next request, without the notifications.
    async fn next(&mut self) -> Option<Value> {
        while let Some(line) = self.lines.next_line().await.unwrap() {
            let request: Value = serde_json::from_str(&line).unwrap();
            if request.get("id").is_some() {
                return Some(request);
            }
        }
        None
    }

    /// The id and the text of the next message.
    async fn message(&mut self) -> (Value, String) {
        let call = self.next().await.unwrap();
        let params = &call["params"]["params"];
        let parts = if params["prompt"].is_array() { &params["prompt"] } else { &params["parts"] };
        (call["id"].clone(), parts[0]["text"].as_str().unwrap_or_else(|| panic!("{call}")).into())
    }

    async fn answer(&mut self, id: &Value, result: Value) {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }

    async fn refuse(&mut self, id: &Value, accepted: bool) {
        self.answer(id, json!({"notOwner": {"accepted": accepted}})).await;
    }
}

/// An owner that ends refuses the messages that wait in it and those that arrive, in any order.
#[tokio::test]
async fn messages_that_an_ending_owner_refuses_keep_their_order() {
    for accepted in [true, false] {
        let home = Home::new();
        let mut owner = editor(&home, &home.script(json!([])), &[]).await;
        let session = owner.new_session(&home).await;
        let [path] = &sockets(&home)[..] else { panic!("one process has a socket") };
        let kept = path.with_extension("kept");
        std::fs::rename(path, &kept).unwrap();
        let listener = tokio::net::UnixListener::bind(path).unwrap();
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let mut other = editor(&home, &home.script(json!([])), &[]).await;
        let one = other.prompt(&session, "one").await;
        let mut posed = bounded("the connection", PosedOwner::accept(listener)).await;
        let two =
            other.send("_nuncio/session/message", json!({"sessionId": session, "parts": [{"type": "text", "text": "two"}]})).await;
        let three = other.prompt(&session, "three").await;
        let mut calls = Vec::new();
        for text in ["one", "two", "three"] {
            let (id, sent) = bounded("a call", posed.message()).await;
            assert_eq!(sent, text);
            calls.push(id);
        }
        posed.refuse(&calls[2], accepted).await;
        posed.refuse(&calls[1], accepted).await;
        let early = tokio::time::timeout(Duration::from_millis(300), posed.message()).await;
        assert!(early.is_err(), "{early:?} was sent again before the message in front of it was answered");
        posed.refuse(&calls[0], true).await;
        for text in ["one", "two", "three"] {
            let (id, sent) = bounded("a repeated call", posed.message()).await;
            assert_eq!(sent, text);
            let result = if text == "two" { json!({"messageId": "msg_two"}) } else { json!({"stopReason": "end_turn"}) };
            posed.answer(&id, json!({"reply": {"result": result, "error": null, "after": null, "follow": null}})).await;
        }
        for id in [one, two, three] {
            other.answer(&id).await.unwrap_or_else(|error| panic!("{error}"));
        }
        std::fs::remove_file(path).unwrap();
        std::fs::rename(&kept, path).unwrap();
        other.finish().await;
        owner.finish().await;
    }
}

/// A client may use a session again before it has the answer to `session/close`, also if another
/// process owns the session.
#[tokio::test]
async fn closed_session_can_be_used_again_at_once() {
    for reopens in [true, false] {
        let (home, owner, mut other, session) = two_editors(json!([says("one")])).await;
        let load = json!({"sessionId": session, "cwd": home.work(), "mcpServers": []});
        let mut requests = frame(1001, "session/close", json!({"sessionId": session}));
        if reopens {
            requests += &frame(1002, "session/load", load);
        }
        requests += &frame(1003, "_nuncio/session/message", super::message(&session, "later"));
        requests += &frame(1004, "session/prompt", prompt(&session, "again"));
        other.raw(requests.as_bytes()).await;
        for id in [1001, 1002, 1003, 1004].into_iter().filter(|id| reopens || *id != 1002) {
            other.answer(&json!(id)).await.unwrap_or_else(|error| panic!("{id}: {error}"));
        }
        other.finish().await;
        owner.finish().await;
        assert_complete(&home.log(&session).await);
    }
}
