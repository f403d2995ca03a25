//! The composer: completion, the editor, attachments, drafts.

use std::os::unix::fs::PermissionsExt;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{SIZE, chat, completed, end};
use harness::{Home, poll};

#[tokio::test]
async fn commands_arguments_and_paths_are_completed() {
    let home = Home::new();
    home.put("src/main.rs", "");
    home.put("src/mail.rs", "");
    home.put(".nuncio/commands/ship.md", "---\ndescription: Ship it\n---\nShip it.");
    let mut terminal = chat(&home, json!([{"expect": "see @src/mail.rs now", "text": "ok"}]), &[]).await;
    terminal.say("/sh").await;
    let screen = terminal.until_screen("/ship", SIZE).await;
    assert!(screen.contains("Ship it"), "{screen}");
    terminal.say("\u{3}/mo").await;
    terminal.until_screen("▸ /model", SIZE).await;
    terminal.say("\u{1b}[B\t").await;
    terminal.until_screen("> /mode\n", SIZE).await;
    terminal.say("pl").await;
    terminal.until_screen("▸ plan", SIZE).await;
    terminal.say("\t\r").await;
    terminal.until_screen("· mode plan\n", SIZE).await;
    terminal.say("see @smai").await;
    terminal.until_screen("@src/main.rs", SIZE).await;
    terminal.say("l").await;
    terminal.until_screen("▸ @src/mail.rs", SIZE).await;
    // Enter takes the candidate; the next one sends the text.
    terminal.say("\rnow\r").await;
    terminal.until_screen("ok\n", SIZE).await;
    end(terminal).await;
}

#[tokio::test]
async fn text_is_edited_in_the_editor_of_the_user() {
    let home = Home::new();
    let editor = home.put("editor.sh", "#!/bin/sh\ntest -t 0 && test -t 1 && echo \"$(cat $1), edited\" > $1\n");
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    home.env("VISUAL", editor.to_str().unwrap());
    let mut terminal = chat(&home, json!([{"expect": "text, edited", "text": "ok"}]), &[]).await;
    terminal.say("text").await;
    terminal.until_screen("> text", SIZE).await;
    terminal.say("\u{7}").await;
    terminal.until_screen("> text, edited", SIZE).await;
    terminal.say("\r").await;
    terminal.until_screen("ok\n", SIZE).await;
    std::fs::write(&editor, "#!/bin/sh\nexit 1\n").unwrap();
    terminal.say("again").await;
    terminal.until_screen("> again", SIZE).await;
    terminal.say("\u{7}").await;
    let screen = terminal.until_screen("the text is unchanged", SIZE).await;
    assert!(screen.contains("> again"), "{screen}");
    terminal.say("\u{3}").await;
    end(terminal).await;
}

#[tokio::test]
async fn images_are_attached_by_command_and_by_pasted_path() {
    let home = Home::new();
    let image = home.put("one image.png", "");
    std::fs::write(&image, b"\x89PNG\r\n\x1a\n rest").unwrap();
    home.put("note.txt", "a note");
    let mut terminal = chat(&home, json!([{"text": "both seen"}]), &[]).await;
    terminal.say(&format!("\u{1b}[200~'{}'\u{1b}[201~", image.display())).await;
    terminal.until_screen("attached: one image.png", SIZE).await;
    terminal.say("/attach note.txt\r").await;
    terminal.until_screen("attached: one image.png, note.txt", SIZE).await;
    terminal.say("/attach missing.txt\r").await;
    terminal.until_screen("no such file", SIZE).await;
    terminal.say("\u{3}look\r").await;
    terminal.until_screen("both seen", SIZE).await;
    let shown = end(terminal).await;
    let sent = completed(&home, &shown).await;
    for part in ["\"text\":\"look\"", "\"mimeType\":\"image/png\"", "a note"] {
        assert!(sent.contains(part), "{part} in {sent}");
    }
}

/// The only draft that was written.
fn draft(home: &Home) -> String {
    let sessions = std::fs::read_dir(home.data().join("drafts")).into_iter().flatten().flatten();
    sessions.filter_map(|session| std::fs::read_to_string(session.path().join("text")).ok()).collect()
}

#[tokio::test]
async fn draft_survives_a_killed_chat() {
    let home = Home::new();
    let terminal = &mut chat(&home, json!([{"text": "first"}]), &[]).await;
    terminal.say("go\r").await;
    terminal.until_screen("first\n", SIZE).await;
    terminal.say("not sent yet").await;
    poll("the draft", || draft(&home) == "not sent yet").await;
    let pid = Pid::from_raw(i32::try_from(terminal.pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    let mut terminal = home.terminal(&["chat", "--continue"]);
    let screen = terminal.until_screen("> not sent yet", SIZE).await;
    assert!(screen.contains("> go\n\nfirst\n"), "{screen}");
    terminal.say("\u{3}").await;
    end(terminal).await;
}

/// A pasted text that is shown as a mark.
fn long_paste(name: &str) -> String {
    format!("\u{1b}[200~{}\u{1b}[201~", format!("{name}\n").repeat(12))
}

/// Keys, and the text that they leave.
#[tokio::test]
async fn grapheme_clusters_and_paste_marks_are_deleted_as_one() {
    const FAMILY: &str = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
    const FLAG: &str = "\u{1f1e9}\u{1f1ea}";
    const ACUTE: &str = "e\u{301}";
    const THUMB: &str = "\u{1f44d}\u{1f3fd}";
    const KEYCAP: &str = "1\u{fe0f}\u{20e3}";
    const HANGUL: &str = "\u{1112}\u{1161}\u{11ab}";
    let (back, delete, left, home, up) = ("\u{7f}", "\u{1b}[3~", "\u{1b}[D", "\u{1}", "\u{1b}[A");
    let (right, word_left) = ("\u{1b}[C", "\u{1b}b");
    let paste = long_paste("line");
    let cases = [
        (format!("a{FAMILY}{back}b"), "> ab"),
        (format!("a{FLAG}{FLAG}{back}{back}b"), "> ab"),
        (format!("a{ACUTE}{back}b"), "> ab"),
        (format!("a{THUMB}{left}x{home}{right}{delete}{delete}b"), "> ab"),
        (format!("a{KEYCAP}{HANGUL}{back}{back}b"), "> ab"),
        (format!("a{FAMILY}{left}{left}{delete}{delete}b"), "> b"),
        (format!("{FAMILY}{FAMILY}\nx{up}{back}{delete}b"), "> b"),
        (format!("a {paste}{back}b"), "> a b"),
        (format!("a {paste}{left}x{right}{back}b"), "> a xb"),
        (format!("a{home}{paste}{home}{delete}b"), "> b"),
        (format!("a {paste}\u{17}b"), "> a b"),
        (format!("a {paste}{word_left}{delete}b"), "> a b"),
        (format!("a {paste}{back}{paste}b"), "> a [paste 2: 12 lines]b"),
    ];
    let home_directory = Home::new();
    let mut terminal = chat(&home_directory, json!([]), &[]).await;
    for (number, (keys, text)) in cases.iter().enumerate() {
        let mark = format!("#{number}.");
        terminal.say(&format!("{keys}{mark}")).await;
        let screen = terminal.until_screen(&mark, SIZE).await;
        assert!(screen.contains(&format!("{text}{mark}")), "{keys:?}: {text:?} is not in {screen}");
        // Ctrl-C clears the text.
        terminal.say("\u{3}").await;
    }
    end(terminal).await;
}

/// A sent paste does not push the conversation out of the terminal's history.
#[tokio::test]
async fn sent_paste_is_folded() {
    let home = Home::new();
    let mut terminal = chat(&home, json!([{"expect": "line 9999", "text": "an answer"}]), &[]).await;
    let lines: Vec<String> = (0..10_000).map(|number| format!("line {number}")).collect();
    terminal.say(&format!("\u{1b}[200~{}\u{1b}[201~\r", lines.join("\r"))).await;
    terminal.until("an answer").await;
    let shown = end(terminal).await;
    assert!(shown.contains("> line 0") && shown.contains("… 9984 lines (Ctrl-O)"), "{shown}");
    assert!(!shown.contains("line 5000"), "{} bytes", shown.len());
}
