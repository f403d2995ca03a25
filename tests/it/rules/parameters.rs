//! Parameters of requests, by provider and model.

use harness::rules::Platform;
use serde_json::{Value, json};

use super::{
    ABSENT, BEDROCK, CEREBRAS, CLAUDE, Case, DEEPSEEK, GEMINI, GROQ, MISTRAL, MOONSHOT, OLLAMA, OPENAI, RESPONSES, Server, VERTEX,
    case, chat,
};

/// Takes a request without a parameter, and refuses the parameter.
fn refuses(server: Server, at: &'static str, value: Value) -> Case {
    case(38, server, at, json!(ABSENT), value)
}

fn takes(server: Server, at: &'static str, keeps: Value, breaks: Value) -> Case {
    case(38, server, at, keeps, breaks)
}

pub fn cases() -> Vec<Case> {
    let mut cases = openai();
    cases.extend(efforts());
    cases.extend(compatible());
    cases.extend(claude());
    cases.extend(google());
    cases.extend(bedrock());
    cases.extend(unknown());
    for level in ["minimal", "xhigh", "none"] {
        cases.push(takes(OLLAMA, "/think", json!("low"), json!(level)));
    }
    cases
}

fn model(server: Server, model: &'static str) -> Server {
    Server { model, ..server }
}

fn openai() -> Vec<Case> {
    let gpt5 = model(OPENAI, "gpt-5");
    vec![
        refuses(gpt5, "/max_tokens", json!(500)),
        refuses(model(OPENAI, "o3-mini"), "/max_tokens", json!(500)),
        takes(gpt5, "/temperature", json!(1), json!(0.5)),
        takes(gpt5, "/top_p", json!(1.0), json!(0.9)),
        takes(gpt5, "/presence_penalty", json!(0), json!(0.5)),
        takes(model(OPENAI, "gpt-5.1"), "/reasoning_effort", json!("none"), json!("low")).with("/temperature", json!(0.5)),
        takes(model(RESPONSES, "gpt-5.2"), "/reasoning", json!({"effort": "none"}), json!({"effort": "low"}))
            .with("/temperature", json!(0)),
        refuses(model(OPENAI, "o4-mini"), "/stop", json!("a")),
        takes(gpt5, "/stop", json!(["a", "b", "c", "d"]), json!(["a", "b", "c", "d", "e"])),
        takes(RESPONSES, "/max_output_tokens", json!(16), json!(15)),
        refuses(OPENAI, "/verbosity", json!("low")),
        refuses(model(RESPONSES, "gpt-4o"), "/text", json!({"verbosity": "low"})),
        takes(model(OPENAI, "gpt-5.4"), "/reasoning_effort", json!("none"), json!("low")),
        takes(model(OPENAI, "gpt-5.5"), "/reasoning_effort", json!("none"), json!(ABSENT)),
    ]
}

fn efforts() -> Vec<Case> {
    let mut cases = Vec::new();
    let rows: &[(&str, &[&str], &[&str])] = &[
        ("gpt-5", &["minimal", "low", "high"], &["none", "xhigh", "max"]),
        ("gpt-5-2025-08-07", &["minimal"], &["none"]),
        ("gpt-5.1", &["none", "high"], &["minimal", "xhigh"]),
        ("gpt-5.1-codex", &["low", "high"], &["none", "minimal", "xhigh"]),
        ("gpt-5.2", &["none", "xhigh"], &["minimal", "max"]),
        ("gpt-5.2-pro", &["low", "xhigh"], &["none"]),
        ("gpt-5.2-chat-latest", &["medium"], &["low", "none"]),
        ("gpt-6", &["none", "max"], &["minimal", "turbo"]),
        ("gpt-6.1-sol", &["xhigh", "max"], &["minimal"]),
    ];
    for (name, known, unknown) in rows {
        for (index, effort) in unknown.iter().enumerate() {
            let keeps = json!({"effort": known[index % known.len()]});
            cases.push(takes(model(RESPONSES, name), "/reasoning", keeps, json!({"effort": effort})));
        }
    }
    cases.push(takes(model(OPENAI, "gpt-5"), "/reasoning_effort", json!("minimal"), json!("none")));
    for name in ["gpt-4.1", "gpt-4o", "gpt-3.5-turbo", "chatgpt-4o-latest"] {
        cases.push(refuses(model(OPENAI, name), "/reasoning_effort", json!("low")));
        cases.push(refuses(model(RESPONSES, name), "/reasoning", json!({"effort": "low"})));
    }
    cases
}

fn compatible() -> Vec<Case> {
    let xai = |name| chat(Platform::Xai, name);
    let zai = chat(Platform::Zai, "glm-5.3");
    let effort = "/reasoning_effort";
    let mut cases = vec![
        takes(model(GROQ, "openai/gpt-oss-20b"), effort, json!("low"), json!("none")),
        takes(model(GROQ, "qwen/qwen3-32b"), effort, json!("none"), json!("low")),
        takes(MISTRAL, effort, json!("high"), json!("low")),
        takes(MOONSHOT, effort, json!("low"), json!("none")),
        takes(MOONSHOT, "/temperature", json!(1.0), json!(0.6)),
        takes(MOONSHOT, "/tool_choice", json!("auto"), json!("required")),
        takes(DEEPSEEK, "/tool_choice", json!("auto"), json!("required")).with("/thinking", json!({"type": "enabled"})),
        takes(zai, effort, json!("max"), json!("medium")),
        takes(zai, "/thinking", json!({"type": "enabled"}), json!({"type": "disabled"})),
    ];
    for name in ["grok-3", "grok-4", "grok-4-fast", "grok-code-fast-1"] {
        cases.push(refuses(xai(name), effort, json!("low")));
    }
    for name in ["/stop", "/presence_penalty", "/frequency_penalty"] {
        cases.push(refuses(xai("grok-4"), name, json!(1)));
    }
    cases
}

fn claude() -> Vec<Case> {
    let old = model(CLAUDE, "claude-sonnet-4-5-20250929");
    let enabled = |budget: u32| json!({"type": "enabled", "budget_tokens": budget});
    let point = |ttl: Value| json!({"type": "ephemeral", "ttl": ttl});
    let mut cases = vec![
        takes(old, "/thinking", enabled(1024), enabled(1023)),
        takes(old, "/thinking", enabled(63_999), enabled(64_000)),
        takes(old, "/tool_choice", json!({"type": "auto"}), json!({"type": "any"})).with("/thinking", enabled(1024)),
        takes(old, "/temperature", json!(1), json!(0.5)).with("/thinking", enabled(1024)),
        refuses(old, "/top_k", json!(5)).with("/thinking", enabled(1024)),
        takes(old, "/output_config", json!({"effort": "high"}), json!({"effort": "max"})).with("/thinking", enabled(1024)),
        takes(model(CLAUDE, "claude-opus-4-6"), "/output_config", json!({"effort": "max"}), json!({"effort": "xhigh"})),
        takes(model(CLAUDE, "claude-sonnet-5-5"), "/tool_choice", json!({"type": "auto"}), json!({"type": "any"})),
        takes(CLAUDE, "/stop_sequences", json!(["a"]), json!([" "])),
        takes(CLAUDE, "/service_tier", json!("auto"), json!("priority")),
        takes(CLAUDE, "/tools/0/cache_control", point(json!("1h")), point(json!("5m")))
            .with("/system/0/cache_control", point(json!("1h"))),
        takes(CLAUDE, "/messages/2/content/2/cache_control", point(json!("5m")), point(json!("1h"))),
    ];
    for name in ["claude-opus-4-7", "claude-sonnet-5", "claude-fable-preview"] {
        cases.push(takes(model(CLAUDE, name), "/thinking", json!({"type": "adaptive"}), enabled(2048)));
        cases.push(refuses(model(CLAUDE, name), "/temperature", json!(1)));
        cases.push(refuses(model(CLAUDE, name), "/top_p", json!(0.9)));
    }
    let no_thinking = json!([{"role": "user", "content": "hi"}]);
    let plain = takes(old, "/top_p", json!(ABSENT), json!(0.9));
    cases.push(plain.with("/temperature", json!(0.5)).with("/thinking", json!(ABSENT)).with("/messages", no_thinking));
    let blocks = |count: usize| json!(vec![json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}); count]);
    cases.push(takes(CLAUDE, "/system", blocks(4), blocks(5)));
    cases
}

fn google() -> Vec<Case> {
    let thinking = "/generationConfig/thinkingConfig";
    let pro = model(VERTEX, "gemini-2.5-pro");
    let flash = model(VERTEX, "gemini-2.5-flash");
    let budget = |tokens: i64| json!({"thinkingBudget": tokens});
    let level = |level: &str| json!({"thinkingLevel": level});
    let mut cases = vec![
        takes(pro, thinking, budget(128), budget(0)),
        takes(pro, thinking, budget(32_768), budget(32_769)),
        takes(flash, thinking, budget(0), budget(24_577)),
        takes(flash, thinking, budget(-1), level("low")),
        takes(GEMINI, thinking, level("low"), budget(0)),
        takes(GEMINI, thinking, level("low"), json!({"thinkingBudget": 0, "thinkingLevel": "low"})),
        refuses(GEMINI, "/generationConfig/presencePenalty", json!(0.5)),
    ];
    for name in ["gemini-3-pro-preview", "gemini-3.1-pro", "gemini-3.7-flash", "gemini-3.8-flash"] {
        cases.push(takes(model(VERTEX, name), thinking, level("low"), level("minimal")));
    }
    cases
}

fn bedrock() -> Vec<Case> {
    let config = "/inferenceConfig";
    let long = || json!({"cachePoint": {"type": "default", "ttl": "1h"}});
    let user = |last: Value| json!([{"text": "a"}, last]);
    vec![
        takes(BEDROCK, config, json!({"temperature": 1, "topP": 0}), json!({"temperature": 1.5})),
        takes(BEDROCK, config, json!({"maxTokens": 1}), json!({"maxTokens": 0})),
        takes(model(BEDROCK, "xai.grok-5"), config, json!({}), json!({"stopSequences": ["a"]}))
            .with("/system", json!([{"text": "a"}])),
        takes(model(BEDROCK, "other.model"), "/toolConfig/toolChoice", json!({"auto": {}}), json!({"tool": {"name": "read"}})),
        takes(BEDROCK, "/toolConfig/toolChoice", json!({"auto": {}}), json!({"any": {}}))
            .with("/additionalModelRequestFields", json!({"thinking": {"type": "enabled", "budget_tokens": 2048}})),
        takes(
            BEDROCK,
            "/system",
            json!([{"text": "a"}, {"cachePoint": {"type": "default"}}]),
            json!([{"cachePoint": {"type": "default"}}]),
        ),
        takes(BEDROCK, "/messages/0/content", user(json!({"cachePoint": {"type": "default"}})), user(long())),
    ]
}

fn unknown() -> Vec<Case> {
    vec![
        refuses(CLAUDE, "/frequency_penalty", json!(0)),
        refuses(OPENAI, "/top_k", json!(5)),
        refuses(chat(Platform::Azure, "gpt-4.1"), "/thinking", json!({})),
        refuses(RESPONSES, "/messages", json!([])),
        refuses(GEMINI, "/max_tokens", json!(500)),
        refuses(BEDROCK, "/maxTokens", json!(500)),
        refuses(MISTRAL, "/stream_options", json!({"include_usage": true})),
        refuses(CEREBRAS, "/parallel_tool_calls", json!(false)),
        refuses(CEREBRAS, "/service_tier", json!("auto")),
    ]
}
