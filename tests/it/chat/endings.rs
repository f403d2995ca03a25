//! The end of a chat by signals, by a closed terminal and by a terminal that does not read; and its
//! suspension.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{SIZE, chat, end, waiting};
use harness::{Home, Terminal, poll};

fn signal(terminal: &Terminal, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(terminal.pid).unwrap()).unwrap(), signal).unwrap();
}

/// The state of a process: `T` if it is stopped (proc(5), /proc/PID/stat).
fn state(pid: u32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('-')
}

#[tokio::test]
async fn signals_restore_the_terminal() {
    for number in [Signal::TERM, Signal::HUP] {
        let home = Home::new();
        let mut terminal = chat(&home, json!([{"tool_calls": [waiting()]}]), &["--mode", "auto"]).await;
        terminal.say("go\r").await;
        terminal.until_screen("\n  started", SIZE).await;
        signal(&terminal, number);
        let (_, shown) = terminal.end().await;
        for sequence in ["\u{1b}[?2004l", "\u{1b}[?1004l", "\u{1b}[<u", "\u{1b}[?7h", "\u{1b}[?25h", "To continue this session"] {
            assert!(shown.contains(sequence), "{number:?}: {sequence:?} in {shown:?}");
        }
    }
}

#[tokio::test]
async fn interrupt_ends_the_chat_while_ctrl_c_is_no_key() {
    for plain in [true, false] {
        let home = Home::new();
        let model = home.script(json!([{"text": "an answer\n"}]));
        let flags: &[&str] = if plain { &["--plain"] } else { &[] };
        let mut terminal = home.terminal(&[&["chat", "--model", &model, "hello"], flags].concat());
        terminal.until("an answer").await;
        terminal.set_interrupt_character();
        signal(&terminal, Signal::INT);
        let (code, shown) = terminal.end().await;
        assert!(code == 0 && shown.contains("To continue this session"), "{plain}: {code} {shown:?}");
    }
}

#[tokio::test]
async fn closed_terminal_ends_the_chat_and_its_commands() {
    let home = Home::new();
    let mut terminal = chat(&home, json!([{"tool_calls": [waiting()]}]), &["--mode", "auto"]).await;
    terminal.say("go\r").await;
    terminal.until_screen("\n  started", SIZE).await;
    let mut child = terminal.hang_up();
    harness::bounded("the exit", child.wait()).await.unwrap();
}

#[tokio::test]
async fn suspended_chat_continues() {
    let home = Home::new();
    let mut terminal = chat(&home, json!([{"text": "back"}]), &[]).await;
    terminal.say("typed\u{1a}").await;
    let pid = terminal.pid;
    poll("the stop", || state(pid) == 'T').await;
    assert!(terminal.so_far().ends_with("\u{1b}[23;0t"), "{:?}", terminal.so_far());
    signal(&terminal, Signal::CONT);
    terminal.until_times("\u{1b}[?2004h", 2).await;
    terminal.say(" more\r").await;
    let screen = terminal.until_screen("back\n", SIZE).await;
    assert!(screen.contains("> typed more\n"), "{screen}");
    end(terminal).await;
}

#[tokio::test]
async fn terminal_that_does_not_read_loses_nothing_and_does_not_block_the_turn() {
    let home = Home::new();
    let lines: Vec<String> = (0..4000).map(|number| format!("line {number:04} {}", "x".repeat(50))).collect();
    let write = json!({"name": "write", "input": {"file_path": "made", "content": "x"}});
    let steps =
        json!([{"text": format!("{}\n", lines.join("  \n")), "chunk_chars": 500, "tool_calls": [write]}, {"text": "the end"}]);
    let mut terminal = chat(&home, steps, &["--mode", "accept-edits"]).await;
    terminal.say("go\r").await;
    // Nobody reads the terminal, whose buffer holds a few kilobytes.
    poll("the file", || home.get("made").is_some()).await;
    let shown = terminal.until("the end\r\n").await;
    let found: Vec<&str> = shown.split(['\r', '\n']).filter_map(|line| line.find("line 0").map(|at| &line[at..])).collect();
    assert!(found.len() >= 900, "{}", found.len());
    let screen = terminal.screen(5000, 80);
    let found: Vec<&str> = screen.lines().filter(|line| line.starts_with("line ")).collect();
    assert_eq!(found, lines.iter().map(|line| line.as_str()).collect::<Vec<_>>());
    end(terminal).await;
}
