//! Questions that are open while a client opens their session again.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Agent, Home, Reply, tool};

const BOUND: Duration = Duration::from_secs(5);

/// The next question; within the bound.
async fn asked(agent: &mut Agent, what: &str) -> Value {
    let question = agent.until(what, |frame| frame["method"] == "session/request_permission");
    tokio::time::timeout(BOUND, question).await.unwrap_or_else(|_| panic!("{what} did not come in {BOUND:?}"))
}

/// A question is open, the session is opened again by `method`: the client is asked again, and only the new question is open.
async fn opened_again(method: &str) {
    let home = Home::new();
    let input = json!({"command": "echo done > a.txt"});
    let call = json!({"tool_calls": [{"name": "bash", "input": input}]});
    let (mut agent, session) = home.session(json!([call, {"text": "so it is"}]), &[]).await;
    agent.otherwise = Reply::Never;
    let id = agent.prompt(&session, "go").await;
    let first = asked(&mut agent, "the question").await;
    let before = agent.frames.len();
    agent.call(method, json!({"sessionId": session, "cwd": home.work(), "mcpServers": []})).await;
    let again = agent.frames[before..].iter().find(|frame| frame["method"] == "session/request_permission").cloned();
    let second = match again {
        Some(question) => question,
        None => asked(&mut agent, "the question, again").await,
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
    // Answered by hand: it is not open any more.
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
async fn who_loads_a_session_is_asked_again_and_the_old_question_is_taken_back() {
    opened_again("session/load").await;
}

#[tokio::test]
async fn who_resumes_a_session_is_asked_what_is_open() {
    opened_again("session/resume").await;
}
