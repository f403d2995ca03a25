//! The examples of docs/HOOKS.md, run as they are.

use serde_json::json;

use super::{Events, home, one_call, read_a};
use harness::Home;

/// A home with the examples of the document: their settings, and their scripts next to the
/// settings. A block of code belongs to the file that its first line names in a comment.
fn documented() -> Home {
    let text = std::fs::read_to_string(harness::package("docs/HOOKS.md")).unwrap();
    let (mut settings, mut scripts) = (String::new(), Vec::new());
    for block in text.split("```").skip(1).step_by(2) {
        let (language, code) = block.split_once('\n').unwrap();
        match (language, code.lines().next().unwrap().strip_prefix("# ")) {
            ("toml", _) => settings += code,
            ("python" | "sh", Some(name)) => scripts.push((name.to_owned(), code.to_owned())),
            _ => {}
        }
    }
    assert_eq!((settings.matches("[[hooks]]").count(), scripts.len()), (4, 4), "{settings}");
    let home = home(&settings);
    for (name, code) in scripts {
        std::fs::write(home.data().join(name), code).unwrap();
    }
    home
}

#[tokio::test]
async fn documented_hook_protects_a_path() {
    let home = documented();
    let write = |path: &str| one_call("write", &json!({"file_path": path, "content": "new"}), None);
    let blocked = Events::from_run(&home, write("migrations/1.sql"), &[]).await;
    assert_eq!(blocked.result().0, "failed");
    assert!(blocked.result().1.contains("migrations/"), "{}", blocked.result().1);
    assert_eq!(Events::from_run(&home, write("other.sql"), &[]).await.result().0, "completed");
}

#[tokio::test]
async fn documented_hook_formats_after_an_edit() {
    needs_linux!("sandbox");
    let home = documented();
    // A formatter that exists everywhere takes the place of the documented one.
    let path = format!("{}:{}", home.work().join("bin").display(), std::env::var("PATH").unwrap());
    let formatter = home.put("bin/ruff", "#!/bin/sh\nfor file; do :; done\nprintf formatted > \"$file\"\n");
    std::fs::set_permissions(formatter, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    home.env("PATH", &path);
    let ran =
        Events::from_run(&home, one_call("write", &json!({"file_path": "a.py", "content": "x=1"}), Some("formatted")), &[]).await;
    assert_eq!(home.get("a.py").as_deref(), Some("formatted"), "{:#?}", ran.events);
    assert_eq!(ran.code, 0, "{:#?}", ran.events);
}

#[tokio::test]
async fn documented_hook_logs_calls() {
    let home = documented();
    Events::from_run(&home, read_a(None), &[]).await;
    let logged = std::fs::read_to_string(home.data().join("../.nuncio-calls.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(logged.lines().next().unwrap()).unwrap();
    assert_eq!((&line["tool"]["name"], &line["tool"]["status"]), (&json!("read"), &json!("completed")), "{logged}");
}

#[tokio::test]
async fn documented_hook_adds_the_ticket() {
    let home = documented();
    home.put("TICKET.md", "NUN-42: the lamp is off\n");
    let ran = Events::from_run(&home, json!([{"text": "the end", "expect": "NUN-42: the lamp is off"}]), &[]).await;
    assert_eq!(ran.code, 0, "{:#?}", ran.events);
}
