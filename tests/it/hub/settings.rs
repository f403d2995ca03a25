//! Agents of the settings: allowed, trusted, listed.

use serde_json::{Value, json};

use super::{AGENT, home, setting, trust};
use harness::{Home, text};

async fn new_session_error(home: &Home, name: &str) -> Value {
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let params = json!({"cwd": home.work(), "mcpServers": [], "_meta": {"nuncio": {"agent": name}}});
    let error = agent.request("session/new", params).await.unwrap_err();
    agent.finish().await;
    error
}

#[tokio::test]
async fn agent_must_be_known_allowed_and_its_directory_trusted() {
    let home = Home::new();
    let unknown = new_session_error(&home, "other").await;
    assert_eq!(
        (&unknown["data"]["code"], &unknown["data"]["hint"]),
        (&json!("invalid_params"), &json!("the settings have no agents; to add it: nuncio agents add other -- COMMAND"))
    );
    home.config(&setting("other", &[]).replace("allowed = [\"other\"]", "allowed = []"));
    let forbidden = new_session_error(&home, "other").await;
    assert_eq!(
        (&forbidden["data"]["code"], &forbidden["data"]["hint"]),
        (&json!("forbidden"), &json!("add \"other\" to allowed in [agents]"))
    );
    home.config(&setting("other", &[]));
    let untrusted = new_session_error(&home, "other").await;
    assert_eq!(untrusted["data"]["code"], "forbidden");
    assert!(untrusted["data"]["hint"].as_str().unwrap().contains("nuncio trust"), "{untrusted}");
}

#[tokio::test]
async fn project_cannot_set_agents() {
    let home = Home::new();
    home.put(".nuncio/config.toml", &setting("other", &[]));
    trust(&home).await;
    assert_eq!(new_session_error(&home, "other").await["data"]["code"], "invalid_params");
}

#[tokio::test]
async fn change_of_the_project_ends_the_trust() {
    let home = home(&[]).await;
    let (mut agent, session) = super::session(&home, &[]).await;
    home.put(".nuncio/config.toml", "[tools]\nmax_concurrency = 1\n");
    assert_eq!(agent.failure(&session, "say").await["data"]["code"], "forbidden");
    agent.finish().await;
}

#[tokio::test]
async fn invalid_agents_are_reported() {
    for (toml, problem) in [
        ("[agents.x]\nkind = \"acp\"\n", "agents.x: set command"),
        ("[agents.x]\nkind = \"fake\"\n", "agents.x: set config"),
        ("[agents.x]\nkind = \"codex\"\nscope = \"workspace\"\n", "agents.x: scope"),
        ("[agents.x]\nkind = \"other\"\n", "unknown variant"),
        ("[agents.x]\nkind = \"acp\"\ncommand = [\"x\"]\nidle = 1\n", "unknown field"),
    ] {
        let home = Home::new();
        home.config(toml);
        let ran = home.run(&["config", "check"], "").await;
        assert!(ran.code != 0 && ran.stderr.contains(problem), "{toml}: {ran:?}");
    }
}

#[tokio::test]
async fn environment_of_the_agent_is_that_of_the_settings() {
    let home = Home::new();
    home.env("OPENAI_API_KEY", "key-1");
    home.env("OTHER_KEY", "key-2");
    let more = "env = { GIVEN = \"plain\", TAKEN = \"$OTHER_KEY\" }\nenv_pass = [\"OPENAI_API_KEY\"]\n";
    home.config(&(setting("other", &[]) + more + &setting("hidden", &[]).replacen("[agents]\nallowed = [\"hidden\"]\n", "", 1)));
    let config = home.config_text().replace("allowed = [\"other\"]", "allowed = [\"other\", \"hidden\"]");
    home.config(&config);
    trust(&home).await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let other = super::hosted(&mut agent, &home, "other").await;
    let hidden = super::hosted(&mut agent, &home, "hidden").await;
    for (session, name, expected) in [
        (&other, "OPENAI_API_KEY", "key-1"),
        (&other, "GIVEN", "plain"),
        (&other, "TAKEN", "key-2"),
        (&other, "NUNCIO_SESSION", &other),
        (&other, "NUNCIO_DEPTH", "1"),
        (&hidden, "OPENAI_API_KEY", "(unset)"),
        (&hidden, "OTHER_KEY", "(unset)"),
    ] {
        let (_, updates) = agent.turn(session, &format!("env {name}")).await;
        assert_eq!(text(&updates, "agent_message_chunk"), expected, "{name}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn agents_are_listed_with_their_problems() {
    let home = home(&[]).await;
    let more = "[agents.gone]\nkind = \"codex\"\ncommand = [\"no-such-program\"]\n";
    home.config(&(home.config_text() + more));
    let mut agent = home.start(&[]).await;
    let list = agent.call("_nuncio/agent/list", json!({})).await;
    let entries: Vec<(&str, &str, Option<&str>)> = list["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["name"].as_str().unwrap(), entry["kind"].as_str().unwrap(), entry["problem"].as_str()))
        .collect();
    assert_eq!(entries[0], ("nuncio", "native", None));
    assert_eq!(entries[1], ("gone", "codex", Some("agent: gone is not allowed (add \"gone\" to allowed in [agents])")));
    assert_eq!(entries[2], ("other", "acp", None), "{AGENT}");
    agent.finish().await;
}

#[tokio::test]
async fn session_of_a_hosted_agent_cannot_be_forked() {
    let home = home(&[]).await;
    let (mut agent, session) = super::session(&home, &[]).await;
    agent.turn(&session, "say").await;
    let forked = agent.request("_nuncio/session/fork", json!({"sessionId": session})).await;
    assert_eq!(forked.unwrap_err()["data"]["code"], "unsupported");
    agent.finish().await;
}
