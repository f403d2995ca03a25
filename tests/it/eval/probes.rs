//! Probes: one request each, whose calls are compared with patterns and not run.

use serde_json::{Value, json};

use super::results;
use harness::Home;
use harness::steps::{bash, bash_call, call, calls, calls_one};

/// A probe: the model must read a.txt, and may not run `rm`.
fn probe(changes: Value) -> Value {
    let mut probe = json!({
        "about": "The model reads the file that it was asked about.",
        "messages": [
            {"role": "user", "text": "What is in a.txt?"},
            {"role": "assistant", "text": "I look.", "calls": [
                {"id": "call_1", "tool": "list", "arguments": {}}, {"id": "call_2", "tool": "glob", "arguments": {"pattern": "*"}}]},
            {"role": "tool", "id": "call_1", "text": "a.txt"},
            {"role": "tool", "id": "call_2", "text": "a.txt"}
        ],
        "accept": [{"tool": "read", "arguments": {"file_path": "(^|/)a\\.txt$"}}, {"tool": "bash"}],
        "refuse": [{"tool": "bash", "arguments": {"command": "\\brm\\b"}}, {"answer": "(?s)."}],
        "good": {"calls": [{"tool": "read", "arguments": {"file_path": "a.txt"}}]},
        "bad": {"text": "It is empty."}
    });
    for (name, value) in changes.as_object().unwrap() {
        probe[name] = value.clone();
    }
    probe
}

fn put(home: &Home, name: &str, changes: Value) {
    home.put(&format!("../probes/{name}.json"), &probe(changes).to_string());
}

/// The answer of the model, the class, and a part of the reason.
#[tokio::test]
async fn answer_is_accepted_if_every_call_matches() {
    needs_linux!("sandbox");
    let home = Home::new();
    put(&home, "read", json!({}));
    let read = call("read", json!({"file_path": "./a.txt"}));
    let cases = [
        (json!({"tool_calls": [read.clone()]}), "solved", ""),
        (json!({"text": "I read it.", "tool_calls": [read.clone(), bash_call("cat a.txt")]}), "solved", ""),
        (json!({"tool_calls": [read.clone(), bash_call("rm a.txt")]}), "failed", "a call of bash is refused"),
        (calls(&[call("read", json!({"file_path": "b.txt"}))]), "failed", "a call of read is not accepted"),
        (calls_one("read", json!({})), "failed", "a call of read is not accepted"),
        (calls(&[read, call("write", json!({"file_path": "a.txt"}))]), "failed", "a call of write is not accepted"),
        (json!({"text": "It is empty."}), "failed", "the text is refused"),
        (json!({"text": ""}), "failed", "an empty answer"),
        (json!({"error": {"status": 401, "times": 9}}), "error", "401"),
    ];
    let models: Vec<String> = cases.iter().map(|(step, ..)| home.script(json!([step]))).collect();
    let models: Vec<&str> = models.iter().flat_map(|model| ["-m", model]).collect();
    let ran = home.run(&[&["eval", "../probes", "--out", "../out.jsonl"], &models[..]].concat(), "").await;
    let lines = results(&home, "out.jsonl");
    assert_eq!((ran.code, lines.len()), (1, cases.len()), "{ran:?}");
    for (line, (step, class, why)) in lines.iter().zip(&cases) {
        let reason = line["reason"].as_str().unwrap_or_default();
        assert!(line["class"] == *class && reason.contains(why), "{step}: {line}");
        assert!(reason.is_empty() == why.is_empty() && line["requests"] == 1 && line.get("harm").is_none(), "{line}");
    }
    assert!(!home.work().join("../.cache/nuncio/eval/task/a.txt").exists());
    let again = home.run(&["eval", "../probes", "--out", "../out.jsonl", models[0], models[1]], "").await;
    assert!(again.code == 0 && results(&home, "out.jsonl").len() == cases.len(), "{again:?}");
}

/// The request has the conversation, today's system prompt and tools, and nothing of the user.
#[tokio::test]
async fn request_is_that_of_a_new_session() {
    needs_linux!("sandbox");
    let home = Home::new();
    put(&home, "read", json!({}));
    home.put("../.config/nuncio/AGENTS.md", "SECRET OF THE USER");
    std::fs::write(home.data().join("AGENTS.md"), "SECRET OF THE USER").unwrap();
    home.put("AGENTS.md", "SECRET OF THE USER");
    let model = home.script(json!([bash("touch /tmp/should-not-run")]));
    home.run(&["eval", "../probes", "-m", &model], "").await;
    let plain = home.run(&["run", "-m", &home.script(json!([{"text": "hi"}])), "hello"], "").await;
    assert_eq!(plain.code, 0, "{plain:?}");
    let requests = home.requests();
    assert!(requests.iter().any(|request| request.contains("SECRET")), "a run in the directory has it");
    let sent: Vec<&String> = requests.iter().filter(|request| request.contains("What is in a.txt?")).collect();
    assert!(!sent.is_empty(), "{requests:?}");
    for request in &sent {
        assert!(!request.contains("SECRET") && request.contains("You are nuncio"), "{request}");
    }
    // One of the written forms of a request has all its tools.
    let has = |tool: &str| sent.iter().any(|request| request.contains(tool));
    assert!(has("\"edit\"") && !has("\"apply_patch\""), "tools that fit the model: {sent:?}");
}

/// Changes of the probe, and the line of `--prove`.
#[tokio::test]
async fn samples_of_probes_are_checked() {
    needs_linux!("sandbox");
    let home = Home::new();
    let cases = [
        ("good", json!({}), "ok   good\n"),
        ("refused", json!({"good": {"text": "a"}}), "FAIL refused: the good sample is refused: the text is refused\n"),
        (
            "blind",
            json!({"refuse": [], "bad": {"calls": [{"tool": "bash", "arguments": {}}]}}),
            "FAIL blind: the bad sample is accepted\n",
        ),
        ("single", json!({"calls_min": 2}), "FAIL single: the good sample is refused: 1 calls, and at least 2 were expected\n"),
        ("unknown", json!({"accept": [{"tool": "reed"}]}), "FAIL unknown: unknown tool \"reed\"\n"),
    ];
    for (name, changes, _) in &cases {
        put(&home, name, changes.clone());
    }
    let ran = home.run(&["eval", "../probes", "--prove"], "").await;
    assert_eq!(ran.code, 1, "{ran:?}");
    for (name, _, line) in &cases {
        assert!(ran.stdout.contains(line), "{name}: {ran:?}");
    }
    let invalid = [
        ("regex", json!({"accept": [{"answer": "("}]}), "regex"),
        ("both", json!({"accept": [{"answer": "a", "tool": "b"}]}), "a pattern has either tool"),
        ("field", json!({"expect": 1}), "unknown field `expect`"),
        ("empty", json!({"accept": []}), "accept is empty"),
        ("order", json!({"messages": [{"role": "user", "text": "a"}, {"role": "assistant", "text": "b"}]}), "the last message"),
        ("call", json!({"messages": [{"role": "tool", "id": "call_9", "text": "b"}]}), "the result call_9 has no call"),
    ];
    for (name, changes, why) in invalid {
        put(&home, name, changes);
        let ran = home.run(&["eval", &format!("../probes/{name}.json"), "--prove"], "").await;
        assert!(ran.code == 2 && ran.stderr.contains(why), "{name}: {ran:?}");
    }
}
