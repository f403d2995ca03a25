//! The plain chat, for screen readers: whole lines in, finished lines out.

use serde_json::json;

use harness::Home;
use harness::steps::bash_call;

#[tokio::test]
async fn plain_chat_reads_lines_and_redraws_nothing() {
    let home = Home::new();
    let steps = json!([{"text": "I **will**.\n", "tool_calls": [bash_call("touch made")]}, {"text": "the end\n"}]);
    let model = home.script(steps);
    let mut terminal = home.terminal(&["chat", "--plain", "--model", &model]);
    terminal.say("make it\n").await;
    let shown = terminal.until("Answer with /1, /2, …").await;
    assert!(shown.contains("Allow `touch made`?") && shown.contains("[1] Allow"), "{shown}");
    terminal.say("/1\n").await;
    terminal.until("the end\n").await;
    terminal.say("/quit\n").await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 0, "{shown}");
    assert!(home.get("made").is_some());
    assert!(!shown.contains('\u{1b}') && shown.matches("I **will**.").count() == 1, "{shown:?}");
}
/// The shell of Emacs is such a terminal.
#[tokio::test]
async fn terminal_without_cursor_movement_needs_the_plain_chat() {
    let home = Home::new();
    home.env("TERM", "dumb");
    let model = home.script(json!([{"text": "an answer\n"}]));
    for arguments in
        [&["chat"][..], &["--model", &model], &["-c"], &["chat", "--resume", "sess_1"], &["chat", "--url", "http://127.0.0.1:1"]]
    {
        let (code, shown) = home.terminal(arguments).end().await;
        assert!(code == 2 && shown.contains("nuncio chat --plain") && !shown.contains('\u{1b}'), "{arguments:?}: {code} {shown:?}");
    }
    let mut terminal = home.terminal(&["chat", "--plain", "--model", &model]);
    terminal.say("hello\n").await;
    terminal.until("an answer\n").await;
    terminal.say("/quit\n").await;
    let (code, shown) = terminal.end().await;
    assert!(code == 0 && !shown.contains('\u{1b}'), "{shown:?}");
    // A command is not the chat.
    let (code, shown) = home.terminal(&["run", "--model", &model, "go"]).end().await;
    assert!(code == 0 && shown.contains("an answer"), "{shown:?}");
}

/// A cancelled turn ends the call of the open question, and calls that wait for one.
#[tokio::test]
async fn cancelled_turn_is_reported_once() {
    let home = Home::new();
    let model = home.script(json!([{"tool_calls": [bash_call("echo made"), bash_call("echo other")]}]));
    let mut terminal = home.terminal(&["run", "--model", &model, "go"]);
    terminal.until("always reject: ").await;
    let session = home.run(&["sessions", "list", "--json"], "").await.lines()[0]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(home.run(&["sessions", "cancel", &session], "").await.code, 0);
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 130, "{shown}");
    let (_, after) = shown.split_once("Allow `echo made`?").unwrap();
    assert_eq!(after.matches("cancelled").count(), 1, "{shown}");
}

/// The result of another call stands between a question and its denial.
#[tokio::test]
async fn denial_names_its_call() {
    let home = Home::new();
    home.put("listed.txt", "x");
    let list = json!({"name": "list", "input": {}});
    let model =
        home.script(json!([{"tool_calls": [bash_call("echo made"), list, bash_call("echo other")]}, {"text": "the end\n"}]));
    let mut terminal = home.terminal(&["chat", "--plain", "--model", &model]);
    terminal.say("go\n").await;
    for question in 1..=2 {
        let shown = terminal.until_times("Answer with /1, /2, …", question).await;
        let reject = (1..9).find(|number| shown.contains(&format!("[{number}] Reject"))).unwrap_or_else(|| panic!("{shown}"));
        terminal.say(&format!("/{reject}\n")).await;
    }
    terminal.until("the end\n").await;
    terminal.say("/quit\n").await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 0, "{shown}");
    for command in ["echo made", "echo other"] {
        let title = format!("✗ {command}\n  you denied it\n");
        assert!(shown.contains(&title), "{title:?} is not in {shown}");
    }
}
