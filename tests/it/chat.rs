//! `nuncio chat`, driven by keys on a terminal.

mod commands;
mod composer;
mod endings;
mod first_start;
mod jobs;
mod keys;
mod mentions;
mod plain;
mod remote;
mod requests;
mod rows;
mod screens;
mod sessions;
mod settings;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use harness::steps::bash_call;
use harness::{Home, Terminal};

const SIZE: (u16, u16) = (24, 80);

/// Starts a chat with a scripted model, on a terminal of this size.
async fn chat_in(home: &Home, steps: Value, flags: &[&str], size: (u16, u16)) -> Terminal {
    let model = home.script(steps);
    let mut terminal = home.terminal(&[&["chat", "--model", &model], flags].concat());
    terminal.resize(size.0, size.1);
    terminal.until_screen("/help", size).await;
    terminal
}

async fn chat(home: &Home, steps: Value, flags: &[&str]) -> Terminal {
    chat_in(home, steps, flags, SIZE).await
}

/// A command that waits for the file `go`.
fn waiting() -> Value {
    bash_call("echo started; until test -e go; do sleep 0.01; done; echo finished")
}

/// Moves to the permission request, and presses a key that answers it.
async fn answer(terminal: &mut Terminal, key: &str) {
    terminal.say("\t").await;
    terminal.until_screen("digits answer", SIZE).await;
    terminal.say(key).await;
}

/// Ends the chat by Ctrl-D, and asserts that the terminal is as before.
async fn end(mut terminal: Terminal) -> String {
    terminal.say("\u{4}").await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.ends_with("\n") && shown.contains("To continue this session: nuncio chat ") && shown.contains("--resume sess_"),
        "{shown:?}"
    );
    assert!(shown.contains("\u{1b}[?2004h") && shown.contains("\u{1b}[?2004l"), "{shown:?}");
    shown
}

/// The session that a chat names at its end.
fn session(shown: &str) -> &str {
    shown.rsplit("--resume ").next().unwrap().trim()
}

/// The complete messages of the session that a chat names at its end, as JSON.
async fn completed(home: &Home, shown: &str) -> String {
    let log = home.log(session(shown)).await;
    let messages = log.iter().map(|event| &event["body"]).filter(|body| body["type"] == "message.completed");
    Value::from_iter(messages.cloned()).to_string()
}

#[tokio::test]
async fn conversation_with_a_permission_request() {
    let home = Home::new();
    let steps = json!([{"text": "I **will**.", "tool_calls": [bash_call("touch made")]}, {"text": "It is made."}]);
    let mut terminal = chat(&home, steps, &[]).await;
    terminal.say("make it").await;
    terminal.until_screen("> make it", SIZE).await;
    terminal.say("\r").await;
    let screen = terminal.until_screen("[1] Allow", SIZE).await;
    assert!(screen.contains("\n> make it\n\nI will.\n") && screen.contains("Allow `touch made`?"), "{screen}");
    // What the user types goes to the composer, and answers nothing.
    terminal.say("y1").await;
    let screen = terminal.until_screen("> y1", SIZE).await;
    assert!(screen.contains("[1] Allow") && home.get("made").is_none(), "{screen}");
    // After Tab, digits answer.
    terminal.say("\t").await;
    terminal.until_screen("digits answer", SIZE).await;
    terminal.say("1").await;
    terminal.until_screen("It is made.", SIZE).await;
    assert!(home.get("made").is_some());
    terminal.say("\u{3}").await;
    terminal.until_screen("\n>\n", SIZE).await;
    end(terminal).await;
}

#[tokio::test]
async fn messages_wait_join_and_return() {
    let home = Home::new();
    let steps = json!([{"tool_calls": [waiting()]}, {"expect": "and this", "text": "joined"}, {"text": "never"}]);
    let mut terminal = chat(&home, steps, &["--mode", "auto"]).await;
    terminal.say("go\r").await;
    terminal.until_screen("\n  started", SIZE).await;
    terminal.say("later").await;
    terminal.until_screen("> later", SIZE).await;
    terminal.say("\t").await;
    terminal.until_screen("→ next: later", SIZE).await;
    terminal.say("and this\r").await;
    terminal.until_screen("→ now: and this", SIZE).await;
    // Esc stops the turn, and the texts return in their order.
    terminal.say("\u{1b}").await;
    let screen = terminal.until_screen("cancelled", SIZE).await;
    assert!(screen.contains("> later\n  and this"), "{screen}");
    terminal.say("\u{3}").await;
    end(terminal).await;
}

#[tokio::test]
async fn message_during_a_turn_joins_it() {
    let home = Home::new();
    let steps = json!([{"tool_calls": [waiting()]}, {"expect": "and this", "text": "joined"}]);
    let mut terminal = chat(&home, steps, &["--mode", "auto"]).await;
    terminal.say("go\r").await;
    terminal.until_screen("\n  started", SIZE).await;
    terminal.say("and this\r").await;
    terminal.until_screen("→ now: and this", SIZE).await;
    home.put("go", "");
    let screen = terminal.until_screen("joined", SIZE).await;
    assert!(screen.contains("> and this") && !screen.contains("waits:"), "{screen}");
    end(terminal).await;
}

#[tokio::test]
async fn long_output_stands_once_and_in_order_and_nothing_is_cleared() {
    for size in [(8, 40), (24, 80), (50, 200)] {
        let home = Home::new();
        let lines: Vec<String> = (0..300).map(|number| format!("line {number:03} {}", "x".repeat(number % 30))).collect();
        let steps = json!([{"text": format!("{}\nthe end", lines.join("  \n")), "chunk_chars": 7}]);
        let mut terminal = chat_in(&home, steps, &[], size).await;
        terminal.say("go\r").await;
        // The last row of a block is shown before the block is printed.
        terminal.until_screen(" tokens in, ", size).await;
        let screen = terminal.screen(size.0, size.1);
        let found: Vec<&str> = screen.lines().filter(|line| line.starts_with("line ")).collect();
        let expected: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        assert_eq!(found, expected, "{size:?}");
        let shown = end(terminal).await;
        for clearing in ["\u{1b}[2J", "\u{1b}[3J", "\u{1b}[r", "\u{1b}c"] {
            assert!(!shown.contains(clearing), "{clearing:?}");
        }
    }
}

#[tokio::test]
async fn hostile_text_changes_nothing_but_the_text() {
    let home = Home::new();
    let hostile = "\u{1b}]0;title\u{7}A\u{1b}]52;c;Y3Vy\u{7}B\u{1b}[2J\u{9b}2JC\u{202e}D\u{1b}[1;1H";
    let command = format!("echo '{hostile}'");
    let steps = json!([{"text": hostile, "tool_calls": [bash_call(&command)]}, {"text": "the end"}]);
    home.put("\u{1b}]0;x\u{7}evil\u{9b}2J.txt", "");
    let mut terminal = chat(&home, steps, &["--mode", "auto"]).await;
    terminal.say("go\r").await;
    let screen = terminal.until_screen("the end", SIZE).await;
    assert!(screen.contains("ABCD"), "{screen}");
    // The name of a file, a pasted prompt, and the title of a session that begins with it.
    terminal.say("@evil").await;
    terminal.until_screen("▸ @", SIZE).await;
    terminal.say("\u{15}/new\r").await;
    terminal.until_screen("\nsession sess_", SIZE).await;
    terminal.say(&format!("\u{1b}[200~pasted {hostile}\u{1b}[201~")).await;
    terminal.until_screen("> pasted", SIZE).await;
    terminal.say("\r").await;
    terminal.until_times("tokens in", 2).await;
    terminal.say("/resume\r").await;
    terminal.until_screen("Enter continues", SIZE).await;
    terminal.say("\u{1b}").await;
    terminal.until_screen("/help", SIZE).await;
    let shown = end(terminal).await;
    // The only such sequence is the title of the chat.
    assert_eq!(shown.matches("\u{1b}]").count(), shown.matches("\u{1b}]2;").count(), "{shown:?}");
    for sequence in ["\u{1b}]0;", "\u{1b}]52;", "\u{1b}[2J", "\u{1b}[1;1H", "\u{9b}", "\u{202e}"] {
        assert!(!shown.contains(sequence), "{sequence:?} in {shown:?}");
    }
}

#[tokio::test]
async fn pasted_text_is_a_mark_and_is_sent_whole() {
    let home = Home::new();
    let pasted: Vec<String> = (0..10_000).map(|number| format!("row {number}")).collect();
    let steps = json!([{"expect": "row 9999", "text": "all read"}, {"expect": "see: one\ntwo", "text": "both read"}]);
    let mut terminal = chat(&home, steps, &[]).await;
    for part in format!("\u{1b}[200~{}\u{1b}[201~", pasted.join("\n")).as_bytes().chunks(1000) {
        terminal.say(std::str::from_utf8(part).unwrap()).await;
    }
    terminal.until_screen("> [paste 1: 10000 lines]", SIZE).await;
    terminal.say("\r").await;
    terminal.until_screen("all read", SIZE).await;
    terminal.say("see: \u{1b}[200~one\ntwo\u{1b}[201~").await;
    terminal.until_screen("> see: one\n  two", SIZE).await;
    terminal.say("\r").await;
    terminal.until_screen("both read", SIZE).await;
    // Earlier texts are recalled, also by a later chat.
    terminal.say("\u{1b}[A").await;
    terminal.until_screen("> see: one\n  two\n  ? keys", SIZE).await;
    terminal.say("\u{3}").await;
    end(terminal).await;
}

#[tokio::test]
async fn signal_restores_the_terminal_and_keeps_the_text() {
    let home = Home::new();
    let mut terminal = chat(&home, json!([]), &[]).await;
    terminal.say("not sent").await;
    terminal.until_screen("> not sent", SIZE).await;
    let pid = Pid::from_raw(i32::try_from(terminal.pid).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let (_, shown) = terminal.end().await;
    assert!(shown.contains("\u{1b}[?2004l") && shown.contains("To continue this session"), "{shown:?}");
    let mut terminal = chat(&home, json!([]), &[]).await;
    terminal.say("\u{1b}[A").await;
    terminal.until_screen("> not sent", SIZE).await;
    terminal.say("\u{3}").await;
    end(terminal).await;
}

#[tokio::test]
async fn commands_and_failures() {
    let home = Home::new();
    let mut terminal = chat(&home, json!([{"error": "no luck"}]), &[]).await;
    for (typed, words) in [
        ("/help\r", "recall earlier texts"),
        ("/mode plan\r", "mode plan"),
        ("/mode nonsense\r", "unknown mode"),
        ("\u{3}/modell x\r", "unknown command /modell\n  /model (a space"),
        ("\u{3}go\r", "no luck"),
    ] {
        terminal.say(typed).await;
        terminal.until_screen(words, SIZE).await;
    }
    terminal.say("/quit\r").await;
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 0, "{shown}");
    let ran = home.run(&["chat"], "").await;
    assert_eq!((ran.code, ran.stderr.contains("must be a terminal")), (2, true), "{ran:?}");
}
