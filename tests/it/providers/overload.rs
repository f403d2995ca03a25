//! Waiting for an overloaded provider: `retry.wait_s`, the notice and the cancellation.

use serde_json::json;

use harness::provider::Exchange;
use harness::provider::session::{connect, home};
use harness::wires::WIRES;

fn busy(seconds: &str) -> Exchange {
    Exchange::error(503, r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#)
        .header("retry-after", seconds)
}

#[tokio::test]
async fn setting_limits_wait_for_overloaded_provider() {
    for wire in WIRES {
        let (home, provider, name) = home(wire, vec![busy("0")]).await;
        let config = std::fs::read_to_string(home.data().join("config.toml")).expect("settings");
        home.config(&format!("{config}[retry]\nwait_s = 0\n"));
        let ran = home.run(&["run", "hi"], "").await;
        assert_eq!(ran.code, 1, "{name}: {ran:?}");
        assert!(ran.stderr.contains("Loading model") && ran.stderr.contains("retry.wait_s"), "{name}: {ran:?}");
        assert_eq!(provider.finish().await.len(), 1, "{name}");
    }
}

#[tokio::test]
async fn wait_is_shown_and_ends_with_cancel() {
    for wire in WIRES {
        let (home, provider, name) = home(wire, vec![busy("60")]).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        let id = agent.prompt(&session, "hi").await;
        let notice = agent.until_update("notice").await;
        let shown = notice.to_string();
        assert!(shown.contains("Loading model") && shown.contains("attempt 2 in 60.0 s; ends in 1"), "{name}: {shown}");
        agent.notify("session/cancel", json!({"sessionId": session})).await;
        assert_eq!(agent.answer(&id).await.expect("an answer")["stopReason"], "cancelled", "{name}");
        agent.finish().await;
        provider.finish().await;
    }
}
