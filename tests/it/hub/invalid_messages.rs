//! Messages of hosted agents that cannot be read as they are: what they answer fails at once, the
//! agent keeps running, and text that is not Unicode arrives with U+FFFD.

use serde_json::json;

use super::{home, session};
use harness::text;

#[tokio::test]
async fn response_that_cannot_be_read_fails_its_call_and_the_agent_continues() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    for (prompt, why) in [("deep-answer", "recursion limit"), ("long-answer", "longer than")] {
        let failed = agent.failure(&session, prompt).await;
        assert_eq!(failed["data"]["code"], json!("model_error"), "{prompt}: {failed}");
        assert!(failed["message"].as_str().unwrap().contains(why), "{prompt}: {failed}");
    }
    // The same process has all prompts.
    let (_, updates) = agent.turn(&session, "history").await;
    let said = text(&updates, "agent_message_chunk");
    assert!(said.ends_with("deep-answer / long-answer / history") && !said.contains("loaded"), "{said}");
    agent.finish().await;
}

#[tokio::test]
async fn request_that_cannot_be_read_is_answered_with_an_error() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (_, updates) = agent.turn(&session, "deep-request").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "refused");
    agent.finish().await;
}

#[tokio::test]
async fn text_that_is_not_unicode_arrives_with_replacement_characters() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (_, updates) = agent.turn(&session, "bytes").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "a\u{fffd}\u{fffd}b");
    agent.finish().await;
}
