//! PostgreSQL as the store: errors that a wrong address, missing rights or another state of the
//! database cause. `NUNCIO_TEST_STORE` (tests/postgres/run) names the server.

use harness::{Home, TestStore, on_postgres};

/// The URL of the home's database, unless the store is SQLite.
fn url(home: &Home) -> Option<String> {
    match home.store() {
        TestStore::Postgres(url) if on_postgres() => Some(url),
        _ => {
            eprintln!("skipped: {}: NUNCIO_TEST_STORE names no server", module_path!());
            None
        }
    }
}

/// Lists the sessions with this store. Returns the exit code and the message.
async fn listed(home: &Home, store: &str) -> (i32, String) {
    let ran = home.run(&["sessions", "list", "--store", store], "").await;
    (ran.code, ran.stderr)
}

#[tokio::test]
async fn wrong_addresses_have_one_clear_error() {
    let home = Home::new();
    let Some(url) = url(&home) else { return };
    let (base, query) = url.split_once('?').unwrap();
    let name = base.rsplit('/').next().unwrap();
    let port = query.rsplit("port=").next().unwrap();
    let cases: [(String, i32, &str); 8] = [
        ("mysql://localhost/x".into(), 2, "it does not begin with postgres://"),
        ("postgres://localhost:x/y".into(), 2, "the URL of the store is invalid"),
        (format!("{url}&sslmode=maybe"), 2, "sslmode must be disable, require, verify-ca or verify-full"),
        (format!("{url}&passfile=x"), 2, "the parameter passfile=x is not supported"),
        (format!("{url}&target_session_attrs=standby"), 2, "the parameter target_session_attrs=standby is not supported"),
        (url.replace(name, "nowhere"), 2, "create the database: createdb NAME"),
        (url.replace("nuncio@", "nobody:secret@"), 2, "correct the user or the password"),
        (url.replace(&format!("port={port}"), "port=1"), 3, "connecting to the database"),
    ];
    for (store, code, message) in cases {
        let (exit, error) = listed(&home, &store).await;
        assert_eq!(exit, code, "{store}: {error}");
        assert!(error.contains(message) && !error.contains("secret"), "{store}: {error}");
        assert_eq!(error.matches("nuncio:").count(), 1, "{store}: {error}");
    }
    assert!(!home.store().exists(), "a wrong address created tables");
}

#[tokio::test]
async fn unsuitable_databases_have_one_clear_error() {
    let home = Home::new();
    let Some(url) = url(&home) else { return };
    let name = url.split_once('?').unwrap().0.rsplit('/').next().unwrap().to_owned();
    let guest = format!("guest_{name}");
    home.sql(&format!("CREATE ROLE {guest} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC"));
    let (code, error) = listed(&home, &url.replace("nuncio@", &format!("{guest}@"))).await;
    assert!(code == 2 && error.contains("rights to create tables") && !home.store().exists(), "{code}: {error}");

    home.sql(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    let (code, error) = listed(&home, &url).await;
    assert!(code == 3 && error.contains("does not allow writes") && error.contains("the primary server"), "{code}: {error}");
    home.sql(&format!(
        "SET default_transaction_read_only = off; ALTER DATABASE {name} RESET default_transaction_read_only; DROP ROLE {guest}"
    ));

    // The server says that it is an old version.
    home.sql(&format!(
        "CREATE SCHEMA old; CREATE FUNCTION old.current_setting(text) RETURNS text LANGUAGE sql AS \
         $$ SELECT CASE $1 WHEN 'server_version_num' THEN '130014' WHEN 'server_version' THEN '13.14' \
         ELSE pg_catalog.current_setting($1) END $$; ALTER DATABASE {name} SET search_path = old, pg_catalog, public"
    ));
    let (code, error) = listed(&home, &url).await;
    assert!(code == 2 && error.contains("PostgreSQL 13.14 is too old") && !home.store().exists(), "{code}: {error}");
    home.sql(&format!("ALTER DATABASE {name} RESET search_path; DROP SCHEMA old CASCADE"));

    assert_eq!(listed(&home, &url).await, (0, String::new()));
    home.sql("UPDATE meta SET version = 1000, min_version = 1");
    assert_eq!(listed(&home, &url).await, (0, String::new()), "newer tables that only add");
    home.sql("UPDATE meta SET version = 1000, min_version = 1000");
    let (code, error) = listed(&home, &url).await;
    assert!(code == 2 && error.contains("update nuncio"), "{code}: {error}");
}

/// Writes are retried while the server's disk is full. After some time the turn fails.
#[tokio::test]
async fn full_disk_has_one_clear_error() {
    let home = Home::new();
    let Some(url) = url(&home) else { return };
    assert_eq!(listed(&home, &url).await, (0, String::new()));
    home.sql("CREATE SEQUENCE writes");
    let model = home.script(serde_json::json!([]));
    for (failures, code) in [(3, 0), (1_000_000, 3)] {
        home.sql(&format!(
            "CREATE OR REPLACE FUNCTION disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF nextval('writes') <= {failures} THEN \
             RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END IF; RETURN NEW; END $$; \
             CREATE OR REPLACE TRIGGER disk BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION disk()"
        ));
        let ran = home.run(&["run", "--model", &model, "hello"], "").await;
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.stderr.contains("the store cannot be written: retrying"), "{ran:?}");
        let error = ran.stderr.split_once("nuncio:").map(|(_, error)| error);
        let clear =
            |error: &str| error.contains("No space left on device") && error.contains("free disk space on the database server");
        assert_eq!(error.map(clear), (code != 0).then_some(true), "{ran:?}");
    }
    home.sql("DROP TRIGGER disk ON events");
    let ran = home.run(&["run", "--model", &model, "hello again"], "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{ran:?}");
}

/// A column of another type is an error that names the column, and the process goes on.
#[tokio::test]
async fn changed_column_type_is_a_clear_error() {
    let home = Home::new();
    let Some(_) = url(&home) else { return };
    let (agent, session) = home.session(serde_json::json!([]), &[]).await;
    agent.finish().await;
    let server = home.serve_script(serde_json::json!([{"text": "went on"}]), &[]).await;
    let path = format!("/v1/sessions/{session}");
    let bytes = "USING convert_to(body, 'UTF8')";
    let cases = [
        ("events", "body", "bytea", bytes, "text", "USING convert_from(body, 'UTF8')"),
        ("sessions", "head", "text", "", "bigint", "USING head::bigint"),
        ("sessions", "cwd", "bytea", "USING convert_to(cwd, 'UTF8')", "text", "USING convert_from(cwd, 'UTF8')"),
    ];
    for (table, column, changed, by, original, back) in cases {
        home.sql(&format!("ALTER TABLE {table} ALTER COLUMN {column} DROP DEFAULT, ALTER COLUMN {column} TYPE {changed} {by}"));
        let shown = home.run(&["sessions", "show", &session], "").await;
        assert!(shown.code == 1 && !shown.stderr.contains("panicked"), "{column}: {shown:?}");
        let said = [format!("the column {column} of the database"), "operator does not exist".into(), "does not exist".into()];
        assert!(said.iter().any(|said| shown.stderr.contains(said)), "{column}: {shown:?}");
        server.get(&path).expect(500).await;
        home.sql(&format!("ALTER TABLE {table} ALTER COLUMN {column} TYPE {original} {back}"));
        server.get(&path).expect(200).await;
    }
    let said = server.stop().await;
    assert!(!said.contains("panicked"), "{said}");
}
