//! Files that a text names with `@`, attachments, and the search in earlier texts.

use serde_json::{Value, json};

use super::{SIZE, chat, completed, end};
use harness::Home;

/// A text, what its message contains, and what it does not contain.
const TEXTS: &[(&str, &[&str], &[&str])] = &[
    ("read @src/sum.py#L2-3, please", &["line 2\\nline 3\\n\"", "src/sum.py#L2-3\""], &["line 1\\n", "line 4"]),
    ("only @src/sum.py#L13", &["\"text\":\"line 13\\n\"", "#L13-13\""], &["line 12"]),
    ("whole (@src/sum.py).", &["line 1\\nline 2", "line 13\\n"], &[]),
    ("quoted @\"my notes.txt\" here", &["the notes", "my%20notes.txt"], &[]),
    ("quoted lines @\"my notes.txt\"#L2", &["\"text\":\"second\\n\"", "my%20notes.txt#L2-2"], &["the notes"]),
    ("list @docs/ now", &["a.md\\nb.md"], &["content of a"]),
    ("list @docs now", &["a.md\\nb.md"], &["content of a"]),
    ("twice @src/sum.py and @src/sum.py", &["line 13"], &[]),
    ("mail me@example.org or @nobody @ @\"", &[], &["resource"]),
    ("picture @one.png", &["\"mimeType\":\"image/png\""], &["resource"]),
];

/// A text, and the row that says what is not sent.
const REMARKS: &[(&str, &str)] = &[
    ("@latin.txt", "@latin.txt is not UTF-8: characters of it are replaced"),
    ("@big.txt", "@big.txt: the first 64 of 119 KiB are sent"),
    ("@nul.bin", "@nul.bin is not sent: nul.bin is neither text nor an image"),
    ("@secret.txt", "@secret.txt is not sent: a permission rule does not allow to read secret.txt"),
    ("@../outside.txt", "outside of the session's directory"),
    ("@src/sum.py#L20", "@src/sum.py is not sent: it has 13 lines"),
];

fn project(home: &Home) {
    let lines: String = (1..=13).map(|number| format!("line {number}\n")).collect();
    home.put("src/sum.py", &lines);
    home.put("my notes.txt", "the notes\nsecond\n");
    home.put("docs/a.md", "content of a");
    home.put("docs/b.md", "content of b");
    home.put("big.txt", &"0123456789\n".repeat(11_000));
    home.put("nul.bin", "\u{7f}ELF\u{2}\u{1}\u{1}\0\0\0\0\0\0\0\0\0\u{3}\0>\0");
    home.put("secret.txt", "the secret");
    home.put("../outside.txt", "outside");
    std::fs::write(home.work().join("one.png"), b"\x89PNG\r\n\x1a\n rest").unwrap();
    std::fs::write(home.work().join("latin.txt"), b"r\xe9sum\xe9\n").unwrap();
    home.config("[permissions]\nrules = [{ kind = \"read\", path = \"secret.txt\", policy = \"deny\" }]\n");
}

/// Returns the messages of the user.
async fn sent(home: &Home, shown: &str) -> Vec<Value> {
    let messages: Vec<Value> = serde_json::from_str(&completed(home, shown).await).unwrap();
    messages.into_iter().filter(|message| message["role"] == "user").collect()
}

#[tokio::test]
async fn files_that_a_text_names_are_sent_with_it() {
    let home = Home::new();
    project(&home);
    let steps: Vec<Value> = (0..TEXTS.len() + REMARKS.len()).map(|number| json!({"text": format!("answer {number}.")})).collect();
    let mut terminal = chat(&home, json!(steps), &[]).await;
    for (number, (text, ..)) in TEXTS.iter().enumerate() {
        terminal.say(&format!("{text} \r")).await;
        let screen = terminal.until_screen(&format!("answer {number}.\n"), SIZE).await;
        if *text == "whole (@src/sum.py)." {
            assert!(screen.contains("  @src/sum.py · 13 lines"), "{screen}");
        }
    }
    for (number, (text, remark)) in REMARKS.iter().enumerate() {
        terminal.say(&format!("{text} \r")).await;
        let screen = terminal.until_screen(&format!("answer {}.\n", TEXTS.len() + number), SIZE).await;
        // A long remark is broken at the width of the terminal.
        assert!(screen.replace('\n', "").contains(remark), "{remark} in {screen}");
    }
    let shown = end(terminal).await;
    let messages = sent(&home, &shown).await;
    for ((text, contained, missing), message) in TEXTS.iter().zip(&messages) {
        let parts = message["parts"].to_string();
        assert!(message["parts"][0]["text"].as_str().unwrap().trim_end() == *text, "{text}: {parts}");
        for part in *contained {
            assert!(parts.contains(part), "{text}: {part} in {parts}");
        }
        for part in *missing {
            assert!(!parts.contains(part), "{text}: {part} in {parts}");
        }
        assert!(message["parts"].as_array().unwrap().len() <= 2, "{text}: {parts}");
    }
    let [latin, big, others @ ..] = &messages[TEXTS.len()..] else { panic!("no message") };
    assert_eq!(latin["parts"][1]["text"], "r\u{fffd}sum\u{fffd}\n");
    let cut = big["parts"][1]["text"].as_str().unwrap();
    assert!(cut.len() < (64 << 10) + 100 && cut.ends_with("\n[cut: the first 5957 lines of 11000]"), "{}", cut.len());
    for message in others {
        assert_eq!(message["parts"].as_array().unwrap().len(), 1, "{message}");
    }
}

#[tokio::test]
async fn paths_with_blanks_are_completed_in_quotes() {
    let home = Home::new();
    project(&home);
    let mut terminal = chat(&home, json!([{"expect": "see @\"my notes.txt\" now", "text": "ok"}]), &[]).await;
    terminal.say("see @notes").await;
    terminal.until_screen("▸ @\"my notes.txt\"", SIZE).await;
    terminal.say("\tnow\r").await;
    terminal.until_screen("ok\n", SIZE).await;
    terminal.say("@\"my n").await;
    terminal.until_screen("▸ @\"my notes.txt\"", SIZE).await;
    terminal.say("\t\u{3}").await;
    end(terminal).await;
}

#[tokio::test]
async fn attachments_are_removed_and_do_not_follow_to_another_session() {
    let home = Home::new();
    project(&home);
    let mut terminal = chat(&home, json!([{"text": "ok"}]), &[]).await;
    for file in ["docs/a.md", "docs/b.md", "none.txt"] {
        terminal.say(&format!("/attach {file}\r")).await;
    }
    terminal.until_screen("no such file", SIZE).await;
    terminal.say("\u{3}/detach a.md\r").await;
    terminal.until_screen("  attached: b.md\n", SIZE).await;
    terminal.say("/detach c.md\r").await;
    terminal.until_screen("/detach: no attachment c.md", SIZE).await;
    terminal.say("\u{3}/new\r").await;
    terminal.until_screen("session sess_", SIZE).await;
    terminal.say("go\r").await;
    terminal.until_screen("ok\n", SIZE).await;
    let shown = end(terminal).await;
    let messages = sent(&home, &shown).await;
    assert!(messages.iter().all(|message| !message.to_string().contains("content of b")), "{messages:?}");
}

#[tokio::test]
async fn control_r_searches_the_texts_that_were_sent() {
    let home = Home::new();
    let steps = json!([{"text": "one."}, {"text": "two."}, {"text": "three."}, {"text": "four."}]);
    let mut terminal = chat(&home, steps, &[]).await;
    for (text, answer) in [("fix the parser", "one."), ("write tests", "two."), ("fix the lexer\u{1b}[13;2usecond line", "three.")]
    {
        terminal.say(&format!("{text}\r")).await;
        terminal.until_screen(&format!("{answer}\n"), SIZE).await;
    }
    terminal.say("\u{12}").await;
    let screen = terminal.until_screen("  ▸ fix the lexer", SIZE).await;
    assert!(screen.contains("    write tests") && screen.contains("    fix the parser"), "{screen}");
    terminal.say("FIX").await;
    let screen = terminal.until_screen("> FIX", SIZE).await;
    assert!(screen.contains("  ▸ fix the lexer") && !screen.contains("    write tests"), "{screen}");
    terminal.say("\u{12}").await;
    terminal.until_screen("  ▸ fix the parser", SIZE).await;
    terminal.say("\r").await;
    terminal.until_screen("> fix the parser\n", SIZE).await;
    terminal.say("\r").await;
    terminal.until_screen("four.\n", SIZE).await;
    // If nothing matches, or after Esc, the text stays.
    terminal.say("\u{12}").await;
    terminal.until_screen("  ▸ fix the parser", SIZE).await;
    terminal.say("nothing").await;
    terminal.until_screen("> nothing\n", SIZE).await;
    terminal.say("\u{3}lexer").await;
    terminal.until_screen("> lexer\n", SIZE).await;
    terminal.say("\u{12}").await;
    terminal.until_screen("  ▸ fix the lexer", SIZE).await;
    terminal.say("\u{1b}[27u").await;
    terminal.until_screen("> lexer\n  ", SIZE).await;
    terminal.say("\u{3}").await;
    end(terminal).await;
}
