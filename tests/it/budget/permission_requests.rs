//! Permission requests after a limit is reached, and the limits that clients give.

use serde_json::{Value, json};

use super::{calls, questions};
use harness::log::bodies;
use harness::{Agent, Home, Reply, tool};

/// Starts an agent with a session; `budget` is for `session/new`.
async fn session(home: &Home, steps: Value, budget: Value) -> (Agent, String) {
    let mut agent = home.start(&["--model", &home.script(steps)]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let params = json!({"cwd": home.work(), "mcpServers": [], "_meta": {"nuncio": {"budget": budget}}});
    let made = agent.call("session/new", params).await;
    (agent, made["sessionId"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn answer_raises_the_limit_of_the_turn() {
    let home = Home::new();
    home.config("[budget]\nmax_requests = 2\n");
    let (mut agent, session) = home.session(calls(9), &[]).await;
    agent.replies = [Reply::Pick("allow_once"), Reply::Pick("allow_once"), Reply::Pick("reject_once")].into();
    let (stop, updates) = agent.turn(&session, "go").await;
    assert_eq!(stop, "max_turn_requests");
    let asked = questions(&agent);
    assert_eq!(asked.len(), 3, "{asked:?}");
    for (title, used_up) in asked.iter().zip(["2 model requests", "4 model requests", "6 model requests"]) {
        assert_eq!(*title, format!("2 model requests more (the budget of this turn, {used_up}, is used up)"));
    }
    let shown: Vec<Value> =
        (0..updates.len()).map(|index| tool(&updates, index)).filter(|call| call["title"] == asked[2]).collect();
    assert_eq!(shown[0]["status"], "failed", "{shown:?}");
    // The next turn has the limit of the settings.
    agent.otherwise = Reply::Pick("reject_once");
    assert_eq!(agent.turn(&session, "again").await.0, "max_turn_requests");
    agent.finish().await;
    let log = home.log(&session).await;
    assert_eq!(bodies(&log, "step.started").len(), 8);
    let raised: Vec<&Value> = bodies(&log, "budget.raised").into_iter().map(|body| &body["maxRequests"]).collect();
    assert_eq!(raised, [&json!(4), &json!(6)]);
    let resolved: Vec<&Value> = bodies(&log, "permission.resolved").into_iter().map(|body| &body["outcome"]).collect();
    assert_eq!(resolved, ["allow_once", "allow_once", "reject_once", "reject_once"]);
}

#[tokio::test]
async fn raised_limit_of_session_survives_restart() {
    let home = Home::new();
    let (mut agent, id) = session(&home, json!([{"text": "one"}, {"text": "two"}]), json!({"sessionMaxRequests": 1})).await;
    agent.turn(&id, "first").await;
    assert_eq!(questions(&agent).len(), 0);
    assert_eq!(agent.turn(&id, "second").await.0, "end_turn");
    assert_eq!(questions(&agent).len(), 1);
    agent.kill().await;
    let (mut agent, _) = home.session(json!([{"text": "three"}]), &[]).await;
    agent.load(&home, &id).await;
    agent.replies = [Reply::Pick("allow_once"), Reply::Pick("reject_once")].into();
    assert_eq!(agent.turn(&id, "third").await.0, "end_turn");
    assert_eq!(questions(&agent), ["1 model requests more (the budget of this session, 2 model requests, is used up)"]);
    assert_eq!(agent.turn(&id, "fourth").await.0, "max_turn_requests");
    agent.finish().await;
}

/// The deadline, an invalid answer and a cancel stop the turn.
#[tokio::test]
async fn question_without_answer_stops_the_turn() {
    for (reply, settings, stop) in [
        (Reply::Never, "[permissions]\ntimeout_s = 1\n", "max_turn_requests"),
        (Reply::Error, "", "max_turn_requests"),
        (Reply::Never, "", "cancelled"),
    ] {
        let home = Home::new();
        home.config(&format!("{settings}[budget]\nmax_requests = 1\n"));
        let (mut agent, session) = match reply {
            Reply::Never => home.session_of_program(calls(3), &[]).await,
            _ => home.session(calls(3), &[]).await,
        };
        agent.otherwise = reply;
        agent.may_cross = true;
        let id = agent.prompt(&session, "go").await;
        if stop == "cancelled" {
            agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
            let open = agent.call("_nuncio/permission/list", json!({})).await;
            assert_eq!(open["permissions"][0]["toolCall"]["name"], "budget", "{open}");
            agent.notify("session/cancel", json!({"sessionId": session})).await;
        }
        assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], stop);
        agent.finish().await;
        let log = home.log(&session).await;
        assert_eq!(bodies(&log, "permission.requested").len(), bodies(&log, "permission.resolved").len());
        assert_eq!(bodies(&log, "notice").len(), usize::from(stop != "cancelled"));
    }
}

/// While the question about the time is open, the work continues. If it ends, the question is
/// withdrawn; a refusal cancels the work.
#[tokio::test]
async fn work_continues_while_time_is_asked_for() {
    for (reply, stop) in [(Reply::Never, "end_turn"), (Reply::Pick("reject_once"), "max_turn_requests")] {
        let home = Home::new();
        home.config("[budget]\nmax_wall_s = 1\n");
        let slow = json!({"text": "word ".repeat(30), "chunk_chars": 1, "delay_ms": 20});
        let (mut agent, session) = home.session(json!([slow]), &[]).await;
        agent.otherwise = reply;
        assert_eq!(agent.turn(&session, "go").await.0, stop);
        assert_eq!(questions(&agent).len(), 1);
        agent.finish().await;
        let log = home.log(&session).await;
        let outcome = if stop == "end_turn" { "cancelled" } else { "reject_once" };
        assert_eq!(bodies(&log, "permission.resolved")[0]["outcome"], outcome);
        assert_eq!(bodies(&log, "step.started").len(), bodies(&log, "step.completed").len());
    }
}

#[tokio::test]
async fn clients_give_limits() {
    let home = Home::new();
    let (mut agent, id) = session(&home, calls(9), json!({"maxRequests": 3})).await;
    agent.otherwise = Reply::Pick("reject_once");
    let text = json!([{"type": "text", "text": "go"}]);
    let prompt = |budget: Value| json!({"sessionId": id, "prompt": text, "_meta": {"nuncio": {"budget": budget}}});
    for (budget, requests) in [(json!({"maxRequests": 1}), 1), (json!({"maxTokens": 1000000}), 4), (Value::Null, 7)] {
        assert_eq!(agent.call("session/prompt", prompt(budget)).await["stopReason"], "max_turn_requests");
        let count = bodies(&home.log(&id).await, "step.started").len();
        assert_eq!(count, requests);
    }
    for (budget, word) in [
        (json!({"maxRequest": 1}), "maxRequest"),
        (json!({"maxRequests": -1}), "maxRequests"),
        (json!({"maxCost": -1}), "cost"),
        (json!(3), "budget"),
    ] {
        let error = agent.request("session/prompt", prompt(budget.clone())).await.unwrap_err();
        assert!(error["code"] == -32602 && error["message"].as_str().unwrap().contains(word), "{budget}: {error}");
    }
    agent.finish().await;

    // A controller over HTTP could answer the question.
    home.config("[permissions]\ntimeout_s = 1\n");
    let server = home.serve_script(calls(9), &[]).await;
    let made = server.post("/v1/sessions", &json!({"budget": {"maxRequests": 2}})).expect(201).await;
    let session = made["sessionId"].as_str().unwrap();
    let path = format!("/v1/sessions/{session}/prompt");
    for (body, requests) in [(json!({"prompt": text}), 2), (json!({"prompt": text, "budget": {"maxRequests": 1}}), 3)] {
        let ended = server.post(&path, &body).expect(200).await;
        assert_eq!(ended["stopReason"], "max_turn_requests");
        assert_eq!(bodies(&home.log(session).await, "step.started").len(), requests);
    }
    server.stop().await;
}
