//! Calls that a model writes as text, malformed arguments, and empty answers.

use harness::Home;
use harness::provider::Protocol::{self, Ollama, OpenaiChat};
use harness::provider::session::{conversation, home};
use harness::provider::{Exchange, ReceivedRequest};
use harness::wires::{WIRES, Wire};
use serde_json::{Value, json};

fn wire(protocol: Protocol) -> &'static Wire {
    WIRES.iter().find(|wire| wire.protocol == protocol).expect("a wire")
}

/// An answer with this text, in small pieces.
fn answer(protocol: Protocol, text: &str, reason: &str) -> Exchange {
    let characters: Vec<char> = text.chars().collect();
    let pieces = characters.chunks(3).map(String::from_iter);
    let (piece, end): (fn(String) -> Value, _) = match protocol {
        Ollama => (
            |text| json!({"message": {"role": "assistant", "content": text}, "done": false}),
            json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason}),
        ),
        _ => (
            |text| json!({"choices": [{"delta": {"content": text}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": reason}]}),
        ),
    };
    let events: Vec<String> = pieces.map(piece).chain([end]).map(|event| event.to_string()).collect();
    Exchange::events(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Runs a prompt whose first answer has this text, in mode auto. Returns what was printed, what the
/// commands appended, and the requests.
async fn run(protocol: Protocol, text: &str, reason: &str, flags: &[&str]) -> (String, String, Vec<ReceivedRequest>) {
    let (home, provider, _) = home(wire(protocol), vec![answer(protocol, text, reason)]).await;
    provider.otherwise(Exchange::events(wire(protocol).plain));
    let ran = home.run(&[&["run", "--mode", "auto"], flags, &["go"]].concat(), "").await;
    let made = home.get("effects").unwrap_or_default();
    let mut lines: Vec<&str> = made.split_whitespace().collect();
    lines.sort_unstable();
    (ran.stdout.clone() + &ran.stderr, lines.join(" "), provider.finish().await)
}

const A: &str = r#"{"name": "bash", "arguments": {"command": "echo a >> effects"}}"#;
const B: &str = r#"{"name": "bash", "arguments": {"command": "echo b >> effects"}}"#;

/// Texts that are nothing but calls.
fn calls() -> Vec<(&'static str, String, &'static str)> {
    let indented = "{\n  \"name\": \"bash\",\n  \"arguments\": {\n    \"command\": \"echo a >> effects\"\n  }\n}";
    let tagged = r#"{"name": "bash", "arguments": {"command": "echo '<tool_response>a' >> effects"}}"#;
    let text = r#"{"name":"bash","arguments":"{\"command\":\"echo a >> effects\"}"}"#;
    vec![
        ("a fenced object", format!("```json\n{A}\n```"), "a"),
        ("an indented object", format!("```json\n{indented}\n```\n"), "a"),
        ("a fence without a word", format!("\n```\n{A}\n```"), "a"),
        ("an open fence", format!("```json\n{A}\n"), "a"),
        ("several in one block", format!("```json\n{A}\n{B}\n```"), "a b"),
        ("several blocks", format!("```json\n{A}\n```\n\n```json\n{B}\n```"), "a b"),
        ("a bare object", A.into(), "a"),
        ("several bare objects", format!("{A}\n{B}"), "a b"),
        ("objects without a separator", format!("{A}{B}"), "a b"),
        ("a list", format!("[{A}, {B}]"), "a b"),
        ("arguments first", r#"{"arguments": {"command": "echo a >> effects"}, "name": "bash"}"#.into(), "a"),
        ("arguments as text", text.into(), "a"),
        ("an invented result", format!("{A}{B}\n<tool_response>\ndone\n</tool_response>\nAll is done."), "a b"),
        ("an invented result after a fence", format!("```json\n{A}\n```\n<tool_response>\ndone\n</tool_response>"), "a"),
        ("an invented result in an open fence", format!("```json\n{A}\n<tool_response>\ndone"), "a"),
        ("a call after an invented result", format!("{A}\n<tool_response>done</tool_response>\n{B}"), "a"),
        ("the tag in a string", tagged.into(), "<tool_response>a"),
        ("… and an invented result", format!("{tagged}\n<tool_response>done"), "<tool_response>a"),
        ("trailing commas", r#"{"name": "bash", "arguments": {"command": "echo a >> effects",},}"#.into(), "a"),
        ("single quotes", "{'name': 'bash', 'arguments': {'command': 'echo a >> effects'}}".into(), "a"),
        ("a raw line break", "{\"name\": \"bash\", \"arguments\": {\"command\": \"echo a \\\\\n>> effects\"}}".into(), "a"),
    ]
}

#[tokio::test]
async fn answer_that_is_only_json_calls_runs_them() {
    for protocol in [OpenaiChat, Ollama] {
        for (what, text, expected) in calls() {
            let (shown, effects, received) = run(protocol, &text, "stop", &[]).await;
            assert_eq!((effects.as_str(), received.len()), (expected, 2), "{protocol:?}: {what}: {shown}");
            assert!(shown.contains("Hello") && !shown.contains("\"arguments\""), "{what}: {shown}");
        }
    }
}

/// Texts that are no calls, and the finish reasons.
#[tokio::test]
async fn json_that_is_an_example_or_cut_is_text() {
    let cases = [
        ("after prose", format!("I will run it:\n```json\n{A}\n```"), "stop"),
        ("before prose", format!("{A}\nThis runs it."), "stop"),
        ("between fences", format!("```json\n{A}\n```\nand then\n```json\n{B}\n```"), "stop"),
        ("cut by the length", A.to_owned(), "length"),
        ("a fence cut by the length", format!("```json\n{A}\n```"), "length"),
        ("two, the second cut by the length", format!("{A}\n{}", &B[..20]), "length"),
        ("an open string", A[..A.len() - 20].to_owned(), "stop"),
        ("an open object", A[..A.len() - 1].to_owned(), "stop"),
        ("other fields", r#"{"name": "bash", "arguments": {"command": "echo a >> effects"}, "note": 1}"#.into(), "stop"),
        ("no arguments", r#"{"name": "left-pad", "version": "1.0.0"}"#.into(), "stop"),
        ("a list of arguments", r#"{"name": "bash", "arguments": ["echo a >> effects"]}"#.into(), "stop"),
        ("a name of two words", r#"{"name": "run it", "arguments": {}}"#.into(), "stop"),
        ("another answer in JSON", r#"{"result": 7}"#.into(), "stop"),
        ("a block of code", "```rust\nfn main() {}\n```".into(), "stop"),
        ("a tag in prose", format!("Use <tool_call>{A}</tool_call> for it."), "stop"),
    ];
    for protocol in [OpenaiChat, Ollama] {
        for (what, text, reason) in &cases {
            let (shown, effects, received) = run(protocol, text, reason, &[]).await;
            assert_eq!((effects.as_str(), received.len()), ("", 1), "{protocol:?}: {what}: {shown}");
            let line = text.lines().find(|line| line.len() > 3).unwrap();
            assert!(shown.contains(line.trim_start_matches('`')), "{what}: {shown}");
        }
    }
}

#[tokio::test]
async fn call_of_an_unknown_tool_gets_an_error_that_names_the_tools() {
    let text = r#"{"name": "rename", "arguments": {"from": "a", "to": "b"}}"#;
    let fenced = format!("```json\n{text}\n```");
    for (protocol, text) in [(OpenaiChat, text), (Ollama, text), (OpenaiChat, &fenced)] {
        let (_, _, received) = run(protocol, text, "stop", &[]).await;
        let told = json!(conversation(&received[1])).to_string();
        assert!(told.contains("there is no tool rename; available: ") && told.contains("edit"), "{told}");
    }
}

#[tokio::test]
async fn written_call_is_asked_about_as_usual() {
    let (home, provider, _) =
        home(wire(OpenaiChat), vec![answer(OpenaiChat, A, "stop"), Exchange::events(wire(OpenaiChat).plain)]).await;
    let ran = home.run(&["run", "--mode", "ask", "go"], "").await;
    assert_eq!(home.get("effects"), None, "{ran:?}");
    let received = provider.finish().await;
    assert!(json!(conversation(&received[1])).to_string().contains("denied"), "{:?}", conversation(&received[1]));
}

#[tokio::test]
async fn json_is_text_if_an_output_schema_asks_for_it() {
    let (home, provider, _) = home(wire(OpenaiChat), vec![answer(OpenaiChat, A, "stop")]).await;
    home.put("schema.json", r#"{"type":"object","required":["name","arguments"]}"#);
    let ran = home.run(&["run", "--mode", "auto", "--output-schema", "schema.json", "go"], "").await;
    assert_eq!((ran.code, home.get("effects")), (0, None), "{ran:?}");
    assert!(ran.stdout.contains("\"arguments\""), "{ran:?}");
    provider.finish().await;
}

#[tokio::test]
async fn call_also_in_the_text_runs_once() {
    let call = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "bash", "arguments": "{\"command\":\"echo a >> effects\"}"}}]}}]});
    let events =
        [json!({"choices": [{"delta": {"content": A}}]}), call, json!({"choices": [{"delta": {}, "finish_reason": "stop"}]})];
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let (home, provider, _) =
        home(wire(OpenaiChat), vec![Exchange::events(&events), Exchange::events(wire(OpenaiChat).plain)]).await;
    let ran = home.run(&["run", "--mode", "auto", "go"], "").await;
    assert_eq!((ran.code, home.get("effects").as_deref()), (0, Some("a\n")), "{ran:?}");
    provider.finish().await;
}

/// Arguments of `write`, and the content of the file; `None` if the call fails.
const ARGUMENTS: &[(&str, Option<&str>)] = &[
    ("{\"file_path\": \"f\", \"content\": \"one\ntwo\"}", Some("one\ntwo")),
    ("{\"file_path\": \"f\", \"content\": \"one\",}", Some("one")),
    ("{'file_path': 'f', 'content': 'a \"b\"'}", Some("a \"b\"")),
    ("```json\n{\"file_path\": \"f\", \"content\": \"one\"}\n```", Some("one")),
    ("```\n{\"file_path\": \"f\",\n \"content\": \"one\ttwo\",\n}\n```", Some("one\ttwo")),
    // What is missing is never invented.
    ("{\"file_path\": \"f\", \"content\": \"one", None),
    ("{\"file_path\": \"f\", \"content\": \"one\"", None),
    ("{\"file_path\": \"f\", \"content\": \"f({\"a\": \"b\"}", None),
    ("{\"file_path\": \"f\", \"content\": \"say \"hi\" there\"}", None),
    ("{'file_path': 'f', 'content': 'it's'}", None),
    // The result does not fit the schema.
    ("{\"file_path\": \"f\",}", None),
    ("[\"f\", \"one\",]", None),
];

#[tokio::test]
async fn malformed_arguments_are_repaired_if_nothing_is_missing() {
    for (arguments, expected) in ARGUMENTS {
        let call = json!({"index": 0, "id": "c", "function": {"name": "write", "arguments": arguments}});
        let events = [
            json!({"choices": [{"delta": {"tool_calls": [call]}}]}),
            json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
        ];
        let events: Vec<String> = events.iter().map(Value::to_string).collect();
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let answers = vec![Exchange::events(&events), Exchange::events(wire(OpenaiChat).plain)];
        let (home, provider, _): (Home, _, _) = home(wire(OpenaiChat), answers).await;
        let ran = home.run(&["run", "--mode", "auto", "go"], "").await;
        assert_eq!(home.get("f").as_deref(), *expected, "{arguments}: {ran:?}");
        let received = provider.finish().await;
        let told = json!(conversation(&received[1])).to_string();
        assert_eq!(told.contains("not valid JSON"), expected.is_none(), "{arguments}: {told}");
    }
}
