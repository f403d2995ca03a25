//! The key of the sessions, and the secret of a cluster.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::{append, asks, dropped, of, session_with_modes};
use harness::{Home, literal};

/// Writes the secret of a cluster and the settings that name it; no secret if it is empty.
pub fn configure(home: &Home, secret: &str, mode: u32) {
    let file = home.data().join("cluster.secret");
    std::fs::write(&file, secret).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    home.config(if secret.is_empty() { "" } else { "[cluster]\nsecret_file = \"cluster.secret\"\n" });
}

/// The key is private, and it is not in exports.
#[tokio::test]
async fn key_is_private() {
    let home = Home::new();
    let session = session_with_modes(&home, &["auto"]).await;
    let file = home.data().join("session-key");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let key = std::fs::read_to_string(&file).unwrap();
    let exported = home.run(&["sessions", "export", &session], "").await;
    assert!(!exported.stdout.contains(key.trim()) && !exported.stdout.contains("signature"), "{exported:?}");
}

/// A key that cannot be used is a clear error; without a key, a new one is made, which has signed
/// nothing.
#[tokio::test]
async fn missing_or_wrong_key_widens_nothing() {
    let home = Home::new();
    let file = home.data().join("session-key");
    let session = session_with_modes(&home, &["auto"]).await;
    assert!(!asks(&home, &session).await);
    std::fs::remove_file(home.work().join("made")).unwrap();
    let key = std::fs::read(&file).unwrap();
    let mode = |mode: u32| std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    for bits in [0o604, 0o640, 0o620, 0o602] {
        mode(bits);
        let refused = home.run(&["sessions", "list"], "").await;
        assert!(refused.code != 0 && refused.stderr.contains("other users can read or write it"), "{bits:o}: {refused:?}");
        assert!(refused.stderr.contains("session-key") && refused.stderr.contains("chmod 600"), "{refused:?}");
    }
    mode(0o600);
    for text in ["", "short", "zz"] {
        std::fs::write(&file, text).unwrap();
        let refused = home.run(&["sessions", "list"], "").await;
        assert!(refused.code != 0 && refused.stderr.contains("it does not contain a key"), "{text}: {refused:?}");
    }
    std::fs::write(&file, key).unwrap();
    assert!(!asks(&home, &session).await);
    std::fs::remove_file(home.work().join("made")).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(asks(&home, &session).await);
    assert!(dropped(&home, &session).await.unwrap().contains("mode auto"));
}

/// Sessions of a version without signatures are signed once, when the key is made. Rows that are
/// written later do not count, and neither does a database that was copied to a new directory.
#[tokio::test]
async fn sessions_before_the_key_are_signed_once() {
    needs_sqlite!("sessions of a PostgreSQL database are not signed");
    type Change = fn(&Home, &str);
    let cases: [(&str, Change, bool); 4] = [
        ("an update", |_, _| {}, true),
        ("rows before the update", |home, session| append(home, session, "{\"type\":\"session.updated\",\"title\":\"x\"}"), true),
        ("a database that was copied", |home, _| std::fs::remove_dir_all(home.data().join("locks")).unwrap(), false),
        (
            "a lost key",
            |home, _| drop(home.sql("UPDATE events SET body = '{\"signature\":\"1:00\",' || substr(body, 2) WHERE seq = 1")),
            false,
        ),
    ];
    for (case, change, kept) in cases {
        let home = Home::new();
        let session = session_with_modes(&home, &["auto"]).await;
        let other = session_with_modes(&home, &["ask"]).await;
        let signed = "{\"signature\":\"1:".len() + 64 + "\",".len();
        home.sql(&format!("UPDATE events SET body = '{{' || substr(body, {}) WHERE body LIKE '{{\"signature\":%'", signed + 1));
        for file in ["session-key", "session-signatures"] {
            std::fs::remove_file(home.data().join(file)).unwrap();
        }
        change(&home, &session);
        let listed = home.run(&["sessions", "list"], "").await;
        assert_eq!(listed.code, 0, "{listed:?}");
        // Written after the key was made.
        append(&home, &other, "{\"type\":\"mode.changed\",\"mode\":\"auto\"}");
        for _ in 0..2 {
            assert_eq!(!asks(&home, &session).await, kept, "{case}");
            let _ = std::fs::remove_file(home.work().join("made"));
        }
        assert_eq!(dropped(&home, &session).await.is_none(), kept, "{case}");
        assert!(asks(&home, &other).await, "{case}");
    }
}

/// The signed text is the same in all versions: otherwise an update would drop all settings.
#[tokio::test]
async fn signed_text_does_not_change() {
    let home = Home::new();
    session_with_modes(&home, &[]).await;
    let key = [7; 32];
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(home.data().join("session-key"), digits).unwrap();
    let cwd = home.work();
    let rule = json!({"tool": "bash", "pattern": "touch made", "policy": "allow"});
    let parent =
        json!({"sessionId": "sess_p", "turnId": "turn_p", "toolCallId": "call_p", "depth": 1, "tools": ["bash"], "rules": [rule]});
    let created = json!({"type": "session.created", "cwd": cwd, "mode": "ask", "title": "t", "tools": ["bash"],
        "systemPrompt": "p", "budget": {"maxRequests": 9, "sessionMaxTokens": 900000}, "parent": parent});
    let granted = json!({"type": "session.granted", "mode": "ask", "cwd": cwd, "additionalDirectories": [], "systemPrompt": "p",
        "tools": ["bash"], "budget": {"maxRequests": 9, "sessionMaxTokens": 900000}, "parent": parent, "rules": [rule]});
    let text = json!(["nuncio-session", "sess_x", 1, granted]).to_string();
    let tag = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key), text.as_bytes());
    let tag: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let (columns, values) = if harness::on_postgres() { (", updated_s", ", 1") } else { ("", "") };
    home.sql(&format!(
        "INSERT INTO sessions (id, cwd, created_ms, updated_ms{columns}) VALUES ('sess_x', {}, 1, 1{values})",
        literal(cwd.to_str().unwrap())
    ));
    append(&home, "sess_x", &created.to_string().replacen('{', &format!("{{\"signature\":\"1:{tag}\","), 1));
    assert!(!asks(&home, "sess_x").await, "{:?}", home.sql(&format!("SELECT body FROM events WHERE {}", of("sess_x"))));
    assert_eq!(dropped(&home, "sess_x").await, None);
}

/// The secret of a cluster must be private, unless it is mounted read-only.
#[tokio::test]
async fn cluster_secret_must_be_private() {
    let home = Home::new();
    let secret = "0123456789abcdef0123456789abcdef";
    for (mode, private) in
        [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o644, false), (0o620, false), (0o602, false)]
    {
        configure(&home, secret, mode);
        if private {
            home.serve(&[]).await.stop().await;
            continue;
        }
        let ran = home.run(&["serve", "--http", "127.0.0.1:0"], "").await;
        let said = "cluster.secret: other users can read or write it";
        assert!(ran.code == 2 && ran.stderr.contains(said), "{mode:o}: {ran:?}");
    }
}
