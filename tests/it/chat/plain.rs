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
