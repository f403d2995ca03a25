//! Thinking, reasoning items and signatures.

use harness::rules::Platform;
use serde_json::{Value, json};

use super::{ABSENT, BEDROCK, CEREBRAS, CLAUDE, Case, DEEPSEEK, GEMINI, GROQ, RESPONSES, Server, VERTEX, bodies, case, chat};

pub fn cases() -> Vec<Case> {
    let mut cases = thinking();
    cases.extend(bedrock());
    cases.extend(items());
    cases.extend(contents());
    for server in [GEMINI, VERTEX, Server { model: "gemini-3-pro-preview", ..VERTEX }] {
        cases.push(case(
            37,
            server,
            "/contents/1/parts/1/thoughtSignature",
            json!("skip_thought_signature_validator"),
            json!(ABSENT),
        ));
        cases.push(case(37, server, "/contents/1/parts/1/thoughtSignature", json!("SIG="), json!("")));
        cases.push(case(37, server, "/contents/1/parts/1/functionCall/thoughtSignature", json!(ABSENT), json!("SIG=")));
    }
    cases
}

fn thinking() -> Vec<Case> {
    let block = "/messages/1/content/0";
    let signed = |signature: Value| json!({"type": "thinking", "thinking": "", "signature": signature});
    let redacted = |data: &str| json!({"type": "redacted_thinking", "data": data});
    let mut cases = Vec::new();
    for broken in [json!(null), json!(""), json!(" ")] {
        cases.push(case(34, CLAUDE, block, signed(json!("SIG=")), signed(broken)));
    }
    cases.push(case(34, CLAUDE, block, redacted("XYZ"), json!({"type": "thinking", "thinking": "Two files."})));
    cases.push(case(34, CLAUDE, block, redacted("XYZ"), redacted("")));
    cases.push(case(34, CLAUDE, "/messages/1/content/0/cache_control", json!(ABSENT), json!({"type": "ephemeral"})));
    cases.push(case(34, CLAUDE, "/thinking", json!(ABSENT), json!({"type": "disabled"})));
    // Without the parameter, earlier models do not think.
    let old = Server { model: "claude-sonnet-4-5", ..CLAUDE };
    let enabled = || json!({"type": "enabled", "budget_tokens": 1024});
    cases.push(case(34, old, "/thinking", enabled(), json!(ABSENT)));
    let content = bodies::body(old)["messages"][1]["content"].clone();
    let blocks = |indexes: &[usize]| indexes.iter().map(|index| content[*index].clone()).collect::<Value>();
    for broken in [blocks(&[1, 2, 3]), blocks(&[2, 3]), blocks(&[1, 0, 2, 3])] {
        cases.push(case(34, old, "/messages/1/content", blocks(&[0, 2, 3]), broken).with("/thinking", enabled()));
    }
    cases
}

fn bedrock() -> Vec<Case> {
    let reasoning = |inner: Value| {
        json!([{"role": "user", "content": [{"text": "a"}]}, {"role": "assistant", "content": [
        {"reasoningContent": inner}, {"text": "a"}]}, {"role": "user", "content": [{"text": "a"}]}])
    };
    let text = |signature: Value| reasoning(json!({"reasoningText": {"text": "a", "signature": signature}}));
    let unsigned = || reasoning(json!({"reasoningText": {"text": "a"}}));
    let plain = || json!([{"role": "user", "content": [{"text": "a"}]}]);
    let mut cases = vec![
        case(34, BEDROCK, "/messages", text(json!("SIG=")), text(json!(""))),
        case(34, BEDROCK, "/messages", reasoning(json!({"redactedContent": "XYZ"})), unsigned()),
        case(34, Server { model: "other.model", ..BEDROCK }, "/messages", unsigned(), text(json!("SIG="))),
    ];
    for model in
        ["amazon.nova-pro-v1:0", "us.deepseek.r1-v1:0", "openai.gpt-oss-120b-1:0", "meta.llama4", "qwen.qwen3-32b", "xai.grok-5"]
    {
        cases.push(case(34, Server { model, ..BEDROCK }, "/messages", plain(), unsigned()));
    }
    cases
}

fn items() -> Vec<Case> {
    let input = bodies::body(RESPONSES)["input"].clone();
    let picked = |indexes: &[usize]| indexes.iter().map(|index| input[*index].clone()).collect::<Value>();
    vec![
        case(35, RESPONSES, "/input/1/encrypted_content", json!("ENC="), json!(ABSENT)),
        case(35, RESPONSES, "/input/1/encrypted_content", json!("ENC="), json!(null)),
        case(35, RESPONSES, "/input", picked(&[0, 1, 1, 2, 4]), picked(&[0, 2, 1, 4])),
        case(35, RESPONSES, "/input", picked(&[0, 1, 2, 4, 6]), picked(&[0, 2, 4, 1, 6])),
        case(35, RESPONSES, "/input", picked(&[0, 1, 2, 4]), picked(&[0, 2, 4, 1])),
        case(35, RESPONSES, "/input/2/id", json!("fc_1"), json!("call_1")),
        case(35, RESPONSES, "/input/0/id", json!("msg_1"), json!("toolu_1")),
        case(35, RESPONSES, "/input/1/id", json!("rs_2"), json!("msg_1")),
        // A server that stores the items needs no content.
        case(35, RESPONSES, "/store", json!(true), json!(false)).with("/input/1/encrypted_content", json!(ABSENT)),
    ]
}

fn contents() -> Vec<Case> {
    let at = "/messages/2/reasoning_content";
    let moonshot = |model| chat(Platform::Moonshot, model);
    let mut cases = vec![
        case(36, Server { model: "deepseek-v4", ..DEEPSEEK }, at, json!(""), json!(ABSENT)),
        case(36, Server { model: "deepseek-v4-flash", ..DEEPSEEK }, at, json!("Two files."), json!(null)),
        case(36, Server { model: "deepseek-v4", ..DEEPSEEK }, "/thinking", json!({"type": "disabled"}), json!({"type": "enabled"})),
        case(36, Server { model: "deepseek-r1", ..DEEPSEEK }, at, json!(ABSENT), json!("Two files.")),
        case(36, moonshot("kimi-k2-thinking"), at, json!(""), json!(ABSENT)),
        case(36, moonshot("kimi-k2.5"), at, json!(" "), json!("")),
        case(36, moonshot("kimi-k2.6"), at, json!("a"), json!(ABSENT)),
    ];
    for server in [GROQ, CEREBRAS] {
        cases.push(case(36, server, at, json!(ABSENT), json!("Two files.")));
        cases.push(case(36, server, "/messages/2/reasoning", json!("Two files."), json!(null)));
        cases.push(case(36, server, "/messages/2/refusal", json!(ABSENT), json!(null)));
        cases.push(case(36, server, "/messages/1/cache_control", json!(ABSENT), json!({})));
        cases.push(case(36, server, "/messages/0/tool_calls", json!(ABSENT), json!(null)));
    }
    cases
}
