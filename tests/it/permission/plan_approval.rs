//! The question at the end of a turn in mode `plan`: whether to carry out the plan.

use serde_json::{Value, json};

use harness::steps::write;
use harness::{Home, Reply};

fn planned(steps: &[&str]) -> Value {
    let entries: Vec<Value> = steps.iter().map(|step| json!({"content": step})).collect();
    json!({"tool_calls": [{"name": "plan", "input": {"entries": entries}}]})
}

fn chosen(option: &str) -> Reply {
    Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": option}}))
}

#[tokio::test]
async fn approved_plan_is_carried_out_in_the_chosen_mode() {
    for (option, mode, questions) in [("ask", "ask", 2), ("accept-edits", "accept-edits", 1)] {
        let home = Home::new();
        let steps = json!([
            planned(&["write it", "check it"]),
            {"text": "This is the plan."},
            {"expect": "The user approved the plan, and the mode is now", "tool_calls": write("made.txt", "text\n")["tool_calls"]},
            {"text": "It is done."},
            {"text": "Later."},
        ]);
        let (mut agent, session) = home.session(steps, &["--mode", "plan"]).await;
        agent.replies = [chosen(option), Reply::Pick("allow_once")].into();
        let (stop, _) = agent.turn(&session, "plan it").await;
        assert_eq!((stop.as_str(), agent.questions()), ("end_turn", questions), "{option}");
        assert_eq!(home.get("made.txt").as_deref(), Some("text\n"));
        let asked = agent.frames.iter().find(|frame| frame["method"] == "session/request_permission").unwrap();
        let call = &asked["params"]["toolCall"];
        assert_eq!(call["title"], "carrying out the plan", "{asked}");
        assert!(call["content"].to_string().contains("1. write it\\n2. check it\\n"), "{asked}");
        assert_eq!(agent.view(&session).await["mode"], mode);
        // The plan is not asked about again.
        agent.turn(&session, "go on").await;
        assert_eq!(agent.questions(), questions);
        agent.finish().await;
    }
}

#[tokio::test]
async fn rejected_plan_ends_the_turn_or_is_changed_for_the_reason() {
    let home = Home::new();
    let steps = json!([
        planned(&["write it"]),
        {"text": "This is the plan."},
        planned(&["write it well"]),
        {"text": "This is the second plan."},
        {"expect": "The user did not approve the plan: with tests", "text": "I see."},
    ]);
    let (mut agent, session) = home.session(steps, &["--mode", "plan"]).await;
    agent.otherwise = chosen("plan");
    assert_eq!(agent.reply(&session, "plan it").await, "This is the plan.");
    agent.otherwise = Reply::Never;
    let prompt = agent.prompt(&session, "better").await;
    agent.until_question().await;
    let open = agent.call("_nuncio/permission/list", json!({})).await["permissions"][0].clone();
    assert_eq!(open["options"].as_array().unwrap().len(), 3, "{open}");
    let answer = json!({"permissionId": open["permissionId"], "optionId": "plan", "reason": "with tests"});
    agent.call("_nuncio/permission/answer", answer).await;
    agent.answer(&prompt).await.unwrap();
    assert_eq!(agent.view(&session).await["mode"], "plan");
    assert_eq!(agent.questions(), 2);
    agent.finish().await;
}

/// Without steps, or with nobody to answer, the turn ends as in other modes.
#[tokio::test]
async fn turn_without_a_plan_or_a_client_ends() {
    let home = Home::new();
    let steps = json!([{"text": "It works so."}, planned(&["write it"]), {"text": "This is the plan."}]);
    let (mut agent, session) = home.session(steps.clone(), &["--mode", "plan"]).await;
    assert_eq!(agent.reply(&session, "how does it work?").await, "It works so.");
    assert_eq!(agent.questions(), 0);
    agent.finish().await;
    let ran = home.run(&["run", "--mode", "plan", "--model", &home.script(json!([steps[1], steps[2]])), "plan it"], "").await;
    assert_eq!((ran.code, ran.stdout.contains("This is the plan.")), (0, true), "{ran:?}");
}
