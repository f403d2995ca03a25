//! Limits of a turn and of a session when no client can answer: the turn stops.

use serde_json::{Value, json};

use super::calls;
use super::cost::PRICE;
use harness::log::bodies;
use harness::steps::{calls as step, says, task};
use harness::subagents::{children, define};
use harness::{Home, Reply};

/// Runs a prompt with these settings and flags. Returns the number of requests, and the description
/// of the notice about the budget.
async fn run(settings: &str, flags: &[&str], project: &str) -> (usize, Option<String>) {
    let home = Home::new();
    home.config(&format!("{settings}\n{PRICE}"));
    if !project.is_empty() {
        home.put(".nuncio/config.toml", project);
    }
    let model = home.script(calls(6));
    let ran = home.run(&[&["run", "--json", "--model", &model], flags, &["go"]].concat(), "").await;
    let lines = ran.lines();
    let notice = bodies(&lines, "notice").into_iter().find(|notice| notice["code"] == "budget");
    let stop = &bodies(&lines, "turn.completed")[0]["stopReason"];
    let (code, expected) = if notice.is_some() { (1, "max_turn_requests") } else { (0, "end_turn") };
    assert_eq!((ran.code, stop), (code, &json!(expected)), "{settings} {flags:?}: {ran:?}");
    let description = notice.map(|notice| notice["description"].as_str().unwrap().to_owned());
    (bodies(&lines, "step.started").len(), description)
}

#[tokio::test]
async fn reached_limit_stops_the_turn() {
    let cases: &[(&str, &[&str], usize, &str)] = &[
        ("", &[], 7, ""),
        ("max_requests = 2", &[], 2, "2 of 2 model requests (max_requests)"),
        ("max_tokens = 1", &[], 1, "of 1 tokens (max_tokens)"),
        ("max_cost = 0.000001", &[], 1, "of $0.0000010 (max_cost)"),
        ("session_max_requests = 3", &[], 3, "this session has used 3 of 3 model requests"),
        ("session_max_tokens = 1", &[], 1, "session_max_tokens"),
        ("session_max_cost = 0.000001", &[], 1, "session_max_cost"),
        ("max_requests = 5\nsession_max_requests = 4", &[], 4, "session_max_requests"),
        ("", &["--max-requests", "3"], 3, "max_requests"),
        ("max_requests = 2", &["--max-requests", "3"], 3, "3 of 3"),
        ("max_requests = 2", &["--max-requests", "0"], 7, ""),
        ("", &["--max-tokens", "1"], 1, "max_tokens"),
        ("", &["--max-cost", "0.000001"], 1, "max_cost"),
        ("", &["--max-cost", "1000"], 7, ""),
        ("max_requests = 0", &[], 7, ""),
    ];
    for (settings, flags, requests, word) in cases {
        let (found, notice) = run(&format!("[budget]\n{settings}"), flags, "").await;
        let notice = notice.unwrap_or_default();
        assert!(
            found == *requests && notice.contains(word) && notice.is_empty() == word.is_empty(),
            "{settings} {flags:?}: {found} {notice}"
        );
    }
}

#[tokio::test]
async fn project_can_only_lower_limits() {
    for (project, requests) in
        [("max_requests = 2", 2), ("max_requests = 5", 3), ("max_requests = 0", 3), ("max_cost = 0.000001", 1)]
    {
        let (found, _) = run("[budget]\nmax_requests = 3", &[], &format!("[budget]\n{project}\n")).await;
        assert_eq!(found, requests, "{project}");
    }
}

#[tokio::test]
async fn invalid_limits_are_refused() {
    let home = Home::new();
    for (settings, word) in [("max_cost = -1.0", "max_cost"), ("max_cost = nan", "max_cost"), ("max_request = 1", "max_requests")] {
        home.config(&format!("[budget]\n{settings}\n"));
        let ran = home.run(&["config", "check"], "").await;
        assert!(ran.code == 2 && ran.stderr.contains(word), "{settings}: {ran:?}");
    }
    home.config("");
    for flag in ["--max-cost=-1", "--max-cost=x", "--max-requests=-1", "--max-tokens=x"] {
        assert_eq!(home.run(&["run", flag, "go"], "").await.code, 2, "{flag}");
    }
}

/// The limit of time cancels the running request, or the running command with its processes.
#[tokio::test]
async fn time_limit_stops_request_and_command() {
    let slow = json!({"text": "word ".repeat(2000), "chunk_chars": 1, "delay_ms": 20});
    let command = json!({"tool_calls": [{"name": "bash", "input": {"command": "sleep 600"}}]});
    for (step, limit) in [(slow.clone(), "max_wall_s"), (command, "max_wall_s"), (slow, "session_max_wall_s")] {
        let home = Home::new();
        home.config(&format!("[budget]\n{limit} = 1\n"));
        let model = home.script(json!([step]));
        let ran = home.run(&["run", "--json", "--mode", "auto", "--sandbox", "off", "--model", &model, "go"], "").await;
        let lines = ran.lines();
        assert_eq!((ran.code, &bodies(&lines, "turn.completed")[0]["stopReason"]), (1, &json!("max_turn_requests")), "{ran:?}");
        let notice = bodies(&lines, "notice").into_iter().find(|notice| notice["code"] == "budget").unwrap();
        assert!(notice["description"].as_str().unwrap().contains(limit), "{notice}");
        // Everything that was open has ended.
        assert_eq!(bodies(&lines, "step.started").len(), bodies(&lines, "step.completed").len());
        assert_eq!(bodies(&lines, "tool.started").len(), bodies(&lines, "tool.completed").len());
    }
}

/// The requests of concurrent subagents and of their parent share one budget.
#[tokio::test]
async fn concurrent_subagents_share_the_budget_of_their_parent() {
    let home = Home::new();
    home.config("[budget]\nmax_requests = 7\n");
    let plan = |number: usize| json!({"tool_calls": [{"name": "plan", "input": {"entries": [{"content": number.to_string()}]}}]});
    define(&home, "worker", "", (0..20).map(plan).collect());
    let steps = json!([{"tool_calls": [task("worker", "one"), task("worker", "two"), task("worker", "three")]}, {"text": "done"}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.otherwise = Reply::Pick("reject_once");
    agent.turn(&session, "go").await;
    let children = children(&mut agent, &session).await;
    agent.finish().await;
    let mut requests = bodies(&home.log(&session).await, "step.started").len();
    for child in &children {
        requests += bodies(&home.log(child).await, "step.started").len();
    }
    assert_eq!((children.len(), requests), (3, 7));
}

/// The end of a subagent has the usage and the cost of all sessions below its parent.
#[tokio::test]
async fn usage_of_subagents_of_subagents_counts() {
    let home = Home::new();
    home.config(PRICE);
    define(&home, "inner", "", json!([{"text": "a long answer ".repeat(50)}]));
    define(&home, "outer", "", json!([step(&[task("inner", "inner work")]), says("a long answer", "outer is done")]));
    let steps = json!([step(&[task("outer", "outer work")]), says("outer is done", "ok")]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.turn(&session, "go").await;
    let outer = children(&mut agent, &session).await.remove(0);
    let inner = children(&mut agent, &outer).await.remove(0);
    agent.finish().await;
    let (outer, inner) = (home.log(&outer).await, home.log(&inner).await);
    let used: Vec<&Value> = [&outer, &inner].into_iter().flat_map(|log| bodies(log, "usage.updated")).collect();
    assert_eq!(used.len(), 3);
    let log = home.log(&session).await;
    let end = bodies(&log, "child.completed")[0].clone();
    for name in ["inputTokens", "outputTokens"] {
        let sum: u64 = used.iter().map(|body| body[name].as_u64().unwrap()).sum();
        assert_eq!(end["usage"][name], sum, "{end}");
    }
    let sum: f64 = used.iter().map(|body| body["cost"].as_f64().unwrap()).sum();
    assert!((end["cost"].as_f64().unwrap() - sum).abs() < 1e-9, "{end} {sum}");
}
