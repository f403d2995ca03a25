//! Requests that break the rules about the names, the number and the descriptions of tools.

use harness::rules::Platform;
use serde_json::{Value, json};

use super::{
    ABSENT, BEDROCK, CLAUDE, COMPATIBLE, Case, GEMINI, GROQ, MISTRAL, MOONSHOT, OPENAI, RESPONSES, Server, VERTEX, bodies, case,
    chat,
};

/// Where the name of the first tool is.
fn name_at(server: Server) -> &'static str {
    use harness::provider::Protocol::{Anthropic, Bedrock, Gemini, Ollama, OpenaiChat, OpenaiResponses};
    match server.protocol {
        Anthropic | OpenaiResponses => "/tools/0/name",
        OpenaiChat | Ollama => "/tools/0/function/name",
        Gemini => "/tools/0/functionDeclarations/0/name",
        Bedrock => "/toolConfig/tools/0/toolSpec/name",
    }
}

/// A name of this length.
fn long(length: usize) -> Value {
    json!("n".repeat(length))
}

fn functions(count: usize) -> Value {
    let tool =
        |index: usize| json!({"type": "function", "function": {"name": format!("tool{index}"), "parameters": bodies::schema()}});
    (0..count).map(tool).collect()
}

pub fn cases() -> Vec<Case> {
    let mut cases = names();
    cases.extend(history());
    cases.extend([
        case(10, OPENAI, "/tools", functions(128), functions(129)),
        case(10, COMPATIBLE, "/tools", functions(128), functions(129)),
        case(10, GROQ, "/tools", functions(128), functions(129)),
        case(10, chat(Platform::Xai, "grok-5"), "/tools", functions(200), functions(201)),
        case(
            10,
            BEDROCK,
            "/toolConfig/tools",
            json!([{"toolSpec": {"name": "a", "inputSchema": {"json": bodies::schema()}}}]),
            json!([]),
        )
        .with("/messages", json!([{"role": "user", "content": [{"text": "hi"}]}])),
        case(11, BEDROCK, "/toolConfig/tools/0/toolSpec/description", json!(ABSENT), json!("")),
        case(11, chat(Platform::Azure, "gpt-4.1"), "/tools/0/function/description", long(1024), long(1025)),
        case(
            12,
            chat(Platform::Minimax, "MiniMax-M2"),
            "/tools/0/function/parameters",
            json!({"type": "object", "properties": {}}),
            json!(ABSENT),
        ),
        case(12, chat(Platform::Minimax, "MiniMax-M2"), "/tools/0/function/parameters", bodies::schema(), json!({})),
        case(
            12,
            chat(Platform::Minimax, "MiniMax-M2"),
            "/tools/0/function/parameters",
            bodies::schema(),
            json!({"type": "object"}),
        ),
    ]);
    cases
}

fn names() -> Vec<Case> {
    let mut cases = Vec::new();
    for server in [CLAUDE, OPENAI, COMPATIBLE, RESPONSES, BEDROCK, MISTRAL, GROQ] {
        for name in ["a b", "a.b", "übung", "", "a/b", "mcp:read"] {
            cases.push(case(1, server, name_at(server), json!("mcp__server-1__Read"), json!(name)));
        }
        cases.push(case(1, server, name_at(server), json!("reading"), json!("list")));
    }
    for (server, max) in [(CLAUDE, 128), (OPENAI, 64), (RESPONSES, 64), (GEMINI, 128), (VERTEX, 128), (BEDROCK, 64), (MOONSHOT, 64)]
    {
        cases.push(case(1, server, name_at(server), long(max), long(max + 1)));
    }
    for (keeps, breaks) in [("_a.b:c-d", "1a"), ("a", "-a"), ("a", "a b"), ("a", "list")] {
        cases.push(case(1, GEMINI, name_at(GEMINI), json!(keeps), json!(breaks)));
    }
    for name in ["1password", "_read", "-a"] {
        cases.push(case(1, MOONSHOT, name_at(MOONSHOT), json!("read_1"), json!(name)));
    }
    cases
}

fn history() -> Vec<Case> {
    let gemini = |name: &str| {
        json!([
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}, "thoughtSignature": "SIG="}]},
            {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"output": "a"}}}]},
        ])
    };
    vec![
        case(2, CLAUDE, "/messages/1/content/2/name", json!("gone"), json!("gone tool")),
        case(2, CLAUDE, "/messages/1/content/2/name", long(128), long(129)),
        case(2, OPENAI, "/messages/2/tool_calls/0/function/name", json!("gone"), json!("")),
        case(2, COMPATIBLE, "/messages/2/tool_calls/1/function/name", json!("gone"), json!("functions.read")),
        case(2, RESPONSES, "/input/2/name", long(128), long(129)),
        case(2, RESPONSES, "/input/2/name", json!("gone"), json!("a b")),
        case(2, BEDROCK, "/messages/1/content/1/toolUse/name", long(64), long(65)),
        case(2, BEDROCK, "/messages/1/content/1/toolUse/name", json!("gone"), json!("a.b")),
        case(2, GEMINI, "/contents", gemini("a.b"), gemini("1a")),
        case(2, MOONSHOT, "/messages/2/tool_calls/0/function/name", json!("read"), json!("0read")),
    ]
}
