//! Processes that start at the same time, on a new data directory and after an update.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use harness::{CommandResult, Home};

/// Runs a prompt in several processes at the same time, of which each must succeed.
async fn run_together(home: &Home, processes: usize) {
    let model = home.script(json!([{"text": "done"}]));
    let arguments = ["run", "--model", &model, "go"];
    check(&join_all((0..processes).map(|_| home.run(&arguments, ""))).await);
}

fn check(ended: &[CommandResult]) {
    for ran in ended {
        assert_eq!((ran.code, ran.stdout.trim()), (0, "done"), "{ran:?}");
    }
}

/// Makes the database one of the previous version, with the mode that SQLite has by default.
fn make_older(home: &Home) {
    let version: u32 = home.sql("PRAGMA user_version")[0].parse().unwrap();
    let older = "ALTER TABLE events DROP COLUMN event_type; ALTER TABLE events DROP COLUMN message_id; \
                 ALTER TABLE events ADD COLUMN kind TEXT AS (json_extract(body, '$.type')) VIRTUAL; \
                 ALTER TABLE events ADD COLUMN message TEXT AS (json_extract(body, '$.messageId')) VIRTUAL; PRAGMA user_version = ";
    home.sql(&format!("{older}{}; PRAGMA journal_mode = DELETE", version - 1));
}

#[tokio::test]
async fn processes_that_start_together_all_work() {
    needs_sqlite!("changes the mode of nuncio.db");
    let home = Home::new();
    run_together(&home, 10).await;
    let version = home.sql("PRAGMA user_version");
    for _ in 0..3 {
        make_older(&home);
        run_together(&home, 10).await;
        assert_eq!((home.sql("PRAGMA user_version"), home.sql("PRAGMA journal_mode")), (version.clone(), vec!["wal".into()]));
    }
}

/// SQLite does not wait for the lock with which the mode of a database is changed: the processes
/// that started a moment later failed.
#[tokio::test]
async fn start_waits_while_another_process_creates_or_migrates_the_database() {
    needs_sqlite!("locks nuncio.db");
    let (new, other_mode, older) = (Home::new(), Home::new(), Home::new());
    for home in [&other_mode, &older] {
        run_together(home, 1).await;
    }
    other_mode.sql("PRAGMA journal_mode = DELETE");
    make_older(&older);
    for (case, home) in [("new", new), ("another mode", other_mode), ("older", older)] {
        let lock = home.store().lock();
        let model = home.script(json!([{"text": "done"}]));
        let arguments = ["run", "--model", &model, "go"];
        let mut running = Box::pin(join_all((0..3).map(|_| home.run(&arguments, ""))));
        let early = tokio::time::timeout(Duration::from_millis(1500), &mut running).await;
        assert!(early.is_err(), "{case}: {early:?}");
        drop(lock);
        check(&running.await);
    }
}
