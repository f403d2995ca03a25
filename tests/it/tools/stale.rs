//! Files that change between a read and an edit.

use serde_json::{Value, json};

use harness::Home;
use harness::log::bodies;
use harness::steps::{bash, calls_one};

#[tokio::test]
async fn file_is_stale_only_if_its_content_differs() {
    let cases = [
        // Only the time, the inode, or the mode differs.
        ("touch -d 2001-01-01 f", false),
        ("cp f g && mv g f", false),
        ("echo two > f; echo one > f", false),
        ("chmod 600 f", false),
        ("rm f; echo one > f", false),
        // The time, the size and the inode are equal.
        ("touch -r f ref; echo two > f; touch -r ref f", true),
        ("echo two > f", true),
        ("echo more >> f", true),
        (": > f", true),
    ];
    for (command, stale) in cases {
        let home = Home::new();
        home.put("f", "one\n");
        let read = calls_one("read", json!({"file_path": "f"}));
        let write = calls_one("write", json!({"file_path": "f", "content": "three\n"}));
        let (mut agent, session) = home.session(json!([read, bash(command), write, {"text": "ok"}]), &["--mode", "auto"]).await;
        agent.turn(&session, "go").await;
        agent.finish().await;
        let log = home.log(&session).await;
        let ends: Vec<&Value> = bodies(&log, "tool.completed");
        let text = ends[2]["output"].to_string();
        assert_eq!(text.contains("stale: f changed since it was read"), stale, "{command}: {text}");
        assert_eq!(home.get("f").as_deref() == Some("three\n"), !stale, "{command}");
    }
}
