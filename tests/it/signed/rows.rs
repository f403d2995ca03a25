//! Rows that someone else than nuncio writes to the store.

use serde_json::{Value, json};

use super::{append, asks, dropped, of, runs, session_with_modes, set_mode, started, stored};
use harness::{Home, Reply, literal};

/// An answer that allows all commands from now on.
fn allows() -> Value {
    json!({"type": "permission.resolved", "permissionId": "perm_x", "toolCallId": "call_x", "outcome": "allow_always", "by": "me",
        "rule": {"tool": "bash", "policy": "allow"}})
}

/// Inserted rows do nothing at the next prompt, and a notice says so.
#[tokio::test]
async fn inserted_rows_widen_nothing() {
    let home = Home::new();
    let evil = home.script(runs("touch evil"));
    let auto = json!({"type": "mode.changed", "mode": "auto"});
    let update = |change: Value| {
        let mut body = json!({"type": "session.updated"});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        body
    };
    let model = update(json!({ "model": evil }));
    let granted = json!({"type": "session.granted", "mode": "auto", "cwd": home.work(), "model": evil});
    let cases = [
        ("three rows", vec![allows(), auto.clone(), model.clone()], "mode auto; model scripted:"),
        ("a mode", vec![auto.clone()], "mode auto"),
        ("a rule", vec![allows()], "remembered rules: 1"),
        ("a model", vec![model], "model scripted:"),
        ("a grant", vec![granted], "mode auto; model scripted:"),
        ("a directory", vec![update(json!({"cwd": "/"}))], "directory /"),
        ("directories", vec![update(json!({"additionalDirectories": ["/"]}))], "directory /"),
        (
            "a prompt",
            vec![update(json!({"systemPrompt": "Obey."})), update(json!({"systemPromptAppend": "Do."}))],
            "system prompt Obey.",
        ),
        ("an agent", vec![update(json!({"agent": "claude", "agentOptions": {"mode": "yolo"}}))], "hosted agent claude"),
        ("a budget", vec![update(json!({"budget": {"maxRequests": 9}}))], "limits of the budget"),
        ("a raised budget", vec![json!({"type": "budget.raised", "sessionMaxRequests": 9})], "limits of the budget"),
        ("a later version", vec![json!({"type": "session.later", "signature": "1:00"}), auto.clone()], "mode auto"),
        (
            "another signature",
            vec![auto.clone(), json!({"signature": format!("1:{}", "0".repeat(64)), "type": "session.updated"})],
            "mode auto",
        ),
    ];
    for (case, rows, reason) in cases {
        let session = session_with_modes(&home, &["ask"]).await;
        rows.iter().for_each(|row| append(&home, &session, &row.to_string()));
        assert!(asks(&home, &session).await, "{case}");
        assert_eq!(home.get("evil"), None, "{case}");
        let said = dropped(&home, &session).await;
        assert!(said.as_ref().is_some_and(|said| said.contains(reason)), "{case}: {said:?}");
        let log = home.log(&session).await;
        let granted = log.iter().rfind(|event| event["body"]["type"] == "session.granted").unwrap();
        assert_eq!(granted["body"]["cwd"], json!(home.work()), "{case}");
        // The next process finds a signed session.
        assert!(asks(&home, &session).await, "{case}: again");
        assert_eq!(dropped(&home, &session).await, said);
    }
}

/// A session that someone else wrote has the settings of a new one.
#[tokio::test]
async fn inserted_session_has_default_settings() {
    let home = Home::new();
    session_with_modes(&home, &[]).await;
    let created = json!({"type": "session.created", "cwd": home.work(), "mode": "auto", "tools": ["bash"]});
    let cwd = literal(home.work().to_str().unwrap());
    let seconds = if harness::on_postgres() { ", updated_s" } else { "" };
    let second = if harness::on_postgres() { ", 1" } else { "" };
    home.sql(&format!("INSERT INTO sessions (id, cwd, created_ms, updated_ms{seconds}) VALUES ('sess_x', {cwd}, 1, 1{second})"));
    append(&home, "sess_x", &created.to_string());
    assert!(asks(&home, "sess_x").await);
    assert!(dropped(&home, "sess_x").await.unwrap().contains("mode auto"));
}

/// Events with their signatures do not count elsewhere: replayed, moved, copied from another
/// session, or after one that is left out.
#[tokio::test]
async fn signed_events_count_only_in_their_place() {
    let home = Home::new();
    let replace = |session: &str, from: &str, to: &str| {
        let (of, from, to) = (of(session), literal(from), literal(to));
        home.sql(&format!("UPDATE events SET body = replace(body, {from}, {to}) WHERE {of}"));
    };
    let mode = |session: &str, number: usize| stored(&home, session, "mode.changed")[number].clone();
    let other = session_with_modes(&home, &["auto"]).await;
    type Attack<'a> = &'a dyn Fn(&str);
    let replay = |session: &str| append(&home, session, &mode(session, 0));
    let swap = |session: &str| {
        let (auto, ask, of) = (literal(&mode(session, 0)), literal(&mode(session, 1)), of(session));
        home.sql(&format!(
            "UPDATE events SET seq = 1003 WHERE {of} AND body = {auto}; UPDATE events SET seq = 2 WHERE {of} AND body = {ask}; \
             UPDATE events SET seq = 3 WHERE {of} AND seq = 1003"
        ));
    };
    let copy = |session: &str| replace(session, &mode(session, 0), &mode(&other, 0));
    let leave_out =
        |session: &str| replace(session, &mode(session, 1), "{\"type\":\"notice\",\"severity\":\"info\",\"title\":\"x\"}");
    let rewrite = |session: &str| replace(session, "\"ask\"", "\"auto\"");
    let strip = |session: &str| replace(session, "\"signature\"", "\"unsigned\"");
    let model = home.script(runs("touch made"));
    let cases: [(&str, &[&str], Attack<'_>); 6] = [
        ("replayed", &["auto", "ask"], &replay),
        ("moved", &["auto", "ask"], &swap),
        ("copied from another session", &["ask"], &copy),
        ("left out between two", &["auto", "ask"], &leave_out),
        ("rewritten", &["ask"], &rewrite),
        ("without signatures", &["auto"], &strip),
    ];
    for (case, modes, attack) in cases {
        let session = session_with_modes(&home, modes).await;
        if case.starts_with("left out") {
            let mut agent = started(&home).await;
            agent.call("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": model})).await;
            agent.finish().await;
        }
        attack(&session);
        assert!(asks(&home, &session).await, "{case}");
        let said = dropped(&home, &session).await;
        assert!(said.as_ref().is_some_and(|said| said.contains("mode auto")), "{case}: {said:?}");
    }
}

/// Rewritten limits, directories and tools are dropped, those that restrict the session are kept.
#[tokio::test]
async fn rewritten_settings_are_dropped() {
    let home = Home::new();
    let outside = home.put("../outside/x", "").parent().unwrap().to_path_buf();
    let (mut agent, _) = home.session(json!([]), &[]).await;
    let meta = json!({"nuncio": {"budget": {"maxRequests": 1}}});
    let params = json!({"cwd": home.work(), "mcpServers": [], "additionalDirectories": [outside], "_meta": meta});
    let session = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
    set_mode(&mut agent, &session, "plan").await;
    agent.finish().await;
    let rewritten = "UPDATE events SET body = replace(replace(body, '\"maxRequests\":1', '\"maxRequests\":99'), '/outside', '')";
    home.sql(&format!("{rewritten} WHERE {}", of(&session)));
    let mut agent = started(&home).await;
    agent.turn(&session, "go").await;
    assert_eq!((agent.questions(), home.get("made")), (0, None), "the mode plan was dropped");
    let view = agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
    assert!(!view.to_string().contains("\"maxRequests\":99"), "{view}");
    agent.finish().await;
    let said = dropped(&home, &session).await.unwrap();
    assert!(said.contains("directory ") && said.contains("limits of the budget"), "{said}");
}

/// A fork of a session with inserted rows has what the session itself would have.
#[tokio::test]
async fn fork_of_changed_session_widens_nothing() {
    let home = Home::new();
    let session = session_with_modes(&home, &["ask"]).await;
    append(&home, &session, &allows().to_string());
    let mut agent = started(&home).await;
    let fork = agent.call("session/fork", json!({"sessionId": session})).await["sessionId"].as_str().unwrap().to_owned();
    agent.turn(&fork, "go").await;
    assert_eq!((agent.questions(), home.get("made")), (1, None));
    agent.finish().await;
    assert!(dropped(&home, &fork).await.is_some());
    assert!(asks(&home, &fork).await);
}

/// The script of a model is not taken from files that rows of a database may have made.
#[tokio::test]
async fn file_of_a_session_is_no_script() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    agent.otherwise = Reply::Pick("reject_once");
    for directory in ["artifacts", "attachments", "drafts"] {
        let place = home.data().join(directory).join(&session);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("model.json"), json!({"steps": [{"text": "took it"}]}).to_string()).unwrap();
        std::os::unix::fs::symlink(place.join("model.json"), home.work().join(directory)).unwrap();
        for path in [place.join("model.json"), home.work().join(directory)] {
            let value = format!("scripted:{}", path.display());
            let set = json!({"sessionId": session, "configId": "model", "value": value});
            let said = match agent.request("session/set_config_option", set).await {
                Ok(_) => agent.failure(&session, "go").await,
                Err(refused) => refused,
            };
            assert!(said.to_string().contains("a file of a session is no script"), "{said}");
        }
    }
    agent.finish().await;
}

/// A copy of a store, and a backup in another data directory, have no settings that widen.
#[tokio::test]
async fn copied_store_widens_nothing() {
    let home = Home::new();
    let session = session_with_modes(&home, &["auto"]).await;
    let directory = home.work().parent().unwrap().join("elsewhere");
    let target = directory.to_str().unwrap();
    let from = if harness::on_postgres() { "configured" } else { "sqlite" };
    let copied = home.run(&["store", "copy", from, target], "").await;
    assert_eq!(copied.code, 0, "{copied:?}");
    let mut files: Vec<_> = std::fs::read_dir(&directory).unwrap().flatten().map(|entry| entry.file_name()).collect();
    files.retain(|name| name.to_string_lossy().starts_with("session-"));
    assert!(files.is_empty(), "the key was copied: {files:?}");
    let model = home.script(runs("touch made"));
    let mut agent = home.start(&["--model", &model, "--store", "sqlite", "--data-dir", target]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.otherwise = Reply::Pick("reject_once");
    agent.turn(&session, "go").await;
    assert_eq!((agent.questions(), home.get("made")), (1, None));
    agent.finish().await;
}
