//! Models for parts of the work: `[roles]`.

use serde_json::{Value, json};

use harness::steps::{bash, calls, task};
use harness::{Home, Reply};

/// The models of the requests of a session and of its subagents, in order.
fn models(events: &[Value]) -> Vec<&str> {
    let starts = events.iter().filter(|event| event["body"]["type"] == "step.started");
    starts.map(|event| event["body"]["model"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn mode_plan_has_its_model() {
    let home = Home::new();
    let (own, plan) = (home.script(json!([{"text": "done"}])), home.script(json!([{"text": "a plan"}, {"text": "another"}])));
    home.config(&format!("[roles]\nplan = \"{plan}\"\n"));
    let mut agent = home.start(&["--model", &own]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = agent.new_session(&home).await;
    for mode in ["plan", "ask", "plan"] {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        agent.turn(&session, "go").await;
    }
    agent.finish().await;
    assert_eq!(models(&home.log(&session).await), [plan.as_str(), &own, &plan]);
}

/// A plan that is approved is carried out by the model of the session, in the same turn.
#[tokio::test]
async fn approved_plan_is_carried_out_by_the_model_of_the_session() {
    let home = Home::new();
    let planned = json!([
        {"tool_calls": [{"name": "plan", "input": {"entries": [{"content": "write it"}]}}]},
        {"text": "This is the plan."},
        {"text": "A second plan."},
    ]);
    let own = json!([{"expect": "The user approved the plan", "text": "It is done."}]);
    let (own, plan) = (home.script(own), home.script(planned));
    home.config(&format!("[roles]\nplan = \"{plan}\"\n"));
    let mut agent = home.start(&["--model", &own, "--mode", "plan"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = agent.new_session(&home).await;
    agent.otherwise = Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": "accept-edits"}}));
    let (stop, _) = agent.turn(&session, "plan it").await;
    agent.finish().await;
    let events = home.log(&session).await;
    assert_eq!((stop.as_str(), models(&events)), ("end_turn", vec![plan.as_str(), &plan, &own]));
    assert_eq!(events.iter().filter(|event| event["body"]["type"] == "turn.started").count(), 1);
}

#[tokio::test]
async fn subagent_has_its_model_unless_its_definition_names_one() {
    let home = Home::new();
    let (sub, named) = (home.script(json!([{"text": "found"}])), home.script(json!([{"text": "looked"}])));
    home.config(&format!("[roles]\nsubagent = \"{sub}\"\n"));
    let agents = home.data().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("plain.md"), "---\ndescription: Finds things\n---\nFind.\n").unwrap();
    std::fs::write(agents.join("named.md"), format!("---\ndescription: Looks\nmodel: \"{named}\"\n---\nLook.\n")).unwrap();
    for (name, expected) in [("plain", &sub), ("named", &named)] {
        let own = home.script(json!([calls(&[task(name, "Find it.")]), {"text": "done"}]));
        let ran = home.run(&["run", "--json", "--model", &own, "go"], "").await;
        assert_eq!(ran.code, 0, "{ran:?}");
        let lines = ran.lines();
        let child =
            lines.iter().find(|line| line["body"]["type"] == "child.started").unwrap()["body"]["childSessionId"].as_str().unwrap();
        assert_eq!(models(&home.log(child).await), [expected.as_str()], "{name}");
        assert_eq!(models(&lines)[0], own);
    }
}

#[tokio::test]
async fn small_model_writes_the_summary_if_the_conversation_fits() {
    let text = "a long answer ".repeat(400);
    // The settings of the role, and whether its model writes the summary.
    for small_writes in [true, false] {
        let home = Home::new();
        let script = home.script(json!([{"text": "the summary of the small model"}]));
        // Receives no request.
        let provider = "[providers.test]\nbase_url = \"http://127.0.0.1:1/v1\"\n[models.\"test/small\"]\ncontext_window = 1000\n";
        let small = if small_writes { script.as_str() } else { "test/small" };
        let own = home.script(json!([{"text": text}, {"text": "the summary of the session's model"}, {"text": "next"}]));
        home.config(&format!("[roles]\nsmall = \"{small}\"\n{provider}"));
        let mut agent = home.start(&["--model", &own]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let session = agent.new_session(&home).await;
        agent.turn(&session, "go").await;
        agent.turn(&session, "/compact").await;
        agent.turn(&session, "go on").await;
        agent.finish().await;
        let log = home.log(&session).await;
        let writer = if small_writes { small } else { own.as_str() };
        assert_eq!(models(&log), [own.as_str(), writer, own.as_str()]);
        let summary = log.iter().find(|event| event["body"]["type"] == "compaction.completed").unwrap();
        let expected = if small_writes { "the summary of the small model" } else { "the summary of the session's model" };
        assert_eq!(summary["body"]["summary"], expected, "{summary}");
    }
}

/// A model of the role that does not answer is replaced by that of the session.
#[tokio::test]
async fn session_model_writes_the_summary_if_the_small_one_fails() {
    let home = Home::new();
    let own = home.script(json!([{"text": "one ".repeat(400)}, {"text": "the summary"}]));
    home.config("[roles]\nsmall = \"scripted:/nowhere.json\"\n");
    let mut agent = home.start(&["--model", &own]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, "go").await;
    agent.turn(&session, "/compact").await;
    agent.finish().await;
    let log = home.log(&session).await;
    let summary = log.iter().find(|event| event["body"]["type"] == "compaction.completed").unwrap();
    assert_eq!(summary["body"]["summary"], "the summary", "{summary}");
}

/// A project names no model for the user's keys.
#[tokio::test]
async fn project_file_sets_no_role() {
    let home = Home::new();
    let (own, plan) = (home.script(json!([{"text": "done"}])), home.script(json!([{"text": "a plan"}])));
    home.put(".nuncio/config.toml", &format!("[roles]\nplan = \"{plan}\"\n"));
    let ran = home.run(&["run", "--json", "--mode", "plan", "--model", &own, "go"], "").await;
    assert_eq!(models(&ran.lines()), [own.as_str()], "{ran:?}");
}

/// The mode `plan` of a definition does not replace its model, and the session's model writes if that of the
/// role `small` is refused.
#[tokio::test]
async fn roles_do_not_replace_each_other() {
    let home = Home::new();
    let (plan, named) = (home.script(json!([{"text": "a plan"}])), home.script(json!([{"text": "looked"}])));
    let agents = home.data().join("agents");
    std::fs::create_dir_all(&agents).unwrap();
    std::fs::write(agents.join("named.md"), format!("---\ndescription: Looks\nmodel: \"{named}\"\nmode: plan\n---\nLook.\n"))
        .unwrap();
    home.config(&format!("[roles]\nplan = \"{plan}\"\n"));
    let own = home.script(json!([calls(&[task("named", "Look.")]), {"text": "done"}]));
    let ran = home.run(&["run", "--json", "--model", &own, "go"], "").await;
    let lines = ran.lines();
    let child =
        lines.iter().find(|line| line["body"]["type"] == "child.started").unwrap()["body"]["childSessionId"].as_str().unwrap();
    assert_eq!(models(&home.log(child).await), [named.as_str()], "{ran:?}");

    let broken = home.script(json!([{"error": {"status": 401, "times": 9}, "text": "never"}]));
    let own = home.script(json!([{"text": "one ".repeat(400)}, {"text": "the summary"}]));
    home.config(&format!("[roles]\nsmall = \"{broken}\"\n"));
    let mut agent = home.start(&["--model", &own]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, "go").await;
    agent.turn(&session, "/compact").await;
    agent.finish().await;
    let log = home.log(&session).await;
    assert_eq!(models(&log).last(), Some(&own.as_str()), "{log:?}");
    let summary = log.iter().find(|event| event["body"]["type"] == "compaction.completed").unwrap();
    assert_eq!(summary["body"]["summary"], "the summary", "{summary}");
}

/// Returns the title of a session.
fn title(events: &[Value]) -> &str {
    let titles = events.iter().filter(|event| event["body"]["type"] == "session.updated");
    titles.filter_map(|event| event["body"]["title"].as_str()).next_back().unwrap()
}

/// The model of the role `small` writes the title of a new session, once. An answer that is no title,
/// and a model that fails, leave the title that was derived from the prompt.
#[tokio::test]
async fn small_model_writes_the_title() {
    // The answer, the title, and the number of requests whose usage counts.
    let cases = [
        (json!([{"text": "\"Repair the parser\"\n"}]), "Repair the parser", 1),
        (json!([{"text": "Certainly.\nThe parser has a bug."}]), "The parser fails", 1),
        // The stream ends before it reports its usage.
        (json!([{"text": "word ".repeat(200)}]), "The parser fails", 0),
        (json!([{"error": {"status": 401, "times": 9}, "text": "never"}]), "The parser fails", 0),
    ];
    for (steps, expected, usages) in cases {
        let home = Home::new();
        let (own, small) = (home.script(json!([{"text": "done"}, {"text": "again"}])), home.script(steps));
        home.config(&format!("[roles]\nsmall = \"{small}\"\n"));
        let mut agent = home.start(&["--model", &own]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let session = agent.new_session(&home).await;
        agent.turn(&session, "The parser fails").await;
        agent.turn(&session, "go on").await;
        agent.finish().await;
        let log = home.log(&session).await;
        assert_eq!((title(&log), models(&log)), (expected, vec![own.as_str(), &own]));
        let is_used = |event: &&Value| event["body"]["type"] == "usage.updated" && event["body"]["model"] == small.as_str();
        assert_eq!(log.iter().filter(is_used).count(), usages);
        // The model of the session is still that of its requests.
        let shown = home.run(&["sessions", "list", "--json"], "").await;
        assert_eq!(shown.lines()[0]["modelUsed"], own.as_str(), "{shown:?}");
    }
}

/// A title that a client sets while the first turn runs is not replaced.
#[tokio::test]
async fn title_of_a_client_stays() {
    let home = Home::new();
    let own = home.script(json!([bash("until test -e go; do sleep 0.01; done"), {"text": "done"}]));
    let small = home.script(json!([{"text": "Of the model", "delay_ms": 500, "chunk_chars": 4}]));
    home.config(&format!("[roles]\nsmall = \"{small}\"\n"));
    let mut agent = home.start(&["--model", &own, "--mode", "auto"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = agent.new_session(&home).await;
    let prompt = agent.prompt(&session, "The parser fails").await;
    // The turn has given the session the title of its prompt.
    agent.until("a tool call", |frame| frame["params"]["update"]["sessionUpdate"] == "tool_call").await;
    agent.call("session/set_title", json!({"sessionId": session, "title": "Of the client"})).await;
    home.put("go", "");
    agent.answer(&prompt).await.unwrap();
    agent.finish().await;
    assert_eq!(title(&home.log(&session).await), "Of the client");
}
