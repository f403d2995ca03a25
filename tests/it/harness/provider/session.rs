//! Sessions whose model is a scripted provider.

use serde_json::{Value, json};

use super::{Exchange, KEY, Protocol, Provider, ReceivedRequest};
use crate::wires::{WIRES, Wire};
use crate::{Agent, Home};

/// The providers that are servers on this machine.
pub const LOCAL: [&str; 6] = ["ollama", "lmstudio", "llamacpp", "vllm", "koboldcpp", "jan"];

/// The setting of the provider `test`. The key comes from a command, because the environment of a
/// test has no key.
fn setting(provider: &Provider, wire: &Wire) -> String {
    let (protocol, base_url) = (wire.protocol.as_str(), &provider.base_url);
    format!("[providers.test]\nprotocol = \"{protocol}\"\nbase_url = \"{base_url}\"\napi_key_command = [\"echo\", \"{KEY}\"]\n")
}

/// A home with the model of the provider.
pub async fn home(wire: &Wire, exchanges: Vec<Exchange>) -> (Home, Provider, String) {
    let provider = Provider::start(wire.protocol, exchanges).await;
    let home = Home::new();
    home.config(&format!("model = \"test/{}\"\n{}", wire.model, setting(&provider, wire)));
    home.put("a", "what stands in a\n");
    home.put("b", "what stands in b\n");
    (home, provider, wire.model.into())
}

pub async fn connect(home: &Home) -> Agent {
    let mut agent = home.start(&["--thinking", "low"]).await;
    let capabilities = json!({ "session": { "notices": {} } });
    agent.call("initialize", json!({ "protocolVersion": 1, "clientCapabilities": capabilities })).await;
    agent
}

/// Returns the conversation in a request body of any protocol.
pub fn conversation(received: &ReceivedRequest) -> Vec<Value> {
    let body = &received.body;
    let list = ["messages", "input", "contents"].iter().find_map(|name| body[*name].as_array());
    list.unwrap_or_else(|| panic!("no conversation in {body}")).clone()
}

/// Removes the cache markers at the end of the conversation.
pub fn unmarked(mut value: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("cache_control");
                fields.values_mut().for_each(walk);
            }
            Value::Array(values) => values.iter_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut value);
    value
}

/// Continues a session with a model of Chat Completions. Returns the messages that the model
/// receives for the events so far.
pub async fn messages(home: &Home, session: &str) -> Vec<Value> {
    let wire = WIRES.iter().find(|wire| wire.protocol == Protocol::OpenaiChat).expect("a wire");
    let provider = Provider::start(wire.protocol, vec![Exchange::events(wire.plain)]).await;
    home.config(&format!("{}{}", home.config_text(), setting(&provider, wire)));
    let ran = home.run(&["run", "--resume", session, "--model", &format!("test/{}", wire.model), "next"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    conversation(&provider.finish().await[0])
}
