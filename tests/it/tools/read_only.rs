//! Files without a write bit, and attributes of replaced files.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::{Value, json};

use super::told;
use harness::verdict::Verdict::{Allow, Ask, Deny};
use harness::verdict::verdict;
use harness::{Home, Reply};

fn home(mode: u32) -> Home {
    let home = Home::new();
    home.put("f", "one\n");
    set_permissions(home.work().join("f"), Permissions::from_mode(mode)).unwrap();
    home
}

/// Calls that change the file.
fn calls() -> [(&'static str, Value); 5] {
    let patch = |text: &str| json!({"patch": format!("*** Begin Patch\n{text}*** End Patch")});
    [
        ("write", json!({"file_path": "f", "content": "two\n"})),
        ("edit", json!({"file_path": "f", "old_string": "one", "new_string": "two"})),
        ("apply_patch", patch("*** Update File: f\n-one\n+two\n")),
        ("apply_patch", patch("*** Delete File: f\n")),
        ("apply_patch", patch("*** Update File: f\n*** Move to: g\n")),
    ]
}

#[tokio::test]
async fn read_only_file_is_asked_about_in_every_mode() {
    for (tool, input) in calls() {
        for (config, mode, expected) in [
            ("", "ask", Ask),
            ("", "accept-edits", Ask),
            ("", "auto", Ask),
            ("", "plan", Deny),
            ("permissions.default = \"allow\"\n", "ask", Ask),
            ("permissions.rules = [{ tool = \"*\", policy = \"allow\" }]\n", "auto", Ask),
            (
                "permissions.rules = [{ path = \"f\", policy = \"allow\" }]\n",
                "auto",
                if input.to_string().contains("Move") { Ask } else { Allow },
            ),
        ] {
            let home = home(0o444);
            home.config(config);
            assert_eq!(verdict(&home, mode, tool, &input).await, expected, "{config} {mode} {tool} {input}");
            assert_eq!(expected == Allow, home.get("f").as_deref() != Some("one\n"), "{tool} {input}");
        }
    }
    for mode in [0o644, 0o464, 0o446] {
        assert_eq!(verdict(&home(mode), "auto", "write", &calls()[0].1).await, Allow);
    }
}

#[tokio::test]
async fn approved_write_of_a_read_only_file_keeps_its_mode() {
    let home = home(0o555);
    let (tool, input) = &calls()[0];
    let read = json!({"name": "read", "input": {"file_path": "f"}});
    let steps = json!([{"tool_calls": [read, {"name": tool, "input": input}]}, {"text": "ok"}]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    agent.otherwise = Reply::Pick("allow_once");
    agent.turn(&session, "go").await;
    assert_eq!(agent.questions(), 1);
    agent.finish().await;
    assert_eq!(home.get("f").as_deref(), Some("two\n"));
    assert_eq!(home.work().join("f").metadata().unwrap().mode() & 0o777, 0o555);
}

#[tokio::test]
async fn lost_hard_links_are_said() {
    for (tool, input) in calls() {
        let home = home(0o644);
        std::fs::hard_link(home.work().join("f"), home.work().join("other")).unwrap();
        let text = told(&home, tool, &input).await;
        let is_deleted = input.to_string().contains("Delete");
        assert_eq!(text.contains("had 2 hard links: 1 other hard link keeps the former content"), !is_deleted, "{tool}: {text}");
        assert_eq!(home.get("other").as_deref(), Some("one\n"));
    }
}
