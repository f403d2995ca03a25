//! The first start without a model, the demo in the chat, and the help.

use super::{SIZE, answer};
use harness::Home;

#[tokio::test]
async fn without_a_model_the_chat_says_what_to_do_and_offers_the_demo() {
    let home = Home::new();
    home.env("OLLAMA_HOST", "127.0.0.1:1");
    let mut terminal = home.terminal(&[]);
    let shown = terminal.until("[n]o: ").await;
    for words in ["API keys       ANTHROPIC_API_KEY", "local servers  ollama", "other agents   ", "nuncio demo"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(shown.lines().count(), 6, "{shown}");
    terminal.say("n").await;
    assert_eq!(terminal.end().await.0, 3);

    let mut terminal = home.terminal(&[]);
    terminal.until("[n]o: ").await;
    terminal.say("y").await;
    demo(&mut terminal).await;
    let (code, shown) = terminal.end().await;
    assert!(code == 0 && shown.contains("Changes:"), "{shown}");
}

/// Allows each call of the demo, and ends the chat.
async fn demo(terminal: &mut harness::Terminal) {
    while terminal.until_screen_any(&["tokens in", "[1] Allow"], "Esc: to the text", SIZE).await != "tokens in" {
        answer(terminal, "1").await;
    }
    // A digit that came too late for a request is in the composer.
    terminal.say("\u{15}\u{4}").await;
}

#[tokio::test]
async fn demo_runs_in_the_chat_on_a_terminal() {
    let home = Home::new();
    let mut terminal = home.terminal(&["demo"]);
    demo(&mut terminal).await;
    let (code, shown) = terminal.end().await;
    assert!(code == 0 && shown.contains("Changes:") && shown.contains("Show the session again"), "{shown}");
    // The demo fails if the user leaves before the fix.
    let mut terminal = home.terminal(&["demo"]);
    terminal.until_screen("[1] Allow", SIZE).await;
    terminal.say("\u{4}").await;
    let (code, shown) = terminal.end().await;
    assert!(code == 130 && shown.contains("the test still fails"), "{code} {shown}");
}

#[tokio::test]
async fn help_fits_a_screen_and_names_each_command_once() {
    let home = Home::new();
    let help = home.run(&["--help"], "").await;
    assert!(help.code == 0 && help.stdout.lines().count() <= 36, "{}", help.stdout);
    assert!(help.stdout.lines().all(|line| line.chars().count() <= 100), "{}", help.stdout);
    for command in [
        "acp",
        "agents",
        "chat",
        "config",
        "demo",
        "doctor",
        "login",
        "logout",
        "mcp",
        "models",
        "replay",
        "run",
        "schema",
        "serve",
        "sessions",
        "token",
        "tool",
        "trust",
        "update",
        "workspaces",
    ] {
        let lines = help.stdout.lines().filter(|line| line.starts_with(&format!("  {command} "))).count();
        assert_eq!(lines, 1, "{command}: {}", help.stdout);
    }
}
