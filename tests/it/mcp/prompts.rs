//! Prompts of MCP servers as slash commands, and resources that a message attaches.

use serde_json::{Value, json};

use super::{home, session, setting};
use crate::mcp_serve::Client;
use harness::steps::{says, task};
use harness::subagents::{children, define};
use harness::{Agent, Home, notices};

/// The commands of servers in the last update: name, description, hint.
fn announced(agent: &Agent, session: &str) -> Vec<[String; 3]> {
    let updates = agent.updates(session);
    let update = updates.iter().rfind(|update| update["sessionUpdate"] == "available_commands_update").unwrap();
    let commands = update["availableCommands"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ours = commands.filter(|command| text(&command["name"]).starts_with("mcp__"));
    ours.map(|command| [text(&command["name"]), text(&command["description"]), text(&command["input"]["hint"])]).collect()
}

#[tokio::test]
async fn prompts_are_slash_commands() {
    let home = home(&["prompts"]);
    let steps = json!([
        says("Greet Ada (very formal).", "one"),
        says("Greet Bob (None).", "two"),
        says("Greet Cy Z (short).", "three"),
        says("User: Knock knock.\n\nAssistant: Who is there?\n\nUser: You.", "four"),
    ]);
    let (mut agent, id) = session(&home, steps).await;
    // The first message starts the server.
    for line in
        ["/mcp__docs__greet Ada very formal", "/mcp__docs__greet Bob", "/mcp__docs__greet style=short Cy Z", "/mcp__docs__talk"]
    {
        assert_eq!(agent.turn(&id, line).await.0, "end_turn", "{line}");
    }
    let greet = ["mcp__docs__greet", "docs: Greets.", "name [style]"].map(String::from);
    assert_eq!(announced(&agent, &id), [greet, ["mcp__docs__talk", "docs: talk", ""].map(String::from)]);
    let prompt = agent.prompt(&id, "/mcp__docs__greet").await;
    let error = agent.answer(&prompt).await.unwrap_err().to_string();
    assert!(error.contains("/mcp__docs__greet: the argument name is missing"), "{error}");
    let prompt = agent.prompt(&id, "/mcp__docs__none Ada").await;
    let error = agent.answer(&prompt).await.unwrap_err().to_string();
    assert!(error.contains("unknown command /mcp__docs__none (did you mean `/mcp__docs__greet`?"), "{error}");
    agent.finish().await;
    // The user's message is stored as it was written.
    let log = json!(home.log(&id).await).to_string();
    assert!(log.contains("\"/mcp__docs__greet Ada very formal\"") && log.contains("Greet Ada (very formal)."), "{log}");
}

#[tokio::test]
async fn messages_attach_resources() {
    let home = home(&["resources"]);
    let steps = json!([says("text of test://one", "one"), says("See @docs:test://missing and @other:x.", "two")]);
    let (mut agent, id) = session(&home, steps).await;
    let (stop, updates) = agent.turn(&id, "What is in @docs:test://one?").await;
    assert_eq!((stop.as_str(), notices(&updates)), ("end_turn", vec![]));
    let listed = agent.call("_nuncio/resource/list", json!({"sessionId": id})).await;
    assert_eq!(
        (&listed["resources"][0]["server"], &listed["resources"][0]["uri"]),
        (&json!("docs"), &json!("test://one")),
        "{listed}"
    );
    let (stop, updates) = agent.turn(&id, "See @docs:test://missing and @other:x.").await;
    let expected = "The resource test://missing of the MCP server docs was not attached";
    assert_eq!((stop.as_str(), notices(&updates)), ("end_turn", vec![expected]));
    agent.finish().await;
}

/// The prompt of a subagent is written by a model.
#[tokio::test]
async fn prompts_of_subagents_use_no_server() {
    let home = home(&["prompts", "resources"]);
    define(&home, "worker", "", json!([{"text": "done"}, {"text": "done"}]));
    let calls = [task("worker", "/mcp__docs__greet Ada"), task("worker", "Read @docs:test://one")];
    let (mut agent, id) = session(&home, json!([{ "tool_calls": calls }, says("done", "ok")])).await;
    assert_eq!(agent.turn(&id, "go").await.0, "end_turn");
    let children = children(&mut agent, &id).await;
    agent.finish().await;
    assert_eq!(children.len(), 2);
    for child in children {
        let log = json!(home.log(&child).await).to_string();
        assert!(!log.contains("Greet Ada (") && !log.contains("text of test://one"), "{log}");
    }
}

/// The prompt of a delegated task is written by the model of another agent.
#[tokio::test]
async fn delegated_prompts_use_no_server() {
    let home = home(&["prompts", "resources"]);
    let model = home.script(json!([{"text": "done"}]));
    let mut client = Client::start(&home, json!({}), &["--model", &model, "--mode", "auto"]).await;
    for prompt in ["/mcp__docs__greet Ada", "Read @docs:test://one"] {
        let (text, output, failed) = client.delegate(json!({"prompt": prompt})).await;
        assert_eq!((text.as_str(), failed), ("done", false), "{prompt}: {output}");
        let log = json!(home.log(output["sessionId"].as_str().unwrap()).await).to_string();
        assert!(!log.contains("Greet Ada (") && !log.contains("text of test://one"), "{log}");
    }
    client.finish().await;
}

#[tokio::test]
async fn rules_deny_prompts_and_resources() {
    let home = Home::new();
    let rule = |tool: &str, policy: &str| format!("[[permissions.rules]]\ntool = \"mcp__docs__{tool}\"\npolicy = \"{policy}\"\n");
    let rules = rule("read_*", "deny") + &rule("greet", "deny") + &rule("talk", "ask");
    home.config(&(rules + &setting("docs", &["prompts", "resources"])));
    let steps = json!([{"text": "one"}, says("Who is there?", "two")]);
    let (mut agent, id) = session(&home, steps).await;
    let (stop, updates) = agent.turn(&id, "What is in @docs:test://one?").await;
    let expected = "The resource test://one of the MCP server docs was not attached";
    assert_eq!((stop.as_str(), notices(&updates)), ("end_turn", vec![expected]));
    let prompt = agent.prompt(&id, "/mcp__docs__greet Ada").await;
    let error = agent.answer(&prompt).await.unwrap_err().to_string();
    assert!(error.contains("/mcp__docs__greet: denied by a rule"), "{error}");
    // The user typed the command, so no question is asked.
    assert_eq!(agent.turn(&id, "/mcp__docs__talk").await.0, "end_turn");
    agent.finish().await;
    let log = json!(home.log(&id).await).to_string();
    assert!(!log.contains("text of test://one") && !log.contains("Greet Ada ("), "{log}");
}

/// Every request to the provider repeats the parts of a message, so a part that the provider
/// refuses would break the session.
#[tokio::test]
async fn unusable_or_too_large_attachments_are_refused() {
    let home = home(&["prompts=picture", "resources"]);
    let (mut agent, id) = session(&home, json!([])).await;
    for (uri, valid) in [
        ("image://png", true),
        ("image://wrong-type", true),
        ("image://svg", false),
        ("image://broken", false),
        ("image://text", false),
        ("test://many", false),
        ("test://large", false),
    ] {
        let (_, updates) = agent.turn(&id, &format!("See @docs:{uri}")).await;
        let refused = format!("The resource {uri} of the MCP server docs was not attached");
        assert_eq!(notices(&updates), if valid { vec![] } else { vec![refused.as_str()] }, "{uri}");
    }
    // The limits are those of the whole message.
    let (_, updates) = agent.turn(&id, "See @docs:test://half, @docs:test://half-2 and @docs:test://half-3").await;
    assert_eq!(notices(&updates), ["The resource test://half-3 of the MCP server docs was not attached"]);
    let prompt = agent.prompt(&id, "/mcp__docs__picture").await;
    let error = agent.answer(&prompt).await.unwrap_err().to_string();
    assert!(error.contains("/mcp__docs__picture: its image is too large, or is not PNG"), "{error}");
    agent.finish().await;
    let log = home.log(&id).await;
    let parts = log.iter().flat_map(|event| event["body"]["context"].as_array().into_iter().flatten());
    let types: Vec<&Value> = parts.map(|part| &part["mimeType"]).filter(|mime_type| mime_type.is_string()).collect();
    assert_eq!(types, ["image/png", "image/png"]);
}
