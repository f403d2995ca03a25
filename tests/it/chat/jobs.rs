//! Background jobs in the chat: `/jobs`, Ctrl-B and their ends.

use serde_json::json;

use super::{SIZE, chat, completed, end};
use harness::Home;
use harness::steps::bash_call;

const WAIT: &str = "echo begun; until test -e go; do sleep 0.01; done; echo over; exit 3";

#[tokio::test]
async fn running_command_continues_in_the_background() {
    let home = Home::new();
    let steps = json!([
        {"tool_calls": [bash_call(WAIT)]},
        {"expect": "the user moved the command to the background: it is job 1", "text": "meanwhile"},
    ]);
    let mut terminal = chat(&home, steps, &["--mode", "auto"]).await;
    terminal.say("/bg\r").await;
    terminal.until_screen("no command runs that can continue", SIZE).await;
    terminal.say("\u{3}/jobs\r").await;
    terminal.until_screen("no background jobs in this session", SIZE).await;
    terminal.say("go\r").await;
    terminal.until_screen("\n  begun", SIZE).await;
    terminal.say("\u{2}").await;
    terminal.until_screen("meanwhile\n", SIZE).await;
    terminal.until_screen(" · 1 job · ", SIZE).await;
    terminal.say("/jobs\r").await;
    terminal.until_screen("1   runs           echo begun;", SIZE).await;
    home.put("go", "");
    let screen = terminal.until_screen("job 1 exit code 3: echo begun;", SIZE).await;
    assert!(!screen.contains(" · 1 job · "), "{screen}");
    terminal.say("/jobs 1\r").await;
    terminal.until_screen("  begun\n  over\n  [exit code 3]", SIZE).await;
    terminal.say("/jobs 7\r").await;
    terminal.until_screen("there is no job 7; there are jobs 1", SIZE).await;
    terminal.say("\u{3}").await;
    let shown = end(terminal).await;
    // What the model has seen does not contain the later output.
    let messages = completed(&home, &shown).await;
    assert!(messages.contains("meanwhile") && !messages.contains("over"), "{messages}");
}

#[tokio::test]
async fn job_is_killed() {
    let home = Home::new();
    let job = json!({"name": "bash", "input": {"command": "sleep 60", "background": true}});
    let mut terminal = chat(&home, json!([{"tool_calls": [job]}, {"text": "it runs"}]), &["--mode", "auto"]).await;
    terminal.say("go\r").await;
    terminal.until_screen("it runs\n", SIZE).await;
    terminal.until_screen(" · 1 job · ", SIZE).await;
    terminal.say("/jobs kill 1\r").await;
    terminal.until_screen("job 1 ended: sleep 60", SIZE).await;
    terminal.until_screen("job 1 killed: sleep 60", SIZE).await;
    let screen = terminal.until_screen("? keys · /help · auto · scripted", SIZE).await;
    assert!(!screen.contains("1 job ·"), "{screen}");
    end(terminal).await;
}
