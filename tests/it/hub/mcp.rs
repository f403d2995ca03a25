//! The MCP servers and directories that a hosted agent gets, and the sessions to which its reports
//! belong.

use serde_json::{Value, json};

use super::{bodies, home, hosted, session, setting, trust};
use crate::mcp_serve::Client;
use harness::{Agent, Home, Reply, session_updates};

/// The names of the MCP servers that the agent got.
async fn servers(agent: &mut Agent, session: &str) -> Vec<String> {
    let servers: Value = serde_json::from_str(&agent.reply(session, "servers").await).unwrap();
    servers.as_array().unwrap().iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect()
}

fn given(names: &[&str]) -> Value {
    let server = |name: &&str| json!({"type": "http", "name": name, "url": "http://127.0.0.1:9/mcp", "headers": []});
    names.iter().map(server).collect()
}

#[tokio::test]
async fn servers_that_the_agent_does_not_support_are_reported() {
    for (flags, expected, notices) in [(&["http"][..], vec!["docs", "nuncio"], 0), (&[], vec!["nuncio"], 1)] {
        let home = home(flags).await;
        let mut agent = home.start(&[]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let params = json!({"cwd": home.work(), "mcpServers": given(&["docs"]), "_meta": {"nuncio": {"agent": "other"}}});
        let session = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
        assert_eq!(servers(&mut agent, &session).await, expected);
        assert_eq!(servers(&mut agent, &session).await, expected);
        agent.finish().await;
        let found = bodies(&home, &session, &["notice"]).await;
        assert_eq!(found.len(), notices, "{found:?}");
        assert!(found.iter().all(|notice| notice["description"] == "docs"), "{found:?}");
    }
}

#[tokio::test]
async fn new_servers_and_directories_reach_a_running_agent() {
    for (flags, starts_again) in [(&["http"][..], true), (&["http", "no-load"], false)] {
        let home = home(flags).await;
        let (mut agent, session) = session(&home, &[]).await;
        assert_eq!(servers(&mut agent, &session).await, ["nuncio"]);
        let more = home.data().join("more");
        std::fs::create_dir_all(&more).unwrap();
        let params = json!({
            "sessionId": session, "cwd": home.work(), "mcpServers": given(&["docs"]), "additionalDirectories": [more],
        });
        agent.call("session/resume", params).await;
        let (expected, directories) = match starts_again {
            true => (vec!["docs", "nuncio"], json!([more])),
            false => (vec!["nuncio"], json!([])),
        };
        assert_eq!(servers(&mut agent, &session).await, expected);
        assert_eq!(agent.reply(&session, "directories").await, directories.to_string());
        agent.finish().await;
        let notices = bodies(&home, &session, &["notice"]).await;
        assert_eq!(notices.len(), usize::from(!starts_again), "{notices:?}");
    }
}

#[tokio::test]
async fn updates_of_other_sessions_are_ignored() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    assert_eq!(agent.reply(&session, "stranger").await, "done");
    agent.turn(&session, "say").await;
    let updates = session_updates(&agent.frames, &session);
    let last = updates.iter().rfind(|update| update["sessionUpdate"] == "available_commands_update").unwrap();
    assert_eq!(last["availableCommands"][0]["name"], "web");
    agent.finish().await;
}

#[tokio::test]
async fn secrets_of_the_project_do_not_reach_the_agent() {
    let home = Home::new();
    home.env("PROJECT_KEY", "key-1");
    home.config(&setting("other", &[]));
    let provider =
        "[providers.own]\nprotocol = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9\"\napi_key_env = \"PROJECT_KEY\"\n";
    home.put("project/.nuncio/config.toml", provider);
    let project = home.work().join("project");
    trust(&home).await;
    assert_eq!(home.run(&["trust", "project"], "").await.code, 0);
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let params = json!({"cwd": project, "mcpServers": [], "_meta": {"nuncio": {"agent": "other"}}});
    let inside = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(agent.reply(&inside, "env PROJECT_KEY").await, "(unset)");
    let outside = hosted(&mut agent, &home, "other").await;
    assert_eq!(agent.reply(&outside, "env PROJECT_KEY").await, "key-1");
    agent.finish().await;
}

#[tokio::test]
async fn command_of_the_program_form_runs_in_the_session_of_another_process() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let turn = agent.prompt(&session, "wait").await;
    agent.until("the turn", |frame| frame["params"]["update"]["status"] == "in_progress").await;
    home.env("NUNCIO_SESSION", &session);
    let mut client = Client::start(&home, json!({}), &[]).await;
    agent.replies = [Reply::Pick("allow_once")].into();
    let params = json!({"name": "workspace_execute", "arguments": {"command": "echo $NUNCIO_SESSION"}});
    let (answer, ()) = tokio::join!(client.call("tools/call", params), async {
        agent.until("the result", |frame| frame["params"]["update"]["status"] == "completed").await;
    });
    assert_eq!(answer["result"]["content"][0]["text"], format!("{session}\nexit code: 0"), "{answer}");
    client.finish().await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&turn).await.unwrap()["stopReason"], "cancelled");
    agent.finish().await;
}
