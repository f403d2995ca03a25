//! Agent definitions: where they are found, what they set, and what an untrusted project may not.

use serde_json::{Value, json};

use harness::steps::{calls, says, task};
use harness::subagents::define;
use harness::{Agent, Home};

async fn subagents(agent: &mut Agent, home: &Home) -> Vec<Value> {
    agent.call("_nuncio/agent/list", json!({"cwd": home.work()})).await["subagents"].as_array().unwrap().clone()
}

#[tokio::test]
async fn definitions_of_project_and_user_are_listed() {
    let home = Home::new();
    home.put(".git/HEAD", "ref: refs/heads/main\n");
    define(&home, "reviewer", "tools: Read, Grep, LS, WebFetch, Bash(git *), NoSuchTool\n", json!([]));
    home.put(".claude/agents/tester.md", "---\nname: tester\ndescription: >\n  Runs the\n  tests\nmodel: sonnet\n---\nTest it.\n");
    home.put(
        ".nuncio/agents/writer.md",
        "---\ndescription: \"Writes: docs\"\ntools:\n  - Write\n  - mcp__docs__find\n---\nWrite.\n",
    );
    home.put(".nuncio/agents/tester.md", "---\nname: tester\ndescription: ours\nmode: plan\nmodel: openai/x\n---\nTest it.\n");
    home.put(".nuncio/agents/none.md", "no frontmatter\n");
    home.put("../secret.md", "---\nname: secret\ndescription: outside\n---\nsecret\n");
    std::os::unix::fs::symlink(home.work().join("../secret.md"), home.work().join(".nuncio/agents/secret.md")).unwrap();
    let (mut agent, _) = home.session(json!([]), &[]).await;
    let found = subagents(&mut agent, &home).await;
    let names: Vec<&str> = found.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["reviewer", "tester", "writer"], "{found:#?}");
    assert_eq!(found[0]["tools"], json!(["read", "grep", "list", "fetch", "bash"]));
    assert_eq!((&found[1]["description"], &found[1]["mode"], &found[1]["model"]), (&json!("ours"), &json!("plan"), &Value::Null));
    assert_eq!((&found[2]["description"], &found[2]["tools"]), (&json!("Writes: docs"), &json!(["write", "mcp__docs__find"])));
    agent.finish().await;

    // After trust, the model of a project's definition counts.
    home.run(&["trust", "."], "").await;
    let (mut agent, _) = home.session(json!([]), &[]).await;
    assert_eq!(subagents(&mut agent, &home).await[1]["model"], "openai/x");
    agent.finish().await;
}

#[tokio::test]
async fn tools_of_a_definition_are_all_that_its_subagent_has() {
    let home = Home::new();
    let refused = "there is no tool bash; available: grep, read";
    define(
        &home,
        "reader",
        "tools: [Read, Grep]\n",
        json!([harness::steps::bash("touch made"), says(refused, "only grep and read")]),
    );
    let (mut agent, session) =
        home.session(json!([calls(&[task("reader", "work")]), says("only grep and read", "ok")]), &["--mode", "auto"]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    assert_eq!(home.get("made"), None);
    agent.finish().await;
}

#[tokio::test]
async fn unknown_agent_is_reported_with_the_known_ones() {
    let home = Home::new();
    define(&home, "reader", "", json!([]));
    let steps = json!([calls(&[task("writer", "work")]), says("there is no agent writer; use one of reader", "ok")]);
    let (mut agent, session) = home.session(steps, &[]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
}

#[tokio::test]
async fn definition_of_an_untrusted_project_does_not_replace_one_of_the_user() {
    let home = Home::new();
    define(&home, "reader", "", json!([says("You are reader", "from the user")]));
    home.put(".nuncio/agents/reader.md", "---\nname: reader\ndescription: other\n---\nYou are another.\n");
    let (mut agent, session) = home.session(json!([calls(&[task("reader", "work")]), says("from the user", "ok")]), &[]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
}
