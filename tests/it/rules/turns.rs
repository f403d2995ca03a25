//! Text, order and roles of turns.

use harness::rules::Platform;
use serde_json::{Value, json};

use super::{
    BEDROCK, CEREBRAS, CLAUDE, COMPATIBLE, Case, DEEPSEEK, GEMINI, GROQ, LLAMACPP, MISTRAL, MOONSHOT, OLLAMA, OPENAI, Server,
    VERTEX, bodies, case, chat,
};

/// Adds turns to the end of the conversation, or keeps it as it is.
fn more(rule: u8, server: Server, at: &'static str, keeps: &[Value], breaks: &[Value]) -> Case {
    let body = bodies::body(server);
    let list = body.pointer(at).and_then(Value::as_array).expect("a list");
    let with = |more: &[Value]| json!([list.as_slice(), more].concat());
    case(rule, server, at, with(keeps), with(breaks))
}

fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

pub fn cases() -> Vec<Case> {
    let mut cases = blank();
    cases.extend(order());
    cases.extend(systems());
    let parts = || json!([{"type": "text", "text": "hi"}]);
    for server in [COMPATIBLE, DEEPSEEK] {
        cases.push(case(24, server, "/messages/1/content", json!("hi"), parts()));
    }
    cases.push(case(24, MISTRAL, "/messages/3/content", json!(""), parts()));
    cases.push(case(24, OLLAMA, "/messages/1/content", json!(""), parts()));
    let assistants =
        [json!({"role": "assistant"}), json!({"role": "assistant", "content": null}), json!({"role": "assistant", "content": []})];
    for empty in assistants {
        for server in [OPENAI, GROQ, LLAMACPP, MOONSHOT] {
            cases.push(more(
                18,
                server,
                "/messages",
                &[message("assistant", "a"), message("user", "b")],
                &[empty.clone(), message("user", "b")],
            ));
        }
    }
    for server in [MOONSHOT, COMPATIBLE] {
        cases.push(more(18, server, "/messages", &[message("assistant", "a")], &[message("assistant", "")]));
    }
    cases
}

fn blank() -> Vec<Case> {
    let mut cases = Vec::new();
    for text in ["", " ", "\n\t "] {
        for at in
            ["/messages/1/content/1/text", "/messages/2/content/2/text", "/messages/2/content/0/content/0/text", "/system/0/text"]
        {
            cases.push(case(17, CLAUDE, at, json!(" a "), json!(text)));
        }
        for at in ["/messages/1/content/0/text", "/messages/2/content/0/toolResult/content/0/text", "/system/0/text"] {
            cases.push(case(17, BEDROCK, at, json!(" a "), json!(text)));
        }
    }
    cases.push(case(17, CLAUDE, "/messages/0/content", json!("hi"), json!("")));
    cases.push(case(17, CLAUDE, "/messages/0/content", json!("hi"), json!([])));
    let last = |text: &str| [json!({"role": "assistant", "content": [{"type": "text", "text": text}]})];
    let old = Server { model: "claude-3-5-haiku-20241022", ..CLAUDE };
    let mut trailing = more(17, old, "/messages", &last("a"), &last("a "));
    // The model has no thinking.
    trailing.setup.push(("/thinking", json!(super::ABSENT)));
    for value in [&mut trailing.keeps, &mut trailing.breaks] {
        value[1]["content"].as_array_mut().expect("blocks").remove(0);
    }
    cases.push(trailing);
    cases.push(case(17, BEDROCK, "/messages/0/content", json!([{"text": "a"}]), json!([])));
    for server in [GEMINI, VERTEX] {
        cases.push(case(17, server, "/contents/0/parts/0/text", json!("a"), json!("")));
        cases.push(case(17, server, "/contents/0/parts", json!([{"text": "a"}]), json!([])));
        cases.push(case(17, server, "/contents/1/parts/0", json!({"text": "", "thoughtSignature": "SIG="}), json!({"text": ""})));
    }
    for (keeps, breaks) in [("a", ""), (" ", "")] {
        cases.push(case(17, MOONSHOT, "/messages/1/content", json!(keeps), json!(breaks)));
        cases.push(case(17, COMPATIBLE, "/messages/0/content", json!(keeps), json!(breaks)));
    }
    let parts = |text: &str| json!([{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]);
    cases.push(case(17, MOONSHOT, "/messages/1/content", parts("a"), parts("")));
    cases.push(case(17, COMPATIBLE, "/messages/1/content", parts("a"), parts(" \n")));
    cases
}

fn order() -> Vec<Case> {
    let mut cases = Vec::new();
    let user = || message("user", "go on");
    for server in [MISTRAL, Server { model: "mistralai/devstral-small", ..COMPATIBLE }, Server { model: "codestral", ..LLAMACPP }] {
        cases.push(more(19, server, "/messages", &[message("assistant", "ok"), user()], &[user()]));
        cases.push(more(20, server, "/messages", &[message("assistant", "ok"), user()], &[message("assistant", "ok")]));
    }
    cases.push(more(19, VERTEX, "/contents/2/parts", &[], &[json!({"text": "go on"})]));
    for model in ["us.meta.llama4-scout-17b-instruct-v1:0", "mistral.mistral-large-2407-v1:0"] {
        let server = Server { model, ..BEDROCK };
        cases.push(more(
            19,
            server,
            "/messages/2/content",
            &[json!({"cachePoint": {"type": "default"}})],
            &[json!({"text": "go on"})],
        ));
    }
    let said = json!({"role": "assistant", "content": [{"type": "text", "text": "ok"}]});
    let asked = json!({"role": "user", "content": [{"type": "text", "text": "hi"}]});
    for model in ["claude-sonnet-5", "claude-opus-4-6", "claude-sonnet-4-6@20260101", "claude-opus-5"] {
        let server = Server { model, ..CLAUDE };
        cases.push(more(20, server, "/messages", &[said.clone(), asked.clone()], std::slice::from_ref(&said)));
    }
    for server in [GEMINI, VERTEX] {
        let (model, user) = (json!({"role": "model", "parts": [{"text": "a"}]}), json!({"role": "user", "parts": [{"text": "a"}]}));
        cases.push(more(20, server, "/contents", &[model.clone(), user.clone()], std::slice::from_ref(&model)));
        cases.push(case(20, server, "/contents", json!([user]), json!([model, user])));
    }
    let nova = Server { model: "amazon.nova-pro-v1:0", ..BEDROCK };
    let turn = |role: &str| json!({"role": role, "content": [{"text": "a"}]});
    cases.push(more(20, nova, "/messages", &[turn("assistant"), turn("user")], &[turn("user")]));
    cases.push(case(20, nova, "/messages", json!([turn("user"), turn("assistant")]), json!([turn("assistant"), turn("user")])));
    // Claude and Qwen take neighbours of the same role.
    cases.push(more(17, BEDROCK, "/messages", &[turn("user")], &[json!({"role": "user", "content": []})]));
    cases.push(case(20, super::RESPONSES, "/input", bodies::body(super::RESPONSES)["input"].clone(), json!([])));
    cases
}

fn systems() -> Vec<Case> {
    let mut cases = Vec::new();
    let late = || message("system", "Be kind.");
    for server in [COMPATIBLE, LLAMACPP, chat(Platform::Minimax, "MiniMax-M2"), chat(Platform::Vllm, "local")] {
        cases.push(more(23, server, "/messages", &[message("user", "a")], &[late(), message("user", "a")]));
    }
    for server in [MOONSHOT, DEEPSEEK, COMPATIBLE, MISTRAL, GROQ, CEREBRAS, chat(Platform::Zai, "glm-5")] {
        cases.push(case(23, server, "/messages/0/role", json!("system"), json!("developer")));
    }
    let zai = chat(Platform::Zai, "glm-5");
    cases.push(case(23, zai, "/messages", json!([late(), message("user", "a")]), json!([late(), message("assistant", "a")])));
    let inner = [json!({"role": "system", "content": "Be kind."})];
    let asked = [json!({"role": "user", "content": "a"})];
    cases.push(more(23, CLAUDE, "/messages", &asked, &inner));
    cases
}
