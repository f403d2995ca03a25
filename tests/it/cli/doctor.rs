//! `nuncio doctor`, and `nuncio tool` without a name.

use super::check;
use crate::harness::Home;
use crate::models::wires::WIRES;
use crate::provider::Exchange;
use crate::providers;

#[tokio::test]
async fn doctor_reports_unreachable_model() {
    let home = Home::new();
    // Base URL, words of the line with the problem.
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
async fn doctor_reports_refused_key() {
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

/// `doctor` sends one request to a busy provider and does not retry.
#[tokio::test]
async fn doctor_does_not_retry_busy_provider() {
    let busy = Exchange::error(429, r#"{"error":{"message":"slow down"}}"#).header("retry-after", "60");
    let (home, provider, _) = providers::home(&WIRES[1], vec![busy]).await;
    check(&home.run(&["doctor"], "").await, 1, &["FAIL model", "slow down"]);
    provider.finish().await;
}

/// A set variable does not prove that its key is valid.
#[tokio::test]
async fn doctor_checks_key_even_if_variable_is_set() {
    let home = Home::new();
    home.env("OPENAI_API_KEY", "sk-test");
    let ran = home.run(&["doctor", "--model", "openai/x", "--base-url", "http://127.0.0.1:1/v1"], "").await;
    check(&ran, 1, &["openai: $OPENAI_API_KEY is set", "FAIL model"]);
}

#[tokio::test]
async fn tool_without_name_lists_tools() {
    let home = Home::new();
    let ran = home.run(&["tool"], "").await;
    check(&ran, 0, &["read", "file_path, offset?, limit?", "bash", "command, timeout_ms?", "repo_map"]);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ran.stdout);
}
