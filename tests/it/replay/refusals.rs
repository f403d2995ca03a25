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
