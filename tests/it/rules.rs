//! The rules by which scripted providers judge requests: for each rule a request that keeps the
//! rule, and the same request with one part that breaks it.

mod bodies;
mod calls;
mod content;
mod parameters;
mod reasoning;
mod responses;
mod schemas;
mod scripted;
mod tools;
mod turns;

use std::collections::BTreeSet;

use harness::provider::Protocol;
use harness::rules::{JudgedRequest, Platform, RULES, Refusal, recognize, refusals};
use serde_json::{Value, json};

/// A server and a model.
#[derive(Clone, Copy, Debug)]
struct Server {
    protocol: Protocol,
    platform: Platform,
    model: &'static str,
}

const fn server(protocol: Protocol, platform: Platform, model: &'static str) -> Server {
    Server { protocol, platform, model }
}

const fn chat(platform: Platform, model: &'static str) -> Server {
    server(Protocol::OpenaiChat, platform, model)
}

const CLAUDE: Server = server(Protocol::Anthropic, Platform::Anthropic, "claude-sonnet-5");
const OPENAI: Server = chat(Platform::OpenAi, "gpt-4.1");
const COMPATIBLE: Server = chat(Platform::Compatible, "some-model");
const RESPONSES: Server = server(Protocol::OpenaiResponses, Platform::OpenAi, "gpt-6.1-sol");
const GEMINI: Server = server(Protocol::Gemini, Platform::Gemini, "gemini-3.8-flash");
const VERTEX: Server = server(Protocol::Gemini, Platform::Vertex, "gemini-3.8-flash");
const BEDROCK: Server = server(Protocol::Bedrock, Platform::Bedrock, "eu.anthropic.claude-sonnet-4-5-20250929-v1:0");
const OLLAMA: Server = server(Protocol::Ollama, Platform::Ollama, "qwen3");
const MISTRAL: Server = chat(Platform::Mistral, "mistral-medium-3");
const MOONSHOT: Server = chat(Platform::Moonshot, "kimi-k2");
const GROQ: Server = chat(Platform::Groq, "openai/gpt-oss-120b");
const CEREBRAS: Server = chat(Platform::Cerebras, "gpt-oss-120b");
const DEEPSEEK: Server = chat(Platform::DeepSeek, "deepseek-chat");
const LLAMACPP: Server = chat(Platform::LlamaCpp, "local");

/// A value that removes the field.
const ABSENT: &str = "(absent)";

/// A part of a request that breaks a rule, and the value of the same part that keeps it.
struct Case {
    rule: u8,
    server: Server,
    setup: Vec<(&'static str, Value)>,
    at: &'static str,
    keeps: Value,
    breaks: Value,
}

fn case(rule: u8, server: Server, at: &'static str, keeps: Value, breaks: Value) -> Case {
    Case { rule, server, setup: Vec::new(), at, keeps, breaks }
}

impl Case {
    /// Sets another part of both requests.
    fn with(mut self, at: &'static str, value: Value) -> Case {
        self.setup.push((at, value));
        self
    }

    fn refusals(&self, value: &Value) -> Vec<Refusal> {
        let mut body = bodies::body(self.server);
        for (at, value) in &self.setup {
            set(&mut body, at, value);
        }
        set(&mut body, self.at, value);
        judge(self.server, &body)
    }
}

fn judge(server: Server, body: &Value) -> Vec<Refusal> {
    let Server { protocol, platform, model } = server;
    // The parser of the tests takes no half surrogates.
    let text = body.to_string().replace("HALF", "\\ud83d").replace("LOW", "\\ude00");
    refusals(&JudgedRequest { protocol, platform, model, path: "", body, text: &text })
}

/// Sets the value at a JSON pointer, whose last segment may be new. The segment `-` adds to a list.
fn set(body: &mut Value, at: &str, value: &Value) {
    let (parent, key) = at.rsplit_once('/').expect("a pointer");
    match body.pointer_mut(parent) {
        Some(Value::Object(fields)) if value == ABSENT => drop(fields.shift_remove(key)),
        Some(Value::Object(fields)) => drop(fields.insert(key.to_owned(), value.clone())),
        Some(Value::Array(list)) if key == "-" => list.push(value.clone()),
        Some(Value::Array(list)) if value == ABSENT => drop(list.remove(key.parse().expect("an index"))),
        Some(Value::Array(list)) => list[key.parse::<usize>().expect("an index")] = value.clone(),
        _ => panic!("no place for {at} in {body}"),
    }
}

fn cases() -> Vec<Case> {
    [tools::cases(), schemas::cases(), calls::cases(), turns::cases(), content::cases(), reasoning::cases(), parameters::cases()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn each_case_is_refused_by_its_rule_alone() {
    let mut failures = Vec::new();
    for case in cases() {
        let name = format!("rule {} at {:?} {}: {}", case.rule, case.server.platform, case.server.model, case.at);
        let kept = case.refusals(&case.keeps);
        if !kept.is_empty() {
            failures.push(format!("{name} = {:.200} is refused: {kept:?}", case.keeps.to_string()));
        }
        let refused: BTreeSet<u8> = case.refusals(&case.breaks).iter().map(|refusal| refusal.rule).collect();
        if refused != BTreeSet::from([case.rule]) {
            failures.push(format!("{name} = {:.200} is refused by {refused:?}", case.breaks.to_string()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn each_rule_has_a_case() {
    let covered: BTreeSet<u8> = cases().iter().map(|case| case.rule).collect();
    let missing: Vec<&str> = RULES.iter().filter(|(rule, _)| !covered.contains(rule)).map(|(_, subject)| *subject).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn usual_requests_are_accepted() {
    let servers = [
        CLAUDE, OPENAI, COMPATIBLE, RESPONSES, GEMINI, VERTEX, BEDROCK, OLLAMA, MISTRAL, MOONSHOT, GROQ, CEREBRAS, DEEPSEEK,
        LLAMACPP,
    ];
    for server in servers {
        assert_eq!(judge(server, &bodies::body(server)), [], "{server:?}");
    }
}

#[test]
fn path_names_the_server() {
    let body = json!({"model": "m"});
    let cases = [
        ("/v1/chat/completions", Some((Protocol::OpenaiChat, Platform::Compatible, "m"))),
        ("/responses", Some((Protocol::OpenaiResponses, Platform::OpenAi, "m"))),
        ("/v1/messages", Some((Protocol::Anthropic, Platform::Anthropic, "m"))),
        ("/v1/messages/count_tokens", None),
        ("/api/chat", Some((Protocol::Ollama, Platform::Ollama, "m"))),
        ("/model/a.b-v1%3A0/converse-stream", Some((Protocol::Bedrock, Platform::Bedrock, "a.b-v1:0"))),
        ("/models/gemini-3.8-flash:streamGenerateContent?alt=sse", Some((Protocol::Gemini, Platform::Gemini, "gemini-3.8-flash"))),
        ("/v1/projects/p/locations/l/publishers/google/models/g:generateContent", Some((Protocol::Gemini, Platform::Vertex, "g"))),
        (
            "/v1/projects/p/locations/l/publishers/anthropic/models/claude@1:streamRawPredict",
            Some((Protocol::Anthropic, Platform::Vertex, "claude@1")),
        ),
        ("/token", None),
    ];
    for (path, expected) in cases {
        let found = recognize(path, &body);
        let found = found.as_ref().map(|(protocol, platform, model)| (*protocol, *platform, model.as_str()));
        assert_eq!(found, expected, "{path}");
    }
}
