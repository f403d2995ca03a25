//! Retention of artifacts: by the last use of their session, and by their size.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::json;

use harness::Home;

fn artifacts(home: &Home, session: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home.data().join("artifacts").join(session)).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths
}

/// Creates a session with an artifact.
async fn drawn(home: &Home) -> String {
    let call = json!({"name": "diagram", "input": {"source": "digraph { a -> b }"}});
    let (mut agent, session) = home.session(json!([{"tool_calls": [call]}, {"text": "drawn"}]), &["--mode", "auto"]).await;
    agent.turn(&session, "draw").await;
    agent.finish().await;
    assert_eq!(artifacts(home, &session).len(), 1);
    session
}

#[tokio::test]
async fn artifacts_of_unused_session_are_removed() {
    let home = Home::new();
    let (old, young) = (drawn(&home).await, drawn(&home).await);
    let gone = drawn(&home).await;
    let kept_ms = harness::limits::ARTIFACTS_KEPT.as_millis() as i64;
    let age = |session: &str, ms: i64| {
        home.sql(&format!("UPDATE sessions SET updated_ms = updated_ms - {ms} WHERE id = '{session}'"));
    };
    age(&old, kept_ms + 1000);
    age(&young, kept_ms - 60_000);
    // A directory without a session is removed only if it is old: its session may be in creation.
    home.sql(&format!("DELETE FROM sessions WHERE id = '{gone}'"));
    std::fs::create_dir_all(home.data().join("artifacts/sess_new")).unwrap();
    std::fs::write(home.data().join("artifacts/sess_new/a.txt"), "a").unwrap();
    let long_ago = SystemTime::now() - harness::limits::ARTIFACTS_KEPT - Duration::from_secs(1);
    std::fs::File::open(home.data().join("artifacts").join(&gone)).unwrap().set_modified(long_ago).unwrap();

    let model = home.script(json!([]));
    let mut agent = home.start(&["--model", &model]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.call("session/list", json!({})).await;
    agent.finish().await;
    assert_eq!(artifacts(&home, &old), Vec::<PathBuf>::new());
    assert!(!home.data().join("artifacts").join(&gone).exists());
    assert_eq!((artifacts(&home, &young).len(), artifacts(&home, "sess_new").len()), (1, 1));

    // The session is kept, and the error explains why the file was removed.
    let mut agent = home.start(&["--model", &model]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let params = json!({"sessionId": old, "name": "diagram-1.svg"});
    let error = agent.request("_nuncio/artifact/get", params).await.unwrap_err();
    agent.finish().await;
    assert!(error.to_string().contains("30 days"), "{error}");
}

#[tokio::test]
async fn oldest_artifacts_are_removed_when_session_is_closed() {
    let home = Home::new();
    let call = json!({"name": "diagram", "input": {"source": "digraph { a -> b }"}});
    let script = json!([{"tool_calls": [call]}, {"text": "drawn"}, {"text": "seen"}]);
    let (mut agent, session) = home.session(script, &["--mode", "auto"]).await;
    agent.turn(&session, "draw").await;
    let drawn = artifacts(&home, &session);
    // Older files; only the newest of them fits within the limit.
    let dir = home.data().join("artifacts").join(&session);
    let half = harness::limits::ARTIFACTS_BYTES_MAX / 2;
    for (name, hours) in [("bash-1.log", 3), ("bash-2.log", 2), ("bash-3.log", 1)] {
        let file = std::fs::File::create(dir.join(name)).unwrap();
        file.set_len(half).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
    }
    agent.call("session/close", json!({"sessionId": session})).await;
    agent.finish().await;
    assert_eq!(artifacts(&home, &session), [vec![dir.join("bash-3.log")], drawn].concat());
    let log = home.log(&session).await;
    let notice = log.iter().find(|event| event["body"]["type"] == "notice").unwrap_or_else(|| panic!("{log:#?}"));
    let said = notice["body"].to_string();
    assert!(said.contains("bash-1.log") && said.contains("bash-2.log") && !said.contains("bash-3.log"), "{said}");
}
