//! Names of files in the output of git.

use serde_json::json;

use super::told;
use harness::Home;

#[tokio::test]
async fn git_does_not_quote_names_in_octal() {
    needs_linux!("sandbox");
    let home = Home::new();
    home.put("é.txt", "one\n");
    home.put("日本/語.txt", "one\n");
    let commands = "git init -q -b main && git add . && git -c user.name=a -c user.email=a@b.c commit -q -m one";
    told(&home, "bash", &json!({"command": commands})).await;
    home.put("é.txt", "two\n");
    home.put("日本/語.txt", "two\n");
    home.put("new ü", "two\n");
    for (tool, input, names) in [
        ("git_diff", json!({}), ["a/é.txt", "b/日本/語.txt"]),
        ("git_status", json!({}), ["é.txt", "new ü"]),
        ("bash", json!({"command": "git status --short"}), ["é.txt", "new ü"]),
        ("bash", json!({"command": "git diff --stat"}), ["é.txt", "日本/語.txt"]),
        ("bash", json!({"command": "git ls-files"}), ["é.txt", "日本/語.txt"]),
    ] {
        let text = told(&home, tool, &input).await;
        assert!(names.iter().all(|name| text.contains(name)) && !text.contains('\\'), "{tool} {input}: {text}");
    }
}
