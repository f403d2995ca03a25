//! Files denied by a rule stay hidden from every tool: searches omit such files, and links to them
//! are denied too.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use harness::Home;
use harness::verdict::Verdict::{Allow, Ask, Deny};
use harness::verdict::verdict;

/// A home with a directory whose files `policy` protects from reading. File names and contents
/// contain words that must not appear in tool output.
fn home(policy: &str) -> Home {
    let home = Home::new();
    home.config(&format!("[permissions]\nrules = [ {{ kind = \"read\", path = \"secrets/**\", policy = \"{policy}\" }} ]\n"));
    home.put("secrets/treasure.txt", "the sesame opens\n");
    home.put("secrets/deep/treasure.txt", "the sesame opens\n");
    home.put("open.txt", "the sesame seed\n");
    home
}

/// The last output line of a `nuncio tool` call in mode auto. Requests for permission are denied.
async fn output(home: &Home, tool: &str, input: &Value) -> String {
    let ran = home.run(&["tool", tool, "--mode", "auto", &input.to_string()], "").await;
    ran.lines().pop().unwrap_or_else(|| panic!("{ran:?}")).to_string()
}

#[tokio::test]
async fn searches_omit_protected_files() {
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
            let told = output(&home, tool, input).await;
            if told.contains("treasure") || told.contains("sesame opens") {
                seen.push(format!("{policy} {tool} {input}: {told}"));
            }
            assert!(!all || told.contains("open.txt"), "{policy} {tool} {input}: {told}");
        }
    }
    assert!(seen.is_empty(), "{seen:#?}");
}

#[tokio::test]
async fn directory_of_protected_files_is_not_listed() {
    for (policy, expected) in [("deny", Deny), ("ask", Ask)] {
        let home = home(policy);
        for path in ["secrets", "secrets/", "./secrets", "secrets/deep"] {
            assert_eq!(verdict(&home, "auto", "list", &json!({"path": path})).await, expected, "{policy} {path}");
        }
        assert_eq!(verdict(&home, "auto", "list", &json!({})).await, Allow);
    }
}

#[tokio::test]
async fn rule_for_a_symlink_applies_to_files_behind_the_symlink() {
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
async fn failed_edit_reveals_nothing_of_protected_files() {
    let edit = json!({"file_path": "secrets/treasure.txt", "old_string": "the sesame close", "new_string": "x"});
    let patch = "*** Begin Patch\n*** Update File: secrets/treasure.txt\n@@\n-the sesame close\n+x\n*** End Patch\n";
    let both = "*** Begin Patch\n*** Update File: open.txt\n@@\n-the sesame seed\n+x\n*** Update File: secrets/treasure.txt\n@@\n-the sesame close\n+x\n*** End Patch\n";
    for (policy, expected) in [("deny", Deny), ("ask", Ask)] {
        let home = home(policy);
        for (tool, input) in
            [("edit", edit.clone()), ("apply_patch", json!({"patch": patch})), ("apply_patch", json!({"patch": both}))]
        {
            for mode in ["auto", "accept-edits"] {
                let said = output(&home, tool, &input).await;
                assert!(!said.contains("opens"), "{policy} {tool}: {said}");
                assert_eq!(verdict(&home, mode, tool, &input).await, expected, "{policy} {mode} {tool}");
            }
        }
        // Creating a file in the protected directory reveals no content and stays allowed, as do
        // edits of other files.
        let write = json!({"file_path": "secrets/new.txt", "content": ""});
        assert_eq!(verdict(&home, "auto", "write", &write).await, Allow, "{policy}");
        let open = json!({"file_path": "open.txt", "old_string": "seed", "new_string": "seeds"});
        assert_eq!(verdict(&home, "auto", "edit", &open).await, Allow, "{policy}");
    }
}

#[tokio::test]
async fn deny_or_ask_rule_for_a_directory_includes_all_files_below() {
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
    // An allow rule for a directory without `/**` does not cover the files in the directory.
    for (path, expected) in [("./src/**", Allow), ("src/", Ask), ("src", Ask), (".", Ask), ("/", Ask), ("./src/deep/a", Allow)] {
        home.config(&format!("[permissions]\nrules = [ {{ path = \"{path}\", policy = \"allow\" }} ]\n"));
        let write = json!({"file_path": "src/deep/a", "content": ""});
        assert_eq!(verdict(&home, "ask", "write", &write).await, expected, "{path}");
    }
}
