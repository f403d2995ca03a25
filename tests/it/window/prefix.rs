//! The start of a request is the previous request.

use serde_json::{Value, json};

use super::{calls, home, messages, says};
use harness::provider::ReceivedRequest;

const STEPS: usize = 50;
/// The part of a request, in percent, that the next request starts with.
const SHARE_MIN: usize = 95;

/// The bytes of a request that the next one starts with, and all its bytes. Providers cache tools
/// and instructions before messages.
fn shared(before: &ReceivedRequest, after: &ReceivedRequest) -> (usize, usize) {
    let rest = |received: &ReceivedRequest| -> Value {
        let mut body = received.body.clone();
        body.as_object_mut().unwrap().remove("messages");
        body
    };
    let (head, next) = (rest(before), rest(after));
    let size = |value: &Value| value.to_string().len();
    let all = size(&head) + messages(before).iter().map(size).sum::<usize>();
    if head != next {
        return (0, all);
    }
    let same = messages(before).iter().zip(messages(after)).take_while(|(one, other)| one == other);
    (size(&head) + same.map(|(one, _)| size(one)).sum::<usize>(), all)
}

#[tokio::test]
async fn requests_of_50_steps_start_with_previous_request() {
    let (home, provider) = home(200_000, "").await;
    let mut step = 0;
    provider.respond(move |received| {
        step += 1;
        match step % (STEPS + 1) {
            0 => says(received, "done"),
            step => calls(received, &format!("call-{step}"), "bash", json!({ "command": format!("seq {step} 400") })),
        }
    });
    let mut agent = home.start(&["--mode", "auto"]).await;
    agent.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} })).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, "count").await;
    agent.turn(&session, "count again").await;
    agent.finish().await;
    let received = provider.finish().await;
    assert_eq!(received.len(), 2 * (STEPS + 1));
    for (index, pair) in received.windows(2).enumerate() {
        let (same, all) = shared(&pair[0], &pair[1]);
        assert!(same * 100 >= all * SHARE_MIN, "request {index}: {same} of {all} bytes");
    }
}
