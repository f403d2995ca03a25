//! A prompt that begins with the name of an unknown command does not reach the model.

use serde_json::{Value, json};

use super::bodies;
use harness::steps::{calls, says, task};
use harness::subagents::define;
use harness::{Home, text};

/// A model that answers whatever it is asked.
fn any() -> Value {
    json!([{"text": "the model answered"}])
}

#[tokio::test]
async fn run_names_the_nearest_command() {
    let home = Home::new();
    home.put(".nuncio/commands/fix-tests.md", "Fix them.");
    let model = home.script(any());
    for (prompt, words) in [
        ("/nosuch", &["unknown command /nosuch", "/review", "/compact"][..]),
        ("/revew the parser", &["unknown command /revew", "did you mean `/review`?"]),
        ("/fix-test", &["unknown command /fix-test", "did you mean `/fix-tests`?"]),
        ("/mcp__docs__nothing x", &["unknown command /mcp__docs__nothing"]),
    ] {
        let ran = home.run(&["run", "--model", &model, prompt], "").await;
        assert!(ran.code == 2 && ran.stdout.is_empty(), "{prompt}: {ran:?}");
        assert!(words.iter().all(|word| ran.stderr.contains(word)), "{prompt}: {ran:?}");
    }
}

#[tokio::test]
async fn text_that_is_no_command_reaches_the_model() {
    let home = Home::new();
    let model = home.script(any());
    for prompt in [
        "/usr/bin/x fails",
        "/tmp is full",
        "/etc",
        "/nosuch.txt is missing",
        "/nosuch/",
        "/ divides",
        "//comment",
        "/2 is a half",
        " /nosuch as text",
        "/help? what can you do",
        "see /nosuch",
        "/init",
        "/review it",
    ] {
        let ran = home.run(&["run", "--model", &model, prompt], "").await;
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "the model answered\n"), "{prompt}: {ran:?}");
    }
}

#[tokio::test]
async fn unknown_command_is_an_error_over_acp_and_rest() {
    let home = Home::new();
    let (mut agent, session) = home.session(any(), &[]).await;
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "/nosuch"}]});
    let error = agent.request("session/prompt", prompt).await.unwrap_err();
    assert!(error["code"] == -32602 && error["message"].as_str().unwrap().contains("unknown command /nosuch"), "{error}");
    // The session stays usable, and the model never sees the command.
    let (stop, updates) = agent.turn(&session, "hello").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "the model answered"));
    agent.finish().await;
    assert_eq!(bodies(&home.log(&session).await, "step.started").len(), 1);

    let server = home.serve_script(any(), &[]).await;
    let made = server.post("/v1/sessions", &json!({})).expect(201).await;
    let path = format!("/v1/sessions/{}/prompt", made["sessionId"].as_str().unwrap());
    let refused = server.post(&path, &json!({"prompt": [{"type": "text", "text": "/nosuch"}]})).expect(400).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("unknown command /nosuch"), "{refused}");
    server.stop().await;
}

/// A model wrote the prompt of a subagent, so a slash at its beginning is text.
#[tokio::test]
async fn prompt_of_a_subagent_is_text() {
    let home = Home::new();
    define(&home, "worker", "", json!([says("/nosuch", "done")]));
    let steps = json!([calls(&[task("worker", "/nosuch is a path")]), says("done", "ok")]);
    let (mut agent, session) = home.session(steps, &[]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
}
