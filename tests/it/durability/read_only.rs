//! A read-only home directory: sessions can be listed and shown.

use serde_json::json;

use harness::{CommandResult, Home};

async fn worked() -> (Home, String) {
    let home = Home::new();
    let model = home.script(json!([{"text": "what was said"}]));
    let ran = home.run(&["run", "--model", &model, "a prompt"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let id = home.run(&["sessions", "list", "--json"], "").await.lines()[0]["sessionId"].as_str().unwrap().to_string();
    (home, id)
}

async fn assert_readable(home: &Home, id: &str) {
    let listed = home.run_without_writing(&["sessions", "list"]).await;
    assert!(listed.code == 0 && listed.stdout.contains(id), "{listed:?}");
    let shown = home.run_without_writing(&["sessions", "show", id]).await;
    assert!(shown.code == 0 && shown.stdout.contains("what was said"), "{shown:?}");
    let exported = home.run_without_writing(&["sessions", "export", id]).await;
    assert!(exported.code == 0 && exported.stdout.contains("what was said"), "{exported:?}");
}

#[tokio::test]
async fn sessions_are_readable_in_read_only_home() {
    needs_sqlite!("removes nuncio.db-wal");
    let (home, id) = worked().await;
    // The last close writes the WAL file into the database and removes the WAL file.
    rusqlite::Connection::open(home.data().join("nuncio.db")).unwrap().execute_batch("SELECT * FROM sessions").unwrap();
    assert!(!home.data().join("nuncio.db-wal").exists());
    assert_readable(&home, &id).await;
    assert!(!home.data().join("nuncio.db-wal").exists());
}

/// A killed process leaves the WAL file and its index.
#[tokio::test]
async fn sessions_are_readable_in_read_only_home_with_wal() {
    needs_sqlite!("reads nuncio.db-wal");
    let home = Home::new();
    let (mut agent, id) = home.session(json!([{"text": "what was said"}]), &[]).await;
    agent.turn(&id, "a prompt").await;
    agent.kill().await;
    assert!(home.data().join("nuncio.db-wal").metadata().unwrap().len() > 0);
    assert_readable(&home, &id).await;
}

/// Sessions in an unreadable WAL file are not omitted silently.
#[tokio::test]
async fn unreadable_wal_in_read_only_home_is_an_error() {
    needs_sqlite!("removes nuncio.db-shm");
    let home = Home::new();
    let (mut agent, id) = home.session(json!([{"text": "what was said"}]), &[]).await;
    agent.turn(&id, "a prompt").await;
    agent.kill().await;
    std::fs::remove_file(home.data().join("nuncio.db-shm")).unwrap();
    let CommandResult { code, stdout, stderr } = home.run_without_writing(&["sessions", "list"]).await;
    assert!(code == 1 && stdout.is_empty() && stderr.contains("nuncio.db-wal") && stderr.contains("cannot be written"), "{stderr}");
    // With write access, all sessions are listed.
    assert!(home.run(&["sessions", "list"], "").await.stdout.contains(&id));
}

#[tokio::test]
async fn writes_in_read_only_home_are_errors() {
    needs_sqlite!("a store of PostgreSQL is not in the home");
    let (home, id) = worked().await;
    let model = home.script(json!([{"text": "more"}]));
    for arguments in
        [&["run", "--model", &model, "go"][..], &["run", "--model", &model, "--resume", &id, "go"], &["sessions", "rm", &id]]
    {
        let ran = home.run_without_writing(arguments).await;
        assert!(ran.code == 1 && !ran.stderr.contains("panicked"), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("cannot be written") || ran.stderr.contains("ermission denied"), "{arguments:?}: {ran:?}");
    }
}
