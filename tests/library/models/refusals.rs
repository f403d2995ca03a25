//! Requests that a provider refuses: they are sent again without what the provider names, and later
//! requests do not contain it.

use std::collections::HashSet;
use std::sync::Arc;

use harness::provider::{Exchange, Protocol, Provider, place};
use harness::wires::{WIRES, Wire};
use nuncio::content::Part;
use nuncio::internal::model::endpoint::Endpoint;
use nuncio::internal::model::local::LocalServers;
use nuncio::internal::model::{Block, Chunk, Message, Model, Request, ToolResult, ToolSpec};
use nuncio::internal::web::HttpClients;
use serde_json::json;

use super::{ask, endpoint, image, request};

const FIRST: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SECOND: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// A conversation with two images, a call with its result, and the tool of an MCP server.
fn conversation() -> Request {
    let call = |id: &str| Block::ToolCall {
        id: id.into(),
        name: "read".into(),
        input: json!({ "file_path": "a.txt" }),
        input_text: None,
        state: None,
    };
    let result = |id: &str, output| ToolResult { id: id.into(), name: "read".into(), output, failed: false };
    let mut request = request(vec![
        Message::User(vec![Part::text("look at this"), image(FIRST)]),
        Message::Assistant(vec![Block::Text { text: "I read two.".into(), state: None }, call("callone11"), call("calltwo22")]),
        Message::ToolResults(vec![
            result("callone11", vec![Part::text("output one")]),
            result("calltwo22", vec![Part::text("output two"), image(SECOND)]),
        ]),
        Message::User(vec![Part::text("go on")]),
    ]);
    let tool = |name: &str| ToolSpec { name: name.into(), description: "It.".into(), input_schema: json!({ "type": "object" }) };
    request.tools = vec![tool("read"), tool("mcp__server__odd"), tool("mcp__server__even")].into();
    request
}

/// A refusal: what the provider does not accept, and its words. `{place}` is the place of the text.
struct Refusal {
    /// The request is refused while it contains one of these.
    needles: &'static [&'static str],
    words: &'static str,
    /// The number of requests until one is accepted.
    requests: usize,
    /// Text that the accepted request still has.
    kept: &'static [&'static str],
}

const REFUSALS: &[Refusal] = &[
    Refusal {
        needles: &[FIRST],
        words: "{place}: Could not process image",
        requests: 2,
        kept: &[SECOND, "callone11", "mcp__server__odd"],
    },
    Refusal {
        needles: &[FIRST, SECOND],
        words: "{place}: image exceeds the maximum",
        requests: 3,
        kept: &["callone11", "mcp__server__odd"],
    },
    Refusal { needles: &[FIRST, SECOND], words: "this model does not support image input", requests: 2, kept: &["callone11"] },
    Refusal {
        needles: &["mcp__server__odd"],
        words: "{place}: String should match pattern",
        requests: 2,
        kept: &[FIRST, "mcp__server__even"],
    },
    Refusal {
        needles: &["mcp__server__odd"],
        words: "Invalid schema for function 'mcp__server__odd': no",
        requests: 2,
        kept: &["mcp__server__even"],
    },
    Refusal {
        needles: &["mcp__server__odd", "mcp__server__even"],
        words: "{place}: invalid",
        requests: 3,
        kept: &[FIRST, "callone11"],
    },
    Refusal {
        needles: &["callone11"],
        words: "tool call id callone11 is not known",
        requests: 2,
        kept: &["calltwo22", FIRST, "output one"],
    },
    Refusal { needles: &["callone11", "calltwo22"], words: "{place}: unexpected", requests: 3, kept: &["output one", FIRST] },
    Refusal { needles: &["look at this"], words: "{place}: text is not allowed", requests: 2, kept: &["go on"] },
    Refusal {
        needles: &["callone11"],
        words: "Request contains an invalid argument.",
        requests: 2,
        kept: &["output one", "look at this"],
    },
    // The place is not that of the refused part, and nothing of the request is there.
    Refusal {
        needles: &["callone11"],
        words: "messages.90.content.7: contents[90]: input[90]: is not valid",
        requests: 2,
        kept: &["output one", "look at this"],
    },
    Refusal {
        needles: &["mcp__server__even"],
        words: "too many states for serving",
        requests: 2,
        kept: &["look at this", "\"read\""],
    },
];

/// How a provider refuses a request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Status,
    /// As an event of an answer with the status 200.
    Event,
}

/// The error of a provider in its own shape.
fn error(protocol: Protocol, words: &str, way: Way) -> Exchange {
    let body = match protocol {
        Protocol::Anthropic => json!({ "type": "error", "error": { "type": "invalid_request_error", "message": words } }),
        Protocol::Gemini => json!({ "error": { "code": 400, "message": words, "status": "INVALID_ARGUMENT" } }),
        Protocol::Ollama => json!({ "error": words }),
        Protocol::OpenaiResponses if way == Way::Event => {
            json!({ "type": "error", "code": "invalid_request_error", "message": words, "param": null })
        }
        _ => json!({ "error": { "message": words, "type": "invalid_request_error", "param": null, "code": null } }),
    };
    match (way, protocol) {
        (Way::Status, _) => Exchange::error(400, &body.to_string()),
        (Way::Event, _) => Exchange::events(&[&body.to_string()]),
    }
}

async fn refusing(wire: &'static Wire, needles: &'static [&'static str], words: &'static str, way: Way) -> Provider {
    let provider = Provider::start(wire.protocol, Vec::new()).await;
    provider.respond(move |received| match needles.iter().find(|needle| received.text.contains(**needle)) {
        Some(needle) => {
            let place = place(&received.body, needle, wire.protocol == Protocol::Anthropic);
            error(wire.protocol, &words.replace("{place}", &place), way)
        }
        None if wire.protocol == Protocol::Ollama => {
            let lines = wire.plain.iter().map(|line| format!("{line}\n")).collect();
            Exchange::new(200, "application/x-ndjson", lines)
        }
        None => Exchange::events(wire.plain),
    });
    provider
}

fn is_repair(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Notice { code: Some(code), .. } if code == "request_repaired")
}

fn opened(endpoint: &Endpoint, servers: &LocalServers) -> Arc<dyn Model> {
    nuncio::internal::model::open(endpoint.clone(), &HttpClients::default(), servers, Default::default())
}

#[tokio::test]
async fn refused_parts_are_left_out_at_once_and_in_later_requests() {
    let mut wrong = Vec::new();
    // Ollama refuses a request before its answer.
    let has_events = |wire: &&Wire| wire.protocol != Protocol::Ollama;
    let statuses = WIRES.iter().map(|wire| (wire, Way::Status));
    for (wire, way) in statuses.chain(WIRES.iter().filter(has_events).map(|wire| (wire, Way::Event))) {
        for refusal in REFUSALS {
            // Gemini's requests name their tools by `functionDeclarations` and have no ids of calls.
            let is_id = refusal.needles.iter().any(|needle| needle.starts_with("call"));
            if wire.protocol == Protocol::Gemini && is_id {
                continue;
            }
            let provider = refusing(wire, refusal.needles, refusal.words, way).await;
            let (endpoint, servers) = (endpoint("test", wire, &provider.base_url), LocalServers::default());
            let mut asked = conversation();
            let answer = ask(opened(&endpoint, &servers).as_ref(), asked.clone()).await;
            let parts = answer.chunks.iter().flat_map(|chunk| match chunk {
                Chunk::Refused { parts } => parts.clone(),
                _ => Vec::new(),
            });
            let parts: HashSet<String> = parts.collect();
            let notices = answer.chunks.iter().filter(|chunk| is_repair(chunk)).count();
            // A later request of the session, also of another process.
            asked.refused = Arc::new(parts);
            let again = ask(opened(&endpoint, &servers).as_ref(), asked).await;
            let received = provider.finish_unchecked().await;
            let what = format!("{:?} {way:?} {:?} {}", wire.protocol, refusal.needles, refusal.words);
            let last = received.last().map(|received| received.text.clone()).unwrap_or_default();
            let missing: Vec<_> = refusal.kept.iter().filter(|kept| !last.contains(**kept)).collect();
            if answer.error.is_some() || again.error.is_some() || received.len() != refusal.requests + 1 || notices == 0 {
                wrong.push(format!("{what}: {} requests, {notices} notices, {:?} {:?}", received.len(), answer.error, again.error));
            } else if !missing.is_empty() {
                wrong.push(format!("{what}: {missing:?} is missing in {last}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[tokio::test]
async fn refused_fields_are_left_out() {
    for (protocol, field, words) in [
        (Protocol::OpenaiChat, "reasoning_effort", "Unsupported parameter: 'reasoning_effort' is not supported with this model."),
        (Protocol::OpenaiChat, "reasoning_effort", "Unrecognized request argument supplied: reasoning_effort"),
        (Protocol::OpenaiChat, "stream_options", "stream_options: Extra inputs are not permitted"),
        (Protocol::OpenaiChat, "stream_options", "property 'stream_options' is unsupported"),
        (Protocol::OpenaiResponses, "prompt_cache_key", "Unknown parameter: 'prompt_cache_key'."),
        (Protocol::OpenaiResponses, "\"summary\"", "Unsupported value: 'reasoning.summary' is not supported"),
        (Protocol::Anthropic, "output_config", "output_config: Extra inputs are not permitted"),
        (Protocol::Anthropic, "\"display\"", "thinking.display: Extra inputs are not permitted"),
        (
            Protocol::Gemini,
            "thinkingConfig",
            "Invalid JSON payload received. Unknown name \"generation_config.thinking_config\": Cannot find field.",
        ),
        (
            Protocol::Gemini,
            "thinkingConfig",
            "Invalid JSON payload received. Unknown name \"thinkingConfig\" at 'generation_config': Cannot find field.",
        ),
    ] {
        let wire = WIRES.iter().find(|wire| wire.protocol == protocol).expect("a wire");
        let needles: &'static [&'static str] = Box::leak(Box::new([field]));
        let provider = refusing(wire, needles, words, Way::Status).await;
        let (endpoint, servers) = (endpoint("test", wire, &provider.base_url), LocalServers::default());
        let model = opened(&endpoint, &servers);
        assert_eq!(ask(model.as_ref(), conversation()).await.error, None, "{words}");
        assert_eq!(ask(opened(&endpoint, &servers).as_ref(), conversation()).await.error, None, "{words}");
        let received = provider.finish_unchecked().await;
        assert_eq!(received.len(), 3, "{words}");
        assert!(received[0].text.contains(field) && received[2].text.contains(FIRST), "{words}");
    }
}

#[tokio::test]
async fn refusals_that_no_change_repairs_fail_with_the_words_of_the_provider() {
    for wire in WIRES {
        let provider = Provider::start(wire.protocol, Vec::new()).await;
        provider.otherwise(error(wire.protocol, "We do not like you.", Way::Status));
        let (endpoint, servers) = (endpoint("test", wire, &provider.base_url), LocalServers::default());
        let answer = ask(opened(&endpoint, &servers).as_ref(), conversation()).await;
        let failed = answer.error.expect("an error");
        assert!(failed.message.contains("We do not like you."), "{failed}");
        assert!(
            answer.chunks.iter().all(|chunk| !matches!(chunk, Chunk::Notice { .. } | Chunk::Refused { .. })),
            "nothing is kept"
        );
        assert_eq!(provider.finish_unchecked().await.len(), 2, "the request and plain text");
    }
    // These have other remedies than another request.
    let wire = &WIRES[0];
    for (status, words) in [
        (401, "messages.0.content.1: invalid x-api-key"),
        (403, "messages.0: not permitted"),
        (402, "messages.0: credit balance is too low"),
        (400, "prompt is too long: 210000 tokens > 200000 maximum"),
        (400, "messages.0: Output blocked by content filtering policy: content_filter"),
    ] {
        let provider = Provider::start(wire.protocol, Vec::new()).await;
        let body = json!({ "type": "error", "error": { "type": "error", "message": words } });
        provider.otherwise(Exchange::error(status, &body.to_string()));
        let (endpoint, servers) = (endpoint("test", wire, &provider.base_url), LocalServers::default());
        assert!(ask(opened(&endpoint, &servers).as_ref(), conversation()).await.error.is_some());
        assert_eq!(provider.finish_unchecked().await.len(), 1, "{words}");
    }
}
