//! Long tool calls: the progress while a model writes their input.

use nuncio::internal::model::Chunk;
use serde_json::{Value, json};

use super::{exchange, shown};
use harness::Home;
use harness::provider::Exchange;
use harness::wires::WIRES;

/// A call of `write` whose input has this size, in pieces of 1 KiB, as each protocol streams it.
fn events(wire: usize, bytes: usize) -> Vec<String> {
    let input = json!({"file_path": "src/a.rs", "content": "x".repeat(bytes)}).to_string();
    let pieces = input.as_bytes().chunks(1 << 10).map(|piece| String::from_utf8(piece.to_vec()).unwrap());
    let delta = |piece: String| match wire {
        0 => json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}),
        1 => json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}}]}),
        _ => json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": piece}),
    };
    let item = |arguments: &str| json!({"type": "function_call", "call_id": "c", "name": "write", "arguments": arguments});
    let start = match wire {
        0 => {
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c", "name": "write", "input": {}}})
        }
        1 => {
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "write", "arguments": ""}}]}}]})
        }
        _ => json!({"type": "response.output_item.added", "output_index": 0, "item": item("")}),
    };
    let end: Vec<Value> = match wire {
        0 => vec![
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
            json!({"type": "message_stop"}),
        ],
        1 => vec![json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})],
        _ => vec![
            json!({"type": "response.output_item.done", "output_index": 0, "item": item(&input)}),
            json!({"type": "response.completed", "response": {}}),
        ],
    };
    [start].into_iter().chain(pieces.map(delta)).chain(end).map(|event| event.to_string()).collect()
}

#[tokio::test]
async fn size_and_path_of_a_long_call_are_reported_before_the_call() {
    for (number, wire) in WIRES.iter().enumerate().take(3) {
        for (bytes, is_long) in [(400 << 10, true), (500, false)] {
            let sent = events(number, bytes);
            let sent: Vec<&str> = sent.iter().map(String::as_str).collect();
            let (answer, _) = exchange(wire, vec![Exchange::events(&sent)]).await;
            let reports: Vec<(u64, &str, Option<&str>)> = answer
                .chunks
                .iter()
                .take_while(|chunk| !matches!(chunk, Chunk::ToolCall { .. }))
                .filter_map(|chunk| match chunk {
                    Chunk::CallInput { name, bytes, path } => Some((*bytes, name.as_str(), path.as_deref())),
                    _ => None,
                })
                .collect();
            let all = answer.chunks.iter().filter(|chunk| matches!(chunk, Chunk::CallInput { .. })).count();
            assert_eq!((all, !reports.is_empty()), (reports.len(), is_long), "{:?}, {bytes} bytes: {reports:?}", wire.protocol);
            assert!(reports.iter().all(|(_, name, path)| (*name, *path) == ("write", Some("src/a.rs"))), "{reports:?}");
            assert!(reports.is_sorted_by(|before, after| before.0 < after.0), "{reports:?}");
            assert!(shown(&answer.chunks).contains("call c write "), "{:?}: {:?}", wire.protocol, answer.error);
        }
    }
}

#[tokio::test]
async fn event_reports_a_long_call() {
    let home = Home::new();
    let write = json!({"name": "write", "input": {"file_path": "a.txt", "content": "x".repeat(5000)}});
    let server = home.serve_script(json!([{"tool_calls": [write]}, {"text": "done"}]), &["--mode", "auto"]).await;
    let session = server.new_session(&home).await;
    let mut events = server.follow(&session).events().await;
    server.begin(&session, "go").await;
    let shown = events.until("tool.started").await;
    let report = shown.iter().rfind(|shown| shown.event["body"]["type"] == "tool.input");
    let body = &report.expect("a report").event["body"];
    let is_long = body["bytes"].as_u64().unwrap() >= 1 << 10;
    assert_eq!((&body["name"], &body["path"], is_long), (&json!("write"), &json!("a.txt"), true), "{body}");
    events.until("turn.completed").await;
    drop(events);
    server.stop().await;
}
