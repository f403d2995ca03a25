//! Sessions and directories that cannot be recorded or replayed.

use serde_json::json;

use super::{recorded, repository, session};
use harness::Home;

const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hub/agent.py");

async fn refused(home: &Home, arguments: &[&str], code: i32, message: &str) {
    let ran = home.run(arguments, "").await;
    assert!(ran.code == code && ran.stderr.contains(message), "{arguments:?}: {ran:?}");
    assert!(ran.stdout.is_empty(), "{ran:?}");
}

#[tokio::test]
async fn export_refuses_what_it_cannot_record() {
    needs_linux!("sandbox");
    let home = repository();
    let id = session(&home, json!([{"text": "ok"}]), &[]).await;
    refused(&home, &["sessions", "export", "nope", "--scripted", "../new"], 2, "session nope not found").await;
    home.put("../full/file", "x");
    refused(&home, &["sessions", "export", &id, "--scripted", "../full"], 2, "full is not empty").await;
    assert_eq!(home.get("../full/file").as_deref(), Some("x"));
    refused(&home, &["sessions", "export", &id, "--scripted", "../new", "--layout", "x"], 2, "cannot be used with").await;
    home.config(&format!(
        "[agents]\nallowed = [\"other\"]\n[agents.other]\nkind = \"acp\"\ncommand = {}\n",
        json!(["python3", AGENT])
    ));
    assert_eq!(home.run(&["trust", "--yes", "."], "").await.code, 0);
    let ran = home.run(&["run", "--agent", "other", "--json", "-p", "say hello"], "").await;
    let hosted = ran.lines()[0]["sessionId"].as_str().unwrap().to_owned();
    refused(&home, &["sessions", "export", &hosted, "--scripted", "../new"], 2, "only sessions of nuncio's own agent").await;
    assert!(!home.work().join("../new").exists());
}

#[tokio::test]
async fn replay_refuses_what_is_no_recording() {
    needs_linux!("sandbox");
    let (home, _) = recorded(json!([{"text": "ok"}])).await;
    refused(&home, &["replay", "../nowhere"], 2, "is not a recording: it has no session.json").await;
    refused(&home, &["replay"], 2, "DIR").await;
    let text = home.get("../recording/session.json").unwrap();
    home.put("../recording/session.json", &text.replace("\"format\": 1", "\"format\": 99"));
    refused(&home, &["replay", "../recording"], 2, "format 99 is unknown").await;
    home.put("../recording/session.json", "{}");
    refused(&home, &["replay", "../recording"], 2, "session.json: missing field").await;
    home.put("../recording/session.json", &text);
    home.put("../recording/script.json", "[");
    refused(&home, &["replay", "../recording"], 2, "script.json").await;
}

/// What a recording of another author tries, and the message or the difference that it gets.
#[tokio::test]
async fn recording_reaches_nothing_outside() {
    needs_linux!("sandbox");
    let (home, _) = recorded(json!([{"text": "ok"}])).await;
    let victim = home.put("../victim/file", "kept\n");
    let outside = victim.parent().unwrap().to_path_buf();
    let (dir, session_json) = (home.work().join("../recording"), home.get("../recording/session.json").unwrap());
    let with = |field: &str| session_json.replacen('{', &format!("{{ {field},"), 1);
    let path = outside.to_str().unwrap();
    for (field, named) in [
        (format!("\"cwd\": \"{path}\""), "cwd: not possible"),
        (format!("\"additionalDirectories\": [\"{path}\"]"), "additionalDirectories: not possible"),
        ("\"agent\": \"codex\"".to_owned(), "agent: not possible"),
    ] {
        home.put("../recording/session.json", &with(&field));
        refused(&home, &["replay", "../recording"], 2, named).await;
    }
    for removed in [format!("{path}/file"), "../victim/file".to_owned()] {
        let text = session_json.replace("\"branch\": \"main\"", &format!("\"branch\": \"main\", \"removed\": [\"{removed}\"]"));
        assert_ne!(text, session_json);
        home.put("../recording/session.json", &text);
        refused(&home, &["replay", "../recording"], 2, "removed: not possible").await;
    }
    home.put("../recording/session.json", &session_json);
    for link in ["start/commit/link", "start/user/config.toml", "settings.toml"] {
        let (link, kept) = (dir.join(link), dir.join(link).with_extension("kept"));
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        let existed = std::fs::rename(&link, &kept).is_ok();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        refused(&home, &["replay", "../recording", "--update"], 2, "only ordinary files").await;
        std::fs::remove_file(&link).unwrap();
        if existed {
            std::fs::rename(&kept, &link).unwrap();
        }
    }
    home.put("../recording/start/commit/.git/hooks/pre-commit", "sleep 100\n");
    refused(&home, &["replay", "../recording"], 2, "no git directory").await;
    std::fs::remove_dir_all(dir.join("start/commit/.git")).unwrap();
    let settings = home.get("../recording/settings.toml").unwrap_or_default();
    for section in [
        "[mcp.x]\nurl = \"http://127.0.0.1:1\"\n",
        "[providers.x]\nbase_url = \"http://127.0.0.1:1\"\n",
        "[roles]\nplan = \"x/y\"\n",
    ] {
        home.put("../recording/settings.toml", section);
        refused(&home, &["replay", "../recording"], 2, "not possible in a recording").await;
    }
    // Calls of nuncio's own tools, which the recording permits.
    home.put("../recording/settings.toml", &format!("{settings}[sandbox]\nwritable = [\"{path}\"]\nnetwork = true\n"));
    let steps = json!({"steps": [
        {"tool_calls": [{"name": "write", "input": {"file_path": format!("{path}/new"), "content": "x"}}]},
        {"tool_calls": [{"name": "read", "input": {"file_path": format!("{path}/file")}}]},
        {"tool_calls": [{"name": "fetch", "input": {"url": "http://127.0.0.1:1/"}}]},
        {"tool_calls": [{"name": "bash", "input": {"command": format!("echo x > {path}/new")}}]},
        {"text": "ok"},
    ]});
    home.put("../recording/script.json", &steps.to_string());
    let answers = json!([1, 2, 3, 4].map(|call| json!({"call": format!("call_{call}"), "outcome": "allow_once"})));
    home.put(
        "../recording/session.json",
        &with(&format!("\"answers\": {answers}")).replace("\"attended\": false", "\"attended\": true"),
    );
    let ran = home.run(&["replay", "../recording"], "").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(!ran.stdout.contains("kept"), "{ran:?}");
    assert_eq!((home.get("../victim/file").as_deref(), home.get("../victim/new")), (Some("kept\n"), None));
}
