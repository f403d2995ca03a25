//! A model that repeats itself receives a note, and then the turn stops.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use harness::provider::Exchange;
use harness::provider::session::{connect, conversation, home};
use harness::steps::{bash_call, call, calls};
use harness::wires::WIRES;
use harness::{Home, text};

/// The model's answers and the notices of a turn in order, one word each: an answer with calls or
/// with text, a note to the model, a notice without a note, and the end.
fn outline(log: &[Value]) -> String {
    let word = |body: &Value| match body["type"].as_str()? {
        "step.completed" if body["outcome"] == "tool_calls" => Some("calls".to_owned()),
        "step.completed" => Some("text".to_owned()),
        "notice" if body["note"].is_string() => Some(format!("note:{}", body["code"].as_str()?)),
        "notice" => Some(format!("notice:{}", body["code"].as_str()?)),
        "turn.completed" => Some(body["stopReason"].as_str()?.to_owned()),
        _ => None,
    };
    let words: Vec<String> = log.iter().filter_map(|event| word(&event["body"])).collect();
    words.join(" ")
}

fn read(file: &str) -> Value {
    call("read", json!({"file_path": file}))
}

/// Runs one turn with these tool calls, one list for each answer, and then a text.
async fn run(rounds: &[Vec<Value>]) -> Vec<Value> {
    let home = Home::new();
    home.put("a", "what stands in a\n");
    home.put("b", "what stands in b\n");
    let mut steps: Vec<Value> = rounds.iter().map(|round| calls(round)).collect();
    steps.push(json!({"text": "done"}));
    let (mut agent, session) = home.session(json!(steps), &["--mode", "auto"]).await;
    agent.turn(&session, "go").await;
    agent.finish().await;
    home.log(&session).await
}

/// The rounds `count` times.
fn times(count: usize, rounds: &[Vec<Value>]) -> Vec<Vec<Value>> {
    std::iter::repeat_n(rounds, count).flatten().cloned().collect()
}

#[tokio::test]
async fn repeated_calls_are_noted_and_stop_the_turn() {
    let (a, b) = (read("a"), read("b"));
    let note = "note:repeated_calls";
    let stop = "notice:repeated_calls max_turn_requests";
    let cases = [
        ("the same call", times(9, &[vec![a.clone()]]), format!("calls calls calls {note} calls calls {stop}")),
        ("a failing call", times(9, &[vec![read("none")]]), format!("calls calls calls {note} calls calls {stop}")),
        ("an unknown tool", times(9, &[vec![call("fly", json!({}))]]), format!("calls calls calls {note} calls calls {stop}")),
        (
            "two calls in one answer",
            times(9, &[vec![a.clone(), b.clone()]]),
            format!("calls calls calls {note} calls calls {stop}"),
        ),
        (
            "a cycle of two answers",
            times(9, &[vec![a.clone()], vec![b.clone()]]),
            format!("{}{note} {}{stop}", "calls ".repeat(6), "calls ".repeat(4)),
        ),
        (
            "a cycle of three answers",
            times(9, &[vec![a.clone()], vec![b.clone()], vec![bash_call("true")]]),
            format!("{}{note} {}{stop}", "calls ".repeat(9), "calls ".repeat(6)),
        ),
        (
            "another call after the note",
            [times(4, &[vec![a.clone()]]), times(3, &[vec![b.clone()]])].concat(),
            format!("calls calls calls {note} calls calls calls calls {note} text end_turn"),
        ),
        (
            "a job that has ended",
            {
                let start = call("bash", json!({"command": "sleep 60", "background": true}));
                let mut rounds = vec![vec![start], vec![call("bash_kill", json!({"job": "1"}))]];
                rounds.extend(times(9, &[vec![call("bash_output", json!({"job": "1", "since": 0}))]]));
                rounds
            },
            format!("{}{note} calls calls {stop}", "calls ".repeat(5)),
        ),
    ];
    for (name, rounds, expected) in cases {
        let log = run(&rounds).await;
        assert_eq!(outline(&log), expected, "{name}");
    }
}

#[tokio::test]
async fn progress_and_polling_do_not_count_as_repetition() {
    let counting = "echo x >> counter; wc -l < counter";
    let mut polling = vec![vec![call("bash", json!({"command": "sleep 60", "background": true}))]];
    polling.extend(times(7, &[vec![call("bash_output", json!({"job": "1"}))]]));
    polling.extend(times(7, &[vec![call("bash_output", json!({}))]]));
    polling.extend(times(7, &[vec![read("a"), call("bash_output", json!({"job": "1"}))]]));
    let cases = [
        ("another result", times(9, &[vec![bash_call(counting)]])),
        ("another input", (1..9).map(|limit| vec![call("read", json!({"file_path": "a", "limit": limit}))]).collect()),
        ("one answer", vec![vec![read("a"); 9]]),
        (
            "one of two calls",
            (1..9).map(|limit| vec![read("a"), call("read", json!({"file_path": "b", "limit": limit}))]).collect(),
        ),
        ("a running job", polling),
    ];
    for (name, rounds) in cases {
        let log = run(&rounds).await;
        assert_eq!(outline(&log), format!("{}text end_turn", "calls ".repeat(rounds.len())), "{name}");
    }
}

#[tokio::test]
async fn steering_message_resets_repetition() {
    let home = Home::new();
    home.put("a", "what stands in a\n");
    let slow = json!({"text": "hm", "delay_ms": 1000, "chunk_chars": 1, "tool_calls": [read("a")]});
    let steps = json!([calls(&[read("a")]), slow, calls(&[read("a")]), calls(&[read("a")]), {"text": "done"}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    let prompt = agent.prompt(&session, "go").await;
    agent.until_update("agent_message_chunk").await;
    let parts = json!([{"type": "text", "text": "again"}]);
    agent.call("_nuncio/session/message", json!({"sessionId": session, "role": "user", "parts": parts, "delivery": "steer"})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
    agent.finish().await;
    assert_eq!(outline(&home.log(&session).await), "calls calls calls calls text end_turn");
}

#[tokio::test]
async fn run_says_which_call_was_repeated() {
    let home = Home::new();
    let model = home.script(json!(vec![calls(&[read("none")]); 9]));
    let ran = home.run(&["run", "--model", &model, "go"], "").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    for words in [
        "! The model repeats a tool call (read: called 3 times in a row with the same input and the same result; the model is asked to do something else)",
        "! The model repeats a tool call (read: called 5 times in a row with the same input and the same result; the turn ends)",
        "■ stopped: a limit of the turn was reached",
    ] {
        assert!(ran.stderr.contains(words), "{words}: {ran:?}");
    }
}

const SENTENCE: &str = "I will now read the file again to see what it contains. ";

/// Text that is repeated too often, and the number of bytes that an answer must not exceed.
#[tokio::test]
async fn repeated_text_is_cut_and_noted() {
    let paragraph: String = (0..30).map(|number| format!("Word{number} of the paragraph. ")).collect();
    let cases = [
        ("a sentence", format!("Let me see. {}", SENTENCE.repeat(2000)), 3 * SENTENCE.len() + 12),
        ("a paragraph", paragraph.repeat(40), 3 * paragraph.len()),
        ("a character", "!".repeat(40_000), 3),
        ("a word", "the ".repeat(20_000), 12),
        ("a line of code", "    result.push(value);\n".repeat(2000), 72),
        ("Chinese", "我现在再读一遍这个文件。".repeat(2000), 3 * 36),
    ];
    for (name, repeated, kept) in cases {
        for role in ["text", "thinking"] {
            let home = Home::new();
            let step = json!({role: repeated, "chunk_chars": 700, "tool_calls": [read("a")]});
            let (mut agent, session) = home.session(json!([step, {"text": "Done.", "expect": "Do not repeat it"}]), &[]).await;
            let (stop, _) = agent.turn(&session, "go").await;
            agent.finish().await;
            let log = home.log(&session).await;
            assert_eq!(
                (outline(&log).as_str(), stop.as_str()),
                ("text note:repeated_text text end_turn", "end_turn"),
                "{name}, {role}"
            );
            let whole =
                log.iter().map(|event| &event["body"]).find(|body| body["type"] == "message.completed" && body["role"] != "user");
            let said = whole.unwrap()["parts"][0]["text"].as_str().unwrap();
            assert!(
                repeated.starts_with(said) && (1..kept + 700).contains(&said.len()),
                "{name}, {role}: {} bytes: {said:?}",
                said.len()
            );
            assert!(!log.iter().any(|event| event["body"]["type"] == "tool.started"), "{name}, {role}");
        }
    }
}

#[tokio::test]
async fn natural_repetition_is_not_cut() {
    let object =
        "  {\"id\": 1, \"name\": \"widget\", \"tags\": [\"a\", \"b\"], \"price\": 9.99, \"description\": \"A widget.\"},\n";
    let row = "| alpha   | beta    | gamma   |\n";
    let cases = [
        ("a separator", format!("Title\n{}\nText\n", "-".repeat(2048)).repeat(3)),
        ("a table", format!("{row}|---------|---------|---------|\n{}", row.repeat(200))),
        ("a border", "+---------+---------+---------+\n".repeat(200)),
        ("an array of equal objects", format!("[\n{}]", object.repeat(200))),
        ("a matrix", "0, 0, 0, 0, 0, 0, 0, 0,\n".repeat(200)),
        ("base64 of zeros", "A".repeat(10_000)),
        ("base64 in lines", format!("{}\n", "A".repeat(76)).repeat(200)),
        ("hexadecimal", "00000000 00000000 00000000 00000000\n".repeat(300)),
        ("a list", "- name: widget\n  value: none\n".repeat(200)),
        ("blank lines", format!("Title{}", "\n".repeat(5000))),
        ("code", "        assert_eq!(left, right);\n".repeat(200)),
        ("a poem", "Row, row, row your boat, gently down the stream.\n".repeat(100)),
        ("numbered sentences", (0..2000).map(|number| format!("{number}. I will read the file again.\n")).collect()),
    ];
    let home = Home::new();
    let steps: Vec<Value> = cases.iter().map(|(_, text)| json!({"text": text, "thinking": text, "chunk_chars": 700})).collect();
    let (mut agent, session) = home.session(json!(steps), &[]).await;
    for (name, natural) in cases {
        let (_, updates) = agent.turn(&session, "go").await;
        assert!(text(&updates, "agent_message_chunk") == natural, "{name}");
    }
    agent.finish().await;
    assert_eq!(outline(&home.log(&session).await).replace("text end_turn", "").trim(), "");
}

/// The request is aborted, so that the server is free, and the second repetition ends the turn.
#[tokio::test]
async fn second_repeated_text_ends_the_turn() {
    for wire in WIRES {
        for (events, marker) in [(wire.plain, "Hel"), (wire.rich, "files.")] {
            let end = events.iter().position(|event| event.contains(marker)).expect("there") + 1;
            let repeated = events[end - 1].replace(marker, &SENTENCE.repeat(200));
            let events: Vec<&str> = events[..end - 1].iter().copied().chain([repeated.as_str()]).collect();
            let looping = || Exchange::events(&events).hang();
            let (home, provider, name) = home(wire, vec![looping(), looping(), Exchange::events(wire.plain)]).await;
            let mut agent = connect(&home).await;
            let session = agent.new_session(&home).await;
            assert_eq!(agent.turn(&session, "go").await.0, "max_tokens", "{name}");
            assert_eq!(agent.turn(&session, "and now?").await.0, "end_turn", "{name}");
            agent.finish().await;
            let expected = "text note:repeated_text text notice:repeated_text max_tokens text end_turn";
            assert_eq!(outline(&home.log(&session).await), expected, "{name}");
            let received = provider.finish().await;
            let second = json!(conversation(&received[1])).to_string();
            assert!(second.contains("Do not repeat it"), "{name}: {second}");
            assert!(second.matches(SENTENCE.trim()).count() <= 4, "{name}: {second}");
        }
    }
}

#[tokio::test]
async fn note_stays_in_the_conversation() {
    for wire in WIRES {
        let rich = || Exchange::events(wire.rich);
        let plain = || Exchange::events(wire.plain);
        let (home, provider, name) = home(wire, vec![rich(), rich(), rich(), plain(), plain(), plain()]).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        agent.turn(&session, "read a and b").await;
        agent.turn(&session, "again").await;
        agent.finish().await;
        let mut agent = connect(&home).await;
        agent.turn(&session, "in another process").await;
        agent.finish().await;
        let received = provider.finish().await;
        let noted = |index: usize| received[index].text.contains(">read: called 3 times in a row");
        assert!(!noted(2) && noted(3) && noted(4) && noted(5), "{name}");
        let (before, after) = (
            harness::provider::session::unmarked(json!(conversation(&received[3]))),
            harness::provider::session::unmarked(json!(conversation(&received[5]))),
        );
        let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
        assert_eq!(&after[..before.len()], &before[..], "{name}");
    }
}

/// A chat server on this machine gets an output limit, unless it is set or the server refuses it.
#[tokio::test]
async fn local_chat_server_gets_output_limit() {
    let wire = &WIRES[1];
    let plain = || Exchange::events(wire.plain);
    let refusal = r#"{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 20000 tokens and your request has 5000 input tokens (16384 > 20000 - 5000).","type":"BadRequestError","code":400}}"#;
    let cases = [
        ("", vec![plain(), plain()], vec![json!(16_384), json!(16_384)]),
        ("context_window = 20000\n", vec![plain(), plain()], vec![json!(10_000), json!(10_000)]),
        ("max_output_tokens = 70\n", vec![plain(), plain()], vec![json!(70), json!(70)]),
        ("", vec![Exchange::error(400, refusal), plain(), plain()], vec![json!(16_384), Value::Null, Value::Null]),
    ];
    for (settings, exchanges, expected) in cases {
        let (home, provider, _) = home(wire, exchanges).await;
        home.config(&format!("{}{settings}", home.config_text()));
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        for _ in 0..2 {
            assert_eq!(agent.turn(&session, "hi").await.0, "end_turn", "{settings}");
        }
        agent.finish().await;
        let limits: Vec<Value> = provider.finish().await.iter().map(|received| received.body["max_tokens"].clone()).collect();
        assert_eq!(limits, expected, "{settings}");
    }
}

/// The outcome and the input tokens of each step.
async fn steps(home: &Home, session: &str) -> Vec<Value> {
    let log = home.log(session).await;
    let steps = log.iter().map(|event| &event["body"]).filter(|body| body["type"] == "step.completed");
    steps.map(|body| json!([body["outcome"], body["usage"]["inputTokens"]])).collect()
}

#[tokio::test]
async fn tokens_of_every_attempt_are_counted() {
    for wire in WIRES {
        let usage = match wire.protocol {
            harness::provider::Protocol::Anthropic => wire.plain[0],
            harness::provider::Protocol::OpenaiChat => r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1}}"#,
            harness::provider::Protocol::Ollama | harness::provider::Protocol::Bedrock => continue,
            harness::provider::Protocol::Gemini => r#"{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":1}}"#,
            // Reported at the end of an answer.
            harness::provider::Protocol::OpenaiResponses => continue,
        };
        let text = wire.plain.iter().position(|event| event.contains("Hel")).expect("there");
        let events: Vec<&str> =
            [usage].into_iter().chain(wire.plain[usize::from(usage == wire.plain[0])..=text].iter().copied()).collect();
        let exchanges = vec![Exchange::events(&events).cut(), Exchange::events(&events).hang()];
        let (home, provider, name) = home(wire, exchanges).await;
        let mut agent = connect(&home).await;
        let session = agent.new_session(&home).await;
        let id = agent.prompt(&session, "hi").await;
        agent.until_update("agent_message_chunk").await;
        agent.until_update("notice").await;
        agent.until_update("agent_message_chunk").await;
        agent.notify("session/cancel", json!({"sessionId": session})).await;
        let answer = agent.answer(&id).await.expect("an answer");
        assert_eq!((&answer["stopReason"], &answer["usage"]["inputTokens"]), (&json!("cancelled"), &json!(20)), "{name}: {answer}");
        agent.finish().await;
        assert_eq!(steps(&home, &session).await, [json!(["retried", 10]), json!(["cancelled", 10])], "{name}");
        provider.finish().await;
    }
}

/// A terminal shows the seconds left until the next attempt; the line is erased at the end.
#[tokio::test]
async fn terminal_shows_countdown_while_run_waits() {
    let wire = &WIRES[1];
    let busy = |seconds| {
        let body = r#"{"error":{"message":"Loading model","type":"unavailable_error","code":503}}"#;
        Exchange::error(503, body).header("retry-after", seconds)
    };
    let (home, provider, _) = home(wire, vec![busy("60")]).await;
    let mut terminal = home.terminal(&["run", "hi"]);
    let shown = terminal.until("next attempt in 59 s").await;
    assert!(shown.contains("\r\u{1b}[2K  next attempt in 60 s (Ctrl+C to cancel)"), "{shown:?}");
    kill_process(Pid::from_raw(terminal.pid as i32).unwrap(), Signal::INT).unwrap();
    let (code, shown) = terminal.end().await;
    assert_eq!(code, 130, "{shown:?}");
    let rest = &shown[shown.rfind("next attempt in").unwrap()..];
    assert!(rest.contains("\r\u{1b}[2K"), "{shown:?}");
    provider.finish().await;

    // Other output has only the notice.
    let (home, provider, _) = harness::provider::session::home(wire, vec![busy("2"), Exchange::events(wire.plain)]).await;
    let ran = home.run(&["run", "hi"], "").await;
    assert!(ran.code == 0 && ran.stderr.contains("attempt 2 in") && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    provider.finish().await;
}
