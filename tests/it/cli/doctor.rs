//! `nuncio doctor`, and `nuncio tool` without a name: what works here, and what there is.

use super::check;
use crate::harness::Home;
use crate::models::wires::WIRES;
use crate::provider::Exchange;
use crate::providers;

#[tokio::test]
async fn doctor_reports_a_model_that_cannot_be_reached() {
    let home = Home::new();
    // A base URL, and words of the line that says what is wrong.
    let cases: &[(&str, &[&str])] = &[
        ("http://127.0.0.1:1/v1", &["FAIL model", "127.0.0.1:1"]),
        ("127.0.0.1:8080/v1", &["FAIL model", "127.0.0.1:8080/v1", "base_url"]),
        ("localhost:8080/v1", &["FAIL model", "localhost:8080/v1", "base_url"]),
    ];
    for (base_url, words) in cases {
        check(&home.run(&["doctor", "--model", "local/x", "--base-url", base_url], "").await, 1, words);
    }
}

#[tokio::test]
async fn doctor_reports_a_key_that_is_refused() {
    for wire in WIRES {
        let refused = Exchange::error(401, r#"{"error":{"message":"wrong key"}}"#);
        let (home, provider, name) = providers::home(wire, vec![refused]).await;
        check(&home.run(&["doctor"], "").await, 1, &["FAIL model", "key was refused", "api_key_command"]);
        assert_eq!(provider.finish().await.len(), 1, "{name}");

        let (home, provider, name) = providers::home(wire, vec![Exchange::events(wire.plain)]).await;
        let well = home.run(&["doctor"], "").await;
        check(&well, 0, &["ok   model", &name, "answers"]);
        assert!(!well.stdout.contains("FAIL"), "{well:?}");
        provider.finish().await;
    }
}

/// A provider that is busy is asked once: doctor does not wait for better times.
#[tokio::test]
async fn doctor_reports_a_busy_provider_at_once() {
    let busy = Exchange::error(429, r#"{"error":{"message":"slow down"}}"#).header("retry-after", "60");
    let (home, provider, _) = providers::home(&WIRES[1], vec![busy]).await;
    check(&home.run(&["doctor"], "").await, 1, &["FAIL model", "slow down"]);
    provider.finish().await;
}

/// A variable that is set is no proof of its key.
#[tokio::test]
async fn doctor_does_not_say_that_a_key_is_right_because_it_is_set() {
    let home = Home::new();
    home.env("OPENAI_API_KEY", "sk-test");
    let ran = home.run(&["doctor", "--model", "openai/x", "--base-url", "http://127.0.0.1:1/v1"], "").await;
    check(&ran, 1, &["openai: $OPENAI_API_KEY is set", "FAIL model"]);
}

#[tokio::test]
async fn tool_without_a_name_lists_the_tools() {
    let home = Home::new();
    let ran = home.run(&["tool"], "").await;
    check(&ran, 0, &["read", "file_path, offset?, limit?", "bash", "command, timeout_ms?", "repo_map"]);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ran.stdout);
}
