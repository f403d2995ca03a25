//! `nuncio run --url`: prompts to the sessions of a server elsewhere.

use serde_json::{Value, json};

use harness::steps::bash_call;
use harness::{CommandResult, Home, Server};

/// A server with a script, and another home that uses it.
async fn elsewhere(steps: Value, flags: &[&str]) -> (Home, Server, Home, String) {
    let server_home = Home::new();
    let server = server_home.serve_script(steps, flags).await;
    let (home, url) = (Home::new(), format!("http://{}", server.address));
    home.env("NUNCIO_TOKEN", &server.token);
    (server_home, server, home, url)
}

async fn run(home: &Home, url: &str, words: &[&str]) -> CommandResult {
    home.run(&[&["run", "--url", url], words].concat(), "").await
}

#[tokio::test]
async fn prompts_run_in_a_session_of_the_server() {
    let steps = json!([
        {"tool_calls": [bash_call("touch made")]}, {"text": "done there"}, {"text": "again"}, {"text": "{\"n\": 1}"},
    ]);
    let (server_home, server, home, url) = elsewhere(steps, &["--mode", "auto"]).await;
    let ran = run(&home, &url, &["--title", "Elsewhere", "go"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done there\n"), "{ran:?}");
    assert!(server_home.get("made").is_some() && home.get("made").is_none());

    let ran = run(&home, &url, &["--continue", "--output-format", "json", "more"]).await;
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, result["answer"].as_str()), (0, Some("again")), "{ran:?}");
    assert!(ran.stderr.contains("continuing \"Elsewhere\""), "{ran:?}");

    let session = result["sessionId"].as_str().unwrap();
    let ran = run(&home, &url, &["--resume", &session[..20], "--json", "as JSON lines"]).await;
    let kinds: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["body"]["type"].clone()).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&json!("turn.started")), Some(&json!("turn.completed"))), "{ran:?}");
    let listed = home.run(&["sessions", "list", "--json"], "").await;
    assert_eq!(listed.stdout, "", "no session is on this machine");
    server.stop().await;
}

/// Without a terminal nobody can answer here, so that a call that needs permission is denied at
/// once, as in a session of this process.
#[tokio::test]
async fn call_that_needs_permission_is_denied_without_a_terminal() {
    let steps = json!([{"tool_calls": [bash_call("touch made")]}, {"text": "not done"}]);
    let (server_home, server, home, url) = elsewhere(steps, &[]).await;
    let ran = run(&home, &url, &["go"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (4, "not done\n"), "{ran:?}");
    assert!(server_home.get("made").is_none());
    server.stop().await;
}

#[tokio::test]
async fn wrong_addresses_and_flags_are_refused() {
    let home = Home::new();
    let ran = run(&home, "http://127.0.0.1:1", &["x"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("NUNCIO_TOKEN"), "{ran:?}");
    home.env("NUNCIO_TOKEN", "token");
    for (url, flags, words) in [
        ("http://127.0.0.1:1", &["x"][..], "is nuncio serve running there?"),
        ("ftp://x", &["x"], "expected http"),
        ("http://x?token=y", &["x"], "a token"),
        ("http://127.0.0.1:1", &["--tools", "read", "x"], "only --agent, --model, --thinking and --mode apply"),
        ("http://127.0.0.1:1", &["--agent", "a", "--agent", "b", "x"], "not available with several --agent"),
    ] {
        let ran = run(&home, url, flags).await;
        assert!(ran.code != 0 && ran.stderr.contains(words), "{url} {flags:?}: {ran:?}");
    }
}

/// A failed turn and a limit end the command with their own exit codes.
#[tokio::test]
async fn end_of_the_turn_gives_the_exit_code() {
    let steps = json!([{"error": "the model failed"}, {"tool_calls": [bash_call("true")]}, {"text": "never"}]);
    let (_server_home, server, home, url) = elsewhere(steps, &["--mode", "auto"]).await;
    let ran = run(&home, &url, &["go"]).await;
    assert!(ran.code == 1 && ran.stderr.contains("the model failed"), "{ran:?}");
    let ran = run(&home, &url, &["--max-requests", "1", "go"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:?}");

    // An error of the server names the flag's field, and its hint once.
    let ran = run(&home, &url, &["--model", "nope", "go"]).await;
    let expected = "nuncio: model: model nope: expected the form PROVIDER/NAME\n  e.g. ";
    assert!(ran.code == 2 && ran.stderr.starts_with(expected), "{ran:?}");
    server.stop().await;
}
