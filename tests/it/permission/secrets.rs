//! What a rule denies stays unseen, whichever tool looks: searches leave it out, and another name of it does not help.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::Verdict::{Allow, Ask, Deny};
use super::verdict;
use crate::harness::Home;

/// A home with a directory that `policy` keeps from readers: its one file has a telling name and telling words.
fn home(policy: &str) -> Home {
    let home = Home::new();
    home.config(&format!("[permissions]\nrules = [ {{ kind = \"read\", path = \"secrets/**\", policy = \"{policy}\" }} ]\n"));
    home.put("secrets/treasure.txt", "the sesame opens\n");
    home.put("secrets/deep/treasure.txt", "the sesame opens\n");
    home.put("open.txt", "the sesame seed\n");
    home
}

/// What is told of a call that nobody can be asked about.
async fn told(home: &Home, tool: &str, input: &Value) -> String {
    let ran = home.run(&["tool", tool, "--mode", "auto", &input.to_string()], "").await;
    ran.lines().pop().unwrap_or_else(|| panic!("{ran:?}")).to_string()
}

#[tokio::test]
async fn searches_show_nothing_of_what_may_not_be_read() {
    let calls = [
        ("grep", json!({"pattern": "sesame"}), true),
        ("grep", json!({"pattern": "sesame", "output_mode": "files_with_matches"}), true),
        ("grep", json!({"pattern": "sesame", "glob": "**/*.txt", "output_mode": "count"}), true),
        ("glob", json!({"pattern": "**/*.txt"}), true),
        ("list", json!({"depth": 3}), true),
        ("grep", json!({"pattern": "sesame", "path": "secrets"}), false),
        ("grep", json!({"pattern": "sesame", "path": "secrets/deep"}), false),
        ("grep", json!({"pattern": "sesame", "path": "x/../secrets"}), false),
        ("glob", json!({"pattern": "*.txt", "path": "secrets"}), false),
        ("glob", json!({"pattern": "secrets/*.txt"}), false),
        ("list", json!({"path": "secrets"}), false),
        ("list", json!({"path": "secrets/deep"}), false),
    ];
    let mut seen = Vec::new();
    for policy in ["deny", "ask"] {
        let home = home(policy);
        for (tool, input, all) in &calls {
            let told = told(&home, tool, input).await;
            if told.contains("treasure") || told.contains("sesame opens") {
                seen.push(format!("{policy} {tool} {input}: {told}"));
            }
            assert!(!all || told.contains("open.txt"), "{policy} {tool} {input}: {told}");
        }
    }
    assert!(seen.is_empty(), "{seen:#?}");
}

#[tokio::test]
async fn a_directory_whose_files_may_not_be_read_is_not_listed() {
    for (policy, expected) in [("deny", Deny), ("ask", Ask)] {
        let home = home(policy);
        for path in ["secrets", "secrets/", "./secrets", "secrets/deep"] {
            assert_eq!(verdict(&home, "auto", "list", &json!({"path": path})).await, expected, "{policy} {path}");
        }
        assert_eq!(verdict(&home, "auto", "list", &json!({})).await, Allow);
    }
}

#[tokio::test]
async fn a_rule_means_a_linked_directory_by_its_own_name_too() {
    let home = Home::new();
    home.put(".v/k", "the sesame opens\n");
    symlink(".v", home.work().join("private")).unwrap();
    home.config("[permissions]\nrules = [ { path = \"private/**\", policy = \"deny\" } ]\n");
    for mode in ["ask", "auto"] {
        for (tool, input) in [
            ("read", json!({"file_path": "private/k"})),
            ("write", json!({"file_path": "private/k", "content": ""})),
            ("write", json!({"file_path": "private/new", "content": ""})),
        ] {
            assert_eq!(verdict(&home, mode, tool, &input).await, Deny, "{mode} {tool} {input}");
        }
    }
}

#[tokio::test]
async fn an_edit_tells_nothing_of_what_may_not_be_read() {
    let edit = json!({"file_path": "secrets/treasure.txt", "old_string": "the sesame close", "new_string": "x"});
    let patch = "*** Begin Patch\n*** Update File: secrets/treasure.txt\n@@\n-the sesame close\n+x\n*** End Patch\n";
    let both = "*** Begin Patch\n*** Update File: open.txt\n@@\n-the sesame seed\n+x\n*** Update File: secrets/treasure.txt\n@@\n-the sesame close\n+x\n*** End Patch\n";
    for (policy, expected) in [("deny", Deny), ("ask", Ask)] {
        let home = home(policy);
        for (tool, input) in
            [("edit", edit.clone()), ("apply_patch", json!({"patch": patch})), ("apply_patch", json!({"patch": both}))]
        {
            for mode in ["auto", "accept-edits"] {
                let said = told(&home, tool, &input).await;
                assert!(!said.contains("opens"), "{policy} {tool}: {said}");
                assert_eq!(verdict(&home, mode, tool, &input).await, expected, "{policy} {mode} {tool}");
            }
        }
        // Who writes a file anew is told nothing of it; and others are edited as ever.
        let write = json!({"file_path": "secrets/new.txt", "content": ""});
        assert_eq!(verdict(&home, "auto", "write", &write).await, Allow, "{policy}");
        let open = json!({"file_path": "open.txt", "old_string": "seed", "new_string": "seeds"});
        assert_eq!(verdict(&home, "auto", "edit", &open).await, Allow, "{policy}");
    }
}

#[tokio::test]
async fn a_directory_is_meant_with_all_that_is_in_it() {
    let home = Home::new();
    home.put("src/deep/a", "a\n");
    home.put("b", "b\n");
    let below = |path: &str| json!({"file_path": path});
    for path in ["src", "src/", "./src", "./src/", "./src/**", "src/**", ".//src/./**", "s*c", "src/deep", "src/deep/a"] {
        for (policy, expected) in [("deny", Deny), ("ask", Ask)] {
            home.config(&format!("[permissions]\nrules = [ {{ path = \"{path}\", policy = \"{policy}\" }} ]\n"));
            assert_eq!(verdict(&home, "auto", "read", &below("src/deep/a")).await, expected, "{path}");
            assert_eq!(verdict(&home, "auto", "read", &below("b")).await, Allow, "{path}");
        }
    }
    for path in [".", "./", "**", "/"] {
        home.config(&format!("[permissions]\nrules = [ {{ path = \"{path}\", policy = \"deny\" }} ]\n"));
        assert_eq!(verdict(&home, "auto", "read", &below("src/deep/a")).await, Deny, "{path}");
    }
    // What is allowed is what is said.
    for (path, expected) in [("./src/**", Allow), ("src/", Ask), ("src", Ask), (".", Ask), ("/", Ask), ("./src/deep/a", Allow)] {
        home.config(&format!("[permissions]\nrules = [ {{ path = \"{path}\", policy = \"allow\" }} ]\n"));
        let write = json!({"file_path": "src/deep/a", "content": ""});
        assert_eq!(verdict(&home, "ask", "write", &write).await, expected, "{path}");
    }
}
