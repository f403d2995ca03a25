//! Hidden and ignored files in searches.

use serde_json::json;

use super::told;
use harness::Home;

fn home() -> Home {
    let home = Home::new();
    for (path, text) in [
        (".gitignore", "build/\n*.log\n.env\n"),
        ("src/a.rs", "fn main\n"),
        ("build/a.txt", "needle\n"),
        ("build/deep/b.txt", "needle\n"),
        ("x.log", "needle\n"),
        (".env", "TOKEN\n"),
        (".github/workflows/ci.yml", "on: push\n"),
        (".hidden", "secret\n"),
    ] {
        home.put(path, text);
    }
    home
}

#[tokio::test]
async fn search_without_results_says_what_ignore_files_hide() {
    let home = home();
    let none = "no matches found\n";
    let cases = [
        ("grep", json!({"pattern": "needle"}), "no matches found\n[3 ignored files contain it, such as build/a.txt]\n"),
        ("grep", json!({"pattern": "TOKEN"}), "no matches found\n[1 ignored file contains it, such as .env]\n"),
        ("grep", json!({"pattern": "needle", "glob": "*.log"}), "no matches found\n[1 ignored file contains it, such as x.log]\n"),
        ("grep", json!({"pattern": "needle", "type": "rust"}), none),
        ("grep", json!({"pattern": "needle", "path": "build"}), "build/a.txt:1:needle\nbuild/deep/b.txt:1:needle\n"),
        ("grep", json!({"pattern": "main|needle"}), "src/a.rs:1:fn main\n"),
        ("grep", json!({"pattern": "nowhere"}), none),
        ("grep", json!({"pattern": "secret"}), none),
        ("glob", json!({"pattern": "*.log"}), "no files found\n[1 ignored file matches, such as x.log]\n"),
        ("glob", json!({"pattern": "**/b.*"}), "no files found\n[1 ignored file matches, such as build/deep/b.txt]\n"),
        ("glob", json!({"pattern": "*.py"}), "no files found\n"),
    ];
    for (tool, input, expected) in cases {
        assert_eq!(told(&home, tool, &input).await, expected, "{input}");
    }
}

#[tokio::test]
async fn ignored_files_that_a_rule_hides_are_not_counted() {
    for policy in ["deny", "ask"] {
        let home = home();
        home.config(&format!("[permissions]\nrules = [ {{ kind = \"read\", path = \"build/**\", policy = \"{policy}\" }} ]\n"));
        let hidden = "\n[results hidden by permission rules are omitted]";
        for (tool, input, expected) in [
            ("grep", json!({"pattern": "needle"}), "no matches found\n[1 ignored file contains it, such as x.log]\n"),
            ("grep", json!({"pattern": "needle", "glob": "*.txt"}), "no matches found\n"),
            ("glob", json!({"pattern": "*.txt"}), "no files found\n"),
        ] {
            assert_eq!(told(&home, tool, &input).await, format!("{expected}{hidden}"), "{policy} {input}");
        }
    }
}

#[tokio::test]
async fn glob_of_grep_reaches_hidden_files_that_it_names() {
    let home = home();
    let ci = ".github/workflows/ci.yml:1:on: push\n";
    let cases = [
        (json!({"pattern": "push", "glob": ".github/**"}), ci),
        (json!({"pattern": "push", "glob": "*.rs,.github/**/*.yml"}), ci),
        (json!({"pattern": "push", "glob": "{src,.github}/**"}), ci),
        (json!({"pattern": "secret", "glob": ".hidden"}), ".hidden:1:secret\n"),
        (json!({"pattern": "secret", "glob": ".*"}), ".hidden:1:secret\n"),
        (json!({"pattern": "main", "glob": "./src/*.rs"}), "src/a.rs:1:fn main\n"),
        (json!({"pattern": "secret", "glob": "!.github/**"}), "no matches found\n"),
    ];
    for (input, expected) in cases {
        assert_eq!(told(&home, "grep", &input).await, expected, "{input}");
    }
}
