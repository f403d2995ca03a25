//! Processes that start at the same time, on a new data directory and after an update.

use futures_util::future::join_all;
use serde_json::json;

use harness::Home;

/// Number of processes that start at the same time.
const PROCESSES: usize = 10;

/// Runs a prompt in several processes at the same time, and asserts that all succeed.
async fn start_together(home: &Home, round: usize) {
    let model = home.script(json!([{"text": "done"}]));
    let arguments = ["run", "--model", &model, "go"];
    let ended = join_all((0..PROCESSES).map(|_| home.run(&arguments, ""))).await;
    for ran in ended {
        assert_eq!((ran.code, ran.stdout.trim()), (0, "done"), "round {round}: {ran:?}");
    }
}

#[tokio::test]
async fn processes_that_start_together_on_a_new_home_all_work() {
    for round in 0..10 {
        start_together(&Home::new(), round).await;
    }
}

/// The first start after an update, also with the mode that SQLite has by default: a copy by another
/// tool has it.
#[tokio::test]
async fn processes_that_start_together_after_an_update_all_work() {
    needs_sqlite!("migrates an older store of SQLite");
    let older = "ALTER TABLE events DROP COLUMN message; ALTER TABLE events DROP COLUMN kind; PRAGMA user_version = ";
    for round in 0..6 {
        let home = Home::new();
        assert_eq!(home.run(&["run", "--model", &home.script(json!([{"text": "ok"}])), "go"], "").await.code, 0);
        let version: u32 = home.sql("PRAGMA user_version")[0].parse().unwrap();
        if round % 3 != 0 {
            home.sql(&format!("{older}{}", version - 1));
        }
        if round % 3 != 1 {
            home.sql("PRAGMA journal_mode = DELETE");
        }
        start_together(&home, round).await;
        assert_eq!(home.sql("PRAGMA user_version; PRAGMA journal_mode"), [version.to_string(), "wal".into()]);
    }
}
