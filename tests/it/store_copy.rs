//! `nuncio store copy`: all rows arrive unchanged, also after an interruption; a target with other
//! rows is refused.

use std::path::PathBuf;

use serde_json::{Value, json};

use harness::{CommandResult, Home, TestStore, on_postgres, poll};

/// A store, as the command and other commands name it.
struct Place {
    argument: String,
    flags: Vec<String>,
    store: TestStore,
}

/// The SQLite database in a directory next to the work directory.
fn sqlite(home: &Home, name: &str) -> Place {
    in_directory(home.work().parent().unwrap().join(name))
}

fn in_directory(dir: PathBuf) -> Place {
    let argument = dir.to_str().unwrap().to_owned();
    let flags = ["--store", "sqlite", "--data-dir", &argument].map(String::from).to_vec();
    Place { argument, flags, store: TestStore::Sqlite(dir.join("nuncio.db")) }
}

/// The store of a home: PostgreSQL if there is a server.
fn of_home(home: &Home) -> Place {
    match home.store() {
        TestStore::Postgres(url) => {
            Place { argument: url.clone(), flags: vec!["--store".into(), url.clone()], store: TestStore::Postgres(url) }
        }
        TestStore::Sqlite(_) => in_directory(home.data()),
    }
}

async fn copy(home: &Home, from: &str, to: &str) -> CommandResult {
    home.run(&["store", "copy", from, to, "--json"], "").await
}

/// Copies a store and asserts that the target has its rows. Returns the report.
async fn copied(home: &Home, from: &Place, to: &Place) -> Value {
    let ran = copy(home, &from.argument, &to.argument).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
    assert_eq!(rows(&to.store), rows(&from.store));
    ran.lines()[0].clone()
}

/// Runs a command with this store.
async fn run_with(home: &Home, place: &Place, arguments: &[&str]) -> CommandResult {
    let flags: Vec<&str> = place.flags.iter().map(String::as_str).collect();
    let ran = home.run(&[arguments, &flags].concat(), "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    ran
}

/// All columns that both databases have in the same form.
fn rows(store: &TestStore) -> Vec<String> {
    let (kind, message) = store.event_columns();
    store.sql(&format!(
        "SELECT key, id, generation, head, cwd, directories, created_ms, updated_ms, turn, waiting, summary, parent, \
           CAST(archived AS integer) FROM sessions ORDER BY key; \
         SELECT id, session, seq, turn, at_ms, CAST(delta AS integer), {kind}, \
           CASE WHEN {kind} IN ('message.queued', 'message.completed') THEN {message} END, call, body FROM events ORDER BY id; \
         SELECT principal, key, answer, at_ms FROM answers ORDER BY key; \
         SELECT id, name, repository, path, branch, CAST(made_branch AS integer), base, base_commit, state, created_ms, metadata \
           FROM workspaces ORDER BY id"
    ))
}

/// Works in two sessions, and stores a response and a workspace.
async fn work(home: &Home) -> String {
    let said = "a zero \u{0}, a crab \u{1f980}";
    let (mut agent, first) = home.session(json!([{"text": said, "chunk_chars": 3}, {"text": "two"}, {"text": "three"}]), &[]).await;
    let second = agent.new_session(home).await;
    agent.turn(&first, said).await;
    agent.turn(&second, "archived later").await;
    agent.turn(&first, "more").await;
    agent.call("session/set_title", json!({"sessionId": first, "title": said})).await;
    agent.call("session/archive", json!({"sessionId": second})).await;
    agent.call("_nuncio/attachment/add", json!({"sessionId": first, "name": "note.txt", "data": "bm90ZQ=="})).await;
    agent.finish().await;
    let asked = if on_postgres() { "'\\x00ff'" } else { "x'00ff'" };
    home.sql(&format!(
        "INSERT INTO answers (principal, key, asked, answer, at_ms) VALUES \
           ('owner', 'b', {asked}, 'an answer', 5), ('owner', 'B', {asked}, NULL, 6), ('\u{e9}', 'a', {asked}, '{{}}', 7); \
         INSERT INTO workspaces (id, name, repository, path, made_branch, state, created_ms, metadata) VALUES \
           ('ws_1', 'w1', '/repository', '/worktree', TRUE, 'ready', 8, '{{\"b\":{{\"c\":[null,1]}},\"a\":\"x\"}}')"
    ));
    first
}

#[tokio::test]
async fn round_trip_keeps_all_rows() {
    let (home, other) = (Home::new(), Home::new());
    let session = work(&home).await;
    // With a server: PostgreSQL, SQLite, PostgreSQL, SQLite.
    let places = [of_home(&home), sqlite(&home, "one"), of_home(&other), sqlite(&home, "two")];
    let exported = run_with(&home, &places[0], &["sessions", "export", &session]).await.stdout;
    let listed = run_with(&home, &places[0], &["sessions", "list", "--json"]).await.stdout;
    assert!(exported.contains("a crab \u{1f980}") && listed.contains("a zero \\u0000"), "{listed}{exported}");
    for pair in places.windows(2) {
        let report = copied(&home, &pair[0], &pair[1]).await;
        let expected = json!({"sessions": 2, "workspaces": 1, "responses": 3, "verified": true, "copiedEvents": report["events"]});
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&report[name], value, "{name}: {report}");
        }
        assert_eq!(run_with(&home, &pair[1], &["sessions", "export", &session]).await.stdout, exported);
        assert_eq!(run_with(&home, &pair[1], &["sessions", "list", "--json"]).await.stdout, listed);
        let note = match &pair[1].store {
            TestStore::Sqlite(file) => {
                std::fs::read_to_string(file.with_file_name("attachments").join(&session).join("note.txt")).unwrap()
            }
            store => store.sql("SELECT convert_from(content, 'UTF8') FROM files WHERE path = 'attachments/note.txt'").join("\n"),
        };
        assert_eq!(note, "note");
        let again = home.run(&["store", "copy", &pair[0].argument, &pair[1].argument], "").await;
        assert!(again.code == 0 && again.stdout.starts_with("nothing to copy: "), "{again:?}");
        assert!(again.stdout.contains("\nverified: sessions 2, "), "{again:?}");
    }
    // Each copy can be used: new rows have new numbers.
    let model = home.script(json!([{"text": "answered"}]));
    for place in &places {
        run_with(&home, place, &["run", "--model", &model, "a new session"]).await;
        let resumed = run_with(&home, place, &["run", "--model", &model, "--resume", &session, "and the old one"]).await;
        assert_eq!(resumed.stdout, "answered\n");
        assert_eq!(place.store.sql("SELECT key FROM sessions ORDER BY key"), ["1", "2", "3"], "{}", place.argument);
    }
}

/// Creates a store with sessions that have these numbers of events.
async fn generated(home: &Home, counts: &[usize]) -> Place {
    let place = sqlite(home, "generated");
    run_with(home, &place, &["sessions", "list"]).await;
    for (key, count) in (1..).zip(counts) {
        place.store.sql(&format!(
            "INSERT INTO sessions (id, generation, head, cwd, title, created_ms, updated_ms) \
               VALUES ('sess_{key}', 2, {count}, '/work', 'title {key}', 1, {key}); \
             WITH RECURSIVE n(seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < {count}) \
             INSERT INTO events (session, seq, turn, at_ms, delta, body) \
             SELECT {key}, seq, 'turn_1', seq, seq % 2, '{{\"type\":\"message.delta\",\"messageId\":\"m\",\"text\":\"\u{e9}\"}}' FROM n"
        ));
    }
    place
}

/// Makes writes of the events of session 3 after the first 1,000 take forever.
fn block(store: &TestStore) {
    store.sql(match store {
        TestStore::Sqlite(_) => {
            "CREATE TRIGGER blocked BEFORE INSERT ON events WHEN NEW.session = 3 AND NEW.seq > 1000 BEGIN \
               SELECT count(*) FROM events a, events b, events c, events d WHERE a.seq + b.seq + c.seq + d.seq < 0; \
             END"
        }
        TestStore::Postgres(_) => {
            "CREATE FUNCTION blocked() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
               IF NEW.session = 3 AND NEW.seq > 1000 THEN PERFORM pg_sleep(20); END IF; RETURN NEW; \
             END $$; \
             CREATE TRIGGER blocked BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION blocked()"
        }
    });
}

fn unblock(store: &TestStore) {
    store.sql(match store {
        TestStore::Sqlite(_) => "DROP TRIGGER blocked",
        TestStore::Postgres(_) => {
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid(); \
             DROP TRIGGER blocked ON events"
        }
    });
}

#[tokio::test]
async fn killed_copy_is_continued() {
    let home = Home::new();
    let from = generated(&home, &[10, 10, 2500, 10]).await;
    let targets = [Some(sqlite(&home, "target")), on_postgres().then(|| of_home(&home))];
    for to in targets.into_iter().flatten() {
        run_with(&home, &to, &["sessions", "list"]).await;
        block(&to.store);
        let mut child = home.spawn(&["store", "copy", &from.argument, &to.argument]);
        let written = "SELECT count(*) FROM events WHERE session = 3";
        poll("the first page of session 3", || to.store.sql(written) == ["1000"]).await;
        child.kill().await.unwrap();
        unblock(&to.store);
        // The session is not listed before it is complete.
        let listed = run_with(&home, &to, &["sessions", "list", "--json"]).await.stdout;
        assert!(!listed.contains("sess_3"), "{listed}");
        assert_eq!(to.store.sql("SELECT key, head FROM sessions ORDER BY key"), ["1|10", "2|10", "3|0"]);

        let report = copied(&home, &from, &to).await;
        assert_eq!((&report["events"], &report["copiedEvents"]), (&json!(2530), &json!(1510)), "{report}");
        assert_eq!(copied(&home, &from, &to).await["copiedEvents"], 0);
    }
}

#[tokio::test]
async fn source_that_changes_is_an_error() {
    if !on_postgres() {
        eprintln!("skipped: {}: SQLite does not report that a process waits for a lock", module_path!());
        return;
    }
    let home = Home::new();
    let (from, to) = (generated(&home, &[5, 5]).await, of_home(&home));
    run_with(&home, &to, &["sessions", "list"]).await;
    let lock = to.store.lock();
    let change = async {
        let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted \
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        poll("the wait for the lock", || to.store.sql(waiting) != ["0"]).await;
        from.store.sql(MORE);
        drop(lock);
    };
    let (ran, ()) = tokio::join!(copy(&home, &from.argument, &to.argument), change);
    assert!(ran.code == 1 && ran.stderr.contains("generated/nuncio.db has changed during the copy"), "{ran:?}");
    assert_eq!(copied(&home, &from, &to).await["copiedEvents"], 0);
}

/// Continues a session with five events, and archives it.
const MORE: &str = "INSERT INTO events (session, seq, at_ms, delta, body) VALUES (2, 6, 9, 0, '{}'); \
    UPDATE sessions SET head = 6, archived = 1 WHERE key = 2";

/// A statement on a complete copy, the words of the error, and the exit code of the next copy.
const CHANGES: [(&str, &str, i32); 7] = [
    ("INSERT INTO sessions (id, cwd, created_ms, updated_ms) VALUES ('sess_other', '/', 1, 1)", "has session sess_other, which", 2),
    ("UPDATE sessions SET id = 'sess_other' WHERE key = 2", "has session sess_other, which", 2),
    ("UPDATE events SET body = '{}' WHERE session = 2 AND seq = 3", "has the events of session sess_2, which", 2),
    ("DELETE FROM events WHERE session = 2 AND seq = 3", "has the events of session sess_2, which", 2),
    (
        "INSERT INTO events (session, seq, at_ms, delta, body) VALUES (2, 6, 1, 0, '{}')",
        "has the events of session sess_2, which",
        2,
    ),
    (
        "INSERT INTO workspaces (id, name, repository, path, made_branch, state, created_ms) VALUES ('w', 'w', '/', '/', 0, 'ready', 1)",
        "has workspace w, which",
        2,
    ),
    (
        "DELETE FROM events WHERE session = 2; CREATE TRIGGER changed AFTER INSERT ON events WHEN NEW.seq = 3 BEGIN \
           UPDATE events SET at_ms = 0 WHERE id = NEW.id; END",
        "the session sess_2 is not the same",
        1,
    ),
];

#[tokio::test]
async fn target_with_other_rows_is_refused() {
    let home = Home::new();
    let from = generated(&home, &[5, 5, 5]).await;
    for (number, (statement, words, code)) in CHANGES.iter().enumerate() {
        let to = sqlite(&home, &format!("target-{number}"));
        copied(&home, &from, &to).await;
        to.store.sql(statement);
        let before = rows(&to.store);
        let ran = copy(&home, &from.argument, &to.argument).await;
        assert!(ran.code == *code && ran.stderr.contains(words) && ran.stdout.is_empty(), "{statement}: {ran:?}");
        assert!(*code != 2 || rows(&to.store) == before, "{statement}: the target was changed");
    }
    // A source that continues a session has everything that the target has.
    let to = sqlite(&home, "target-behind");
    copied(&home, &from, &to).await;
    from.store.sql(MORE);
    assert_eq!(copied(&home, &from, &to).await["copiedEvents"], 1);
}

#[tokio::test]
async fn unsuitable_stores_have_one_clear_error() {
    let home = Home::new();
    let from = generated(&home, &[5]).await.argument;
    let file = format!("{from}/nuncio.db");
    let secret = "postgres://user:secret@127.0.0.1:1/x?sslmode=disable";
    let cases = [
        (["../nowhere", "../to"], 2, "nuncio.db does not exist"),
        ([&file, "../to"], 2, "is not a directory"),
        ([&from, &from], 2, "both stores are"),
        ([&from, "../generated"], 2, "both stores are"),
        ([&from, "mysql://localhost/x"], 2, "it does not begin with postgres://"),
        ([&from, secret], 3, "connecting to the database x on 127.0.0.1:1"),
        ([secret, "../to"], 3, "connecting to the database x on 127.0.0.1:1"),
    ];
    for ([from, to], code, words) in cases {
        let ran = copy(&home, from, to).await;
        assert!(ran.code == code && ran.stderr.contains(words) && ran.stdout.is_empty(), "{from} {to}: {ran:?}");
        assert_eq!(ran.stderr.matches("nuncio:").count(), 1, "{ran:?}");
        assert!(!ran.stderr.contains("secret"), "{ran:?}");
    }
    assert!(!home.work().join("../nowhere").exists(), "a store was created to be read");
}

#[tokio::test]
async fn store_with_an_owned_session_is_refused() {
    let home = Home::new();
    let (agent, session) = home.session(json!([]), &[]).await;
    let other = generated(&home, &[5]).await.argument;
    let words = match on_postgres() {
        true => format!("(process {}) uses it", agent.pid),
        false => format!("session {session} is owned by process {}", agent.pid),
    };
    for [from, to] in [["configured", "../to"], [&other, "configured"]] {
        let ran = copy(&home, from, to).await;
        assert!(ran.code == 2 && ran.stderr.contains(&words), "{ran:?}");
    }
    agent.kill().await;
    if on_postgres() {
        home.sql("UPDATE nodes SET lease_until = clock_timestamp()");
    }
    let ran = copy(&home, "configured", "../to").await;
    assert_eq!(ran.code, 0, "{ran:?}");
}
