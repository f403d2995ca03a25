//! Agents that are not logged in: `nuncio agents check` and the first turn say so.

use serde_json::json;

use super::claude_code::CLAUDE;
use super::codex::CODEX;
use super::{AGENT, allowed, bodies, home, home_of, hosted, played, session};
use harness::{Home, text};

#[tokio::test]
async fn check_reports_the_login() {
    for (kind, script, flags, code, words) in [
        ("codex", CODEX, "logged-out", 1, &["FAIL other", "not logged in", "codex login"][..]),
        ("codex", CODEX, "logged-in", 0, &["ok   other", "logged in as ada@example.com (plus)"]),
        ("codex", CODEX, "unknown", 0, &["ok   other"]),
        ("claude-code", CLAUDE, "logged-out", 1, &["FAIL other", "not logged in", "/login"]),
        ("claude-code", CLAUDE, "logged-in", 0, &["ok   other", "logged in as ada@example.com (claude.ai)"]),
        ("acp", AGENT, "login", 1, &["FAIL other", "Authentication required", "API key"]),
    ] {
        let home = home_of(kind, script, &[flags], "").await;
        let ran = home.run(&["agents", "check"], "").await;
        assert_eq!(ran.code, code, "{kind} {flags}: {ran:?}");
        for word in words {
            assert!(ran.stdout.contains(word), "{kind} {flags}: no {word}: {ran:?}");
        }
    }
    let home = home_of("codex", CODEX, &["logged-in"], "").await;
    let ran = home.run(&["agents", "check", "--json"], "").await;
    assert_eq!(ran.lines()[0]["login"], "ada@example.com (plus)", "{ran:?}");
}

#[tokio::test]
async fn check_reports_each_agent_also_beside_unknown_ones() {
    let home = home_of("codex", CODEX, &["logged-in"], "").await;
    let config = home.config_text();
    let unknown = [("gone", "nuncio agents add gone -- COMMAND"), ("gemini", "nuncio agents add gemini")];
    for (name, hint) in unknown {
        let ran = home.run(&["agents", "check", name, "other"], "").await;
        assert!(ran.code == 1 && ran.stdout.lines().count() == 2, "{name:?}: {ran:?}");
        assert!(ran.stdout.contains("ok   other") && ran.stdout.contains("is unknown") && ran.stdout.contains(hint), "{ran:?}");
    }
    // Allowed, and without a table.
    let allowed = config.replace(r#"allowed = ["other"]"#, r#"allowed = ["gone", "other", "lost"]"#);
    assert_ne!(allowed, config);
    home.config(&allowed);
    let ran = home.run(&["agents", "check", "--json"], "").await;
    let mut problems: Vec<(String, bool)> =
        ran.lines().iter().map(|row| (row["name"].as_str().unwrap().into(), row["problem"].is_string())).collect();
    problems.sort();
    assert_eq!(problems, [("gone".into(), true), ("lost".into(), true), ("other".into(), false)], "{ran:?}");
    assert_eq!(ran.code, 1);
}

#[tokio::test]
async fn turn_of_codex_without_a_login_fails_at_once() {
    let home = home_of("codex", CODEX, &["logged-out"], "").await;
    let (mut agent, session) = session(&home, &[]).await;
    let failed = agent.failure(&session, "say it").await;
    assert_eq!(
        (&failed["data"]["code"], &failed["data"]["hint"]),
        (&json!("unauthenticated"), &json!("run codex login")),
        "{failed}"
    );
    agent.finish().await;
}

/// The agent waits for a login and answers nothing.
#[tokio::test]
async fn agent_that_asks_for_a_login_and_waits_is_reported() {
    let home = home(&["asks-login"]).await;
    let ran = home.run(&["agents", "check"], "").await;
    assert!(ran.code == 1 && ran.stdout.contains("Please log in: run other login"), "{ran:?}");
    let ran = home.run(&["run", "--agent", "other", "hello"], "").await;
    assert!(ran.code != 0 && ran.stderr.contains("Please log in: run other login"), "{ran:?}");
    assert!(!ran.stderr.contains("Loading"), "{ran:?}");
}

#[tokio::test]
async fn authentication_error_shows_the_line_of_the_agent() {
    let home = home(&[]).await;
    let ran = home.run(&["run", "--agent", "other", "login"], "").await;
    assert!(ran.code != 0 && ran.stderr.contains("You are not logged in. Run: other login"), "{ran:?}");
}

#[tokio::test]
async fn login_request_during_a_turn_is_a_notice() {
    let home = home(&[]).await;
    let mut agent = home.start(&[]).await;
    let capabilities = json!({"session": {"notices": {}}});
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let session = hosted(&mut agent, &home, "other").await;
    agent.turn(&session, "say").await;
    let id = agent.prompt(&session, "asks-login").await;
    let shown = "Please log in: visit http://127.0.0.1/login";
    agent.until("the notice", |frame| frame.to_string().contains(shown)).await;
    agent.cancel(&session, &id).await;
    agent.finish().await;
    let notices = bodies(&home, &session, &["notice"]).await;
    assert_eq!((notices.len(), &notices[0]["description"]), (1, &json!(shown)), "{notices:?}");
}

#[tokio::test]
async fn absent_variable_of_env_pass_is_no_error() {
    let home = Home::new();
    home.config(&(allowed(&["other"]) + &played("other", "acp", AGENT, &[]) + "env_pass = [\"ABSENT_KEY\"]\n"));
    super::trust(&home).await;
    let (mut agent, session) = session(&home, &[]).await;
    let (_, updates) = agent.turn(&session, "env ABSENT_KEY").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "(unset)");
    agent.finish().await;
}
