//! Editors that change a text as they save it: with a formatter, by fixes, or by their settings.

use serde_json::{Value, json};

use super::client_files::{said, session};
use harness::{Editor, Home, Manner, notices};

const READ: &str = "fs/read_text_file";
const WRITE: &str = "fs/write_text_file";

/// Makes the text that is saved of a written text.
type OnSave = fn(&str) -> String;

fn edit(old: &str, new: &str) -> (&'static str, Value) {
    ("edit", json!({"file_path": "a.txt", "old_string": old, "new_string": new}))
}

fn saving(on_save: OnSave) -> Editor {
    let mut editor = Editor::new(Manner::Saves);
    editor.on_save = on_save;
    editor
}

/// What an editor makes of the first edit is kept and told to the model, and the second edit is
/// made by the editor, too.
#[tokio::test]
async fn what_an_editor_saves_is_the_text_of_the_file() {
    type Case = (&'static str, &'static str, (&'static str, &'static str), OnSave, &'static str, &'static str);
    let cases: [Case; 9] = [
        ("spaces", "x = 1\n", ("x = 1", "x=2"), |text| text.replace('=', " = ").replace("  ", " "), "x = 2\n", "+x = 2\n"),
        (
            "words",
            "var x = 1;\nvar y = 2;\n",
            ("1", "3"),
            |text| text.replace("var", "const"),
            "const x = 3;\nconst y = 2;\n",
            "+const x = 3;\n",
        ),
        ("no final newline", "{\"a\":1}\n", ("1", "2"), |text| text.trim_end().replace(':', ": "), "{\"a\": 2}", "+{\"a\": 2}\n"),
        ("final newline", "a\nb", ("a", "c"), |text| format!("{}\n", text.trim_end()), "c\nb\n", "+b\n"),
        ("blank lines", "x\ndef foo\n", ("x", "y"), |text| text.replace("\ndef", "\n\n\ndef"), "y\n\n\ndef foo\n", "+\n+\n"),
        (
            "imports",
            "use b\nuse a\n\na(1)\n",
            ("(1)", "(2)"),
            |text| text.replace("use b\nuse a", "use a"),
            "use a\n\na(2)\n",
            "-use b\n",
        ),
        (
            "imports in order",
            "use b\nuse a\n",
            ("use b", "use c"),
            |text| text.replace("use c\nuse a", "use a\nuse c"),
            "use a\nuse c\n",
            "+use a\n",
        ),
        ("an unused import", "use a\n", ("use a", "use a\nuse b"), |text| text.replace("use b\n", ""), "use a\n", "-use b\n"),
        (
            "line ends",
            "a\nb\n",
            ("a", "c"),
            |text| text.replace("\r\n", "\n").replace('\n', "\r\n"),
            "c\r\nb\r\n",
            "saved a.txt with CRLF line endings",
        ),
    ];
    for (name, before, (old, new), on_save, after, note) in cases {
        let home = Home::new();
        home.put("a.txt", before);
        let last = after.split_whitespace().last().unwrap();
        let calls = [edit(old, new), edit(last, &format!("{last} z"))];
        let (mut agent, session) = session(&home, saving(on_save), &calls).await;
        let (_, updates) = agent.turn(&session, "go").await;
        let log = home.log(&session).await;
        let ended: Vec<&Value> = log.iter().map(|event| &event["body"]).filter(|body| body["type"] == "tool.completed").collect();
        let told = ended[0]["output"][0]["text"].as_str().unwrap();
        assert!(told.contains(note), "{name}: {told}");
        assert!(told.contains("the editor"), "{name}: {told}");
        if name != "an unused import" {
            assert_eq!(ended[0]["content"][0]["newText"], after, "{name}: the recorded change is the saved one");
        }
        assert_eq!(ended[1]["status"], "completed", "{name}: {}", ended[1]);
        let read = home.get("a.txt").unwrap();
        assert_eq!(read, on_save(&after.replacen(last, &format!("{last} z"), 1)), "{name}");
        let calls = &agent.editor.as_ref().unwrap().calls;
        assert_eq!(calls, &[READ, WRITE, READ, READ, WRITE, READ], "{name}");
        assert_eq!(notices(&updates), Vec::<&str>::new(), "{name}");
        agent.finish().await;
    }
}

#[tokio::test]
async fn text_that_is_not_made_of_the_written_one_is_replaced() {
    let cases: [(&str, OnSave); 4] = [
        ("nothing", |_| String::new()),
        ("another text", |_| "an answer of the editor\n".into()),
        ("the beginning", |text| text[..9].into()),
        ("more blank lines at the end", |text| format!("{text}\n")),
    ];
    for (name, on_save) in cases {
        let home = Home::new();
        home.put("a.txt", "one two three four\nfive six seven\n");
        let (mut agent, session) = session(&home, saving(on_save), &[edit("five", "5")]).await;
        let (_, updates) = agent.turn(&session, "go").await;
        assert_eq!(home.get("a.txt").unwrap(), "one two three four\n5 six seven\n", "{name}");
        assert!(!said(&updates, 0).contains("the editor"), "{name}: {}", said(&updates, 0));
        assert_eq!(notices(&updates), ["The client's files are not used"], "{name}");
        agent.finish().await;
    }
}

/// The review of a turn restores the text before the turn, not what the editor saved.
#[tokio::test]
async fn rejected_change_that_an_editor_formatted_is_undone() {
    let home = Home::new();
    home.config("[review]\nmode = \"request\"\n");
    home.put("a.txt", "x = 1\n");
    let (mut agent, session) = session(&home, saving(|text| text.replace("x=", "let x = ")), &[edit("x = 1", "x=2")]).await;
    agent.otherwise = harness::Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": "reject"}}));
    agent.turn(&session, "go").await;
    assert_eq!(home.get("a.txt").as_deref(), Some("x = 1\n"));
    agent.finish().await;
}

/// An unsaved text without a final newline: editors that drop it from every text get it back.
#[tokio::test]
async fn missing_final_newline_is_kept_if_the_client_has_exact_texts() {
    let cases = [
        (true, "one\ntwo", "1\ntwo"),
        (true, "one\ntwo\n", "1\ntwo\n"),
        (true, "one\ntwo\n\n", "1\ntwo\n\n"),
        (true, "typed\none", "typed\n1"),
        (false, "one\ntwo", "1\ntwo\n"),
        (false, "typed\none", "typed\n1\n"),
    ];
    for (has_exact_texts, buffer, after) in cases {
        let home = Home::new();
        let file = home.put("a.txt", "one\ntwo\n");
        let mut editor = Editor::with_buffers(Manner::Saves, &[(file, buffer)]);
        editor.has_exact_texts = has_exact_texts;
        let (mut agent, session) = session(&home, editor, &[edit("one", "1")]).await;
        let (_, updates) = agent.turn(&session, "go").await;
        assert_eq!(home.get("a.txt").as_deref(), Some(after), "{has_exact_texts} {buffer:?}: {}", said(&updates, 0));
        assert_eq!(notices(&updates), Vec::<&str>::new());
        agent.finish().await;
    }
}
