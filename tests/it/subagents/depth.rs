//! The depth limit, in one process and through child processes, and the guard against loops.

use serde_json::json;

use harness::Home;
use harness::steps::{bash, calls, says, task};
use harness::subagents::define;

#[tokio::test]
async fn task_at_the_depth_limit_fails() {
    let home = Home::new();
    define(&home, "one", "", json!([calls(&[task("two", "work")]), says("three says limit", "one says limit")]));
    define(&home, "two", "", json!([calls(&[task("three", "work")]), says("three says limit", "three says limit")]));
    define(&home, "three", "", json!([calls(&[task("four", "work")]), says("at most 3 levels", "three says limit")]));
    define(&home, "four", "", json!([{"text": "too deep"}]));
    let (mut agent, session) = home.session(json!([calls(&[task("one", "work")]), says("one says limit", "ok")]), &[]).await;
    let (stop, updates) = agent.turn(&session, "go").await;
    assert_eq!(stop, "end_turn", "{updates:#?}");
    agent.finish().await;
}

#[tokio::test]
async fn task_of_an_ancestor_is_refused() {
    let home = Home::new();
    let refused = "this is the task that you are working on";
    define(&home, "one", "", json!([calls(&[task("two", "build it")]), says(refused, "one is done")]));
    define(&home, "two", "", json!([calls(&[task("one", " Build  it")]), says(refused, refused)]));
    let without_agent = json!({"name": "task", "input": {"prompt": "do it all"}});
    let steps = json!([calls(&[task("one", "build it"), without_agent]), says("one is done", ""), says(refused, "ok")]);
    let (mut agent, session) = home.session(steps, &[]).await;
    let (stop, updates) = agent.turn(&session, "do it all").await;
    assert_eq!(stop, "end_turn", "{updates:#?}");
    agent.finish().await;
}

#[tokio::test]
async fn depth_reaches_processes_of_tools() {
    let home = Home::new();
    let check = json!({"name": "verify", "input": {"commands": ["echo check=$NUNCIO_DEPTH; exit 1"]}});
    let mut checks = calls(&[check]);
    checks["expect"] = json!("depth=2");
    define(&home, "worker", "", json!([bash("echo depth=$NUNCIO_DEPTH"), checks, says("check=2", "the worker finished")]));
    let overridden = json!({"name": "bash", "input": {"command": "echo depth=$NUNCIO_DEPTH", "env": {"NUNCIO_DEPTH": "0"}}});
    let steps = json!([calls(&[overridden]), {"expect": "depth=1", "tool_calls": [task("worker", "work")]}, says("the worker finished", "ok")]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
}

#[tokio::test]
async fn nuncio_in_a_tool_of_nuncio_is_refused_at_the_limit() {
    let home = Home::new();
    let nuncio = harness::program();
    home.config("[sandbox]\nmode = \"off\"\n");
    // Each process runs the next one with bash; the last one is refused.
    let mut model = home.script(json!([{"text": "too deep"}]));
    for _ in 0..4 {
        let command = format!("{nuncio} run --mode auto --model {model} go");
        model = home.script(json!([bash(&command), says("at most 3 levels of subagents", "at most 3 levels of subagents")]));
    }
    let ran = home.run(&["run", "--mode", "auto", "--model", &model, "go"], "").await;
    assert_eq!((ran.code, ran.stdout.contains("at most 3 levels")), (0, true), "{ran:?}");

    home.env("NUNCIO_DEPTH", "3");
    define(&home, "worker", "", json!([{"text": "too deep"}]));
    let (mut agent, session) = home.session(json!([calls(&[task("worker", "work")]), says("at most 3 levels", "ok")]), &[]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
}
