//! Subagents as sessions of a client that supports them.

use serde_json::{Value, json};

use harness::steps::{bash, calls, says, task};
use harness::subagents::define;
use harness::{Agent, Home, Reply, session_updates, text, tool};

/// Starts a client with these capabilities, and a session.
async fn client(home: &Home, steps: Value, capabilities: &Value) -> (Agent, String) {
    let mut agent = home.start(&["--model", &home.script(steps)]).await;
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let session = agent.new_session(home).await;
    (agent, session)
}

fn supported() -> Value {
    json!({"subagents": {}})
}

fn updates_of(updates: &[Value], kind: &str) -> Vec<Value> {
    updates.iter().filter(|update| update["sessionUpdate"] == kind).cloned().collect()
}

/// The sessions of the updates, in order; adjacent equal ids are merged.
fn sessions(frames: &[Value]) -> Vec<String> {
    let updates = frames.iter().filter(|frame| frame["method"] == "session/update");
    let mut sessions: Vec<String> = updates.map(|frame| frame["params"]["sessionId"].as_str().unwrap().to_string()).collect();
    sessions.dedup();
    sessions
}

#[tokio::test]
async fn subagent_works_in_a_session_that_the_client_sees() {
    let home = Home::new();
    define(
        &home,
        "worker",
        "",
        json!([{"text": "I touch.", "tool_calls": bash("touch made")["tool_calls"]}, {"text": "finished"}]),
    );
    let steps = json!([calls(&[task("worker", "work")]), says("finished", "ok")]);
    let (mut agent, session) = client(&home, steps, &supported()).await;
    let before = agent.frames.len();
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    assert!(home.get("made").is_some());
    let live = agent.frames[before..].to_vec();
    // The request for the call is made in the subagent's session, and only there.
    let asked: Vec<&Value> = live.iter().filter(|frame| frame["method"] == "session/request_permission").collect();
    assert_eq!(asked.len(), 1, "{asked:#?}");
    let child = asked[0]["params"]["sessionId"].as_str().unwrap().to_string();
    assert_ne!(child, session);
    agent.finish().await;

    // A later load replays the same.
    let (mut agent, _) = client(&home, json!([]), &supported()).await;
    let before = agent.frames.len();
    agent.load(&home, &session).await;
    let replayed = agent.frames[before..].to_vec();
    agent.finish().await;
    for frames in [&live, &replayed] {
        let (parent, own) = (session_updates(frames, &session), session_updates(frames, &child));
        let associations = updates_of(&parent, "subagent_update");
        let (first, last) = (&associations[0], associations.last().unwrap());
        assert_eq!((&first["sessionId"], &first["title"]), (&json!(child), &json!("worker: work")), "{first}");
        assert_eq!((&first["state"]["state"], &first["capabilities"]["cancel"]), (&json!("running"), &json!({})), "{first}");
        assert_eq!((&last["state"]["state"], &last["state"]["stopReason"]), (&json!("idle"), &json!("end_turn")), "{last}");
        assert_eq!(tool(&parent, 0)["_meta"]["session"], json!({"sessionId": child}));
        let messages = updates_of(&own, "session_message");
        assert_eq!(messages.len(), 1, "{own:#?}");
        assert_eq!((&messages[0]["senderSessionId"], &messages[0]["recipientSessionId"]), (&json!(session), &json!(child)));
        assert_eq!(messages[0]["content"], json!([{"type": "text", "text": "work"}]));
        assert_eq!(text(&own, "agent_message_chunk"), "I touch.finished");
        assert_eq!(text(&own, "user_message_chunk"), "");
        let call = tool(&own, 0);
        assert_eq!((&call["title"], &call["status"]), (&json!("`touch made`"), &json!("completed")), "{call}");
        // All of the child's updates are between its announcement and its end.
        let position = |update: &Value| frames.iter().position(|frame| frame["params"]["update"] == *update).unwrap();
        let of_child: Vec<usize> =
            (0..frames.len()).filter(|index| frames[*index]["params"]["sessionId"] == child.as_str()).collect();
        assert!(position(first) < of_child[0] && *of_child.last().unwrap() < position(last), "{:?}", sessions(frames));
    }
    // The live child waited for the answer.
    let states: Vec<Value> =
        updates_of(&session_updates(&live, &session), "subagent_update").iter().map(|one| one["state"]["state"].clone()).collect();
    assert_eq!(states, ["running", "requires_action", "running", "idle"]);
}

#[tokio::test]
async fn client_without_the_capability_sees_only_the_call() {
    let home = Home::new();
    define(&home, "worker", "", json!([{"text": "finished"}]));
    let steps = json!([calls(&[task("worker", "work")]), says("finished", "ok")]);
    let (mut agent, session) = client(&home, steps, &json!({})).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(sessions(&agent.frames), std::slice::from_ref(&session));
    assert!(updates_of(&updates, "subagent_update").is_empty());
    let linked = tool(&updates, 0)["_meta"]["session"]["sessionId"].clone();
    assert_eq!(vec![linked], harness::subagents::children(&mut agent, &session).await);
    agent.finish().await;
}

#[tokio::test]
async fn nested_subagents_are_announced_by_their_parents() {
    let home = Home::new();
    define(&home, "inner", "", json!([bash("touch made"), {"text": "deep"}]));
    define(&home, "outer", "", json!([calls(&[task("inner", "dig")]), says("deep", "passed on")]));
    let steps = json!([calls(&[task("outer", "work")]), says("passed on", "ok")]);
    let (mut agent, session) = client(&home, steps, &supported()).await;
    agent.replies.push_back(Reply::Pick("reject_once"));
    agent.turn(&session, "go").await;
    let outer =
        updates_of(&session_updates(&agent.frames, &session), "subagent_update")[0]["sessionId"].as_str().unwrap().to_string();
    let inner =
        updates_of(&session_updates(&agent.frames, &outer), "subagent_update")[0]["sessionId"].as_str().unwrap().to_string();
    assert_eq!(text(&session_updates(&agent.frames, &inner), "agent_message_chunk"), "deep");
    let asked: Vec<&Value> = agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").collect();
    assert_eq!(asked.iter().map(|frame| &frame["params"]["sessionId"]).collect::<Vec<_>>(), [&json!(inner)]);
    assert!(home.get("made").is_none());
    agent.finish().await;
}

#[tokio::test]
async fn client_cancels_one_subagent() {
    let home = Home::new();
    define(&home, "slow", "", json!([{"text": "slowly", "chunk_chars": 1, "delay_ms": 60_000}]));
    define(&home, "quick", "", json!([{"text": "quickly"}]));
    let steps = json!([calls(&[task("slow", "one"), task("quick", "two")]), {"expect": "quickly", "text": "went on"}]);
    let (mut agent, session) = client(&home, steps, &supported()).await;
    let prompt = agent.prompt(&session, "go").await;
    let is_slow =
        |frame: &Value| frame["params"]["update"]["title"] == "slow: one" && frame["params"]["update"]["state"].is_object();
    let announced = agent.until("the slow one", is_slow).await;
    let child = announced["params"]["update"]["sessionId"].as_str().unwrap().to_string();
    let is_prompt = |frame: &Value| {
        frame["params"]["sessionId"] == child.as_str() && frame["params"]["update"]["sessionUpdate"] == "session_message"
    };
    agent.until("its prompt", is_prompt).await;
    agent.notify("session/cancel", json!({"sessionId": child})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
    let parent = session_updates(&agent.frames, &session);
    let ended = updates_of(&parent, "subagent_update").into_iter().rfind(|update| update["sessionId"] == child.as_str()).unwrap();
    assert_eq!(ended["state"], json!({"state": "idle", "stopReason": "cancelled"}), "{ended}");
    assert_eq!(text(&parent, "agent_message_chunk"), "went on");
    agent.finish().await;
}

#[tokio::test]
async fn running_subagent_is_shown_after_a_load() {
    let home = Home::new();
    define(&home, "worker", "", json!([{"text": "Before.", "tool_calls": bash("touch made")["tool_calls"]}, {"text": "finished"}]));
    let steps = json!([calls(&[task("worker", "work")]), says("finished", "ok")]);
    let (mut agent, session) = client(&home, steps, &supported()).await;
    agent.otherwise = Reply::Never;
    let prompt = agent.prompt(&session, "go").await;
    let asked = agent.until_question().await;
    let child = asked["params"]["sessionId"].clone();
    let before = agent.frames.len();
    agent.otherwise = Reply::Pick("allow_once");
    agent.may_cross = true;
    agent.load(&home, &session).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
    let own = session_updates(&agent.frames[before..], child.as_str().unwrap());
    assert_eq!(text(&own, "agent_message_chunk"), "Before.finished");
    let ended = updates_of(&session_updates(&agent.frames[before..], &session), "subagent_update").pop().unwrap();
    assert_eq!(ended["state"]["stopReason"], "end_turn", "{ended}");
    assert!(home.get("made").is_some());
    agent.finish().await;
}
