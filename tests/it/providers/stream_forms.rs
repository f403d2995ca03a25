//! Forms of streams that servers and proxies send: none costs a second request, a call, or the
//! message of an error.

use harness::provider::Exchange;
use harness::provider::Protocol::{self, Anthropic, Gemini, Ollama, OpenaiChat, OpenaiResponses};
use harness::provider::answers::event_stream;
use harness::provider::session::home;
use harness::wires::{WIRES, Wire};

fn wire(protocol: Protocol) -> &'static Wire {
    WIRES.iter().find(|wire| wire.protocol == protocol).expect("a wire")
}

/// What servers and proxies put between events.
const BETWEEN: &[&str] = &[
    "data:\n\n",
    "data: \n\n",
    ": OPENROUTER PROCESSING\n\n",
    "data: ping\n\n",
    "data: null\n\n",
    "data: [PING]\n\n",
    "event: keepalive\ndata:\n\n",
    "event: ping\ndata: {}\n\n",
    "id: 7\nretry: 3000\n\n",
    "data:\r\n\r\n",
    "data:\ndata:\n\n",
];

#[tokio::test]
async fn events_of_proxies_between_events_do_not_end_the_answer() {
    for wire in WIRES.iter().filter(|wire| wire.protocol != Ollama) {
        let body = |filler: &str| {
            let events = wire.plain.iter().map(|event| format!("{filler}data: {event}\n\n"));
            events.collect::<String>() + filler
        };
        let answers = BETWEEN.iter().map(|filler| event_stream(body(filler))).collect();
        let (home, provider, name) = home(wire, answers).await;
        for filler in BETWEEN {
            let ran = home.run(&["run", "hi"], "").await;
            assert_eq!((ran.code, ran.stdout.as_str()), (0, "Hello\n"), "{name}: {filler:?}: {ran:?}");
        }
        provider.finish().await;
    }
}

/// The frames of an answer in other forms: with the line ends of Windows, byte by byte, which cuts
/// characters, and without the last event of Chat Completions.
#[tokio::test]
async fn frames_are_read_in_every_form() {
    for wire in WIRES {
        let (start, end) = if wire.protocol == Ollama { ("", "\n") } else { ("data: ", "\n\n") };
        let events = wire.plain.iter().filter(|event| **event != "[DONE]");
        let body: String = events.map(|event| format!("{start}{}{end}", event.replace("Hel", "Hél→"))).collect();
        let kind = if wire.protocol == Ollama { "application/x-ndjson" } else { "text/event-stream" };
        let answer = |pieces: Vec<Vec<u8>>| Exchange::bytes(200, kind, pieces).drip();
        let forms = [
            ("with CRLF", answer(vec![body.replace('\n', "\r\n").into_bytes()])),
            ("byte by byte", answer(body.bytes().map(|byte| vec![byte]).collect())),
        ];
        let (home, provider, name) = home(wire, forms.iter().map(|(_, form)| form.clone()).collect()).await;
        for (what, _) in forms {
            let ran = home.run(&["run", "hi"], "").await;
            assert_eq!((ran.code, ran.stdout.as_str()), (0, "Hél→lo\n"), "{name}: {what}: {ran:?}");
        }
        provider.finish().await;
    }
}

/// The entries of `tool_calls`, one event each, and the lines that the calls append.
const PIECES: &[(&str, &[&str], &str)] = &[
    (
        "one index for all calls",
        &[
            r#"{"index":0,"id":"c1","function":{"name":"bash","arguments":"{\"command\":"}}"#,
            r#"{"index":0,"function":{"arguments":"\"echo a >> effects\"}"}}"#,
            r#"{"index":0,"id":"c2","function":{"name":"bash","arguments":"{\"command\":\"echo b"}}"#,
            r#"{"index":0,"function":{"arguments":" >> effects\"}"}}"#,
        ],
        "a b",
    ),
    (
        "one index, and no ids",
        &[
            r#"{"index":0,"function":{"name":"bash","arguments":"{\"command\":\"echo a >> effects\"}"}}"#,
            r#"{"index":0,"function":{"name":"bash","arguments":"{\"command\":\"echo b >> effects\"}"}}"#,
        ],
        "a b",
    ),
    (
        "the second head at index 0, its tail at 1",
        &[
            r#"{"index":0,"id":"c1","function":{"name":"bash","arguments":"{\"command\":\"echo a >> effects\"}"}}"#,
            r#"{"index":0,"id":"c2","function":{"name":"bash","arguments":""}}"#,
            r#"{"index":1,"function":{"arguments":"{\"command\":\"echo b >> effects\"}"}}"#,
        ],
        "a b",
    ),
    (
        "no index",
        &[
            r#"{"id":"c1","function":{"name":"bash","arguments":"{\"command\":"}}"#,
            r#"{"function":{"arguments":"\"echo a >> effects\"}"}}"#,
            r#"{"id":"c2","function":{"name":"bash","arguments":"{\"command\":\"echo b >> effects\"}"}}"#,
        ],
        "a b",
    ),
    (
        "the first index is 1",
        &[
            r#"{"index":1,"id":"c1","function":{"name":"bash","arguments":"{\"command\":\"echo a"}}"#,
            r#"{"index":1,"function":{"arguments":" >> effects\"}"}}"#,
        ],
        "a",
    ),
    (
        "a new id with each piece",
        &[
            r#"{"index":0,"id":"c1","function":{"name":"bash","arguments":""}}"#,
            r#"{"index":0,"id":"c2","function":{"arguments":"{\"command\":\"echo a"}}"#,
            r#"{"index":0,"id":"c3","function":{"name":"","arguments":" >> effects\"}"}}"#,
        ],
        "a",
    ),
    (
        "an empty id and a null name with each piece",
        &[
            r#"{"index":0,"id":"c1","function":{"name":"bash","arguments":null}}"#,
            r#"{"index":0,"id":"","function":{"name":null,"arguments":"{\"command\":\"echo a"}}"#,
            r#"{"index":0,"id":"","function":{"name":"","arguments":" >> effects\"}"}}"#,
        ],
        "a",
    ),
    (
        "the id and the name with each piece",
        &[
            r#"{"index":0,"id":"c1","function":{"name":"bash","arguments":"{\"command\":"}}"#,
            r#"{"index":0,"id":"c1","function":{"name":"bash","arguments":"\"echo a >> effects\"}"}}"#,
        ],
        "a",
    ),
    (
        "the name with each piece, and no id",
        &[
            r#"{"index":0,"function":{"name":"bash","arguments":"{\"command\":"}}"#,
            r#"{"index":0,"function":{"name":"bash","arguments":"\"echo a >> effects\"}"}}"#,
        ],
        "a",
    ),
    (
        "interleaved pieces with known ids",
        &[
            r#"{"index":0,"id":"c1","function":{"name":"bash","arguments":"{\"command\":"}}"#,
            r#"{"index":1,"id":"c2","function":{"name":"bash","arguments":"{\"command\":"}}"#,
            r#"{"id":"c1","function":{"arguments":"\"echo a >> effects\"}"}}"#,
            r#"{"index":1,"function":{"arguments":"\"echo b >> effects\"}"}}"#,
        ],
        "a b",
    ),
    (
        "the id before the name",
        &[
            r#"{"index":0,"id":"c1"}"#,
            r#"{"index":0,"function":{"name":"bash"}}"#,
            r#"{"index":0,"function":{"arguments":{"command":"echo a >> effects"}}}"#,
        ],
        "a",
    ),
    (
        "the whole call again at the end",
        &[
            r#"{"index":0,"id":"c1","function":{"name":"bash","arguments":"{\"command\":"}}"#,
            r#"{"index":0,"function":{"arguments":"\"echo a >> effects\"}"}}"#,
            r#"{"index":0,"id":"c1","function":{"name":"bash","arguments":"{\"command\":\"echo a >> effects\"}"}}"#,
        ],
        "a",
    ),
    (
        "one id for all calls",
        &[
            r#"{"index":0,"id":"call","function":{"name":"bash","arguments":"{\"command\":\"echo a >> effects\"}"}}"#,
            r#"{"index":1,"id":"call","function":{"name":"bash","arguments":"{\"command\":\"echo b >> effects\"}"}}"#,
        ],
        "a b",
    ),
];

/// Runs a prompt whose first answer is `body`, in mode auto. Returns what its commands appended.
async fn effects(what: &str, protocol: Protocol, body: String) -> String {
    let (home, provider, _) = home(wire(protocol), vec![event_stream(body), Exchange::events(wire(protocol).plain)]).await;
    let ran = home.run(&["run", "--mode", "auto", "go"], "").await;
    assert_eq!(ran.code, 0, "{what}: {ran:?}");
    provider.finish().await;
    let made = home.get("effects").unwrap_or_default();
    let mut lines: Vec<&str> = made.split_whitespace().collect();
    lines.sort_unstable();
    lines.join(" ")
}

fn chat_event(delta: &str, reason: &str) -> String {
    format!("data: {{\"choices\":[{{\"delta\":{delta},\"finish_reason\":{reason}}}]}}\n\n")
}

#[tokio::test]
async fn pieces_of_calls_find_their_call() {
    for (what, pieces, expected) in PIECES {
        let pieces: String = pieces.iter().map(|piece| chat_event(&format!("{{\"tool_calls\":[{piece}]}}"), "null")).collect();
        let body = pieces + &chat_event("{}", "\"tool_calls\"") + "data: [DONE]\n\n";
        assert_eq!(effects(what, OpenaiChat, body).await, *expected, "{what}");
    }
}

#[tokio::test]
async fn calls_count_with_any_finish_reason_and_after_it() {
    let call =
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"bash","arguments":"{\"command\":\"echo a >> effects\"}"}}]}"#;
    for reason in ["\"stop\"", "\"end\"", "\"eos\"", "\"function_call\"", "\"\""] {
        let body = chat_event(call, "null") + &chat_event("{}", reason) + "data: [DONE]\n\n";
        assert_eq!(effects(reason, OpenaiChat, body).await, "a", "{reason}");
    }
    let body = chat_event("{\"content\":\"x\"}", "\"stop\"") + &chat_event(call, "null") + "data: [DONE]\n\n";
    assert_eq!(effects("after the reason", OpenaiChat, body).await, "a");
}

const COMPLETED_CALL: &str =
    r#"{"type":"function_call","call_id":"c","name":"bash","arguments":"{\"command\":\"echo a >> effects\"}"}"#;

#[tokio::test]
async fn items_only_in_the_last_event_are_used() {
    let completed = |output: &str| format!("data: {{\"type\":\"response.completed\",\"response\":{{\"output\":[{output}]}}}}\n\n");
    let message = r#"{"type":"message","content":[{"type":"output_text","text":"I run it."}]}"#;
    let delta = "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"I run it.\"}\n\n";
    let added = "data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"bash\",\"arguments\":\"\"}}\n\n";
    let done = format!("data: {{\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{COMPLETED_CALL}}}\n\n");
    let both = format!("{message},{COMPLETED_CALL}");
    let cases = [
        ("all items", completed(&both)),
        ("the call", delta.to_owned() + &completed(&both)),
        ("the arguments", added.to_owned() + &completed(&both)),
        ("nothing new", delta.to_owned() + &done + &completed(&both)),
        ("an empty output", delta.to_owned() + &done + &completed("")),
        ("no last event", delta.to_owned() + &done + "data: [DONE]\n\n"),
    ];
    for (what, body) in cases {
        assert_eq!(effects(what, OpenaiResponses, body).await, "a", "{what}");
    }
    // The text is not shown twice.
    let (home, provider, _) = home(wire(OpenaiResponses), vec![event_stream(delta.to_owned() + &completed(message))]).await;
    let ran = home.run(&["run", "go"], "").await;
    assert_eq!(ran.stdout, "I run it.\n", "{ran:?}");
    provider.finish().await;
}

#[tokio::test]
async fn blocks_before_the_start_of_the_message_are_used() {
    let events = wire(Anthropic).plain;
    let order = [&events[1..4], &events[..1], &events[4..]].concat();
    let body: String = order.iter().map(|event| format!("data: {event}\n\n")).collect();
    let (home, provider, _) = home(wire(Anthropic), vec![event_stream(body)]).await;
    let ran = home.run(&["run", "go"], "").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Hello\n"), "{ran:?}");
    provider.finish().await;
}

/// Errors with the status 200, by protocol.
const ERRORS: &[(Protocol, &str)] = &[
    (OpenaiChat, r#"data: {"error":{"code":401,"message":"Invalid API key: sk-1 is bad"}}"#),
    (OpenaiChat, r#"data: {"error":"Invalid API key: sk-1 is bad"}"#),
    (OpenaiChat, r#"data: {"object":"error","message":"Invalid API key: sk-1 is bad","type":"BadRequestError","code":401}"#),
    (OpenaiChat, r#"data: {"code":"invalid_api_key","message":"Invalid API key: sk-1 is bad","request_id":"r"}"#),
    (OpenaiChat, r#"data: {"choices":[],"base_resp":{"status_code":1004,"status_msg":"Invalid API key: sk-1 is bad"}}"#),
    (
        OpenaiChat,
        r#"data: {"choices":[{"delta":{},"finish_reason":"error","error":{"code":401,"message":"Invalid API key: sk-1 is bad"}}]}"#,
    ),
    (OpenaiResponses, r#"data: {"error":{"code":"invalid_api_key","message":"Invalid API key: sk-1 is bad"}}"#),
    (OpenaiResponses, r#"data: {"type":"error","code":"invalid_api_key","message":"Invalid API key: sk-1 is bad"}"#),
    (
        Anthropic,
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"Invalid API key: sk-1 is bad\"}}",
    ),
    (Anthropic, r#"data: {"error":{"type":"authentication_error","message":"Invalid API key: sk-1 is bad"}}"#),
    (Gemini, r#"data: [{"error":{"code":401,"message":"Invalid API key: sk-1 is bad","status":"UNAUTHENTICATED"}}]"#),
    (Ollama, r#"{"error":"Invalid API key: sk-1 is bad"}"#),
];

#[tokio::test]
async fn error_inside_of_a_successful_response_is_the_error_of_the_turn() {
    for (protocol, error) in ERRORS {
        let (home, provider, _) = home(wire(*protocol), vec![event_stream(format!("{error}\n\n"))]).await;
        let ran = home.run(&["run", "go"], "").await;
        assert!(ran.code != 0 && ran.stderr.contains("sk-1 is bad"), "{error}: {ran:?}");
        provider.finish().await;
    }
}

#[tokio::test]
async fn finish_reasons_of_compatible_servers_are_known() {
    let text = "{\"content\":\"some\"}";
    for (reason, stop) in [
        ("sensitive", "refusal"),
        ("content_filter", "refusal"),
        ("model_context_window_exceeded", "max_tokens"),
        ("length", "max_tokens"),
        ("eos", "end_turn"),
    ] {
        let body = chat_event(text, &format!("\"{reason}\"")) + "data: [DONE]\n\n";
        let (home, provider, _) = home(wire(OpenaiChat), vec![event_stream(body)]).await;
        let mut agent = harness::provider::session::connect(&home).await;
        let session = agent.new_session(&home).await;
        assert_eq!(agent.turn(&session, "go").await.0, stop, "{reason}");
        agent.finish().await;
        provider.finish().await;
    }
    // These end a connection, not an answer: the request is repeated.
    for reason in ["network_error", "insufficient_system_resource", "error"] {
        let body = chat_event(text, &format!("\"{reason}\"")) + "data: [DONE]\n\n";
        let answers = vec![event_stream(body), Exchange::events(wire(OpenaiChat).plain)];
        let (home, provider, _) = home(wire(OpenaiChat), answers).await;
        let ran = home.run(&["run", "go"], "").await;
        assert!(ran.code == 0 && ran.stdout.ends_with("Hello\n"), "{reason}: {ran:?}");
        provider.finish().await;
    }
    for reason in ["MALFORMED_RESPONSE", "MALFORMED_FUNCTION_CALL", "NO_IMAGE", "OTHER"] {
        let tail = format!(r#"data: {{"candidates":[{{"content":{{"parts":[{{"text":"tail)"}}]}},"finishReason":"{reason}"}}]}}"#);
        let answers = vec![event_stream(tail + "\n\n"), Exchange::events(wire(Gemini).plain)];
        let (home, provider, _) = home(wire(Gemini), answers).await;
        let ran = home.run(&["run", "--json", "go"], "").await;
        assert_eq!(ran.code, 0, "{reason}: {ran:?}");
        provider.finish().await;
    }
}

/// Moonshot reports the usage in the choice, others after the finish reason.
#[tokio::test]
async fn usage_is_found_in_every_place() {
    let usage = r#"{"prompt_tokens":70,"completion_tokens":7}"#;
    let stop = |more: &str| format!("data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"{more}}}]}}\n\n");
    let first =
        "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n".to_owned() + &chat_event("{\"content\":\"some\"}", "null");
    for (what, end) in [
        ("in the choice", stop(&format!(",\"usage\":{usage}"))),
        ("after the reason", stop("") + &format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n")),
        ("without choices", stop("") + &format!("data: {{\"usage\":{usage}}}\n\n")),
    ] {
        let (home, provider, _) = home(wire(OpenaiChat), vec![event_stream(format!("{first}{end}data: [DONE]\n\n"))]).await;
        let ran = home.run(&["run", "--json", "go"], "").await;
        assert!(ran.code == 0 && ran.stdout.contains("\"inputTokens\":70"), "{what}: {ran:?}");
        provider.finish().await;
    }
}
