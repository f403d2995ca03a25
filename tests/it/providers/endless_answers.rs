//! Endless answers: their size is limited, the turn ends, and the session stays usable.

use serde_json::{Value, json};

use harness::provider::Exchange;
use harness::provider::session::{connect, home};
use harness::wires::{WIRES, Wire};
use harness::{notices, text};

use harness::provider::Protocol;

/// The first events of an answer, and the events that repeat endlessly.
struct Case {
    kind: &'static str,
    start: Vec<Value>,
    repeated: Vec<Value>,
}

fn case(kind: &'static str, start: Vec<Value>, repeated: Vec<Value>) -> Case {
    Case { kind, start, repeated }
}

fn cases(wire: &Wire) -> Vec<Case> {
    // Text that does not count as repeated.
    let much: String = (0..10_000).map(|number| format!("{number} ")).collect();
    match wire.protocol {
        Protocol::Anthropic => {
            let start = |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
            let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
            let call = start(json!({"type": "tool_use", "id": "t", "name": "write", "input": {}}));
            let stop = json!({"type": "content_block_stop", "index": 0});
            vec![
                case(
                    "text",
                    vec![start(json!({"type": "text", "text": ""}))],
                    vec![delta(json!({"type": "text_delta", "text": much}))],
                ),
                case(
                    "thinking",
                    vec![start(json!({"type": "thinking", "thinking": ""}))],
                    vec![delta(json!({"type": "thinking_delta", "thinking": much}))],
                ),
                case("arguments", vec![call.clone()], vec![delta(json!({"type": "input_json_delta", "partial_json": much}))]),
                case("calls", vec![], vec![call, stop]),
            ]
        }
        Protocol::OpenaiChat => {
            let chunk = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
            let call = |id: &str, name: &str, arguments: &str| json!({"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
            // One event with many calls of different ids.
            let calls: Vec<Value> = (0..500).map(|number| call(&format!("call_{number}"), "write", "{}")).collect();
            vec![
                case("text", vec![], vec![chunk(json!({"content": much}))]),
                case("thinking", vec![], vec![chunk(json!({"reasoning_content": much}))]),
                case(
                    "arguments",
                    vec![chunk(json!({"tool_calls": [call("call_1", "write", "")]}))],
                    vec![chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": much}}]}))],
                ),
                case("calls", vec![], vec![chunk(json!({"tool_calls": calls}))]),
            ]
        }
        Protocol::OpenaiResponses => {
            let call = json!({"id": "fc", "type": "function_call", "call_id": "call", "name": "write", "arguments": ""});
            let item = |kind: &str| json!({"type": format!("response.output_item.{kind}"), "output_index": 0, "item": call});
            vec![
                case("text", vec![], vec![json!({"type": "response.output_text.delta", "output_index": 0, "delta": much})]),
                case("thinking", vec![], vec![json!({"type": "response.reasoning_text.delta", "output_index": 0, "delta": much})]),
                case(
                    "arguments",
                    vec![item("added")],
                    vec![json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": much})],
                ),
                case("calls", vec![], vec![item("added"), item("done")]),
            ]
        }
        Protocol::Bedrock => unreachable!("not in WIRES"),
        Protocol::Ollama => {
            let part = |field: &str, value: Value| json!({"message": {"role": "assistant", field: value}, "done": false});
            let call = |arguments: Value| json!([{"function": {"name": "write", "arguments": arguments}}]);
            vec![
                case("text", vec![], vec![part("content", json!(much))]),
                case("thinking", vec![], vec![part("thinking", json!(much))]),
                case("arguments", vec![], vec![part("tool_calls", call(json!({"content": much})))]),
                case("calls", vec![], vec![part("tool_calls", call(json!({})))]),
            ]
        }
        Protocol::Gemini => {
            let parts = |parts: Vec<Value>| json!({"candidates": [{"content": {"parts": parts, "role": "model"}}]});
            let call = |args: Value| json!({"functionCall": {"name": "write", "args": args}});
            vec![
                case("text", vec![], vec![parts(vec![json!({"text": much})])]),
                case("thinking", vec![], vec![parts(vec![json!({"text": much, "thought": true})])]),
                case("arguments", vec![], vec![parts(vec![call(json!({"content": much}))])]),
                case("calls", vec![], vec![parts(vec![call(json!({}))])]),
            ]
        }
    }
}

fn exchange(case: &Case) -> Exchange {
    let data = |events: &[Value]| events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>();
    Exchange::new(
        200,
        "text/event-stream",
        vec![data(&case.start), data(&case.repeated)].into_iter().filter(|piece| !piece.is_empty()).collect(),
    )
    .endless()
}

/// Runs every kind of endless answer in one protocol, each in its own session.
async fn ends(wire: &Wire) {
    for case in cases(wire) {
        let (home, provider, name) = home(wire, vec![exchange(&case), Exchange::events(wire.plain)]).await;
        // A compaction of the large answer would need another exchange.
        home.config(&format!("{}[context]\ncompact_at = 0\n", home.config_text()));
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        let (stop, updates) = agent.turn(&session, "go").await;
        let what = format!("{name}, {}", case.kind);
        assert_eq!(stop, "max_tokens", "{what}: {:?}", notices(&updates));
        assert!(notices(&updates).iter().any(|notice| notice.contains("too long")), "{what}: {:?}", notices(&updates));
        let calls = updates.iter().filter(|update| update["sessionUpdate"] == "tool_call").count();
        assert_eq!(calls, 0, "{what}: a call of an answer that was cut ran");
        for kind in ["agent_message_chunk", "agent_thought_chunk"] {
            let length = text(&updates, kind).len();
            assert!(length <= harness::limits::MODEL_ANSWER_BYTES_MAX, "{what}: {length} bytes of {kind}");
        }
        // The session is idle, and the endless answer is not retried.
        let (stop, updates) = agent.turn(&session, "and now?").await;
        assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "Hello"), "{what}");
        agent.finish().await;
        assert_eq!(provider.finish().await.len(), 2, "{what}");
    }
}

#[tokio::test]
async fn endless_answer_stops_with_max_tokens_anthropic() {
    ends(&WIRES[0]).await;
}

#[tokio::test]
async fn endless_answer_stops_with_max_tokens_openai_chat() {
    ends(&WIRES[1]).await;
}

#[tokio::test]
async fn endless_answer_stops_with_max_tokens_openai_responses() {
    ends(&WIRES[2]).await;
}

#[tokio::test]
async fn endless_answer_stops_with_max_tokens_ollama() {
    ends(&WIRES[4]).await;
}

#[tokio::test]
async fn endless_answer_stops_with_max_tokens_gemini() {
    ends(&WIRES[3]).await;
}

#[tokio::test]
async fn endless_answer_can_be_cancelled() {
    let wire = &WIRES[1];
    // Small pieces, so that the cancel comes before the limit is reached.
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "x"}}]});
    let endless = Exchange::new(200, "text/event-stream", vec![format!("data: {piece}\n\n")]).endless();
    let (home, provider, _) = home(wire, vec![endless, Exchange::events(wire.plain)]).await;
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    let id = agent.prompt(&session, "go").await;
    agent.until_update("agent_message_chunk").await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&id).await.expect("an answer")["stopReason"], "cancelled");
    let (stop, _) = agent.turn(&session, "and now?").await;
    assert_eq!(stop, "end_turn");
    agent.finish().await;
    provider.finish().await;
}
