//! Keys of an empty text, and the arguments with which a chat begins.

use serde_json::json;

use super::{SIZE, chat, end, session, waiting};
use harness::Home;

#[tokio::test]
async fn keys_of_an_empty_text_show_help_set_the_mode_and_return_the_last_text() {
    let home = Home::new();
    let mut terminal = chat(&home, json!([{"text": "an answer\n"}]), &[]).await;
    let screen = terminal.until_screen("? keys", SIZE).await;
    assert!(screen.contains("Describe a change, or: / commands") && screen.contains("asks before changing"), "{screen}");
    terminal.say("?").await;
    terminal.until_screen("Ctrl-O        shows", SIZE).await;
    for mode in ["accept-edits", "plan", "ask"] {
        terminal.say("\u{1b}[Z").await;
        terminal.until_screen(&format!("/help · {mode} · "), SIZE).await;
    }
    terminal.say("first text\r").await;
    terminal.until_screen(" tokens in, ", SIZE).await;
    terminal.until_screen("? keys · /help", SIZE).await;
    terminal.say("\u{1b}[27u").await;
    terminal.say("\u{1b}[27u").await;
    terminal.until_screen("> first text\n  ", SIZE).await;
    // A question mark in a text is text, and Shift-Tab sets the mode beside it.
    terminal.say("?").await;
    terminal.until_screen("> first text?\n", SIZE).await;
    terminal.say("\u{3}").await;
    terminal.until_screen(">\n", SIZE).await;
    end(terminal).await;
}

/// The row is not printed into the history of the terminal.
#[tokio::test]
async fn second_control_c_quits_as_the_status_row_says_for_a_second() {
    let home = Home::new();
    let mut terminal = chat(&home, json!([]), &[]).await;
    terminal.say("\u{3}").await;
    terminal.until_screen("Ctrl-C again quits", SIZE).await;
    let screen = terminal.until_screen("? keys · /help", SIZE).await;
    assert!(!screen.contains("again quits"), "{screen}");
    terminal.say("\u{3}").await;
    terminal.until_screen("Ctrl-C again quits", SIZE).await;
    terminal.say("\u{3}").await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 0, "{shown}");
}

#[tokio::test]
async fn control_c_that_empties_the_text_is_not_the_first_of_two_that_quit_a_running_turn() {
    let home = Home::new();
    let mut terminal = chat(&home, json!([{"tool_calls": [waiting()]}]), &["--mode", "auto"]).await;
    terminal.say("go\r").await;
    terminal.until_screen("\n  started", SIZE).await;
    terminal.say("more").await;
    terminal.until_screen("> more\n", SIZE).await;
    terminal.say("\u{3}\u{3}").await;
    let screen = terminal.until_screen("? keys · /help", SIZE).await;
    assert!(screen.contains("cancelled"), "{screen}");
    end(terminal).await;
}

#[tokio::test]
async fn chat_lists_sessions_continues_the_last_one_and_is_plain_without_its_name() {
    let home = Home::new();
    let mut terminal = chat(&home, json!([{"text": "an answer\n"}]), &[]).await;
    terminal.say("the first text\r").await;
    terminal.until_screen("an answer\n", SIZE).await;
    let shown = end(terminal).await;
    let id = session(&shown).to_owned();
    let mut terminal = home.terminal(&["-r", "last"]);
    terminal.resize(SIZE.0, SIZE.1);
    terminal.until_screen("> the first text", SIZE).await;
    assert_eq!(session(&end(terminal).await), id);
    let model = home.script(json!([]));
    let mut terminal = home.terminal(&["--model", &model, "-r"]);
    terminal.resize(SIZE.0, SIZE.1);
    terminal.until_screen("the first text", SIZE).await;
    terminal.say("\r").await;
    terminal.until_screen("an answer\n", SIZE).await;
    assert_eq!(session(&end(terminal).await), id);
    // The session behind the list is not left.
    let mut agent = home.start(&["--model", &model]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let all = agent.call("session/list", json!({"_meta": {"nuncio": {"empty": true}}})).await;
    let ids: Vec<_> = all["sessions"].as_array().unwrap().iter().map(|row| row["sessionId"].as_str().unwrap()).collect();
    assert_eq!(ids, [&id]);
    agent.finish().await;
    let mut terminal = home.terminal(&["--plain", "--model", &model]);
    let shown = terminal.until("Describe a change").await;
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    terminal.say("/quit\n").await;
    assert_eq!(terminal.end().await.0, 0);
    let ran = home.run(&["run", "--model", &model, "-r"], "").await;
    assert!(ran.code == 2 && ran.stderr.contains("--resume: which session?"), "{ran:?}");
}
