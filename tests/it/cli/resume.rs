//! `nuncio run --continue` and `--resume`, and sessions that wait for permission.

use serde_json::{Value, json};

use super::check;
use crate::mcp_serve::Client;
use harness::steps::bash;
use harness::{Agent, Home, Reply};

/// A session in another process whose call waits for permission, with the request of its prompt.
async fn waiting(home: &Home) -> (Agent, String, Value) {
    let steps = json!([bash("touch made"), {"text": "It is made."}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    (agent.otherwise, agent.may_cross) = (Reply::Never, true);
    let prompt = agent.prompt(&session, "make it").await;
    agent.until("the question", |frame| frame["method"] == "session/request_permission").await;
    (agent, session, prompt)
}

#[tokio::test]
async fn resumed_session_that_waits_for_permission_asks_at_the_terminal() {
    let home = Home::new();
    let (mut agent, session, prompt) = waiting(&home).await;
    let mut terminal = home.terminal(&["run", "--resume", &session]);
    let shown = terminal.until("[r] always reject: ").await;
    assert!(shown.contains("waits for permission") && shown.contains("Allow `touch made`?"), "{shown}");
    terminal.say("y").await;
    let (code, shown) = terminal.end().await;
    assert!(code == 0 && shown.contains("It is made."), "{code}: {shown}");
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
    assert!(home.get("made").is_some());
    agent.finish().await;
}

#[tokio::test]
async fn prompt_to_a_session_that_waits_follows_the_answer() {
    let home = Home::new();
    let (mut agent, session, prompt) = waiting(&home).await;
    let mut terminal = home.terminal(&["run", "--resume", &session, "and more"]);
    terminal.until("[r] always reject: ").await;
    terminal.reject().await;
    let (code, shown) = terminal.end().await;
    assert!(code == 4 && shown.contains("It is made."), "{code}: {shown}");
    agent.answer(&prompt).await.unwrap();
    assert!(home.get("made").is_none());
    agent.finish().await;
}

#[tokio::test]
async fn shown_session_names_its_open_request_and_how_to_answer_it() {
    let home = Home::new();
    let (mut agent, session, prompt) = waiting(&home).await;
    let shown = home.run(&["sessions", "show", &session], "").await;
    check(&shown, 0, &["Waits for permission: `touch made`", "nuncio sessions answer perm_"]);
    let command = shown.stdout.split("to answer it: nuncio ").nth(1).unwrap().trim();
    let arguments: Vec<&str> = command.split_whitespace().collect();
    check(&home.run(&arguments, "").await, 0, &["answered perm_", "Allow: `touch made`"]);
    agent.answer(&prompt).await.unwrap();
    assert!(home.get("made").is_some());
    agent.finish().await;
}

#[tokio::test]
async fn request_is_answered_where_the_session_is_shown() {
    let home = Home::new();
    let (mut agent, session, prompt) = waiting(&home).await;
    // Enter leaves the request open. A key counts only if it comes alone.
    for (line, open) in [("\n", true), ("y", false)] {
        let mut terminal = home.terminal(&["sessions", "show", &session]);
        terminal.until("(Enter: later): ").await;
        terminal.say(line).await;
        assert_eq!(terminal.end().await.0, 0);
        let list = agent.call("_nuncio/permission/list", json!({})).await;
        if open {
            assert_eq!(list["permissions"].as_array().unwrap().len(), 1, "{list}");
        }
    }
    agent.answer(&prompt).await.unwrap();
    assert!(home.get("made").is_some());
    agent.finish().await;
}

#[tokio::test]
async fn session_of_another_agent_is_not_continued() {
    let home = Home::new();
    let model = home.script(json!([{"text": "mine"}]));
    check(&home.run(&["run", "--model", &model, "my session"], "").await, 0, &["mine"]);
    let delegated = home.script(json!([{"text": "theirs"}]));
    let mut client = Client::start(&home, json!({}), &["--model", &delegated]).await;
    client.delegate(json!({"prompt": "a task"})).await;
    client.finish().await;
    let listed = home.run(&["sessions", "list", "--here", "--json"], "").await.lines();
    assert_eq!((&listed[0]["origin"], &listed[1]["origin"]), (&json!("delegation"), &Value::Null), "{listed:?}");
    let model = home.script(json!([{"expect": "mine", "text": "again"}]));
    let ran = home.run(&["run", "-m", &model, "-c", "-p", "go on"], "").await;
    check(&ran, 0, &["again", &format!("continuing \"my session\" ({})", listed[1]["sessionId"].as_str().unwrap())]);
    assert_eq!(ran.stdout, "again\n");
}
