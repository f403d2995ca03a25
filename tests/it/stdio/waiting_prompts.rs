//! Prompts that a client sends during a turn: each prompt waits for a turn of its own, and a cancel
//! ends all of them.

use serde_json::{Value, json};

use harness::steps::asks;
use harness::{Agent, Bridge, Home, Reply, bounded, text};

/// Maximum number of waiting prompts of a session; `PROMPTS_WAITING_MAX` in limits.rs.
const WAITING_MAX: usize = 16;

fn text_step(expect: &str, text: &str) -> Value {
    json!({"expect": expect, "text": text, "chunk_chars": 100})
}

/// A session whose first turn, of the prompt "one", waits for a permission.
async fn busy(home: &Home, steps: Value) -> (Agent, String, Value) {
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.otherwise = Reply::Never;
    let prompt = agent.prompt(&session, "one").await;
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
    (agent, session, prompt)
}

async fn cancel(agent: &mut Agent, session: &str) {
    agent.notify("session/cancel", json!({"sessionId": session})).await;
}

async fn stop_reason(agent: &mut Agent, id: &Value) -> String {
    let answer = agent.answer(id).await.unwrap_or_else(|error| panic!("prompt {id}: {error}"));
    answer["stopReason"].as_str().unwrap().into()
}

/// The texts of the user's messages in the log, each with the number of its turn (from 0).
async fn prompts_of_turns(home: &Home, session: &str) -> Vec<String> {
    let log = home.log(session).await;
    let started = log.iter().filter(|event| event["body"]["type"] == "turn.started");
    let turns: Vec<&Value> = started.map(|event| &event["turnId"]).collect();
    let messages = log.iter().filter(|event| event["body"]["type"] == "message.completed" && event["body"]["role"] == "user");
    let show = |event: &Value| {
        let turn = turns.iter().position(|turn| **turn == event["turnId"]).unwrap();
        format!("{turn} {}", event["body"]["parts"][0]["text"].as_str().unwrap())
    };
    messages.map(show).collect()
}

#[tokio::test]
async fn second_prompt_waits_and_is_answered_at_the_end_of_its_turn() {
    let home = Home::new();
    let steps = json!([asks(), text_step("one", "first"), text_step("two", "second"), text_step("three", "third")]);
    let (mut agent, session, one) = busy(&home, steps).await;
    let two = agent.prompt(&session, "two").await;
    let three = agent.prompt(&session, "three").await;
    agent.call("session/list", json!({})).await;
    assert!(agent.frames.iter().all(|frame| frame["id"] != two && frame["id"] != three), "{:#?}", agent.frames);
    agent.allow_open().await;
    for id in [&one, &two, &three] {
        assert_eq!(stop_reason(&mut agent, id).await, "end_turn");
    }
    // Each answer comes before all updates of the next turn.
    let frames = agent.finish().await;
    let said = |frame: &Value| match (&frame["params"]["update"]["sessionUpdate"], frame.get("result")) {
        (kind, _) if kind == "agent_message_chunk" => Some(frame["params"]["update"]["content"]["text"].clone()),
        (kind, _) if kind == "user_message_chunk" => Some(json!(format!("echo of {frame}"))),
        (_, Some(result)) if result["stopReason"].is_string() => Some(frame["id"].clone()),
        _ => None,
    };
    let order: Vec<Value> = frames.iter().filter_map(said).collect();
    assert_eq!(order, [json!("first"), one, json!("second"), two, json!("third"), three]);
    assert_eq!(prompts_of_turns(&home, &session).await, ["0 one", "1 two", "2 three"]);
}

#[tokio::test]
async fn answers_to_waiting_prompts_precede_updates_of_next_turn() {
    let home = Home::new();
    let steps: Vec<Value> = (0..40).map(|number| text_step("go", &format!("answer {number}"))).collect();
    let (mut agent, session) = home.session(json!(steps), &[]).await;
    for round in 0..4 {
        let before = agent.frames.len();
        let mut ids = Vec::new();
        for _ in 0..10 {
            ids.push(agent.prompt(&session, "go").await);
        }
        for id in &ids {
            assert_eq!(stop_reason(&mut agent, id).await, "end_turn");
        }
        let mut answered = 0;
        for frame in &agent.frames[before..] {
            if frame["params"]["update"]["sessionUpdate"] == "agent_message_chunk" {
                let text = frame["params"]["update"]["content"]["text"].as_str().unwrap();
                assert_eq!(text, format!("answer {}", round * 10 + answered), "after {answered} answers");
            } else if frame.get("result").is_some() {
                assert_eq!(frame["id"], ids[answered]);
                answered += 1;
            }
        }
    }
    agent.finish().await;
}

#[tokio::test]
async fn cancel_ends_running_turn_and_waiting_prompts() {
    let home = Home::new();
    let (mut agent, session, one) = busy(&home, json!([asks(), text_step("four", "last")])).await;
    let two = agent.prompt(&session, "two").await;
    let three = agent.prompt(&session, "three").await;
    cancel(&mut agent, &session).await;
    // A prompt after the cancel is not affected.
    let four = agent.prompt(&session, "four").await;
    for id in [&one, &two, &three] {
        assert_eq!(stop_reason(&mut agent, id).await, "cancelled");
    }
    assert_eq!(stop_reason(&mut agent, &four).await, "end_turn");
    agent.finish().await;
    assert_eq!(prompts_of_turns(&home, &session).await, ["0 one", "1 four"]);
}

#[tokio::test]
async fn cancel_request_ends_only_its_waiting_prompt() {
    let home = Home::new();
    let (mut agent, session, one) = busy(&home, json!([asks(), text_step("one", "first"), text_step("three", "third")])).await;
    let two = agent.prompt(&session, "two").await;
    let three = agent.prompt(&session, "three").await;
    agent.notify("$/cancel_request", json!({"requestId": two})).await;
    assert_eq!(stop_reason(&mut agent, &two).await, "cancelled");
    agent.allow_open().await;
    for id in [&one, &three] {
        assert_eq!(stop_reason(&mut agent, id).await, "end_turn");
    }
    agent.finish().await;
    assert_eq!(prompts_of_turns(&home, &session).await, ["0 one", "1 three"]);
}

#[tokio::test]
async fn prompt_after_failed_turn_runs() {
    let home = Home::new();
    let (mut agent, session, one) = busy(&home, json!([asks(), {"error": {"status": 400}}, text_step("two", "second")])).await;
    let two = agent.prompt(&session, "two").await;
    agent.allow_open().await;
    agent.answer(&one).await.unwrap_err();
    assert_eq!(stop_reason(&mut agent, &two).await, "end_turn");
    agent.finish().await;
}

#[tokio::test]
async fn number_of_waiting_prompts_is_limited() {
    let home = Home::new();
    let (mut agent, session, one) = busy(&home, json!([asks()])).await;
    let mut sent = Vec::new();
    for number in 0..WAITING_MAX + 4 {
        sent.push(agent.prompt(&session, &number.to_string()).await);
    }
    let refused = sent.split_off(WAITING_MAX);
    for id in &refused {
        let error = agent.answer(id).await.unwrap_err();
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32010), &json!("session_busy")), "{error}");
    }
    cancel(&mut agent, &session).await;
    for id in [one].iter().chain(&sent) {
        assert_eq!(stop_reason(&mut agent, id).await, "cancelled");
    }
    agent.finish().await;
}

#[tokio::test]
async fn close_or_delete_answers_waiting_prompts() {
    for method in ["session/close", "session/delete"] {
        let home = Home::new();
        let (mut agent, session, one) = busy(&home, json!([asks()])).await;
        let two = agent.prompt(&session, "two").await;
        let three = agent.prompt(&session, "three").await;
        agent.call(method, json!({"sessionId": session})).await;
        for id in [&one, &two, &three] {
            assert_eq!(stop_reason(&mut agent, id).await, "cancelled", "{method}");
        }
        agent.finish().await;
        if method == "session/close" {
            assert_eq!(prompts_of_turns(&home, &session).await, ["0 one"]);
        }
    }
}

#[tokio::test]
async fn end_of_input_cancels_waiting_prompts() {
    let home = Home::new();
    let (mut agent, session, _) = busy(&home, json!([asks()])).await;
    agent.prompt(&session, "two").await;
    agent.prompt(&session, "three").await;
    // `finish` asserts that all requests are answered before the process ends.
    agent.finish().await;
    assert_eq!(prompts_of_turns(&home, &session).await, ["0 one"]);
}

#[tokio::test]
async fn prompts_to_session_of_another_process_wait_there() {
    let home = Home::new();
    let steps = json!([asks(), {"text": "1"}, {"text": "2"}, {"text": "3"}, {"text": "4"}, {"text": "5"}]);
    let (mut first, session, _) = busy(&home, steps).await;
    let mut second = home.start(&["--model", &home.script(json!([]))]).await;
    second.otherwise = Reply::Never;
    second.call("initialize", json!({"protocolVersion": 1})).await;
    second.call("session/load", json!({"sessionId": session, "cwd": home.work()})).await;
    let params = |text: &str| json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let line =
        |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params("mine")}).to_string() + "\n";
    second.raw((1000..1004).map(line).collect::<String>().as_bytes()).await;
    first.allow_open().await;
    for id in 1000..1004 {
        assert_eq!(second.answer(&json!(id)).await.unwrap()["stopReason"], "end_turn");
    }
    assert_eq!(text(&second.updates(&session), "agent_message_chunk"), "12345");
    second.finish().await;
    first.finish().await;
}

#[tokio::test]
async fn waiting_messages_and_prompts_run_in_order_of_arrival() {
    let home = Home::new();
    let steps = json!([
        asks(),
        text_step("one", "first"),
        text_step("two", "second"),
        text_step("three", "third"),
        text_step("four", "fourth")
    ]);
    let (mut agent, session, one) = busy(&home, steps).await;
    let message = |text: &str| json!({"sessionId": session, "parts": [{"type": "text", "text": text}]});
    agent.call("_nuncio/session/message", message("two")).await;
    let three = agent.prompt(&session, "three").await;
    agent.call("_nuncio/session/message", message("four")).await;
    agent.allow_open().await;
    for id in [&one, &three] {
        assert_eq!(stop_reason(&mut agent, id).await, "end_turn");
    }
    agent.until("the last answer", |frame| frame["params"]["update"]["content"]["text"] == "fourth").await;
    agent.finish().await;
    assert_eq!(prompts_of_turns(&home, &session).await, ["0 one", "1 two", "2 three", "3 four"]);
}

/// A session with a finished turn of the prompt "one", whose end the client has not read.
struct UnreadSession {
    home: Home,
    agent: Agent,
    bridge: Bridge,
    session: String,
    one: Value,
}

impl UnreadSession {
    /// `delay_ms`: the pause between the 30 parts of the turn's text. With `queued`, the message
    /// "two" waits.
    async fn new(delay_ms: u64, queued: bool) -> UnreadSession {
        let home = Home::new();
        // More than a pipe holds.
        let text: String = (0..100_000).map(|number| format!("{number} ")).collect();
        let long = json!({"text": text, "chunk_chars": 20_000, "delay_ms": delay_ms});
        let model = home.script(json!([long, text_step("two", "second")]));
        let (mut agent, bridge) = home.start_with_bridge(&["--model", &model]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let session = agent.new_session(&home).await;
        let mut events = bridge.follow(&session).events().await;
        let one = agent.prompt(&session, "one").await;
        events.until("message.delta").await;
        if queued {
            let message = json!({"parts": [{"type": "text", "text": "two"}], "delivery": "queue"});
            bridge.post(&format!("/v1/sessions/{session}/messages"), &message).expect(202).await;
        }
        events.until("turn.completed").await;
        UnreadSession { home, agent, bridge, session, one }
    }

    /// Reads to the end. Asserts that the answer to "one" precedes the text "second". Returns the
    /// prompts of the turns.
    async fn ended(self) -> Vec<String> {
        let frames = self.agent.finish().await;
        let place = |fits: &dyn Fn(&Value) -> bool| frames.iter().position(fits).unwrap();
        let answered = place(&|frame| frame["id"] == self.one && frame.get("result").is_some());
        let second = place(&|frame| frame["params"]["update"]["content"]["text"] == "second");
        assert!(answered < second, "the answer is frame {answered}, the next turn frame {second}");
        prompts_of_turns(&self.home, &self.session).await
    }

    async fn view(&self) -> Value {
        self.bridge.get(&format!("/v1/sessions/{}", self.session)).expect(200).await
    }

    /// The number of queued messages, when the session is idle.
    async fn queued(&self) -> Value {
        let idle = async {
            loop {
                let view = self.view().await;
                if view["status"] == "idle" {
                    return view["queued"].clone();
                }
            }
        };
        bounded("the idle session", idle).await
    }
}

/// The turn is longer than the time for which the next turn waits for the answer.
#[tokio::test]
async fn answer_after_a_long_turn_precedes_the_next_turn() {
    let mut unread = UnreadSession::new(90, true).await;
    // Time for a turn that does not wait.
    for _ in 0..50 {
        unread.view().await;
    }
    assert_eq!(stop_reason(&mut unread.agent, &unread.one).await, "end_turn");
    assert_eq!(unread.queued().await, 0);
    assert_eq!(unread.ended().await, ["0 one", "1 two"]);
}

/// Another client continues the session before the first client has read its answer.
#[tokio::test]
async fn answer_precedes_the_turn_of_another_client() {
    let parts = json!([{"type": "text", "text": "two"}]);
    for (path, body) in [("messages", json!({"parts": parts})), ("prompt", json!({"prompt": parts}))] {
        let mut unread = UnreadSession::new(0, false).await;
        let sent = unread.bridge.post(&format!("/v1/sessions/{}/{path}", unread.session), &body);
        let sending = tokio::spawn(async move { sent.send().await });
        // Time for a turn that does not wait.
        for _ in 0..20 {
            unread.view().await;
        }
        assert_eq!(stop_reason(&mut unread.agent, &unread.one).await, "end_turn");
        assert!(sending.await.unwrap().status < 300, "{path}");
        unread.agent.until("the next turn", |frame| frame["params"]["update"]["content"]["text"] == "second").await;
        assert_eq!(unread.ended().await, ["0 one", "1 two"], "{path}");
    }
}

/// A cancel between the end of a turn and the answer to its prompt also applies to what follows.
#[tokio::test]
async fn cancel_before_the_answer_holds_the_queued_message() {
    // On a machine that stalls for 2 s, the next turn starts before the cancel.
    let mut queued = Value::Null;
    for _ in 0..3 {
        let mut unread = UnreadSession::new(20, true).await;
        unread.bridge.ask("POST", &format!("/v1/sessions/{}/cancel", unread.session)).expect(200).await;
        assert_eq!(stop_reason(&mut unread.agent, &unread.one).await, "end_turn");
        queued = unread.queued().await;
        unread.agent.finish().await;
        if queued == 1 {
            return;
        }
    }
    panic!("{queued} queued");
}

#[tokio::test]
async fn message_precedes_a_prompt_that_was_sent_after_it() {
    let home = Home::new();
    let steps = json!([asks(), text_step("one", "first"), text_step("two", "second"), text_step("three", "third")]);
    let (mut agent, session, one) = busy(&home, steps).await;
    let parts = json!([{"type": "text", "text": "two"}]);
    let two = agent.send("_nuncio/session/message", json!({"sessionId": session, "parts": parts})).await;
    let three = agent.prompt(&session, "three").await;
    agent.answer(&two).await.unwrap();
    agent.allow_open().await;
    for id in [&one, &three] {
        assert_eq!(stop_reason(&mut agent, id).await, "end_turn");
    }
    agent.finish().await;
    assert_eq!(prompts_of_turns(&home, &session).await, ["0 one", "1 two", "2 three"]);
}
