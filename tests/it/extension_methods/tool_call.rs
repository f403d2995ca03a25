//! Tool calls for API clients: the tool's name, title and category in its events, and its entry in
//! the list of messages.

use serde_json::{Map, Value, json};

use harness::log::bodies;
use harness::{Home, Reply, literal};

/// The calls of one turn and the category of each.
fn calls() -> Vec<(Value, &'static str)> {
    let call = |name: &str, input: Value| json!({"name": name, "input": input});
    vec![
        (call("read", json!({"file_path": "a.txt"})), "file"),
        (call("write", json!({"file_path": "b.txt", "content": "b"})), "file"),
        (call("grep", json!({"pattern": "one"})), "file"),
        (call("bash", json!({"command": "echo out"})), "command"),
        (call("git_branch", json!({"action": "create", "name": "next"})), "command"),
        (call("fetch", json!({"url": "http://127.0.0.1:1/"})), "network"),
        (call("plan", json!({"entries": [{"content": "look"}]})), "other"),
        (call("no_such_tool", json!({})), "other"),
        // Another name of the tool.
        (call("shell", json!({"command": "echo more"})), "command"),
    ]
}

#[tokio::test]
async fn events_of_a_call_name_its_tool() {
    let home = Home::new();
    home.put("a.txt", "one\n");
    let steps: Vec<Value> = calls().iter().map(|(call, _)| json!({"tool_calls": [call]})).collect();
    let (mut agent, session) = home.session(json!(steps), &[]).await;
    agent.otherwise = Reply::Pick("reject_once");
    agent.turn(&session, "go").await;
    agent.finish().await;
    let log = home.log(&session).await;
    let started = bodies(&log, "tool.started");
    assert_eq!(started.len(), calls().len());
    for ((call, category), started) in calls().iter().zip(&started) {
        assert_eq!((&started["name"], &started["category"]), (&call["name"], &json!(category)), "{started}");
    }
    for (kind, count) in [("tool.completed", 9), ("permission.requested", 5), ("permission.resolved", 5)] {
        let of_kind = bodies(&log, kind);
        assert_eq!(of_kind.len(), count, "{kind}");
        for body in of_kind {
            let started = started.iter().find(|started| started["toolCallId"] == body["toolCallId"]).unwrap();
            for field in ["name", "title", "category"] {
                assert!(body[field].is_string() && body[field] == started[field], "{field} of {body}");
            }
        }
    }
}

/// Decisions of rules and of the mode name the tool too, and so do the events that end the open
/// calls of a killed process.
#[tokio::test]
async fn decisions_and_interrupted_calls_name_their_tool() {
    let home = Home::new();
    home.config("permissions.rules = [{ tool = \"bash\", pattern = \"echo *\", policy = \"deny\" }]");
    let bash = |command: &str| json!({"name": "bash", "input": {"command": command}});
    let (mut agent, session) = home.session(json!([{"tool_calls": [bash("echo no"), bash("true")]}]), &[]).await;
    agent.otherwise = Reply::Never;
    agent.prompt(&session, "go").await;
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
    agent.kill().await;
    let (mut agent, _) = home.session(json!([{"text": "again"}]), &[]).await;
    agent.load(&home, &session).await;
    agent.turn(&session, "go on").await;
    agent.finish().await;
    let log = home.log(&session).await;
    let fields = |body: &Value| format!("{} {} {}", body["name"], body["title"], body["category"]);
    let told: Vec<String> =
        ["permission.resolved", "tool.completed"].iter().flat_map(|kind| bodies(&log, kind)).map(fields).collect();
    let (no, yes) = (r#""bash" "`echo no`" "command""#, r#""bash" "`true`" "command""#);
    assert_eq!(told, [no, yes, no, yes]);
    assert_eq!(bodies(&log, "permission.resolved")[1]["by"], "interrupted");
}

/// Each completed call is a message with the role `tool`, in the order of the log.
#[tokio::test]
async fn completed_calls_are_messages() {
    let home = Home::new();
    home.put("a.txt", "one\n");
    let call = |name: &str, input: Value| json!({"name": name, "input": input});
    let steps = json!([
        {"text": "look", "tool_calls": [call("read", json!({"file_path": "a.txt"})), call("read", json!({"file_path": "none.txt"}))]},
        {"text": "work", "tool_calls": [call("bash", json!({"command": "echo out; exit 3"}))]},
        {"text": "done", "tool_calls": []},
    ]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.turn(&session, "go").await;
    let listed = async |agent: &mut harness::Agent, limit: usize| {
        let (mut messages, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let params = json!({"sessionId": session, "cursor": cursor, "limit": limit});
            let page = agent.call("_nuncio/session/messages", params).await;
            messages.extend(page["messages"].as_array().unwrap().clone());
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                return messages;
            }
        }
    };
    let all = listed(&mut agent, 50).await;
    // A page may start between a call and its result.
    for limit in 1..all.len() {
        assert_eq!(listed(&mut agent, limit).await, all, "{limit}");
    }
    agent.finish().await;
    let log = home.log(&session).await;

    let brief = |message: &Value| {
        let words = [&message["role"], &message["name"], &message["status"], &message["category"]];
        words.iter().filter_map(|word| word.as_str()).collect::<Vec<_>>().join(" ")
    };
    let mut briefs: Vec<String> = all.iter().map(brief).collect();
    // The two reads run at the same time.
    briefs[2..4].sort();
    assert_eq!(
        briefs,
        [
            "user",
            "assistant",
            "tool read completed file",
            "tool read failed file",
            "assistant",
            "tool bash completed command",
            "assistant"
        ]
    );
    let seqs: Vec<u64> = all.iter().map(|message| message["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted(), "{seqs:?}");
    for message in all.iter().filter(|message| message["role"] == "tool") {
        let event = |kind: &str| {
            let of_call = |event: &&Value| event["body"]["type"] == kind && event["body"]["toolCallId"] == message["toolCallId"];
            log.iter().find(of_call).unwrap()
        };
        let (started, completed) = (event("tool.started"), event("tool.completed"));
        for (field, expected) in [
            ("messageId", &started["body"]["toolCallId"]),
            ("turnId", &completed["turnId"]),
            ("seq", &completed["seq"]),
            ("atMs", &completed["atMs"]),
            ("startedSeq", &started["seq"]),
            ("startedAtMs", &started["atMs"]),
            ("title", &started["body"]["title"]),
            ("kind", &started["body"]["kind"]),
            ("input", &started["body"]["input"]),
            ("parts", &completed["body"]["output"]),
            ("details", &completed["body"]["details"]),
        ] {
            assert_eq!(message[field], *expected, "{field} of {message}");
        }
    }
    // The answers name the model of their turn, the other messages do not.
    for message in &all {
        let model = message["model"].as_str().unwrap_or_default();
        assert_eq!(model.starts_with("scripted:"), message["role"] == "assistant", "{message}");
    }
}

/// The events of an older version, without the new fields, keep their meaning.
#[tokio::test]
async fn calls_of_older_versions_are_messages() {
    let home = Home::new();
    let bash = json!({"name": "bash", "input": {"command": "echo out"}});
    let (mut agent, session) = home.session(json!([{"tool_calls": [bash]}, {"text": "done"}]), &[]).await;
    agent.turn(&session, "go").await;
    agent.finish().await;
    for row in home.sql("SELECT id, body FROM events WHERE body LIKE '%\"tool.%' OR body LIKE '%\"permission.%'") {
        let (id, body) = row.split_once('|').unwrap();
        let mut body: Map<String, Value> = serde_json::from_str(body).unwrap();
        let kind = body["type"].as_str().unwrap();
        let newer = if kind == "tool.completed" || kind.starts_with("permission.") {
            &["category", "name", "title"][..]
        } else {
            &["category"]
        };
        newer.iter().for_each(|field| drop(body.shift_remove(*field)));
        home.sql(&format!("UPDATE events SET body = {} WHERE id = {id}", literal(&Value::from(body).to_string())));
    }
    let server = home.serve_script(json!([{"expect": "out", "text": "went on"}]), &[]).await;
    let path = format!("/v1/sessions/{session}/messages");
    let messages = server.get(&path).expect(200).await["messages"].clone();
    let tool = &messages[1];
    assert_eq!((&tool["role"], &tool["name"], &tool["title"]), (&json!("tool"), &json!("bash"), &json!("`echo out`")), "{tool}");
    assert_eq!((tool.get("category"), &tool["input"]), (None, &json!({"command": "echo out"})), "{tool}");
    server.prompt(&session, "go on").expect(200).await;
    let messages = server.get(&path).expect(200).await["messages"].clone();
    assert_eq!(messages.as_array().unwrap().last().unwrap()["parts"][0]["text"], "went on");
    server.stop().await;
}
