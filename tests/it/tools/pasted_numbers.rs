//! Line numbers that a model copies from the results of `read` are no text of a file.

use serde_json::{Value, json};

use harness::Home;
use harness::steps::{call, calls, says};

const FILE: &str = "def f(x):\n    y = x + 1\n    return y\n";

fn edit(old: &str, new: &str) -> Value {
    call("edit", json!({"file_path": "f.py", "old_string": old, "new_string": new}))
}

fn write(path: &str, content: &str) -> Value {
    call("write", json!({"file_path": path, "content": content}))
}

fn patch(body: &str) -> Value {
    call("apply_patch", json!({"patch": format!("*** Begin Patch\n{body}*** End Patch\n")}))
}

const NUMBERED: &str = "     1\tdef f(x):\n     2\t    y = x + 1\n";
const CHANGED: &str = "def f(x):\n    y = x + 2\n    return y\n";

/// The calls, then the content of `f.py` and the beginning of the last result.
fn cases() -> Vec<(Vec<Value>, &'static str, &'static str)> {
    let refused = "each line begins with a line number and a tab";
    vec![
        (vec![edit(NUMBERED, "     1\tdef f(x):\n     2\t    y = x + 2\n")], CHANGED, "edited f.py at line 1; the line numbers"),
        (vec![edit(NUMBERED, "def f(x):\n    y = x + 2\n")], CHANGED, "edited f.py at line 1; the line numbers"),
        (
            vec![edit("     2\t    y = x + 1\n     3\t    return y", "     2\t    y = x + 2\n     3\t    return y")],
            CHANGED,
            "edited f.py at line 2",
        ),
        // One line, other numbers, another form, and a mixed replacement lose something.
        (vec![edit("     2\t    y = x + 1", "    y = x + 2")], FILE, "old_string was not found"),
        (vec![edit("     1\tdef f(x):\n     3\t    y = x + 1\n", "x")], FILE, "old_string was not found"),
        (vec![edit("1\tdef f(x):\n2\t    y = x + 1\n", "x")], FILE, "old_string was not found"),
        (vec![edit("     1: def f(x):\n     2:     y = x + 1\n", "x")], FILE, "old_string was not found"),
        (vec![edit(NUMBERED, "     1\tdef f(x):\n    y = x + 2\n")], FILE, "old_string was not found"),
        (
            vec![patch(
                "*** Update File: f.py\n@@\n      1\tdef f(x):\n-     2\t    y = x + 1\n+     2\t    y = x + 2\n      3\t    return y\n",
            )],
            CHANGED,
            "applied the patch",
        ),
        (
            vec![patch("*** Update File: f.py\n@@\n      1\tdef f(x):\n-     2\t    y = x + 1\n+    y = x + 2\n")],
            CHANGED,
            "applied the patch",
        ),
        (vec![write("new.py", NUMBERED)], FILE, refused),
        (vec![write("new.py", NUMBERED), write("new.py", NUMBERED)], FILE, "created new.py"),
        (vec![write("new.py", NUMBERED), write("new.py", "     4\ta\n     5\tb\n")], FILE, refused),
        (vec![patch("*** Add File: new.py\n+     1\ta\n+     2\tb\n")], FILE, "new.py: each line begins"),
        (vec![call("edit", json!({"file_path": "new.py", "old_string": "", "new_string": NUMBERED}))], FILE, refused),
        (vec![write("new.tsv", "1\ta\n2\tb\n")], FILE, "created new.tsv"),
        (vec![write("new.tsv", "     1\ta\n")], FILE, "created new.tsv"),
        // The content is unread, then numbered, then meant so.
        (vec![write("f.py", NUMBERED)], FILE, "f.py exists"),
        (vec![write("f.py", NUMBERED), write("f.py", NUMBERED)], FILE, refused),
        (vec![write("f.py", NUMBERED), write("f.py", NUMBERED), write("f.py", NUMBERED)], NUMBERED, "overwrote f.py"),
    ]
}

#[tokio::test]
async fn line_numbers_are_left_out_where_that_loses_nothing() {
    for (made, expected, result) in cases() {
        let home = Home::new();
        home.put("f.py", FILE);
        let model = home.script(json!([calls(&made), says(result, "done")]));
        let ran = home.run(&["run", "--json", "--mode", "auto", "--model", &model, "go"], "").await;
        assert_eq!(ran.code, 0, "{made:?}: {}", ran.stderr);
        let lines = ran.lines();
        let last = lines.iter().rfind(|line| line["body"]["type"] == "tool.completed").unwrap();
        let text = last["body"]["output"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(result), "{made:?}: {text}");
        assert_eq!(home.get("f.py").unwrap(), expected, "{made:?}: {text}");
    }
}

/// A file whose text has such numbers is changed as it stands.
#[tokio::test]
async fn numbers_in_the_file_are_text() {
    let home = Home::new();
    home.put("f.py", &NUMBERED.replace("x + 1", "x"));
    let made = edit("     1\tdef f(x):\n     2\t    y = x\n", "     1\tdef f(x):\n     2\t    y = 0\n");
    let model = home.script(json!([calls(&[made]), {"text": "done"}]));
    home.run(&["run", "--mode", "auto", "--model", &model, "go"], "").await;
    assert_eq!(home.get("f.py").unwrap(), "     1\tdef f(x):\n     2\t    y = 0\n");
}
