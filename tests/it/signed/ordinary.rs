//! Ordinary use keeps what the user allowed.

use serde_json::json;

use super::{asks, dropped, runs, session_with_modes, started};
use harness::steps::{calls, task};
use harness::subagents::define;
use harness::{Home, Reply, on_postgres};

/// Returns the types of the events of a session that sign it anew.
async fn grants(home: &Home, session: &str) -> usize {
    home.log(session).await.iter().filter(|event| event["body"]["type"] == "session.granted").count()
}

/// An answer "always", a mode and a budget hold in the next process, whether the first one ended or
/// was killed, and nothing is signed twice.
#[tokio::test]
async fn settings_hold_in_the_next_process() {
    for killed in [false, true] {
        let home = Home::new();
        let (mut agent, session) = home.session(runs("touch made"), &[]).await;
        agent.otherwise = Reply::Pick("allow_always");
        agent.turn(&session, "go").await;
        assert_eq!(agent.questions(), 1);
        if killed {
            agent.kill().await
        } else {
            agent.finish().await
        };
        for _ in 0..2 {
            std::fs::remove_file(home.work().join("made")).unwrap();
            assert!(!asks(&home, &session).await, "the answer was forgotten, killed: {killed}");
        }
        assert_eq!((dropped(&home, &session).await, grants(&home, &session).await), (None, 0));
    }
}

/// A fork has the settings of its parent, and so has a fork of the fork in another process.
#[tokio::test]
async fn forks_keep_settings() {
    let home = Home::new();
    let mut session = session_with_modes(&home, &["auto"]).await;
    for _ in 0..2 {
        let mut agent = started(&home).await;
        session = agent.call("session/fork", json!({"sessionId": session})).await["sessionId"].as_str().unwrap().to_owned();
        agent.finish().await;
        assert!(!asks(&home, &session).await);
        std::fs::remove_file(home.work().join("made")).unwrap();
        assert_eq!(dropped(&home, &session).await, None);
    }
}

/// A subagent's session can be resumed with its model and its mode.
#[tokio::test]
async fn sessions_of_subagents_keep_settings() {
    let home = Home::new();
    define(&home, "worker", "", runs("touch made"));
    let steps = json!([calls(&[task("worker", "work")]), {"text": "done"}]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    agent.turn(&session, "go").await;
    agent.finish().await;
    let log = home.log(&session).await;
    let child = log.iter().find_map(|event| event["body"]["childSessionId"].as_str()).unwrap_or_else(|| panic!("{log:?}"));
    std::fs::remove_file(home.work().join("made")).unwrap();
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    assert_eq!((agent.reply(child, "again").await.as_str(), agent.questions()), ("ran it", 0));
    agent.finish().await;
    assert!(home.get("made").is_some());
    assert_eq!((dropped(&home, child).await, grants(&home, child).await), (None, 0));
}

/// Clients receive no signature.
#[tokio::test]
async fn signatures_stay_in_the_store() {
    let home = Home::new();
    let session = session_with_modes(&home, &["auto"]).await;
    assert!(home.log(&session).await.iter().all(|event| !event.to_string().contains("signature")));
    assert_eq!(super::stored(&home, &session, "\"signature\":\"1:").len(), 2);
}

/// A node takes the sessions of another one with the same secret as they are. Without it, each drops
/// what the other has allowed.
#[tokio::test]
async fn nodes_with_the_same_secret_keep_settings() {
    if !on_postgres() {
        return eprintln!("skipped: {}: an SQLite store has no nodes", module_path!());
    }
    const OLD: &str = "0123456789abcdef0123456789abcdef";
    const NEW: &str = "fedcba9876543210fedcba9876543210";
    let both = [format!("{OLD}\n{NEW}"), format!("{NEW}\n{OLD}")];
    let cases: [(&str, &str, bool); 7] = [
        (OLD, OLD, true),
        (OLD, &both[0], true),
        (OLD, &both[1], true),
        (&both[1], NEW, true),
        (OLD, NEW, false),
        (OLD, "", false),
        ("", "", false),
    ];
    for (first, second, kept) in cases {
        let home = Home::new();
        let other = home.another_node();
        for (node, secret) in [(&home, first), (&other, second)] {
            super::keys::configure(node, secret, 0o600);
        }
        let (mut agent, session) = home.session(json!([]), &[]).await;
        super::set_mode(&mut agent, &session, "auto").await;
        agent.finish().await;
        let model = other.script(runs("true"));
        let mut agent = other.start(&["--model", &model]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        agent.turn(&session, "go").await;
        assert_eq!(agent.questions() == 0, kept, "{first:?} {second:?}");
        agent.finish().await;
        assert_eq!(dropped(&other, &session).await.is_none(), kept, "{first:?} {second:?}");
    }
}

/// A session that was opened while both secrets were in force is kept when the old one is removed.
#[tokio::test]
async fn rotated_secret_keeps_opened_sessions() {
    if !on_postgres() {
        return eprintln!("skipped: {}: an SQLite store has no nodes", module_path!());
    }
    let (old, new) = ("0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210");
    let home = Home::new();
    super::keys::configure(&home, old, 0o600);
    let session = session_with_modes(&home, &["auto"]).await;
    let left = session_with_modes(&home, &["auto"]).await;
    for (secrets, signed) in [(format!("{old}\n{new}"), 0), (format!("{new}\n{old}"), 1), (new.to_owned(), 1)] {
        super::keys::configure(&home, &secrets, 0o600);
        assert!(!asks(&home, &session).await, "{secrets:?}");
        std::fs::remove_file(home.work().join("made")).unwrap();
        assert_eq!((dropped(&home, &session).await, grants(&home, &session).await), (None, signed), "{secrets:?}");
    }
    assert!(asks(&home, &left).await, "a session of the old secret");
}
