//! The bodies of answers: event streams, compressed streams, and documents.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{Exchange, Protocol};

/// The body of an answer with these events.
pub fn body(events: &[String]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// A response with this body as an event stream.
pub fn event_stream(body: impl Into<Vec<u8>>) -> Exchange {
    Exchange::bytes(200, "text/event-stream", vec![body.into()])
}

pub fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).expect("memory");
    encoder.finish().expect("memory")
}

/// The answer of `wire.rich` as a document, from a server that does not stream.
pub fn document(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Anthropic => {
            r#"{"id":"m","type":"message","role":"assistant","content":[
                {"type":"redacted_thinking","data":"XYZ"},
                {"type":"thinking","thinking":"Two files.","signature":"SIG="},
                {"type":"text","text":"Reading."},
                {"type":"tool_use","id":"toolu_1","name":"read","input":{"file_path":"a"}},
                {"type":"tool_use","id":"toolu.2","name":"read","input":{"file_path":"b"}}
            ],"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":20}}"#
        }
        Protocol::OpenaiChat => {
            r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"tool_calls","message":{
                "role":"assistant","reasoning_content":"Two files.","content":"Reading.","tool_calls":[
                    {"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"file_path\":\"a\"}"}},
                    {"id":"call_2","type":"function","function":{"name":"read","arguments":"{\"file_path\":\"b\"}"}}
            ]}}],"usage":{"prompt_tokens":10,"completion_tokens":20},"error":null}"#
        }
        Protocol::OpenaiResponses => {
            r#"{"id":"r","object":"response","status":"completed","error":null,"incomplete_details":null,"output":[
                {"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Two files."}],"encrypted_content":"ENC="},
                {"id":"msg_1","type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Reading."}]},
                {"id":"fc_1","type":"function_call","call_id":"call_1","name":"read","arguments":"{\"file_path\":\"a\"}"},
                {"id":"fc_2","type":"function_call","call_id":"call_2","name":"read","arguments":"{\"file_path\":\"b\"}"}
            ],"usage":{"input_tokens":10,"output_tokens":20}}"#
        }
        Protocol::Gemini => {
            r#"[{"candidates":[{"content":{"parts":[{"text":"Two files.","thought":true},{"text":"Reading.","thoughtSignature":"TEXT="}],"role":"model"}}]},
                {"candidates":[{"content":{"parts":[
                    {"functionCall":{"id":"fn_1","name":"read","args":{"file_path":"a"}},"thoughtSignature":"SIG="},
                    {"functionCall":{"id":"fn_2","name":"read","args":{"file_path":"b"}}}
                ],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":20}}]"#
        }
        Protocol::Ollama | Protocol::Bedrock => panic!("a document is an event"),
    }
}
