//! The setting `fallback`: another model answers if the session's model cannot.

use serde_json::Value;

use harness::provider::session::{connect, home};
use harness::provider::{Exchange, KEY, Provider};
use harness::wires::WIRES;
use harness::{notices, text};

/// The model and the outcome of each request.
fn steps(log: &[Value]) -> Vec<(&str, &str)> {
    let steps = log.iter().map(|event| &event["body"]).filter(|body| body["type"] == "step.completed");
    steps.map(|body| (body["model"].as_str().unwrap(), body["outcome"].as_str().unwrap())).collect()
}

/// A provider that asks to wait longer than a model with a fallback waits.
fn busy(status: u16) -> Exchange {
    Exchange::error(status, r#"{"error":{"message":"Slow down"}}"#).header("retry-after", "60")
}

#[tokio::test]
async fn fallback_model_answers_for_busy_model() {
    for wire in WIRES {
        for status in [429, 503, 529] {
            let (home, provider, name) = home(wire, vec![busy(status), Exchange::events(wire.plain)]).await;
            let second = &WIRES[1];
            let other = Provider::start(second.protocol, vec![busy(status)]).await;
            let third = Provider::start(second.protocol, vec![Exchange::events(second.rich), Exchange::events(second.plain)]).await;
            let provider_settings = |name: &str, base_url: &str| {
                format!("[providers.{name}]\nbase_url = \"{base_url}\"\napi_key_command = [\"echo\", \"{KEY}\"]\n")
            };
            home.config(&format!(
                "{}{}{}[models.\"test/*\"]\nfallback = [\"unknown/x\", \"second/x\", \"third/x\"]\n",
                home.config_text(),
                provider_settings("second", &other.base_url),
                provider_settings("third", &third.base_url),
            ));
            let mut agent = connect(&home).await;
            let session = agent.new_session(&home).await;
            let (stop, updates) = agent.turn(&session, "hi").await;
            assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "Reading.Hello"), "{name}");
            assert_eq!(notices(&updates), ["A fallback model cannot be used", "Using second/x", "Using third/x"], "{name}");
            // The next turn begins with the session's model.
            assert_eq!(agent.turn(&session, "again").await.0, "end_turn", "{name}");
            agent.finish().await;
            let model = format!("test/{name}");
            let expected = [
                (model.as_str(), "retried"),
                ("second/x", "retried"),
                ("third/x", "tool_calls"),
                ("third/x", "end_turn"),
                (model.as_str(), "end_turn"),
            ];
            assert_eq!(steps(&home.log(&session).await), expected, "{name}");
            for provider in [provider, other, third] {
                provider.finish().await;
            }
        }
    }
}

#[tokio::test]
async fn fallback_model_answers_for_unreachable_model() {
    let wire = &WIRES[1];
    let (home, provider, name) = home(wire, vec![Exchange::events(wire.plain)]).await;
    let settings = home.config_text().replacen("model = \"test/", "model = \"gone/", 1);
    home.config(&format!(
        "{settings}[providers.gone]\nbase_url = \"http://127.0.0.1:1/v1\"\n[models.\"gone/*\"]\nfallback = [\"test/{name}\"]\n"
    ));
    let ran = home.run(&["run", "hi"], "").await;
    assert!(ran.code == 0 && ran.stdout == "Hello\n" && ran.stderr.contains(&format!("Using test/{name}")), "{ran:?}");
    provider.finish().await;
}

/// A wrong key or an invalid request would not be better with another model.
#[tokio::test]
async fn other_errors_do_not_use_fallback_model() {
    let wire = &WIRES[1];
    for status in [400, 401, 404] {
        let (home, provider, name) = home(wire, vec![Exchange::error(status, r#"{"error":{"message":"no"}}"#)]).await;
        home.config(&format!("{}[models.\"test/{name}\"]\nfallback = [\"test/other\"]\n", home.config_text()));
        let ran = home.run(&["run", "hi"], "").await;
        assert!(ran.code != 0 && !ran.stderr.contains("Using"), "{status}: {ran:?}");
        assert_eq!(provider.finish().await.len(), 1, "{status}");
    }
}
