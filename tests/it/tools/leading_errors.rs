//! Errors and results that lead a model on: they show what to do with what is there, and propose
//! nothing that nobody asked for.

use serde_json::{Value, json};

use super::told;
use harness::Home;

/// Numbered lines of a file.
fn numbered(lines: std::ops::RangeInclusive<usize>) -> String {
    lines.map(|line| format!("{line:>6}\tx{line}\n")).collect()
}

/// A tool, its input, what the result contains, and what it does not contain.
fn cases() -> Vec<(&'static str, Value, Vec<String>, &'static str)> {
    let edit = |file: &str, old: &str| json!({"file_path": file, "old_string": old, "new_string": "new"});
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let read = |file: &str, rest: Value| {
        let mut input = json!({"file_path": file});
        input.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        input
    };
    let patch = "*** Begin Patch\n*** Update File: src/main.rs\n@@\n-a\n+b\n*** End Patch\n";
    vec![
        ("edit", edit("src/main.rs", "x"), texts(&["src/main.rs does not exist"]), "write"),
        ("edit", edit("MAIN.py", "x"), texts(&["MAIN.py does not exist (did you mean main.py?)"]), "write"),
        ("apply_patch", json!({ "patch": patch }), texts(&["the file does not exist"]), "add it"),
        ("edit", edit("main.py", ""), texts(&["give the text to replace"]), "overwrite"),
        (
            "edit",
            edit("main.py", "    return 1"),
            texts(&["found 2 times", "Lines 1 to 6:\ndef one():\n    return 1\n\ndef two():\n    return 1\n# end"]),
            "read the file",
        ),
        (
            "edit",
            edit("main.py", "def two():\n    return 2"),
            texts(&["Lines 3 to 6:\n\ndef two():\n    return 1\n# end"]),
            "read the file",
        ),
        ("grep", json!({"pattern": "two("}), texts(&["main.py:4:def two():", "its text was searched"]), "error"),
        ("grep", json!({"pattern": "[nothing"}), texts(&["no matches found", "its text was searched"]), "error"),
        ("grep", json!({"pattern": "tw[o]"}), texts(&["main.py:4:def two():"]), "its text"),
        ("read", read("small", json!({"offset": 0, "limit": 1})), vec![numbered(1..=200)], "truncated"),
        ("read", read("small", json!({"offset": 900})), vec![numbered(1..=200)], "error"),
        ("read", read("long", json!({"offset": 5, "limit": 1})), texts(&["     5\tx5\n[truncated"]), "x6"),
        ("read", read("long", json!({})), vec![numbered(1..=2000), "read on with offset 2001".into()], "x2001"),
        ("read", read("wide", json!({})), texts(&["read on with offset 66"]), "    66\t"),
        ("bash", json!({"command": ["echo", "a b", "$HOME"]}), texts(&["a b $HOME"]), "error"),
        ("bash", json!({"command": "true", "timeout_ms": "abc"}), texts(&["timeout_ms", "expected an integer"]), "u64"),
        ("glob", json!({"pattern": ["a"]}), texts(&["invalid type: list, expected a string"]), "sequence"),
        ("git_commit", json!({"message": "x"}), texts(&["not in a git repository"]), "git init"),
        ("git_status", json!({}), texts(&["not in a git repository"]), "git init"),
    ]
}

#[tokio::test]
async fn errors_propose_no_step_that_was_not_asked_for() {
    let home = Home::new();
    home.put("main.py", "def one():\n    return 1\n\ndef two():\n    return 1\n# end\n");
    home.put("small", &(1..=200).map(|line| format!("x{line}\n")).collect::<String>());
    home.put("long", &(1..=2500).map(|line| format!("x{line}\n")).collect::<String>());
    home.put("wide", &format!("{}\n", "y".repeat(1000)).repeat(100));
    // git does not start without a sandbox.
    let runs = |tool: &str| !harness::POSIX || !tool.starts_with("git_");
    for (tool, input, contained, missing) in cases().into_iter().filter(|(tool, ..)| runs(tool)) {
        let told = told(&home, tool, &input).await;
        for text in contained {
            assert!(told.contains(&text), "{tool} {input}: {text:?} is not in {told}");
        }
        assert!(!told.contains(missing), "{tool} {input}: {missing} is in {told}");
    }
}
