//! Permission requests over ACP: the effect of valid, invalid and missing answers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use harness::steps::bash;
use harness::{Home, Reply, tool};

/// A model script with one call per turn, in this order. Each turn takes two steps.
fn script(calls: &[Value]) -> Value {
    calls.iter().flat_map(|call| [call.clone(), json!({"text": "so be it"})]).collect()
}

/// The permission decisions in an event log: the outcome, and the source of the decision.
fn decisions(log: &[Value]) -> Vec<(String, String)> {
    let resolved = log.iter().map(|event| &event["body"]).filter(|body| body["type"] == "permission.resolved");
    resolved.map(|body| (body["outcome"].as_str().unwrap().to_string(), body["by"].as_str().unwrap().to_string())).collect()
}

/// Runs turns with one call each: the call, the answer to the permission request (`None` if there
/// must be no request), and the call's expected status.
async fn check(mode: &str, turns: &[(Value, Option<&'static str>, &str)]) {
    let home = Home::new();
    home.put("a.txt", "one two\n");
    let calls: Vec<Value> = turns.iter().map(|(call, ..)| call.clone()).collect();
    let (mut agent, session) = home.session(script(&calls), &["--mode", mode]).await;
    for (call, answer, status) in turns {
        let before = agent.questions();
        agent.replies = answer.iter().map(|kind| Reply::Pick(kind)).collect();
        agent.otherwise = Reply::Error;
        let (stop, updates) = agent.turn(&session, "go").await;
        assert_eq!(stop, "end_turn");
        assert_eq!(agent.questions() - before, answer.iter().count(), "{call}: questions");
        assert_eq!(tool(&updates, 0)["status"], *status, "{call}: {}", tool(&updates, 0));
    }
    agent.finish().await;
}

#[tokio::test]
async fn impossible_edit_fails_without_request_only_inside_the_roots() {
    let edit = |path: &str| json!({"tool_calls": [{"name": "edit", "input": {"file_path": path, "old_string": "none", "new_string": "some"}}]});
    check("ask", &[(edit("a.txt"), None, "failed"), (edit("../outside.txt"), Some("allow_once"), "failed")]).await;
}

#[tokio::test]
async fn allow_once_applies_to_one_call() {
    let call = bash("echo a");
    check(
        "ask",
        &[
            (call.clone(), Some("allow_once"), "completed"),
            (call.clone(), Some("reject_once"), "failed"),
            (call.clone(), Some("allow_once"), "completed"),
        ],
    )
    .await;
}

#[tokio::test]
async fn always_applies_only_to_the_requested_call() {
    let write = |path: &str| json!({"tool_calls": [{"name": "write", "input": {"file_path": path, "content": "x"}}]});
    let edit = json!({"tool_calls": [{"name": "edit", "input": {"file_path": "new.txt", "old_string": "x", "new_string": "y"}}]});
    check(
        "ask",
        &[
            (bash("echo a; echo *"), Some("allow_always"), "completed"),
            (bash("echo a; echo *"), None, "completed"),
            (bash("echo a; echo b"), Some("reject_once"), "failed"),
            (bash("echo a; echo *; rm x"), Some("reject_once"), "failed"),
            (bash("echo a"), Some("reject_once"), "failed"),
            (write("new.txt"), Some("allow_always"), "completed"),
            (write("new.txt"), None, "completed"),
            (write("b.txt"), Some("reject_once"), "failed"),
            (edit, Some("reject_once"), "failed"),
        ],
    )
    .await;
    check(
        "ask",
        &[
            (bash("echo a"), Some("reject_always"), "failed"),
            (bash("echo a"), None, "failed"),
            (bash("echo b"), Some("allow_once"), "completed"),
            (write("new.txt"), Some("reject_always"), "failed"),
            (write("new.txt"), None, "failed"),
            (write("b.txt"), Some("allow_once"), "completed"),
        ],
    )
    .await;
}

#[tokio::test]
async fn always_is_not_offered_for_several_files() {
    let patch = |files: &[&str]| {
        let added: String = files.iter().map(|file| format!("*** Add File: {file}\n+x\n")).collect();
        json!({"tool_calls": [{"name": "apply_patch", "input": {"patch": format!("*** Begin Patch\n{added}*** End Patch\n")}}]})
    };
    let home = Home::new();
    let calls = [patch(&["a", "b"]), patch(&["a", "../outside"]), patch(&["c"])];
    let (mut agent, session) = home.session(script(&calls), &[]).await;
    // The client selects `allow_always` even where the request does not offer the option.
    agent.otherwise = Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": "allow_always"}}));
    for (files, status, kinds) in [
        (2, "failed", vec!["allow_once", "reject_once"]),
        (2, "failed", vec!["allow_once", "reject_once"]),
        (1, "completed", vec!["allow_once", "allow_always", "reject_once", "reject_always", "allow_always"]),
    ] {
        let (_, updates) = agent.turn(&session, "go").await;
        let asked = agent.frames.iter().rfind(|frame| frame["method"] == "session/request_permission").unwrap();
        let options = asked["params"]["options"].as_array().unwrap();
        assert_eq!(options.iter().map(|option| option["kind"].as_str().unwrap()).collect::<Vec<_>>(), kinds, "{files} files");
        assert_eq!(tool(&updates, 0)["status"], status, "{files} files");
    }
    agent.finish().await;
    assert_eq!((home.get("a"), home.get("../outside"), home.get("c")), (None, None, Some("x\n".into())));
}

#[tokio::test]
async fn always_persists_for_the_session_only() {
    let home = Home::new();
    let (mut agent, session) = home.session(script(&[bash("echo a")]), &[]).await;
    agent.otherwise = Reply::Pick("allow_always");
    agent.turn(&session, "go").await;
    agent.finish().await;
    let mut agent = home.start(&["--model", &home.script(script(&[bash("echo a")]))]).await;
    agent.otherwise = Reply::Pick("reject_once");
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(tool(&updates, 0)["status"], "completed");
    // Another session requires permission again.
    let other = agent.new_session(&home).await;
    let (_, updates) = agent.turn(&other, "go").await;
    assert_eq!(tool(&updates, 0)["status"], "failed");
    agent.finish().await;
}

#[tokio::test]
async fn invalid_answer_denies_the_call() {
    let answers = [
        Reply::Error,
        Reply::Result(Value::Null),
        Reply::Result(json!({})),
        Reply::Result(json!("allow_once")),
        Reply::Result(json!({"outcome": "allow_once"})),
        Reply::Result(json!({"outcome": {"outcome": "selected"}})),
        Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": "no_such_option"}})),
        Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": ""}})),
        Reply::Result(json!({"outcome": {"outcome": "agreed", "optionId": "allow_once"}})),
        Reply::Result(json!({"outcome": {"outcome": "cancelled"}})),
    ];
    let home = Home::new();
    let calls: Vec<Value> = answers.iter().map(|_| bash("echo done > a.txt")).collect();
    let (mut agent, session) = home.session(script(&calls), &[]).await;
    for answer in answers {
        agent.replies.push_back(answer.clone());
        let (stop, updates) = agent.turn(&session, "go").await;
        assert_eq!((stop.as_str(), &tool(&updates, 0)["status"]), ("end_turn", &json!("failed")), "{answer:?}");
        assert!(tool(&updates, 0)["content"].to_string().contains("denied"), "{answer:?}: {}", tool(&updates, 0));
        assert_eq!(home.get("a.txt"), None, "{answer:?}");
    }
    agent.finish().await;
    let denied = decisions(&home.log(&session).await);
    assert!(denied.iter().all(|(outcome, by)| outcome == "denied" && by == "client"), "{denied:?}");
}

#[tokio::test]
async fn unanswered_request_is_denied_at_the_deadline() {
    let home = Home::new();
    home.config("[permissions]\ntimeout_s = 1\n");
    let steps = json!([bash("echo done > a.txt"), {"text": "so be it"}]);
    let (mut agent, session) = home.session_of_program(steps, &[]).await;
    agent.otherwise = Reply::Never;
    let before = Instant::now();
    let (stop, updates) = agent.turn(&session, "go").await;
    assert_eq!((stop.as_str(), &tool(&updates, 0)["status"]), ("cancelled", &json!("failed")));
    assert!((900..5000).contains(&before.elapsed().as_millis()), "{:?}", before.elapsed());
    assert_eq!(agent.asked, [], "the question was not taken back");
    // An answer after the deadline has no effect.
    let question = agent.frames.iter().find(|frame| frame["method"] == "session/request_permission").unwrap()["id"].clone();
    let late = json!({"jsonrpc": "2.0", "id": question, "result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}}});
    agent.raw(format!("{late}\n").as_bytes()).await;
    agent.turn(&session, "again").await;
    assert_eq!(home.get("a.txt"), None);
    agent.finish().await;
    assert_eq!(decisions(&home.log(&session).await), [("denied".to_string(), "deadline".to_string())]);
}

#[tokio::test]
async fn disconnect_denies_pending_requests() {
    let home = Home::new();
    let (mut agent, session) = home.session(script(&[bash("echo done > a.txt")]), &[]).await;
    agent.otherwise = Reply::Never;
    agent.prompt(&session, "go").await;
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
    let before = Instant::now();
    agent.finish().await;
    assert!(before.elapsed() < Duration::from_secs(3), "{:?}", before.elapsed());
    assert_eq!(home.get("a.txt"), None);
    let log = home.log(&session).await;
    let decided = decisions(&log);
    assert_eq!(decided, [("denied".to_string(), "disconnect".to_string())]);
    let failed = log.iter().any(|event| event["body"]["type"] == "tool.completed" && event["body"]["status"] == "failed");
    assert!(failed, "{log:#?}");
}

#[tokio::test]
async fn cancel_during_a_request_ends_the_turn() {
    let home = Home::new();
    // The first two are asked about at the same time; the third one waits for them.
    let calls = json!({"tool_calls": [
        {"name": "bash", "input": {"command": "echo one"}},
        {"name": "bash", "input": {"command": "echo two"}},
        {"name": "write", "input": {"file_path": "b.txt", "content": ""}},
    ]});
    let (mut agent, session) = home.session(json!([calls, {"text": "after"}]), &[]).await;
    agent.otherwise = Reply::Never;
    let id = agent.prompt(&session, "go").await;
    for _ in 0..2 {
        agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
    }
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    assert_eq!(agent.asked, []);
    for index in 0..3 {
        assert_eq!(tool(&agent.updates(&session), index)["status"], "failed");
    }
    assert_eq!(agent.turn(&session, "next").await.0, "end_turn");
    agent.finish().await;
    assert_eq!(home.get("b.txt"), None);
    let decided = decisions(&home.log(&session).await);
    assert_eq!(decided.iter().map(|(outcome, _)| outcome.as_str()).collect::<Vec<_>>(), ["cancelled", "cancelled"]);
}

#[tokio::test]
async fn request_shows_the_diff_or_command() {
    let home = Home::new();
    let file = home.put("a.txt", "one\ntwo\n");
    let edit =
        json!({"tool_calls": [{"name": "edit", "input": {"file_path": "a.txt", "old_string": "two", "new_string": "three"}}]});
    let (mut agent, session) = home.session(script(&[edit, bash("echo 'exactly this'")]), &[]).await;
    agent.otherwise = Reply::Pick("reject_once");
    agent.turn(&session, "one").await;
    agent.turn(&session, "two").await;
    let asked: Vec<&Value> =
        agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").map(|frame| &frame["params"]).collect();
    let diff = json!({"type": "diff", "path": file, "oldText": "one\ntwo\n", "newText": "one\nthree\n"});
    assert_eq!(asked[0]["toolCall"]["content"], json!([diff]));
    assert_eq!(asked[0]["toolCall"]["kind"], "edit");
    assert_eq!(asked[0]["toolCall"]["locations"][0]["path"], json!(file));
    assert!(asked[1]["toolCall"]["content"].to_string().contains("echo 'exactly this'"), "{}", asked[1]);
    assert_eq!(asked[1]["toolCall"]["title"], "`echo 'exactly this'`");
    assert_eq!(asked[1]["toolCall"]["kind"], "execute");
    for params in asked {
        let kinds: Vec<&str> =
            params["options"].as_array().unwrap().iter().map(|option| option["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always", "allow_always"]);
    }
    assert_eq!(home.get("a.txt").unwrap(), "one\ntwo\n");
    agent.finish().await;
}

#[tokio::test]
async fn mode_change_applies_from_the_next_call() {
    let home = Home::new();
    let (mut agent, session) = home.session(script(&[bash("true"), bash("true"), bash("true")]), &[]).await;
    agent.otherwise = Reply::Error;
    for (mode, status) in [("auto", "completed"), ("plan", "failed"), ("auto", "completed")] {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        let (_, updates) = agent.turn(&session, "go").await;
        assert_eq!(tool(&updates, 0)["status"], status, "{mode}");
    }
    assert_eq!(agent.questions(), 0);
    agent.finish().await;
    assert_eq!(decisions(&home.log(&session).await), [("denied".to_string(), "mode".to_string())]);
}
