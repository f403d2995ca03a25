//! Calls and their results.

use harness::rules::Platform;
use serde_json::{Value, json};

use super::{
    ABSENT, BEDROCK, CLAUDE, COMPATIBLE, Case, DEEPSEEK, GEMINI, LLAMACPP, MISTRAL, MOONSHOT, OLLAMA, OPENAI, RESPONSES, Server,
    VERTEX, bodies, case, chat,
};

/// Refuses this value of a part, and takes the part as it is.
fn breaks(rule: u8, server: Server, at: &'static str, value: Value) -> Case {
    let keeps = bodies::body(server).pointer(at).expect("a part").clone();
    case(rule, server, at, keeps, value)
}

/// Returns the elements of a list at these indexes.
fn picked(server: Server, at: &str, indexes: &[usize]) -> Value {
    let body = bodies::body(server);
    let list = body.pointer(at).expect("a list");
    indexes.iter().map(|index| list[*index].clone()).collect()
}

pub fn cases() -> Vec<Case> {
    let mut cases = pairs();
    cases.extend(ids());
    cases.extend(arguments());
    let user = || json!([{"role": "user", "content": [{"text": "hi"}]}]);
    cases
        .push(case(21, BEDROCK, "/messages", user(), bodies::body(BEDROCK)["messages"].clone()).with("/toolConfig", json!(ABSENT)));
    let failed = "/messages/2/content/0/toolResult/status";
    cases.push(
        case(22, BEDROCK, failed, json!("success"), json!("error")).with("/messages/2/content/0/toolResult/content", json!([])),
    );
    cases.push(
        case(22, BEDROCK, "/messages/2/content/1/toolResult/content", json!([{"text": "none"}]), json!([]))
            .with("/messages/2/content/1/toolResult/status", json!("error")),
    );
    cases
}

fn pairs() -> Vec<Case> {
    let mut cases = Vec::new();
    let claude = |rule: &[usize]| picked(CLAUDE, "/messages/2/content", rule);
    // No result, one of two, twice, and text before them.
    for content in [claude(&[2]), claude(&[0, 2]), claude(&[1]), claude(&[0, 1, 0]), claude(&[2, 0, 1]), claude(&[0, 2, 1])] {
        cases.push(case(13, CLAUDE, "/messages/2/content", claude(&[1, 0, 2]), content));
    }
    cases.push(breaks(13, CLAUDE, "/messages/2/content/0/tool_use_id", json!("toolu_9")));
    cases.push(breaks(13, CLAUDE, "/messages", picked(CLAUDE, "/messages", &[0, 2])));
    cases.push(breaks(13, CLAUDE, "/messages", picked(CLAUDE, "/messages", &[0, 1, 0, 2])));
    for server in [OPENAI, COMPATIBLE, MISTRAL, DEEPSEEK, OLLAMA, chat(Platform::Minimax, "MiniMax-M2")] {
        let messages = |indexes: &[usize]| picked(server, "/messages", indexes);
        for broken in
            [messages(&[0, 1, 2, 3]), messages(&[0, 1, 2, 3, 4, 3]), messages(&[0, 1, 3, 4]), messages(&[0, 1, 2, 3, 1, 4, 1])]
        {
            let broken = match server.platform {
                // A user after a result has a rule of its own there.
                Platform::Mistral if broken.as_array().is_some_and(|list| list.len() > 6) => continue,
                _ => broken,
            };
            cases.push(case(13, server, "/messages", messages(&[0, 1, 2, 4, 3]), broken));
        }
    }
    let items = |indexes: &[usize]| picked(RESPONSES, "/input", indexes);
    for broken in [items(&[0, 1, 2, 3, 4, 6]), items(&[0, 2, 4, 5]), items(&[0, 2, 4, 4]), items(&[0, 4, 2])] {
        cases.push(case(13, RESPONSES, "/input", items(&[0, 2, 4, 1, 3, 6, 5]), broken));
    }
    let parts = |indexes: &[usize]| picked(GEMINI, "/contents/2/parts", indexes);
    for broken in [parts(&[0]), parts(&[1, 0]), parts(&[0, 1, 1])] {
        cases.push(case(13, GEMINI, "/contents/2/parts", parts(&[0, 1]), broken));
    }
    cases.push(breaks(13, VERTEX, "/contents", picked(VERTEX, "/contents", &[0, 2])));
    cases.push(breaks(13, VERTEX, "/contents", picked(VERTEX, "/contents", &[0, 1, 0])));
    let blocks = |indexes: &[usize]| picked(BEDROCK, "/messages/2/content", indexes);
    for broken in [blocks(&[0, 2]), blocks(&[2]), blocks(&[0, 1, 1])] {
        cases.push(case(13, BEDROCK, "/messages/2/content", blocks(&[1, 0]), broken));
    }
    cases
}

/// Sets the ids of both calls and of their results.
fn named(server: Server, at: &'static str, first: &str, second: &str) -> Value {
    let text = bodies::body(server).pointer(at).expect("a list").to_string();
    let known = [("toolu_1", "toolu_2"), ("call00001", "call00002"), ("call_1", "call_2"), ("fn_1", "fn_2")];
    let text = known.iter().fold(text, |text, (one, two)| text.replace(one, first).replace(two, second));
    serde_json::from_str(&text).expect("JSON")
}

fn ids() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut form = |server: Server, at: &'static str, keeps: &str, breaks: &str| {
        cases.push(case(15, server, at, named(server, at, keeps, "abcdefghi"), named(server, at, breaks, "abcdefghi")));
    };
    let (long, longer) = ("i".repeat(40), "i".repeat(41));
    let (wide, wider) = ("i".repeat(64), "i".repeat(65));
    for id in ["toolu.1", "functions.read:0", "a b", "call|fc_1"] {
        form(CLAUDE, "/messages", &wide, id);
    }
    for server in [OPENAI, COMPATIBLE, chat(Platform::Azure, "gpt-4.1")] {
        form(server, "/messages", &long, &longer);
        form(server, "/messages", "functions.read:0", &wide);
    }
    form(RESPONSES, "/input", &wide, &wider);
    form(BEDROCK, "/messages", &wide, &wider);
    form(BEDROCK, "/messages", "a.b:c-d_e", "a|b");
    for id in ["call_0001", "abcdefgh", "abcdefghij", "toolu_1"] {
        form(MISTRAL, "/messages", "aZ0123456", id);
        form(Server { model: "mistral.mistral-large-2407-v1:0", ..BEDROCK }, "/messages", "aZ0123456", id);
    }
    for id in ["functions.read:0", "call_with_a_name_of_more_than_forty_characters"] {
        cases.push(case(
            13,
            MOONSHOT,
            "/messages",
            named(MOONSHOT, "/messages", id, "b"),
            json!([{"role": "tool", "tool_call_id": id, "content": "a"}]),
        ));
    }
    for (server, at) in [
        (CLAUDE, "/messages"),
        (MOONSHOT, "/messages"),
        (COMPATIBLE, "/messages"),
        (BEDROCK, "/messages"),
        (GEMINI, "/contents"),
        (RESPONSES, "/input"),
    ] {
        let body = bodies::body(server);
        let list = body.pointer(at).and_then(Value::as_array).expect("a list");
        // The turns of a second step with the ids of the first.
        let steps = &list[if server.protocol == harness::provider::Protocol::OpenaiChat { 2 } else { 1 }..];
        let again: Value = list.iter().chain(steps).cloned().collect();
        cases.push(case(14, server, at, json!(list), again));
    }
    let id = "/contents/1/parts/1/functionCall/id";
    for server in [VERTEX, Server { model: "gemini-2.5-flash", ..GEMINI }, Server { model: "gemini-3-pro-preview", ..GEMINI }] {
        cases.push(case(16, server, id, json!(ABSENT), json!("fn_1")));
        cases.push(case(16, server, "/contents/2/parts/0/functionResponse/id", json!(ABSENT), json!("fn_1")));
    }
    cases
}

fn arguments() -> Vec<Case> {
    let mut cases = Vec::new();
    let function = "/messages/2/tool_calls/0/function/arguments";
    for server in [OPENAI, COMPATIBLE, LLAMACPP, chat(Platform::Vllm, "local"), chat(Platform::Minimax, "MiniMax-M2")] {
        for text in ["", "{\"a\":", "[1]", "\"a\"", "null", "{'a': 1}"] {
            cases.push(case(25, server, function, json!(" {\"a\": [1]} "), json!(text)));
        }
        cases.push(case(25, server, function, json!("{}"), json!({"a": 1})));
    }
    cases.push(case(25, RESPONSES, "/input/2/arguments", json!("{}"), json!("{\"a\"")));
    for (server, at) in [
        (CLAUDE, "/messages/1/content/2/input"),
        (GEMINI, "/contents/1/parts/1/functionCall/args"),
        (BEDROCK, "/messages/1/content/1/toolUse/input"),
        (OLLAMA, function),
    ] {
        for value in [json!("{}"), json!([1]), json!(1)] {
            cases.push(case(25, server, at, json!({}), value));
        }
    }
    cases
}
