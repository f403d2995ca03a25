//! The user's settings: what clients see of them, and what they change in the file.

use serde_json::{Value, json};

use super::refused;
use harness::steps::{asks, bash};
use harness::{Agent, Home, Reply};

const GET: &str = "_nuncio/settings/get";
const SET_MODEL: &str = "_nuncio/settings/set_model";
const ADD_SERVER: &str = "_nuncio/settings/mcp/add";
const REMOVE_SERVER: &str = "_nuncio/settings/mcp/remove";
const ADD_RULE: &str = "_nuncio/settings/rules/add";
const REMOVE_RULE: &str = "_nuncio/settings/rules/remove";

async fn started(home: &Home, flags: &[&str]) -> Agent {
    let mut agent = home.start(flags).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn settings_are_listed_with_where_they_are_defined() {
    let home = Home::new();
    home.config(
        "model = \"anthropic/claude-haiku-4-5\"\n[mcp.docs]\nurl = \"https://example.com/mcp?key=secret\"\nenabled = false\n\
         [[permissions.rules]]\ntool = \"bash\"\npattern = \"make *\"\npolicy = \"allow\"\n",
    );
    home.env("OPENAI_API_KEY", "sk-never-shown");
    home.put(".nuncio/skills/ship/SKILL.md", "---\ndescription: Ships it\n---\nShip.");
    home.put(".nuncio/config.toml", "[[permissions.rules]]\ntool = \"fetch\"\npolicy = \"deny\"\n");
    let mut agent = started(&home, &[]).await;
    let found = agent.call(GET, json!({"cwd": home.work()})).await;
    let file = home.data().join("config.toml").display().to_string();
    assert_eq!((&found["file"], &found["changeable"]), (&json!(file), &json!(true)), "{found}");
    assert_eq!((&found["model"], &found["modelFrom"]), (&json!("anthropic/claude-haiku-4-5"), &json!(file)), "{found}");
    let keyed: Vec<&Value> = found["providers"].as_array().unwrap().iter().filter(|one| one.get("keySource").is_some()).collect();
    assert_eq!(keyed, [&json!({"name": "openai", "keySource": "$OPENAI_API_KEY"})]);
    assert!(names(&found["providers"]).contains(&"anthropic"), "{found}");
    let server = &found["mcpServers"][0];
    assert_eq!((&server["name"], &server["enabled"], &server["definedIn"]), (&json!("docs"), &json!(false), &json!(file)));
    let scopes: Vec<&Value> = found["rules"].as_array().unwrap().iter().map(|rule| &rule["scope"]).collect();
    assert_eq!(scopes, ["user", "project"], "{found}");
    assert_eq!((&found["rules"][0]["removable"], &found["rules"][1]["removable"]), (&json!(true), &json!(false)));
    assert_eq!(names(&found["skills"]), ["ship"]);
    for secret in ["sk-never-shown", "key=secret"] {
        assert!(!found.to_string().contains(secret), "{found}");
    }
    refused(&mut agent, &[(GET, json!({"cwd": "/nowhere"}), -32602, "not a directory")]).await;
    agent.finish().await;
}

/// A change is in the file, with its comments, and in the next session of this process.
#[tokio::test]
async fn changes_are_written_and_used() {
    let home = Home::new();
    home.exact_config("# Mine.\n[budget] # bounds\nmax_requests = 9\n");
    let model = home.script(json!([bash("make x"), {"text": "done"}, asks(), {"text": "done"}]));
    let mut agent = started(&home, &[]).await;
    agent.call(SET_MODEL, json!({"model": model})).await;
    agent.call(ADD_RULE, json!({"rule": {"tool": "bash", "pattern": "make *", "policy": "deny"}})).await;
    agent
        .call(
            ADD_SERVER,
            json!({"name": "docs", "server": {"command": ["docs-server", "--root", "a b"], "env": {"TOKEN": "$DOCS"}}}),
        )
        .await;
    let text = home.config_text();
    for part in ["# Mine.", "# bounds", "max_requests = 9", "[mcp.docs]", "\"a b\""] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let found = agent.call(GET, json!({"cwd": home.work()})).await;
    assert_eq!((&found["model"], names(&found["mcpServers"])), (&json!(model), vec!["docs"]), "{found}");
    agent.call(REMOVE_SERVER, json!({"name": "docs"})).await;
    let session = agent.new_session(&home).await;
    agent.replies = [Reply::Pick("reject_once")].into();
    let (stop, updates) = agent.turn(&session, "go").await;
    assert_eq!(stop, "end_turn");
    assert!(json!(updates).to_string().contains("denied"), "{updates:?}");
    assert_eq!(agent.replies.len(), 1, "the rule decides, nobody is asked");
    agent.call(REMOVE_RULE, json!({"rule": {"tool": "bash", "pattern": "make *", "policy": "deny"}})).await;
    agent.turn(&session, "again").await;
    assert!(agent.replies.is_empty(), "without the rule, a person is asked");
    agent.call(SET_MODEL, json!({})).await;
    let found = agent.call(GET, json!({"cwd": home.work()})).await;
    assert!(found.get("model").is_none() && found["rules"] == json!([]) && found["mcpServers"] == json!([]), "{found}");
    assert!(home.config_text().contains("max_requests = 9"));
    agent.finish().await;
}

#[tokio::test]
async fn wrong_changes_leave_the_file_as_it_is() {
    let home = Home::new();
    let before = "[mcp.docs]\nurl = \"https://example.com/mcp\"\n";
    home.exact_config(before);
    let mut agent = started(&home, &[]).await;
    refused(
        &mut agent,
        &[
            (SET_MODEL, json!({"model": "no-such/model"}), -32602, "no-such"),
            (ADD_SERVER, json!({"name": "docs", "server": {"command": ["x"]}}), -32602, "already"),
            (ADD_SERVER, json!({"name": "a b", "server": {"command": ["x"]}}), -32602, "invalid name"),
            (ADD_SERVER, json!({"name": "empty", "server": {}}), -32602, "empty"),
            (ADD_SERVER, json!({"name": "blank", "server": {"command": [""]}}), -32602, "program is empty"),
            (ADD_SERVER, json!({"name": "both", "server": {"command": ["x"], "url": "https://example.com"}}), -32602, "both"),
            (REMOVE_SERVER, json!({"name": "other"}), -32602, "no server"),
            (ADD_RULE, json!({"rule": {"tool": "bash", "policy": "perhaps"}}), -32602, "policy"),
            (ADD_RULE, json!({"rule": {"tool": "no_such_tool", "policy": "deny", "colour": 1}}), -32602, "colour"),
            (ADD_RULE, json!({"rule": {"tool": "no_such_tool", "policy": "deny"}}), -32602, "no_such_tool"),
            (ADD_RULE, json!({"rule": {"tool": "fetch", "path": "x", "policy": "deny"}}), -32602, "path"),
            (REMOVE_RULE, json!({"rule": {"tool": "bash", "policy": "deny"}}), -32002, "does not have"),
        ],
    )
    .await;
    assert_eq!(home.config_text(), before);
    // Sessions still work.
    agent.new_session(&home).await;
    agent.finish().await;
}

/// Over HTTP, the settings are changed with the owner's token alone, and hold no secrets.
#[tokio::test]
async fn only_the_owner_changes_settings_over_http() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    for role in ["controller", "observer"] {
        let made = home.run(&["token", "new", role, "--role", role], "").await;
        let other = server.with_token(made.stdout.trim());
        let found = other.get("/v1/settings").expect(200).await;
        assert_eq!(found["changeable"], false, "{role}: {found}");
        other.ask("PUT", "/v1/settings/model").json(&json!({"model": "openai/gpt-5"})).expect(403).await;
        other.post("/v1/settings/mcp", &json!({"name": "a", "server": {"url": "https://example.com/mcp"}})).expect(403).await;
        other.ask("DELETE", "/v1/settings/mcp/a").expect(403).await;
        other.post("/v1/settings/rules", &json!({"rule": {"tool": "bash", "policy": "allow"}})).expect(403).await;
        other.post("/v1/settings/rules/remove", &json!({"rule": {"tool": "bash", "policy": "allow"}})).expect(403).await;
    }
    let secret = json!({"name": "a", "server": {"command": ["x"], "env": {"TOKEN": "literal"}}});
    server.post("/v1/settings/mcp", &secret).expect(403).await;
    let named = json!({"name": "a", "server": {"command": ["x"], "env": {"TOKEN": "$DOCS_TOKEN"}}});
    server.post("/v1/settings/mcp", &named).expect(200).await;
    server.post("/v1/settings/rules", &json!({"rule": {"tool": "bash", "policy": "ask"}})).expect(200).await;
    assert!(home.config_text().contains("$DOCS_TOKEN") && !home.config_text().contains("literal"), "{}", home.config_text());
    server.ask("DELETE", "/v1/settings/mcp/a").expect(200).await;
    let found = server.get("/v1/settings").expect(200).await;
    assert_eq!((&found["changeable"], &found["mcpServers"]), (&json!(true), &json!([])), "{found}");
    server.stop().await;
}
