//! The database schema and its migrations. A released step never changes; new steps are appended.

use rusqlite::{Connection, TransactionBehavior};

/// Step N migrates `user_version` N to N+1. The rowid of an event is its cursor among the events of
/// all sessions, so AUTOINCREMENT prevents reuse.
const STEPS: &[&str] = &[
    "
    CREATE TABLE sessions (
        key        INTEGER PRIMARY KEY AUTOINCREMENT,
        id         TEXT NOT NULL UNIQUE,
        generation INTEGER NOT NULL DEFAULT 1,
        owner      INTEGER,
        head       INTEGER NOT NULL DEFAULT 0,
        cwd        TEXT NOT NULL,
        directories TEXT NOT NULL DEFAULT '[]',
        title      TEXT,
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL
    );
    CREATE INDEX sessions_by_update ON sessions (updated_ms DESC, key DESC);
    CREATE TABLE events (
        id      INTEGER PRIMARY KEY AUTOINCREMENT,
        session INTEGER NOT NULL,
        seq     INTEGER NOT NULL,
        turn    TEXT,
        at_ms   INTEGER NOT NULL,
        delta   INTEGER NOT NULL,
        body    TEXT NOT NULL,
        UNIQUE (session, seq)
    );
",
    "
    CREATE TABLE answers (
        principal TEXT NOT NULL,
        key       TEXT NOT NULL,
        asked     BLOB NOT NULL,
        answer    TEXT,
        at_ms     INTEGER NOT NULL,
        PRIMARY KEY (principal, key)
    ) WITHOUT ROWID;
    CREATE INDEX answers_by_age ON answers (at_ms);
",
    "
    CREATE INDEX facts ON events (session, seq) WHERE delta = 0;
",
    "
    ALTER TABLE sessions ADD COLUMN turn TEXT;
    ALTER TABLE sessions ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN summary TEXT;
    CREATE INDEX sessions_waiting ON sessions (key) WHERE waiting > 0;
",
    "
    ALTER TABLE sessions ADD COLUMN parent TEXT;
    CREATE INDEX sessions_children ON sessions (parent) WHERE parent IS NOT NULL;
",
    "
    CREATE TABLE workspaces (
        id          TEXT PRIMARY KEY,
        name        TEXT NOT NULL,
        repository  TEXT NOT NULL,
        path        TEXT NOT NULL,
        branch      TEXT,
        made_branch INTEGER NOT NULL,
        base        TEXT,
        base_commit TEXT,
        state       TEXT NOT NULL,
        created_ms  INTEGER NOT NULL
    ) WITHOUT ROWID;
",
    "
    ALTER TABLE workspaces ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
",
    "
    ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
",
    "
    ALTER TABLE events ADD COLUMN call TEXT;
",
    "
    ALTER TABLE events ADD COLUMN kind TEXT AS (json_extract(body, '$.type')) VIRTUAL;
    ALTER TABLE events ADD COLUMN message TEXT AS (json_extract(body, '$.messageId')) VIRTUAL;
",
    // SQLite computed these columns for each insert. The new ones have other names, because a
    // program of the version before, which may still write, leaves them NULL and must not read
    // them.
    "
    ALTER TABLE events DROP COLUMN kind;
    ALTER TABLE events DROP COLUMN message;
    ALTER TABLE events ADD COLUMN event_type TEXT;
    ALTER TABLE events ADD COLUMN message_id TEXT;
",
];

/// The type of an event, also in a row that an earlier version wrote.
pub(super) const EVENT_TYPE: &str = "coalesce(event_type, json_extract(body, '$.type'))";
/// The message of an event, also in a row that an earlier version wrote.
pub(super) const MESSAGE_ID: &str = "coalesce(message_id, json_extract(body, '$.messageId'))";

/// Returns whether a newer version of nuncio created these tables.
pub(super) fn are_newer(db: &Connection) -> rusqlite::Result<bool> {
    db.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0)).map(|version| version as usize > STEPS.len())
}

/// Applies the missing steps in one transaction.
pub(super) fn run(db: &mut Connection) -> rusqlite::Result<()> {
    let version = |db: &Connection| -> rusqlite::Result<usize> {
        Ok(db.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))? as usize)
    };
    if version(db)? >= STEPS.len() {
        return Ok(());
    }
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (number, step) in STEPS.iter().enumerate().skip(version(&transaction)?) {
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", number as u32 + 1)?;
    }
    transaction.commit()
}

/// Returns whether the tables have the current version.
pub(super) fn is_current(db: &Connection) -> rusqlite::Result<bool> {
    Ok(db.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))? as usize == STEPS.len())
}
