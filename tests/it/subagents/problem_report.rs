//! What a subagent cannot hide from its parent: changes that the user rejected, and failing checks.

use serde_json::{Value, json};

use crate::mcp_serve::Client;
use harness::log::bodies;
use harness::steps::{calls, says, task};
use harness::subagents::{children, define};
use harness::{Home, Reply, tool};

const REVIEW: &str = "[review]\nmode = \"request\"\n";
const CHECKS: &str = "[verify]\nmax_rounds = 1\ncommands = [\"grep -q good a.txt || { echo 'error: a.txt is bad'; exit 3; }\"]\n";

fn write(text: &str) -> Value {
    calls(&[json!({"name": "write", "input": {"file_path": "a.txt", "content": text}})])
}

/// The steps of an agent that writes `text` and claims success.
fn claims(text: &str) -> Value {
    json!([write(text), {"text": "all good"}])
}

async fn home(settings: &str) -> Home {
    let home = Home::new();
    home.put("a.txt", "");
    home.config(settings);
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    home
}

#[tokio::test]
async fn rejected_changes_are_in_the_result_of_task() {
    let home = home(REVIEW).await;
    define(&home, "worker", "", claims("new\n"));
    let steps = json!([calls(&[task("worker", "work")]), says("a.txt: rejected", "I know")]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    agent.otherwise = Reply::Pick("reject_once");
    let (stop, updates) = agent.turn(&session, "go").await;
    assert_eq!((stop.as_str(), home.get("a.txt").as_deref()), ("end_turn", Some("")));
    assert_eq!(tool(&updates, 0)["status"], "failed", "{updates:#?}");
    agent.finish().await;
    let log = home.log(&session).await;
    let output =
        bodies(&log, "tool.completed").into_iter().find(|body| body["tool"].is_null() || body["output"].is_array()).unwrap();
    let text = output["output"].to_string();
    assert!(text.contains("all good") && text.contains("a.txt: rejected"), "{text}");
    let end = bodies(&log, "child.completed")[0];
    assert!(end["unresolved"]["rejected"][0].as_str().unwrap().contains("a.txt: rejected"), "{end}");
}

#[tokio::test]
async fn failing_checks_are_in_the_result_of_task() {
    needs_linux!("sandbox");
    let home = home(CHECKS).await;
    define(&home, "worker", "", claims("bad\n"));
    let steps = json!([calls(&[task("worker", "work")]), says("error: a.txt is bad", "I know"), {"text": "again"}]);
    let model = home.script(steps);
    let ran = home.run(&["run", "--json", "--mode", "auto", "--model", &model, "go"], "").await;
    let events = ran.lines();
    let result =
        bodies(&events, "tool.completed").into_iter().find(|body| body["output"].to_string().contains("all good")).unwrap();
    assert_eq!(result["status"], "failed", "{result}");
    // The parent does not end with the failure of its subagent: its own checks run, and fail.
    assert_eq!(bodies(&events, "verify.completed").len(), 1, "{events:#?}");
    assert_eq!(ran.code, 1, "{ran:?}");
}

#[tokio::test]
async fn resolved_problems_are_not_reported() {
    needs_linux!("sandbox");
    let home = home(&format!("{REVIEW}{}", CHECKS.replace("max_rounds = 1\n", ""))).await;
    define(&home, "worker", "", json!([write("bad\n"), {"text": "x"}, write("good\n"), {"text": "all good"}]));
    let steps = json!([calls(&[task("worker", "work")]), says("all good", "ok")]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    agent.otherwise = Reply::Pick("allow_once");
    let (stop, updates) = agent.turn(&session, "go").await;
    assert_eq!((stop.as_str(), &tool(&updates, 0)["status"]), ("end_turn", &json!("completed")), "{updates:#?}");
    agent.finish().await;
    let log = home.log(&session).await;
    assert_eq!(bodies(&log, "child.completed")[0].get("unresolved"), None);
}

/// A subagent in between does not hide what its own subagent left unresolved.
#[tokio::test]
async fn rejection_below_a_subagent_is_reported_above() {
    let home = home(REVIEW).await;
    define(&home, "inner", "", claims("new\n"));
    define(&home, "outer", "", json!([calls(&[task("inner", "inner work")]), {"text": "outer is done"}]));
    let steps = json!([calls(&[task("outer", "outer work")]), says("a.txt: rejected", "I know")]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    agent.otherwise = Reply::Pick("reject_once");
    let (stop, updates) = agent.turn(&session, "go").await;
    assert_eq!((stop.as_str(), &tool(&updates, 0)["status"]), ("end_turn", &json!("failed")), "{updates:#?}");
    assert_eq!(children(&mut agent, &session).await.len(), 1);
    agent.finish().await;
}

#[tokio::test]
async fn rejection_is_in_the_report_of_a_background_task() {
    let home = home(REVIEW).await;
    define(&home, "worker", "", claims("new\n"));
    let background = json!({"name": "task", "input": {"agent": "worker", "prompt": "work", "background": true}});
    let steps = json!([calls(&[background]), says("in the background", "waiting"), says("a.txt: rejected", "I know")]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    agent.otherwise = Reply::Pick("reject_once");
    agent.turn(&session, "go").await;
    agent.until("the answer to the report", |frame| frame["params"]["update"]["content"]["text"] == "I know").await;
    agent.finish().await;
}

#[tokio::test]
async fn delegate_is_an_error_if_something_is_unresolved() {
    needs_linux!("sandbox");
    let accept = |option: &str| json!({"action": "accept", "content": {"decision": option}});
    for (settings, answer, text, failed) in [
        (REVIEW, Some(accept("reject")), "a.txt: rejected", true),
        (REVIEW, Some(accept("accept")), "all good", false),
        (CHECKS, None, "error: a.txt is bad", true),
    ] {
        let home = home(settings).await;
        let model = home.script(claims("bad\n"));
        let mut client = Client::start(&home, json!({"elicitation": {}}), &["--model", &model, "--mode", "auto"]).await;
        client.answers.extend(answer);
        let (result, output, is_error) = client.delegate(json!({"prompt": "work"})).await;
        assert!(result.contains(text) && result.contains("all good") && is_error == failed, "{settings}: {result} {output}");
        assert_eq!(output["unresolved"].is_object(), failed, "{output}");
        client.finish().await;
    }
}
