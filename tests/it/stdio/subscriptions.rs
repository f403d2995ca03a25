//! Events as notifications on stdio: the same results as on the WebSocket.

use serde_json::{Value, json};

use harness::steps::bash;
use harness::{Agent, Home, kinds, session_updates};

const EVENT: &str = "_nuncio/events/event";
const FOLLOW: &str = "_nuncio/events/follow";
const UNFOLLOW: &str = "_nuncio/events/unfollow";

/// Returns the results that a subscription has received.
fn results(frames: &[Value], subscription: &Value) -> Vec<Value> {
    let own = |frame: &&Value| frame["method"] == EVENT && frame["params"]["subscription"] == *subscription;
    frames.iter().filter(own).map(|frame| frame["params"]["result"].clone()).collect()
}

/// Waits for a result of a subscription.
async fn until(agent: &mut Agent, subscription: &Value, fits: impl Fn(&Value) -> bool) {
    let own = |frame: &Value| frame["method"] == EVENT && frame["params"]["subscription"] == *subscription;
    agent.until("a result", |frame| own(frame) && fits(&frame["params"]["result"])).await;
}

fn is(name: &'static str) -> impl Fn(&Value) -> bool {
    move |result| result["event"]["body"]["type"] == name
}

#[tokio::test]
async fn subscription_has_each_event_once_and_ends_with_the_connection() {
    let home = Home::new();
    let (mut agent, session) =
        home.session(json!([{"text": "one"}, {"text": "two words", "chunk_chars": 1, "delay_ms": 1}]), &[]).await;
    agent.turn(&session, "first").await;
    let subscription = agent.call(FOLLOW, json!({"sessionId": session})).await;
    until(&mut agent, &subscription, |result| result["synced"].is_u64()).await;
    let prompt = agent.prompt(&session, "second").await;
    until(&mut agent, &subscription, is("turn.completed")).await;
    agent.answer(&prompt).await.unwrap();
    let from_end = agent.call(FOLLOW, json!({"sessionId": session, "types": "turn.completed"})).await;
    until(&mut agent, &from_end, |result| result["synced"].is_u64()).await;
    let frames = agent.finish().await;

    let all = results(&frames, &subscription);
    let log = home.log(&session).await;
    let seqs = |events: &[Value]| -> Vec<u64> { events.iter().map(|event| event["seq"].as_u64().unwrap()).collect() };
    let told: Vec<Value> = all.iter().filter(|result| result["event"].is_object()).map(|result| result["event"].clone()).collect();
    let facts: Vec<Value> = told.iter().filter(|event| event["body"]["type"] != "message.delta").cloned().collect();
    let logged: Vec<Value> = log.iter().filter(|event| event["body"]["type"] != "message.delta").cloned().collect();
    assert_eq!(seqs(&facts), seqs(&logged));
    assert!(told.len() > facts.len(), "no deltas: {told:#?}");
    assert!(seqs(&told).is_sorted_by(|before, after| before < after), "{:?}", seqs(&told));
    assert_eq!(all.iter().filter(|result| result["synced"].is_u64()).count(), 1);
    assert_eq!(all.last(), Some(&json!({"ended": true})));
    let ends = results(&frames, &from_end);
    assert_eq!(ends.len(), 4, "two ends of turns, synced, ended: {ends:#?}");
}

#[tokio::test]
async fn unfollowed_subscription_sends_nothing_and_their_number_is_limited() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "one"}]), &[]).await;
    let first = agent.call(FOLLOW, json!({"sessionId": session})).await;
    until(&mut agent, &first, |result| result["synced"].is_u64()).await;
    for (params, ended) in [(json!([first]), true), (json!([first]), false), (json!(["x"]), false), (json!({}), false)] {
        assert_eq!(agent.call(UNFOLLOW, params.clone()).await, ended, "{params}");
    }
    let before = agent.frames.len();
    agent.turn(&session, "go").await;
    assert_eq!(results(&agent.frames[before..], &first), [] as [Value; 0]);
    for _ in 0..32 {
        agent.call(FOLLOW, json!({"sessionId": session})).await;
    }
    let refused = agent.request(FOLLOW, json!({"sessionId": session})).await.unwrap_err();
    assert_eq!(refused["data"]["code"], "overloaded", "{refused}");
    let missing = agent.request(FOLLOW, json!({"sessionId": "sess_none"})).await.unwrap_err();
    assert_eq!(missing["data"]["code"], "not_found");
    agent.finish().await;
}

#[tokio::test]
async fn client_without_updates_receives_events_and_requests_only() {
    let home = Home::new();
    let model = home.script(json!([bash("echo one"), {"text": "done"}]));
    let mut agent = home.start(&["--model", &model, "--mode", "ask"]).await;
    let capabilities = json!({"_meta": {"nuncio": {"updates": false}}});
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let session = agent.new_session(&home).await;
    agent.without_updates = true;
    let subscription = agent.call(FOLLOW, json!({"sessionId": session})).await;
    let prompt = agent.prompt(&session, "go").await;
    until(&mut agent, &subscription, is("turn.completed")).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
    assert_eq!(agent.questions(), 1);
    assert_eq!(kinds(&session_updates(&agent.frames, &session)), [] as [&str; 0]);
    agent.finish().await;
}
