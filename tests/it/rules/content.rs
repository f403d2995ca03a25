//! Surrogates, images, documents and audio.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use harness::provider::Protocol;
use harness::rules::Platform;
use serde_json::{Value, json};

use super::{
    ABSENT, BEDROCK, CLAUDE, COMPATIBLE, Case, DEEPSEEK, GEMINI, GROQ, MISTRAL, OPENAI, RESPONSES, Server, VERTEX, case, chat,
};

const CLAUDE_ON_VERTEX: Server = Server { platform: Platform::Vertex, ..CLAUDE };

/// A PNG image of this size, in base64, with more bytes after its header.
fn png(width: u32, height: u32, more: usize) -> String {
    let header: &[&[u8]] = &[b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", &width.to_be_bytes(), &height.to_be_bytes(), &vec![0; more]];
    STANDARD.encode(header.concat())
}

fn gif() -> String {
    STANDARD.encode(b"GIF89a\x10\0\x10\0")
}

fn jpeg(width: u16, height: u16) -> String {
    let start: &[&[u8]] = &[b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08", &height.to_be_bytes(), &width.to_be_bytes()];
    STANDARD.encode(start.concat())
}

fn webp() -> String {
    STANDARD.encode(b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x0f\0\0\x0f\0\0")
}

/// A block with an image, in the form of the protocol.
fn image(server: Server, mime: &str, data: &str) -> Value {
    let url = format!("data:{mime};base64,{data}");
    match server.protocol {
        Protocol::Anthropic => json!({"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}),
        Protocol::OpenaiChat | Protocol::Ollama => json!({"type": "image_url", "image_url": {"url": url}}),
        Protocol::OpenaiResponses => json!({"type": "input_image", "image_url": url}),
        Protocol::Gemini => json!({"inlineData": {"mimeType": mime, "data": data}}),
        Protocol::Bedrock => json!({"image": {"format": mime.trim_start_matches("image/"), "source": {"bytes": data}}}),
    }
}

fn text(server: Server) -> Value {
    match server.protocol {
        Protocol::Anthropic | Protocol::OpenaiChat | Protocol::Ollama => json!({"type": "text", "text": "look"}),
        Protocol::OpenaiResponses => json!({"type": "input_text", "text": "look"}),
        Protocol::Gemini | Protocol::Bedrock => json!({"text": "look"}),
    }
}

/// Where the content of the first user turn is.
fn at(server: Server) -> &'static str {
    match server.protocol {
        Protocol::Anthropic | Protocol::Bedrock => "/messages/0/content",
        Protocol::OpenaiChat | Protocol::Ollama => "/messages/1/content",
        Protocol::OpenaiResponses => "/input/0/content",
        Protocol::Gemini => "/contents/0/parts",
    }
}

/// Takes some blocks after a text, and refuses others.
fn blocks(rule: u8, server: Server, keeps: &[Value], breaks: &[Value]) -> Case {
    let with = |blocks: &[Value]| json!([&[text(server)], blocks].concat());
    case(rule, server, at(server), with(keeps), with(breaks))
}

pub fn cases() -> Vec<Case> {
    let mut cases = surrogates();
    cases.extend(sizes());
    cases.extend(types());
    cases.extend(results());
    cases.extend(documents());
    let audio = |format: &str| json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": format}});
    cases.push(blocks(33, RESPONSES, &[], &[audio("wav")]));
    cases.push(blocks(33, OPENAI, &[audio("mp3")], &[audio("flac")]));
    let look = json!([text(DEEPSEEK), image(DEEPSEEK, "image/png", &png(1, 1, 0))]);
    cases.push(case(30, DEEPSEEK, at(DEEPSEEK), json!("look"), look));
    cases
}

fn surrogates() -> Vec<Case> {
    let mut cases = Vec::new();
    for (server, at) in [
        (CLAUDE, "/messages/0/content/0/text"),
        (CLAUDE, "/messages/1/content/2/input/path"),
        (OPENAI, "/messages/1/content"),
        (RESPONSES, "/input/0/content/0/text"),
        (GEMINI, "/contents/0/parts/0/text"),
        (BEDROCK, "/messages/0/content/0/text"),
    ] {
        for broken in ["a HALF b", "HALF", "LOW", "LOWHALF", "HALF\\LOW"] {
            cases.push(case(26, server, at, json!("a HALFLOW b \\ud83d"), json!(broken)));
        }
    }
    // Raw arguments inside a string.
    let arguments = "/messages/2/tool_calls/0/function/arguments";
    cases.push(case(26, COMPATIBLE, arguments, json!(r#"{"a":"\ud83d\ude00 \\ud83d"}"#), json!(r#"{"a":"\ud83d"}"#)));
    cases.push(case(26, RESPONSES, "/input/2/arguments", json!(r#"{"a":"\ud83d\ude00"}"#), json!(r#"{"a":"\ude00 \ud83d"}"#)));
    cases
}

fn sizes() -> Vec<Case> {
    let sized = |server: Server, bytes: usize| [image(server, "image/png", &png(1, 1, bytes))];
    let mut cases = Vec::new();
    for (server, bytes) in [
        (CLAUDE, 10_485_760 / 4 * 3),
        (CLAUDE_ON_VERTEX, 5_242_880 / 4 * 3),
        (BEDROCK, 5_242_880 / 4 * 3),
        (OPENAI, 10_485_760 / 4 * 3),
        (RESPONSES, 10_485_760 / 4 * 3),
        (VERTEX, 7 << 20),
        (GROQ, 4 << 20),
    ] {
        cases.push(blocks(27, server, &sized(server, bytes / 2), &sized(server, bytes)));
    }
    let many = |server: Server, count: usize| vec![image(server, "image/png", &png(1, 1, 0)); count];
    cases.push(blocks(27, BEDROCK, &many(BEDROCK, 20), &many(BEDROCK, 21)));
    cases.push(blocks(27, MISTRAL, &many(MISTRAL, 8), &many(MISTRAL, 9)));
    for server in [CLAUDE, CLAUDE_ON_VERTEX, BEDROCK] {
        let edge = |width, height| [image(server, "image/png", &png(width, height, 0))];
        cases.push(blocks(28, server, &edge(8000, 1), &edge(8001, 1)));
        cases.push(blocks(28, server, &edge(1, 8000), &edge(1, 8001)));
    }
    let large = |count: usize, edge: u32| -> Vec<Value> {
        let small = vec![image(CLAUDE, "image/png", &png(1, 1, 0)); count];
        [small, vec![image(CLAUDE, "image/png", &png(edge, 1, 0))]].concat()
    };
    cases.push(blocks(28, CLAUDE, &large(19, 8000), &large(20, 2001)));
    cases.push(blocks(28, CLAUDE, &large(20, 2000), &large(30, 8000)));
    let wide = |edge: u16| [image(CLAUDE, "image/jpeg", &jpeg(edge, 1))];
    cases.push(blocks(28, CLAUDE, &wide(8000), &wide(8001)));
    cases.push(blocks(
        28,
        GROQ,
        &[image(GROQ, "image/png", &png(5760, 5760, 0))],
        &[image(GROQ, "image/png", &png(5761, 5761, 0))],
    ));
    cases
}

fn types() -> Vec<Case> {
    let mut cases = Vec::new();
    let good = png(1, 1, 0);
    for server in [CLAUDE, CLAUDE_ON_VERTEX, OPENAI, COMPATIBLE, RESPONSES, GEMINI, VERTEX, BEDROCK, MISTRAL] {
        let damaged = [STANDARD.encode("hello"), "AAAA".into(), String::new(), "ä".into(), good[..20].into(), "not base64".into()];
        for data in damaged {
            cases.push(blocks(29, server, &[image(server, "image/png", &good)], &[image(server, "image/png", &data)]));
        }
        for mime in ["image/svg+xml", "image/bmp", "image/jpg", "text/plain"] {
            // Gemini reads another type as a document.
            if mime.starts_with("image/") || server.protocol != Protocol::Gemini {
                cases.push(blocks(29, server, &[image(server, "image/webp", &webp())], &[image(server, mime, &good)]));
            }
        }
    }
    for server in [CLAUDE, BEDROCK] {
        cases.push(blocks(29, server, &[image(server, "image/jpeg", &jpeg(1, 1))], &[image(server, "image/png", &jpeg(1, 1))]));
        cases.push(blocks(29, server, &[image(server, "image/gif", &gif())], &[image(server, "image/gif", &good)]));
    }
    // OpenAI reads the type from the bytes.
    cases.push(blocks(29, OPENAI, &[image(OPENAI, "image/png", &jpeg(1, 1))], &[image(OPENAI, "image/png", "AAAA")]));
    cases.push(blocks(29, GEMINI, &[image(GEMINI, "image/png", &good)], &[image(GEMINI, "image/gif", &gif())]));
    let xai = chat(Platform::Xai, "grok-5");
    cases.push(blocks(29, xai, &[image(xai, "image/png", &good)], &[image(xai, "image/webp", &webp())]));
    cases
}

fn results() -> Vec<Case> {
    let good = png(1, 1, 0);
    let mut cases = Vec::new();
    let image_of = |server: Server| json!([image(server, "image/png", &good)]);
    let failed = "/messages/2/content/0/is_error";
    cases.push(case(31, CLAUDE, failed, json!(false), json!(true)).with("/messages/2/content/0/content", image_of(CLAUDE)));
    for server in [OPENAI, COMPATIBLE, GROQ] {
        cases.push(case(31, server, "/messages/3/content", json!("a"), image_of(server)));
    }
    let content = "/messages/2/content/0/toolResult/content";
    for model in ["openai.gpt-5.1", "mistral.mistral-large-2407-v1:0", "moonshot.kimi-k2", "qwen.qwen3-32b-v1:0"] {
        let server = Server { model, ..BEDROCK };
        cases.push(case(31, server, content, json!([{"text": "a"}]), image_of(server)));
    }
    let nova = Server { model: "amazon.nova-pro-v1:0", ..BEDROCK };
    let document = json!([{"text": "a"}, {"document": {"format": "pdf", "name": "a", "source": {"bytes": "JVBERi0="}}}]);
    cases.push(case(31, nova, content, image_of(nova), document));
    let writer = Server { model: "writer.palmyra-x5-v1:0", ..BEDROCK };
    cases.push(case(31, writer, "/messages/2/content/0/toolResult/status", json!(ABSENT), json!("success")));
    let old = Server { model: "gemini-2.5-pro", ..GEMINI };
    let parts = json!([{"inlineData": {"mimeType": "image/png", "data": good}}]);
    cases.push(case(31, old, "/contents/2/parts/0/functionResponse/parts", json!(ABSENT), parts));
    cases
}

fn documents() -> Vec<Case> {
    let bedrock = |name: &str| json!({"document": {"format": "pdf", "name": name, "source": {"bytes": "JVBERi0="}}});
    let mut cases = Vec::new();
    for name in ["a.pdf", "a  b", "a_b", "größe", "", &"n".repeat(201)] {
        cases.push(blocks(32, BEDROCK, &[bedrock("a b-(c)[1]")], &[bedrock(name)]));
    }
    cases.push(blocks(32, BEDROCK, &[bedrock("a"), bedrock("b")], &[bedrock("a"), bedrock("a")]));
    let point = || json!({"cachePoint": {"type": "default"}});
    cases.push(blocks(32, BEDROCK, &[bedrock("a")], &[bedrock("a"), point()]));
    cases.push(case(32, BEDROCK, "/messages/0/content", json!([{"text": "a"}, bedrock("a")]), json!([bedrock("a")])));
    let numbered = |count: usize| (0..count).map(|index| bedrock(&format!("document {index}"))).collect::<Vec<_>>();
    cases.push(blocks(32, BEDROCK, &numbered(5), &numbered(6)));
    let claude = |title: &str| json!({"type": "document", "title": title, "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}});
    cases.push(blocks(32, CLAUDE, &[claude("a plan (1)")], &[claude("plan.pdf")]));
    let file = |data: &str| json!({"type": "file", "file": {"filename": "a.pdf", "file_data": data}});
    cases.push(blocks(32, OPENAI, &[file("data:application/pdf;base64,JVBERi0=")], &[file("JVBERi0=")]));
    let azure = chat(Platform::Azure, "gpt-4.1");
    cases.push(blocks(32, azure, &[], &[file("data:application/pdf;base64,JVBERi0=")]));
    cases
}
