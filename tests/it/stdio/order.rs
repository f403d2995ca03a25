//! Order of messages: a cancel applies to the preceding prompt, and answers follow their updates.

use serde_json::{Value, json};

use harness::frame;
use harness::{Agent, Home, Reply, kinds, session_updates, text};

/// An answer of the model that takes a minute.
fn slow() -> Value {
    json!({"text": "x".repeat(1200), "chunk_chars": 1, "delay_ms": 50})
}

fn prompt(session: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
}

#[tokio::test]
async fn cancel_right_after_prompt_always_cancels_it() {
    let home = Home::new();
    let steps: Vec<Value> = (0..200).map(|_| json!({"text": "slow", "delay_ms": 60_000})).collect();
    let (mut agent, session) = home.session(json!(steps), &[]).await;
    for number in 1000..1200 {
        let both = frame(number, "session/prompt", prompt(&session)) + &frame(0, "session/cancel", json!({"sessionId": session}));
        agent.raw(both.as_bytes()).await;
        let answer = agent.answer(&json!(number)).await.unwrap();
        assert_eq!(answer["stopReason"], "cancelled", "prompt {number}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn cancel_applies_to_prompt_of_session_being_opened() {
    let home = Home::new();
    let steps = json!([{"text": "slow", "delay_ms": 60_000}]);
    for _ in 0..10 {
        let (mut agent, session) = home.session(steps.clone(), &[]).await;
        agent.call("session/close", json!({"sessionId": session})).await;
        let both = frame(1000, "session/prompt", prompt(&session)) + &frame(0, "session/cancel", json!({"sessionId": session}));
        agent.raw(both.as_bytes()).await;
        assert_eq!(agent.answer(&json!(1000)).await.unwrap()["stopReason"], "cancelled");
        agent.finish().await;
    }
}

#[tokio::test]
async fn cancel_of_idle_session_has_no_effect() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "first"}, {"text": "second"}]), &[]).await;
    for said in ["first", "second", "done"] {
        agent.notify("session/cancel", json!({"sessionId": session})).await;
        let (stop, updates) = agent.turn(&session, "go").await;
        assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", said));
        agent.notify("session/cancel", json!({"sessionId": session})).await;
    }
    let frames = agent.finish().await;
    let log = home.log(&session).await;
    assert!(log.iter().all(|event| event["body"]["type"] != "turn.cancelled"), "{frames:?}");
}

#[tokio::test]
async fn sessions_do_not_wait_for_each_other() {
    let home = Home::new();
    let (mut agent, slow) = home.session(json!([{"text": "ab", "chunk_chars": 1, "delay_ms": 30_000}]), &[]).await;
    let quick = agent.new_session(&home).await;
    let model = home.script(json!([{"text": "quick"}]));
    agent.call("session/set_config_option", json!({"sessionId": quick, "configId": "model", "value": model})).await;
    let running = agent.prompt(&slow, "slow").await;
    let (_, updates) = agent.turn(&quick, "quick").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "quick");
    assert!(!agent.frames.iter().any(|frame| frame["id"] == running), "the quick one waited for the slow one");
    agent.notify("session/cancel", json!({"sessionId": slow})).await;
    agent.answer(&running).await.unwrap();
    agent.finish().await;
}

/// All updates of a session come between the answer to `session/new` and the answer to the prompt.
#[tokio::test]
async fn updates_of_turn_come_between_its_answers() {
    let home = Home::new();
    let model =
        home.script(json!([{"thinking": "hm", "text": "x".repeat(2000), "chunk_chars": 1, "tool_calls": [{"name": "list"}]}]));
    let mut agent = home.start(&["--model", &model]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    for _ in 0..5 {
        let before = agent.frames.len();
        let session = agent.new_session(&home).await;
        assert_eq!(agent.frames.len(), before + 1, "something came before the answer of session/new");
        let (_, updates) = agent.turn(&session, "go").await;
        assert_eq!(text(&updates, "agent_message_chunk"), "x".repeat(2000) + "done");
        assert_eq!(kinds(&updates)[0], "available_commands_update");
        assert_eq!(kinds(&updates).last(), Some(&"usage_update"), "{:?}", kinds(&updates));
        let after = agent.frames.len();
        agent.call("session/list", json!({})).await;
        assert_eq!(
            session_updates(&agent.frames[after..], &session),
            Vec::<Value>::new(),
            "an update after the answer to its prompt"
        );
    }
    agent.finish().await;
}

/// Waits for the next permission question and returns its id.
async fn wait_for_question(agent: &mut Agent) -> Value {
    agent.until("the question", |frame| frame["method"] == "session/request_permission").await["id"].clone()
}

#[tokio::test]
async fn prompts_and_questions_can_be_cancelled() {
    let home = Home::new();
    let call = json!({"tool_calls": [{"name": "write", "input": {"file_path": "a", "content": ""}}]});
    let (mut agent, session) = home.session(json!([slow(), call, call]), &[]).await;
    agent.otherwise = Reply::Never;
    // `$/cancel_request` for the prompt while the model answers.
    let id = agent.prompt(&session, "one").await;
    agent.until_update("agent_message_chunk").await;
    agent.notify("$/cancel_request", json!({"requestId": id})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    // `$/cancel_request` and `session/cancel` during a question: the question is withdrawn.
    for (method, key) in [("$/cancel_request", "requestId"), ("session/cancel", "sessionId")] {
        let id = agent.prompt(&session, "two").await;
        let question = wait_for_question(&mut agent).await;
        let value = if key == "requestId" { id.clone() } else { json!(session) };
        agent.notify(method, json!({key: value})).await;
        assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
        let withdrawn = |frame: &&Value| frame["method"] == "$/cancel_request" && frame["params"]["requestId"] == question;
        assert_eq!(agent.frames.iter().filter(withdrawn).count(), 1, "{method}");
        assert_eq!(agent.asked, [], "{method}");
    }
    assert_eq!(home.get("a"), None);
    agent.finish().await;
}
