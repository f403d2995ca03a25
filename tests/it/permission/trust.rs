//! A project's settings: they narrow at once, and widen only what is trusted. Scopes against each other.

use serde_json::{Value, json};

use super::Verdict::{self, Allow, Ask, Deny};
use super::verdict;
use crate::harness::{Home, Reply, notices, tool};

const TRUE: &str = r#"{ tool = "bash", pattern = "true", policy = "#;

/// The user's rules and the project's, the verdict before and after `nuncio trust`.
async fn check(user: &str, project: &str, mode: &str, before: Verdict, after: Verdict) {
    let home = Home::new();
    let call = json!({"command": "true"});
    home.config(user);
    home.put(".nuncio/config.toml", project);
    assert_eq!(verdict(&home, mode, "bash", &call).await, before, "{user} | {project}: untrusted");
    let trusted = home.run(&["trust", "."], "").await;
    assert_eq!(trusted.code, 0, "{trusted:?}");
    assert_eq!(verdict(&home, mode, "bash", &call).await, after, "{user} | {project}: trusted");
}

#[tokio::test]
async fn a_project_narrows_at_once_and_widens_when_trusted() {
    let rules = |policy: &str| format!("[permissions]\nrules = [ {TRUE}\"{policy}\" }} ]\n");
    check("", &rules("allow"), "ask", Ask, Allow).await;
    check("", &rules("ask"), "auto", Ask, Ask).await;
    check("", &rules("deny"), "auto", Deny, Deny).await;
    check("", "[permissions]\ndefault = \"allow\"\n", "ask", Ask, Allow).await;
    check("", "[permissions]\ndefault = \"deny\"\n", "ask", Deny, Deny).await;
    check("[permissions]\ndefault = \"deny\"\n", "[permissions]\ndefault = \"ask\"\n", "ask", Deny, Ask).await;
    check("[permissions]\ndefault = \"deny\"\n", &rules("ask"), "ask", Deny, Ask).await;
    // The innermost scope that says anything decides, but a deny stands.
    check(&rules("deny"), &rules("allow"), "auto", Deny, Deny).await;
    check(&rules("ask"), &rules("allow"), "auto", Ask, Allow).await;
    check(&rules("allow"), &rules("ask"), "auto", Ask, Ask).await;
    check(&rules("allow"), &rules("deny"), "auto", Deny, Deny).await;
}

#[tokio::test]
async fn what_is_not_used_of_a_project_is_told() {
    let home = Home::new();
    home.put(
        ".nuncio/config.toml",
        "model = \"ollama/evil\"\nallowed_paths = [\"/\"]\n[permissions]\nrules = [ { policy = \"allow\" } ]\n",
    );
    let model = home.script(json!([{"tool_calls": [{"name": "bash", "input": {"command": "true"}}]}, {"text": "so be it"}]));
    let mut agent = home.start(&["--model", &model]).await;
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": {"session": {"notices": {}}}})).await;
    let session = agent.new_session(&home).await;
    agent.otherwise = Reply::Pick("reject_once");
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(tool(&updates, 0)["status"], "failed");
    let told: Vec<&Value> = updates.iter().filter(|update| update["sessionUpdate"] == "notice").collect();
    assert_eq!(notices(&updates).len(), 1, "{told:?}");
    let description = told[0]["description"].as_str().unwrap();
    for word in ["model", "allowed_paths", "rules", "nuncio trust"] {
        assert!(description.contains(word), "{word}: {description}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn a_deny_of_the_user_stands_against_the_session() {
    let home = Home::new();
    home.config("");
    let call = json!({"tool_calls": [{"name": "bash", "input": {"command": "true"}}]});
    let script = json!([call, {"text": "so be it"}]);
    let (mut agent, session) = home.session(script.clone(), &[]).await;
    agent.otherwise = Reply::Pick("allow_always");
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(tool(&updates, 0)["status"], "completed");
    agent.finish().await;
    for (rules, asked, status) in
        [("{ tool = \"bash\", policy = \"ask\" }", 0, "completed"), ("{ tool = \"bash\", policy = \"deny\" }", 0, "failed")]
    {
        home.config(&format!("[permissions]\nrules = [ {rules} ]\n"));
        let mut agent = home.start(&["--model", &home.script(script.clone())]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let (_, updates) = agent.turn(&session, "go").await;
        assert_eq!(tool(&updates, 0)["status"], status, "{rules}");
        let questions = agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").count();
        assert_eq!(questions, asked, "{rules}");
        agent.finish().await;
    }
}
