//! Properties of streams: an odd value of a field that an event does not use, and the bytes at which
//! a stream is cut, change no chunk. Text that arrives together is joined.

use harness::provider::answers::event_stream;
use harness::provider::{Exchange, Protocol};
use harness::wires::{WIRES, Wire};
use nuncio::internal::model::Chunk;
use proptest::collection::vec;
use proptest::prelude::*;

use super::protocol_deviations::joined;
use super::{exchange, shown};
use crate::random::property;

/// Texts as JSON.
const TEXTS: &[&str] = &[
    r#""""#,
    r#""Hel""#,
    r#"" größe 🦀""#,
    r#""a\n\t\"b\"\\""#,
    r#""\u00e9\ud83e\udd80""#,
    r#""\ud83d""#,
    r#""{\"name\":""#,
    "null",
    "7",
];

/// The events of a protocol, with `$` in place of a text.
struct Events {
    protocol: Protocol,
    events: &'static [&'static str],
    end: &'static [&'static str],
    /// Replacements that add a value of an unexpected type in a field that the event does not use.
    odd: &'static [(&'static str, &'static str)],
}

const EVENTS: &[Events] = &[
    Events {
        protocol: Protocol::OpenaiChat,
        events: &[
            r#"{"choices":[{"index":0,"delta":{"content":$},"finish_reason":null}],"usage":null}"#,
            r#" {"choices": [{"delta":{"role":"assistant","content":$,"reasoning":null,"tool_calls":[]},"logprobs":null,"finish_reason":""}]} "#,
            r#"{"choices":[{"delta":{"reasoning_content":$}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":$,"content":""}}]}"#,
            r#"{"choices":[{"delta":{"refusal":$}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"text","text":$}]}}]}"#,
            r#"{"choices":[{"delta":{"content":$,"content":"twice"}}]}"#,
            r#"{"choices":[{"delta":{"content":$}},7,{"delta":{"content":{}}},{"delta":null}]}"#,
            r#"{"choices":[{"delta":[$]}]}"#,
            r#"{"choices":[{"delta":{"content":$}}],"usage":{"prompt_tokens":3.0,"completion_tokens":"2","total_tokens":1e3}}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"read","arguments":$}}]}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":$,"index":0}]}}]}"#,
        ],
        end: &[r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#, "[DONE]"],
        odd: &[("\"choices\":", "\"x_groq\":0,\"choices\":")],
    },
    Events {
        protocol: Protocol::Anthropic,
        events: &[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":$}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":$}}"#,
            r#"{"type":"content_block_delta","index":1.5,"delta":{"type":"text_delta","text":$,"thinking":null}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":$}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":$,"text":"twice"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":null}"#,
            r#"{"type":"ping","delta":[$]}"#,
        ],
        end: &[r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#, r#"{"type":"message_stop"}"#],
        odd: &[
            ("\"delta\":{\"type\"", "\"delta\":{\"stop_reason\":0,\"type\""),
            ("\"content_block\":{", "\"content_block\":{\"name\":0,"),
        ],
    },
    Events {
        protocol: Protocol::OpenaiResponses,
        events: &[
            r#"{"type":"response.output_text.delta","sequence_number":7,"output_index":0,"delta":$,"logprobs":[]}"#,
            r#"{"type":"response.output_text.delta","output_index":"0","delta":$,"item":7,"response":[]}"#,
            r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":$}"#,
            r#"{"type":"response.refusal.delta","delta":$}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","phase":$}}"#,
            r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c","arguments":$}}"#,
        ],
        end: &[r#"{"type":"response.completed","response":{"usage":null}}"#],
        odd: &[("\"item\":{", "\"item\":{\"name\":0,"), ("\"response\":{", "\"response\":{\"status\":0,")],
    },
    Events {
        protocol: Protocol::Gemini,
        events: &[
            r#"{"candidates":[{"content":{"parts":[{"text":$}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9}}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":$,"thought":true},{"text":$,"thought":null}]}}],"usageMetadata":{"promptTokenCount":2.0}}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":$,"thoughtSignature":"S"},8]}},9]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":$,"text":"twice"}]}}]}"#,
            r#"{"candidates":[{"content":[[{"text":$}]]}],"promptFeedback":null}"#,
            r#"[{"candidates":[{"content":{"parts":[{"text":$}]}}]}]"#,
        ],
        end: &[r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}"#],
        odd: &[("\"candidates\":", "\"error\":0,\"candidates\":")],
    },
    Events {
        protocol: Protocol::Ollama,
        events: &[
            r#"{"model":"m","message":{"role":"assistant","content":$},"done":false}"#,
            r#"{"message":{"content":$,"thinking":null,"tool_calls":[]},"done":false,"prompt_eval_count":1.5}"#,
            r#"{"message":{"content":"","thinking":$},"done":false}"#,
            r#"{"message":{"content":$,"content":"twice"},"done":false}"#,
            r#"{"message":[$],"done":false}"#,
        ],
        end: &[r#"{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":2.0}"#],
        odd: &[("\"done\":false", "\"done\":false,\"done_reason\":0"), ("\"message\":{", "\"message\":{\"id\":0,")],
    },
];

/// Returns the body of an answer.
fn body(protocol: Protocol, events: &[String]) -> Vec<u8> {
    let (start, end) = if protocol == Protocol::Ollama { ("", "\n") } else { ("data: ", "\n\n") };
    events.iter().flat_map(|event| [start, event, end].concat().into_bytes()).collect()
}

/// Sends a body in pieces and returns the chunks, with joined texts.
async fn answer(wire: &Wire, body: &[u8], cuts: &[usize]) -> String {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % body.len().max(1)).chain([0, body.len()]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let pieces = cuts.windows(2).map(|cut| body[cut[0]..cut[1]].to_vec()).collect();
    let kind = if wire.protocol == Protocol::Ollama { "application/x-ndjson" } else { "text/event-stream" };
    let (answer, _) = exchange(wire, vec![Exchange::bytes(200, kind, pieces)]).await;
    assert_eq!(answer.error, None);
    let reports = |chunk: &Chunk| matches!(chunk, Chunk::UsageSoFar(_) | Chunk::CallInput { .. });
    joined(&answer.chunks.into_iter().filter(|chunk| !reports(chunk)).collect::<Vec<_>>())
}

#[test]
fn odd_values_and_cuts_change_no_chunk() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for Events { protocol, events, end, odd } in EVENTS {
        let wire = WIRES.iter().find(|wire| wire.protocol == *protocol).expect("there");
        let event = (prop::sample::select(*events), prop::sample::select(TEXTS)).prop_map(|(event, text)| event.replace('$', text));
        proptest!(property("answers", 160), |(mut events in vec(event, 1..12), cuts in vec(0..2000_usize, 0..8))| {
            events.extend(end.iter().map(|event| event.to_string()));
            let is_odd = |event: &String| odd.iter().fold(event.clone(), |event, (from, to)| event.replace(from, to));
            let odd_events: Vec<String> = events.iter().map(is_odd).collect();
            let (plain, odd) = (body(*protocol, &events), body(*protocol, &odd_events));
            let expected = runtime.block_on(answer(wire, &odd, &[]));
            prop_assert_eq!(&runtime.block_on(answer(wire, &plain, &[])), &expected);
            prop_assert_eq!(&runtime.block_on(answer(wire, &plain, &cuts)), &expected);
        });
    }
}

#[tokio::test]
async fn text_that_arrives_together_is_joined_in_order() {
    let wire = WIRES.iter().find(|wire| wire.protocol == Protocol::OpenaiChat).expect("there");
    let (answer, _) =
        exchange(wire, vec![event_stream(wire.rich.iter().map(|event| format!("data: {event}\n\n")).collect::<String>())]).await;
    assert_eq!(
        format!("\n{}", shown(&answer.chunks)),
        wire.rich_chunks.replace("thinking Two \nthinking files.", "thinking Two files.")
    );

    let deltas = |field: &str, count: usize| -> Vec<String> {
        (0..count).map(|number| format!("{{\"choices\":[{{\"delta\":{{\"{field}\":\"t{number:06} \"}}}}]}}")).collect()
    };
    let end = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#.to_owned();
    let events = [deltas("reasoning", 1000), deltas("content", 2000), vec![end]].concat();
    let (answer, _) = exchange(wire, vec![event_stream(body(wire.protocol, &events))]).await;
    let (mut thinking, mut text) = (String::new(), String::new());
    for chunk in &answer.chunks {
        let (kind, more) = match chunk {
            Chunk::Thinking(more) if text.is_empty() => (&mut thinking, more),
            Chunk::Text(more) => (&mut text, more),
            Chunk::BlockEnd { .. } | Chunk::Stop(_) => continue,
            other => panic!("{other:?}"),
        };
        assert!(more.len() <= 4096, "{}", more.len());
        kind.push_str(more);
    }
    let expected = |count: usize| (0..count).map(|number| format!("t{number:06} ")).collect::<String>();
    assert_eq!((thinking, text), (expected(1000), expected(2000)));
    assert!(answer.chunks.len() < 300, "{}", answer.chunks.len());
}
