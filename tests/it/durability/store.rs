//! The database file: its permissions, and a file of a newer version.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;
use serde_json::json;

use harness::Home;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode() & 0o777
}

const FILES: [&str; 3] = ["nuncio.db", "nuncio.db-wal", "nuncio.db-shm"];

#[tokio::test]
async fn only_owner_can_read_store() {
    needs_sqlite!("permissions of nuncio.db");
    let home = Home::new();
    for (open, modes) in [("a new one", None), ("an older one", Some(0o644))] {
        // All three files exist while the store is open.
        let (agent, _) = home.session(json!([]), &[]).await;
        for name in FILES {
            assert_eq!(mode(&home.data().join(name)), 0o600, "{name} of {open}, {modes:?}");
        }
        if modes.is_none() {
            // Permissions of files from earlier versions, also after a kill.
            agent.kill().await;
            for name in FILES {
                std::fs::set_permissions(home.data().join(name), std::fs::Permissions::from_mode(0o644)).unwrap();
            }
        } else {
            agent.finish().await;
        }
    }
}

#[tokio::test]
async fn store_of_newer_version_is_refused_and_unchanged() {
    needs_sqlite!("changes the version of nuncio.db");
    let home = Home::new();
    home.run(&["sessions", "list"], "").await;
    let path = home.data().join("nuncio.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA user_version = 1000; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;").unwrap();
    drop(db);
    let before = std::fs::read(&path).unwrap();
    for arguments in [&["sessions", "list"][..], &["run", "--model", "scripted:/nowhere", "go"], &["doctor"]] {
        let ran = home.run(arguments, "").await;
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code != 0 && said.contains("newer version of nuncio"), "{arguments:?}: {ran:?}");
        assert!(std::fs::read(&path).unwrap() == before, "{arguments:?} wrote to it");
    }
}
