//! Reviews without an answer, recorded reviews, and turns without changes.

use serde_json::json;

use super::*;
use harness::Reply;
use harness::steps::{bash, replace};

async fn run(home: &Home, steps: &[Value]) -> Vec<Value> {
    let model = home.script(json!(steps));
    let ran = home.run(&["run", "--json", "--model", &model, "--mode", "auto", "go"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.lines()
}

#[tokio::test]
async fn mode_decides_whether_changes_are_reviewed() {
    let off = home("off");
    let events = run(&off, &steps()).await;
    assert!(bodies(&events, "tool.started").iter().all(|body| body["name"] != "review"), "{events:#?}");
    let auto = home("auto");
    let events = run(&auto, &steps()).await;
    assert_eq!(state(&auto), as_written());
    assert_eq!(bodies(&events, "permission.requested").len(), 0);
    let recorded = review(&events);
    let diffs: Vec<&Value> = recorded["content"].as_array().unwrap().iter().filter(|one| one["type"] == "diff").collect();
    assert_eq!(diffs.len(), 3, "{recorded}");
    assert_eq!((diffs[0]["oldText"].as_str(), diffs[0]["newText"].as_str()), (Some(&*lines(&[])), as_written().0.as_deref()));
    let decisions: Vec<_> = recorded["details"]["files"].as_array().unwrap().iter().map(|file| &file["decision"]).collect();
    assert_eq!(decisions, ["accepted", "accepted", "accepted"]);
    let unchanged = home("auto");
    let steps = [replace("a.txt", "other\n"), write("a.txt", &lines(&[])), json!({"text": "done"})];
    let events = run(&unchanged, &steps).await;
    assert!(bodies(&events, "tool.started").iter().all(|body| body["name"] != "review"), "{events:#?}");
}

#[tokio::test]
async fn files_stay_if_nobody_can_answer() {
    let home = home("request");
    let events = run(&home, &steps()).await;
    assert_eq!(state(&home), as_written());
    assert_eq!(review(&events)["status"], "failed");
    assert_eq!(bodies(&events, "notice")[0]["title"], "The changes were not reviewed");
}

/// A command's changes to files that tools have changed belong to the review.
#[tokio::test]
async fn rejection_includes_later_changes_by_commands() {
    let home = home("request");
    let steps = [replace("a.txt", "changed\n"), bash("echo formatted > a.txt"), json!({"text": "done"})];
    let (mut agent, session) = home.session(json!(steps), &["--mode", "auto"]).await;
    agent.otherwise = Reply::Pick("reject_once");
    agent.turn(&session, "go").await;
    assert_eq!(home.get("a.txt"), Some(lines(&[])));
    agent.finish().await;
}

#[tokio::test]
async fn files_that_only_commands_changed_are_named() {
    let home = home("auto");
    home.put("b.txt", "b\n");
    home.put("same.txt", "same\n");
    let steps = [
        replace("a.txt", "changed\n"),
        bash("echo more >> b.txt; echo c > c.txt; rm gone.sh; echo formatted > a.txt"),
        write("d.txt", "d\n"),
        json!({"text": "done"}),
    ];
    let events = run(&home, &steps).await;
    let notices: Vec<_> =
        bodies(&events, "notice").iter().map(|body| (body["title"].clone(), body["description"].clone())).collect();
    assert_eq!(notices, [(json!("Changes by commands are not reviewed"), json!("b.txt, c.txt; deleted files: 1"))]);
}

/// Starts a turn and waits for its review, which is not answered.
async fn waiting(home: &Home) -> (harness::Agent, String, Value) {
    let (mut agent, session) = home.session(json!(steps()), &["--mode", "accept-edits"]).await;
    agent.otherwise = Reply::Never;
    let id = agent.prompt(&session, "go").await;
    agent.until("the review", |frame| frame["method"] == "session/request_permission").await;
    (agent, session, id)
}

#[tokio::test]
async fn cancelled_turn_keeps_its_changes() {
    let home = home("request");
    let (mut agent, session, id) = waiting(&home).await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    agent.finish().await;
    assert_eq!(state(&home), as_written());
    let log = home.log(&session).await;
    assert_eq!(bodies(&log, "notice")[0]["title"], "The changes were not reviewed", "{log:#?}");
}

#[tokio::test]
async fn killed_process_leaves_a_closed_review() {
    let home = home("request");
    let (agent, session, _) = waiting(&home).await;
    agent.kill().await;
    assert_eq!(state(&home), as_written());
    let model = home.script(json!([{"text": "goes on"}]));
    let ran = home.run(&["run", "--model", &model, "--continue", "and?"], "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "goes on\n"), "{ran:?}");
    let log = home.log(&session).await;
    assert_eq!(bodies(&log, "permission.resolved")[0]["by"], "interrupted", "{log:#?}");
    let review = review(&log);
    assert_eq!((&review["status"], &review["effect"]), (&json!("failed"), &Value::Null), "{review}");
    assert_eq!(bodies(&log, "notice")[0]["title"], "The review was interrupted");
    assert_eq!(bodies(&log, "turn.interrupted").len(), 1);
    assert_eq!(state(&home), as_written());
}

/// Later requests to the model mention rejections only, not the review itself.
#[tokio::test]
async fn history_has_no_call_for_a_review() {
    let home = home("auto");
    run(&home, &steps()).await;
    let listed = home.run(&["sessions", "list", "--json"], "").await.lines();
    let messages = json!(harness::provider::session::messages(&home, listed[0]["sessionId"].as_str().unwrap()).await).to_string();
    assert!(messages.contains("\"apply_patch\"") && !messages.contains("\"review\""), "{messages}");
}

#[tokio::test]
async fn time_budget_that_prevents_the_review_is_reported() {
    let home = home("request");
    home.config(&format!("{}[budget]\nmax_wall_s = 4\n", home.config_text()));
    let slow = json!({"text": "word ".repeat(100_000), "chunk_chars": 1, "delay_ms": 20});
    for (change, notices) in [(Some(replace("a.txt", "changed\n")), 1), (None, 0)] {
        let steps: Vec<Value> = change.into_iter().chain([slow.clone()]).collect();
        let (mut agent, session) = home.session(json!(steps), &["--mode", "accept-edits"]).await;
        agent.otherwise = Reply::Pick("reject_once");
        assert_eq!(agent.turn(&session, "go").await.0, "max_turn_requests");
        agent.finish().await;
        assert_eq!(home.get("a.txt").as_deref(), Some("changed\n"));
        let log = home.log(&session).await;
        let found = bodies(&log, "notice").into_iter().filter(|body| body["title"] == "The changes were not reviewed");
        assert_eq!(found.count(), notices, "{log:#?}");
    }
}
