//! The models available to a client; the list requires no network.

use serde_json::{Value, json};

use harness::{Home, Site};

fn ids(options: &Value) -> Vec<String> {
    let model = options.as_array().unwrap().iter().find(|option| option["id"] == "model");
    let choices = model.unwrap_or_else(|| panic!("no option model: {options}"))["options"].as_array().unwrap().clone();
    choices.iter().map(|choice| choice["value"].as_str().unwrap().to_string()).collect()
}

fn models_of<'a>(ids: &'a [String], provider: &str) -> Vec<&'a str> {
    ids.iter().filter_map(|id| id.strip_prefix(provider)?.strip_prefix('/')).collect()
}

#[tokio::test]
async fn model_option_lists_all_models_of_providers() {
    let home = Home::new();
    home.env("ANTHROPIC_API_KEY", "k");
    home.env("MINE", "k");
    home.config(
        "[providers.local]\nbase_url = \"http://127.0.0.1:1/v1\"\nmodels = [\"a\", \"b/c\"]\n\
         [providers.groq]\napi_key_env = \"MINE\"\n\
         [providers.gemini]\napi_key_env = \"MINE\"\nmodels = [\"gemini-of-mine\"]\n",
    );
    let mut agent = home.start(&["--model", "anthropic/claude-of-mine"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let made = agent.call("session/new", json!({"cwd": home.work()})).await;
    let listed = agent.call("_nuncio/model/list", json!({})).await;
    agent.finish().await;
    let chosen = ids(&made["configOptions"]);
    let anthropic = models_of(&chosen, "anthropic");
    assert_eq!(anthropic[0], "claude-of-mine", "the current one comes first");
    assert!(
        anthropic.len() >= 4 && anthropic.contains(&"claude-sonnet-5-5") && anthropic.contains(&"claude-haiku-5-5"),
        "{chosen:?}"
    );
    assert_eq!(models_of(&chosen, "local"), ["a", "b/c"]);
    assert_eq!(models_of(&chosen, "gemini"), ["gemini-of-mine"], "the setting replaces the known ones");
    assert!(models_of(&chosen, "groq").len() > 1, "{chosen:?}");
    // A provider without a key has no models.
    assert_eq!(models_of(&chosen, "openai"), Vec::<&str>::new());
    let has_tools = |model: &&Value| model["abilities"].as_array().is_none_or(|abilities| abilities.contains(&json!("tools")));
    let listed = listed["models"].as_array().unwrap().iter().filter(has_tools);
    let listed: Vec<&str> = listed.map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(listed, chosen);
    let mut unique = chosen.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), chosen.len(), "{chosen:?}");
}

#[tokio::test]
async fn new_session_sends_no_requests() {
    let home = Home::new();
    let site = Site::start().await;
    home.env("OLLAMA_HOST", &site.host);
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.call("session/new", json!({"cwd": home.work()})).await;
    agent.finish().await;
    assert_eq!(site.asked(), Vec::<String>::new());
}
