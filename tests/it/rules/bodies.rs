//! Requests that each server accepts: two calls, their results, and what follows.

use harness::provider::Protocol;
use harness::rules::Platform;
use serde_json::{Value, json};

use super::Server;

pub fn body(server: Server) -> Value {
    match server.protocol {
        Protocol::Anthropic => anthropic(server),
        Protocol::OpenaiChat => chat(server.model),
        Protocol::OpenaiResponses => responses(server.model),
        Protocol::Gemini => gemini(server.platform == Platform::Gemini && server.model.contains("3.8")),
        Protocol::Bedrock => bedrock(server.model),
        Protocol::Ollama => ollama(server.model),
    }
}

pub fn schema() -> Value {
    json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})
}

fn anthropic(server: Server) -> Value {
    json!({
        "model": server.model, "max_tokens": 64000, "stream": true,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [
            {"name": "read", "description": "Reads a file.", "input_schema": schema()},
            {"name": "list", "description": "Lists files.", "input_schema": schema()},
        ],
        "thinking": {"type": "adaptive"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Two files.", "signature": "SIG="},
                {"type": "text", "text": "Reading."},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {"path": "b"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "text of a"}]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "none"}], "is_error": true},
                {"type": "text", "text": "go on"},
            ]},
        ],
    })
}

fn function(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "Reads files.", "parameters": schema()}})
}

fn chat(model: &str) -> Value {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}});
    json!({
        "model": model, "stream": true,
        "tools": [function("read"), function("list")],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "Reading.", "tool_calls": [call("call00001"), call("call00002")]},
            {"role": "tool", "tool_call_id": "call00001", "content": "text of a"},
            {"role": "tool", "tool_call_id": "call00002", "content": ""},
        ],
    })
}

fn responses(model: &str) -> Value {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{\"path\":\"a\"}"});
    let result = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "text of a"});
    let tool = |name: &str| json!({"type": "function", "name": name, "description": "Reads files.", "parameters": schema()});
    json!({
        "model": model, "stream": true, "store": false, "instructions": "Be brief.",
        "tools": [tool("read"), tool("list")],
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ENC="},
            call("call_1"), call("call_2"), result("call_1"), result("call_2"),
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]},
        ],
    })
}

fn gemini(has_ids: bool) -> Value {
    let tool = |name: &str| json!({"name": name, "description": "Reads files.", "parametersJsonSchema": schema()});
    let mut body = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [tool("read"), tool("list")]}],
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [
                {"text": "Reading."},
                {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "SIG="},
                {"functionCall": {"name": "read", "args": {"path": "b"}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": {"output": "text of a"}}},
                {"functionResponse": {"name": "read", "response": {"error": "none"}}},
            ]},
        ],
        "generationConfig": {},
    });
    if has_ids {
        for (index, id) in [(0, "fn_1"), (1, "fn_2")] {
            body["contents"][1]["parts"][index + 1]["functionCall"]["id"] = json!(id);
            body["contents"][2]["parts"][index]["functionResponse"]["id"] = json!(id);
        }
    }
    body
}

fn bedrock(model: &str) -> Value {
    // Mistral takes ids of nine characters.
    let call = |id: &str| json!({"toolUse": {"toolUseId": id, "name": "read", "input": {"path": "a"}}});
    let result = |id: &str| json!({"toolResult": {"toolUseId": id, "content": [{"text": "text of a"}]}});
    let tool = |name: &str| json!({"toolSpec": {"name": name, "description": "Reads files.", "inputSchema": {"json": schema()}}});
    let mut results = vec![result("call00001"), result("call00002")];
    // The last result may stand next to text only at some models.
    results.extend(model.contains("claude").then(|| json!({"text": "go on"})));
    json!({
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "toolConfig": {"tools": [tool("read"), tool("list")]},
        "messages": [
            {"role": "user", "content": [{"text": "hi"}]},
            {"role": "assistant", "content": [{"text": "Reading."}, call("call00001"), call("call00002")]},
            {"role": "user", "content": results},
        ],
    })
}

fn ollama(model: &str) -> Value {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": {"path": "a"}}});
    json!({
        "model": model, "stream": true,
        "tools": [function("read"), function("list")],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": [call("call_1"), call("call_2")]},
            {"role": "tool", "tool_call_id": "call_1", "tool_name": "read", "content": "text of a"},
            {"role": "tool", "tool_call_id": "call_2", "tool_name": "read", "content": ""},
        ],
    })
}
