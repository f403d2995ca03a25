//! A turn and its subagents share one budget: requests, questions, and the cost that is shown.

use serde_json::{Value, json};

use super::cost::PRICE;
use super::{in_nanos, questions};
use harness::log::bodies;
use harness::steps::{calls, says, task};
use harness::subagents::{children, define};
use harness::{Home, Reply, session_updates};

fn plan(number: usize) -> Value {
    json!({"tool_calls": [{"name": "plan", "input": {"entries": [{"content": number.to_string()}]}}]})
}

/// A parent with three concurrent subagents that would send 20 requests each.
fn greedy(home: &Home) -> Value {
    define(home, "worker", "", (0..20).map(plan).collect());
    json!([calls(&[task("worker", "one"), task("worker", "two"), task("worker", "three")]), {"text": "done"}])
}

/// The number of requests of a session and of all sessions below it.
async fn requests(home: &Home, session: &str) -> usize {
    let log = home.log(session).await;
    let mut sum = bodies(&log, "step.started").len();
    for child in bodies(&log, "child.started") {
        sum += Box::pin(requests(home, child["childSessionId"].as_str().unwrap())).await;
    }
    sum
}

#[tokio::test]
async fn requests_of_concurrent_subagents_never_exceed_the_limit() {
    for limit in ["max_requests", "session_max_requests"] {
        let home = Home::new();
        home.config(&format!("[budget]\n{limit} = 6\n"));
        let model = home.script(greedy(&home));
        let ran = home.run(&["run", "--json", "--model", &model, "go"], "").await;
        assert_eq!(ran.code, 1, "{ran:?}");
        let session = ran.lines()[0]["sessionId"].as_str().unwrap().to_owned();
        assert_eq!(requests(&home, &session).await, 6, "{limit}");
        let log = home.log(&session).await;
        let notice = bodies(&log, "notice").into_iter().find(|notice| notice["code"] == "budget").unwrap();
        assert!(notice["description"].as_str().unwrap().contains(&format!("6 of 6 model requests ({limit})")), "{notice}");
    }
}

#[tokio::test]
async fn requests_of_nested_subagents_count() {
    for (limit, width) in [(5, 1), (6, 3)] {
        let home = Home::new();
        home.config(&format!("[budget]\nmax_requests = {limit}\n"));
        let tasks = |name: &str| calls(&(0..width).map(|number| task(name, &format!("work {number}"))).collect::<Vec<_>>());
        define(&home, "inner", "", (0..20).map(plan).collect());
        define(&home, "outer", "", json!([tasks("inner"), {"text": "outer is done"}]));
        let model = home.script(json!([tasks("outer"), {"text": "done"}]));
        let ran = home.run(&["run", "--json", "--model", &model, "go"], "").await;
        let session = ran.lines()[0]["sessionId"].as_str().unwrap().to_owned();
        assert_eq!((ran.code, requests(&home, &session).await), (1, limit), "{width} tasks of each session: {ran:?}");
    }
}

/// The requests of earlier turns' subagents count for the session, also after a restart.
#[tokio::test]
async fn requests_of_ended_subagents_count_for_the_session() {
    let home = Home::new();
    home.config("[budget]\nsession_max_requests = 4\n");
    define(&home, "worker", "", json!([plan(1), {"text": "worked"}]));
    let steps = json!([calls(&[task("worker", "one")]), says("worked", "done")]);
    let ran = home.run(&["run", "--json", "--model", &home.script(steps), "go"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let again = home.run(&["run", "--continue", "--model", &home.script(json!([{"text": "more"}])), "go"], "").await;
    assert!(again.code == 1 && again.stderr.contains("4 of 4 model requests"), "{again:?}");
}

/// One question for all subagents, about the budget that is used up. The answer counts for all.
#[tokio::test]
async fn question_about_a_shared_budget_comes_once() {
    for (limit, whose) in [("max_requests", "turn"), ("session_max_requests", "session")] {
        let home = Home::new();
        home.config(&format!("[budget]\n{limit} = 6\n"));
        let steps = greedy(&home);
        let (mut agent, session) = home.session(steps, &[]).await;
        agent.replies = [Reply::Pick("allow_once")].into();
        agent.otherwise = Reply::Pick("reject_once");
        agent.turn(&session, "go").await;
        let asked = questions(&agent);
        assert_eq!(asked.len(), 2, "{limit}: {asked:?}");
        for (title, used) in asked.iter().zip(["6 model requests", "12 model requests"]) {
            assert_eq!(*title, format!("6 model requests more (the budget of this {whose}, {used}, is used up)"));
        }
        agent.finish().await;
        assert_eq!(requests(&home, &session).await, 12, "{limit}");
        assert_eq!(bodies(&home.log(&session).await, "budget.raised").len(), 1, "{limit}");
    }
}

/// The same for tokens and cost, which were shared before.
#[tokio::test]
async fn question_of_a_subagent_names_the_budget_of_the_parent() {
    for (limit, shown) in
        [("max_tokens = 1", "1 tokens"), ("max_cost = 0.000001", "$0.0000010"), ("session_max_tokens = 1", "1 tokens")]
    {
        let home = Home::new();
        home.config(&format!("[budget]\n{limit}\n{PRICE}"));
        define(&home, "worker", "", (0..4).map(plan).collect());
        let (mut agent, session) = home.session(json!([calls(&[task("worker", "work")]), {"text": "done"}]), &[]).await;
        agent.otherwise = Reply::Pick("reject_once");
        agent.turn(&session, "go").await;
        let asked = questions(&agent);
        let whose = if limit.starts_with("session") { "session" } else { "turn" };
        assert_eq!(asked, [format!("{shown} more (the budget of this {whose}, {shown}, is used up)")], "{limit}");
        agent.finish().await;
    }
}

#[tokio::test]
async fn shown_cost_includes_subagents() {
    let home = Home::new();
    home.config(PRICE);
    define(&home, "worker", "", json!([{"text": "a long answer ".repeat(50)}]));
    let steps = json!([calls(&[task("worker", "work")]), says("a long answer", "ok"), {"text": "second"}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    let id = agent.prompt(&session, "go").await;
    let first = agent.answer(&id).await.unwrap();
    let id = agent.prompt(&session, "again").await;
    let second = agent.answer(&id).await.unwrap();
    let child = children(&mut agent, &session).await.remove(0);
    let turns = agent.call("_nuncio/session/turns", json!({"sessionId": session})).await["turns"].clone();
    let view = agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
    let listed = agent.call("session/list", json!({})).await["sessions"][0]["_meta"]["nuncio"].clone();
    let total = |frames: &[Value]| {
        let updates = session_updates(frames, &session);
        in_nanos(&updates.iter().rfind(|update| update["sessionUpdate"] == "usage_update").unwrap()["cost"]["amount"])
    };
    let live = total(&agent.frames);
    let before = agent.frames.len();
    agent.load(&home, &session).await;
    let replayed = total(&agent.frames[before..]);
    agent.finish().await;

    let spent = async |id: &str| {
        let log = home.log(id).await;
        bodies(&log, "usage.updated").into_iter().map(|body| in_nanos(&body["cost"])).collect::<Vec<i64>>()
    };
    let (own, below) = (spent(&session).await, spent(&child).await);
    let (of_first, of_second) = (own[0] + own[1] + below.iter().sum::<i64>(), own[2]);
    assert_eq!((in_nanos(&first["_meta"]["nuncio"]["cost"]), in_nanos(&turns[0]["cost"])), (of_first, of_first), "{turns}");
    assert_eq!((in_nanos(&second["_meta"]["nuncio"]["cost"]), in_nanos(&turns[1]["cost"])), (of_second, of_second), "{turns}");
    let all = of_first + of_second;
    assert_eq!((in_nanos(&view["cost"]), in_nanos(&listed["cost"]), live, replayed), (all, all, all, all));
    let list = home.run(&["sessions", "list", "--json"], "").await;
    assert_eq!(in_nanos(&list.lines()[0]["cost"]), all);
    let show = home.run(&["sessions", "show", &session], "").await;
    // Two significant digits.
    let decimals = if all < 10_000_000 { 4 } else { 3 };
    let dollars = format!("${:.decimals$}", all as f64 / 1e9);
    assert!(format!("{}{}", show.stdout, show.stderr).contains(&dollars), "{dollars}: {show:?}");
}

/// A limit on the cost of a model whose price nobody knows would never stop anything.
#[tokio::test]
async fn limit_on_the_cost_of_a_model_without_a_price_is_an_error() {
    let home = Home::new();
    let model = home.script(json!([{"text": "free?"}]));
    let ran = home.run(&["run", "--max-cost", "1", "--model", &model, "go"], "").await;
    assert!(ran.code == 2 && ran.stdout.is_empty(), "{ran:?}");
    assert!(ran.stderr.contains("price") && ran.stderr.contains("[models.") && ran.stderr.contains("max_cost"), "{ran:?}");
    let free = home.run(&["run", "--max-cost", "0", "--model", &model, "go"], "").await;
    assert_eq!(free.code, 0, "{free:?}");
    home.config(PRICE);
    assert_eq!(home.run(&["run", "--max-cost", "1", "--model", &model, "go"], "").await.code, 0);
}
