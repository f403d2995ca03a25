//! Questions that are open when a client opens their session again.

use std::time::Duration;

use serde_json::{Value, json};

use harness::{Agent, Home, Reply, tool};

const BOUND: Duration = Duration::from_secs(5);

/// The next question. Panics after `BOUND`.
async fn next_question(agent: &mut Agent, what: &str) -> Value {
    let question = agent.until(what, |frame| frame["method"] == "session/request_permission");
    tokio::time::timeout(BOUND, question).await.unwrap_or_else(|_| panic!("{what} did not come in {BOUND:?}"))
}

/// Opens a session again by `method` while a question is open. The question is sent again, and only
/// the new question is open.
async fn check_open_question(method: &str) {
    let home = Home::new();
    let input = json!({"command": "echo done > a.txt"});
    let call = json!({"tool_calls": [{"name": "bash", "input": input}]});
    let (mut agent, session) = home.session(json!([call, {"text": "so it is"}]), &[]).await;
    agent.otherwise = Reply::Never;
    let id = agent.prompt(&session, "go").await;
    let first = next_question(&mut agent, "the question").await;
    let before = agent.frames.len();
    agent.call(method, json!({"sessionId": session, "cwd": home.work(), "mcpServers": []})).await;
    let again = agent.frames[before..].iter().find(|frame| frame["method"] == "session/request_permission").cloned();
    let second = match again {
        Some(question) => question,
        None => next_question(&mut agent, "the question, again").await,
    };
    assert_ne!(second["id"], first["id"]);
    for (params, which) in [(&first["params"], "first"), (&second["params"], "second")] {
        let call = &params["toolCall"];
        assert_eq!(call["toolCallId"], first["params"]["toolCall"]["toolCallId"], "{which}");
        assert_eq!((&call["title"], &call["rawInput"]), (&json!("`echo done > a.txt`"), &input), "{which}: {call}");
        assert_eq!(call["content"], first["params"]["toolCall"]["content"], "{which}");
        assert_eq!(params["options"], first["params"]["options"], "{which}");
    }
    let option =
        &second["params"]["options"].as_array().unwrap().iter().find(|option| option["kind"] == "allow_once").unwrap()["optionId"];
    let yes = json!({"jsonrpc": "2.0", "id": second["id"], "result": {"outcome": {"outcome": "selected", "optionId": option}}});
    // The test answers the question directly, so the question is not open.
    agent.asked.retain(|(asked, _)| *asked != second["id"]);
    agent.raw(format!("{yes}\n").as_bytes()).await;
    let ended = tokio::time::timeout(BOUND, agent.answer(&id)).await.expect("the turn goes on").unwrap();
    assert_eq!(ended["stopReason"], "end_turn");
    let withdrawn = |id: &Value| {
        agent.frames.iter().filter(|frame| frame["method"] == "$/cancel_request" && frame["params"]["requestId"] == *id).count()
    };
    assert_eq!((withdrawn(&first["id"]), withdrawn(&second["id"])), (1, 0), "questions taken back");
    assert_eq!(agent.asked, []);
    assert_eq!(tool(&agent.updates(&session), 0)["status"], "completed");
    assert_eq!(home.get("a.txt").as_deref(), Some("done\n"));
    agent.finish().await;
}

#[tokio::test]
async fn load_sends_open_question_again_and_withdraws_the_old_one() {
    check_open_question("session/load").await;
}

#[tokio::test]
async fn resume_sends_open_question_again() {
    check_open_question("session/resume").await;
}
