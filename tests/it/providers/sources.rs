//! Sources of models and keys: providers of a project, unknown names, and keys hidden from
//! commands.

use serde_json::{Value, json};

use harness::marker;
use harness::provider::{Exchange, KEY, Provider};
use harness::wires::WIRES;
use harness::{Home, text, tool};

fn value<'a>(options: &'a Value, id: &str) -> &'a Value {
    options.as_array().unwrap().iter().find(|option| option["id"] == id).unwrap_or_else(|| panic!("no {id}: {options}"))
}

#[tokio::test]
async fn provider_of_trusted_project_is_available_in_project() {
    needs_linux!("sandbox");
    let wire = &WIRES[0];
    let provider = Provider::start(wire.protocol, vec![Exchange::events(wire.plain)]).await;
    let home = Home::new();
    home.put(
        ".nuncio/config.toml",
        &format!(
            "[providers.mine]\nprotocol = \"{}\"\nbase_url = \"{}\"\napi_key_command = [\"echo\", \"{KEY}\"]\n",
            wire.protocol.as_str(),
            provider.base_url
        ),
    );
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    let (mut agent, session) = home.session(json!([]), &[]).await;
    let params = json!({"sessionId": session, "configId": "model", "value": "mine/x"});
    let set = agent.call("session/set_config_option", params.clone()).await;
    let model = value(&set["configOptions"], "model");
    assert_eq!(model["currentValue"], "mine/x");
    assert!(model["options"].to_string().contains("\"mine/x\""), "{model}");
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "Hello");
    // The model can also be set in `session/new`.
    let made = agent.call("session/new", json!({"cwd": home.work(), "_meta": {"nuncio": {"model": "mine/x"}}})).await;
    assert_eq!(value(&made["configOptions"], "model")["currentValue"], "mine/x");
    // The provider is unknown in other directories.
    let elsewhere = home.put("../elsewhere/a", "").parent().unwrap().to_path_buf();
    let made = agent.call("session/new", json!({"cwd": elsewhere})).await;
    let params = json!({"sessionId": made["sessionId"], "configId": "model", "value": "mine/x"});
    let error = agent.request("session/set_config_option", params).await.unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
    agent.finish().await;
    provider.finish().await;
}

#[tokio::test]
async fn invalid_options_of_new_session_are_errors() {
    let home = Home::new();
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let cases =
        [("model", "nowhere/x"), ("model", "nonsense"), ("model", ""), ("thinking", "very"), ("thinking", ""), ("mode", "yolo")];
    let mut wrong = Vec::new();
    for (field, given) in cases {
        let made = agent.request("session/new", json!({"cwd": home.work(), "_meta": {"nuncio": {field: given}}})).await;
        match made {
            Err(error) if error["code"] == -32602 && error["message"].as_str().unwrap().contains(field) => {}
            other => wrong.push(format!("{field} {given:?}: {other:?}")),
        }
    }
    let listed = agent.call("session/list", json!({"_meta": {"nuncio": {"empty": true}}})).await;
    agent.finish().await;
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(listed["sessions"], json!([]));
}

#[tokio::test]
async fn commands_find_no_key_in_parent_processes() {
    let home = Home::new();
    let number = marker();
    let secret = format!("sk-{number}");
    home.env("ANTHROPIC_API_KEY", &format!("{secret}-one"));
    home.env("MY_OWN_KEY", &format!("{secret}-two"));
    home.config("[providers.mine]\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key_env = \"MY_OWN_KEY\"\n");
    // A pattern that does not match itself.
    let pattern = format!("sk-{}", number.replacen('.', "[.]", 1));
    let walk = format!(
        "env | grep -- '{pattern}'; p=$$; while [ \"$p\" -gt 1 ]; do tr '\\0' '\\n' < /proc/$p/environ | grep -- '{pattern}'; \
         tr '\\0' ' ' < /proc/$p/cmdline | grep -- '{pattern}'; \
         p=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$p/status); n=$((n+1)); done 2>/dev/null; echo walked $n"
    );
    let bash = |command: &str| json!({"name": "bash", "input": {"command": command}});
    let parent = format!("tr '\\0' '\\n' < /proc/$PPID/environ | grep -- '{pattern}'; echo looked");
    let calls = json!({"tool_calls": [bash(&walk), bash(&parent)]});
    let (mut agent, session) = home.session(json!([calls, {"text": "so it is"}]), &["--mode", "auto"]).await;
    let nuncio = format!("tr '\\0' '\\n' < /proc/{}/environ | grep -- '{pattern}'; echo found", agent.pid);
    let model = home.script(json!([{"tool_calls": [bash(&nuncio)]}, {"text": "so it is"}]));
    let (_, mut updates) = agent.turn(&session, "go").await;
    agent.call("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": model})).await;
    updates.extend(agent.turn(&session, "go on").await.1);
    agent.finish().await;
    for (index, word) in ["walked", "looked", "found"].into_iter().enumerate() {
        let call = tool(&updates, index);
        let said = json!([call["content"], call["rawOutput"]]).to_string();
        assert!(said.contains(word), "{index}: {said}");
        assert!(!said.contains(&secret), "{word}: {said}");
    }
}
