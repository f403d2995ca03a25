//! Sessions of the chat: new ones, copies, and those that are continued.

use serde_json::json;

use super::{SIZE, chat, end, session};
use harness::Home;

#[tokio::test]
async fn chat_changes_between_sessions() {
    let home = Home::new();
    let steps = json!([{"text": "first answer"}, {"text": "second answer"}]);
    let mut terminal = chat(&home, steps, &["--title", "Alpha"]).await;
    terminal.say("one\r").await;
    terminal.until_screen("first answer\n", SIZE).await;
    terminal.say("/new\r").await;
    terminal.until_screen("\nsession sess_", SIZE).await;
    terminal.say("/rename Beta\r").await;
    terminal.until("]2;nuncio: Beta\u{7}").await;
    terminal.say("two\r").await;
    terminal.until_screen("> two\n", SIZE).await;
    terminal.until("tokens in").await;
    // The picker lists both; the filter leaves the first one.
    terminal.say("/resume\r").await;
    let screen = terminal.until_screen("Sessions of ", SIZE).await;
    assert!(screen.contains("Alpha") && screen.contains("Beta"), "{screen}");
    terminal.say("alph").await;
    terminal.until_screen("/ alph", SIZE).await;
    // Words of a message find it, too, and show the message.
    terminal.say(&"\u{7f}".repeat(4)).await;
    terminal.say("ANSWER first").await;
    terminal.until_screen("“first answer”", SIZE).await;
    terminal.say("\r").await;
    let screen = terminal.until_screen("first answer\n", SIZE).await;
    assert!(screen.contains("> one\n"), "{screen}");
    terminal.until_times("]2;nuncio: Alpha\u{7}", 2).await;
    terminal.say("/fork\r").await;
    terminal.until_screen("continues in a copy", SIZE).await;
    let shown = end(terminal).await;
    let listed = home.run(&["sessions", "list", "--json"], "").await.stdout;
    let fork = listed.lines().find(|line| line.contains(session(&shown)));
    assert!(listed.lines().count() == 3 && fork.is_some(), "{shown}\n{listed}");
}

#[tokio::test]
async fn continued_session_shows_its_last_turns() {
    let home = Home::new();
    let steps: Vec<_> = (0..8).map(|number| json!({"text": format!("answer {number}")})).collect();
    let model = home.script(json!(steps));
    let mut arguments = vec!["run".to_owned(), "--model".to_owned(), model];
    (0..8).for_each(|number| arguments.extend(["-p".to_owned(), format!("prompt {number}")]));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    assert_eq!(home.run(&arguments, "").await.code, 0);
    let mut terminal = home.terminal(&["chat", "-c"]);
    terminal.resize(50, 80);
    let screen = terminal.until_screen("answer 7", (50, 80)).await;
    assert!(screen.contains("… 3 earlier turns: nuncio sessions show sess_"), "{screen}");
    assert!(screen.contains("> prompt 3\n\nanswer 3\n") && !screen.contains("prompt 2"), "{screen}");
    // Ctrl-L prints them again.
    terminal.say("\u{c}").await;
    terminal.until_times("prompt 7", 2).await;
    end(terminal).await;
}

#[tokio::test]
async fn options_without_a_command_continue_a_session_in_the_chat() {
    let home = Home::new();
    let model = home.script(json!([{"text": "first answer"}]));
    assert_eq!(home.run(&["run", "--model", &model, "one"], "").await.code, 0);
    let listed = home.run(&["sessions", "list", "--json"], "").await.stdout;
    let listed: serde_json::Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    let id = listed["sessionId"].as_str().unwrap();
    let long = format!("--resume={id}");
    for arguments in [
        &["-c"][..],
        &["--continue"],
        &["-r", id],
        &["--resume", id],
        &[&long],
        &["--mode", "plan", "-c"],
        &["-c", "--mode", "plan"],
    ] {
        let mut terminal = home.terminal(arguments);
        terminal.resize(50, 80);
        terminal.until_screen("first answer", (50, 80)).await;
        end(terminal).await;
    }
    // These commands have no such option, and a command is no prompt.
    for arguments in [&["serve", "-c"][..], &["-c", "run"], &["doctor", "--continue"], &["-x"]] {
        let ran = home.run(arguments, "").await;
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}: {ran:?}");
    }
}

#[tokio::test]
async fn unknown_session_is_an_error() {
    let home = Home::new();
    let mut terminal = chat(&home, json!([]), &[]).await;
    terminal.say("/resume sess_none\r").await;
    let screen = terminal.until_screen("not found", SIZE).await;
    assert!(screen.contains("> /resume sess_none"), "{screen}");
    terminal.say("\u{3}/agent nobody\r").await;
    terminal.until_screen("nobody", SIZE).await;
    terminal.say("\u{3}").await;
    end(terminal).await;
}
