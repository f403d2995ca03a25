//! Behaviour that existing clients depend on: errors as text, sessions in lists, readable titles,
//! relative paths, usage.

use serde_json::{Value, json};

use harness::{Agent, Home, text};

/// Toad and other clients print `error.data.details` unchanged.
#[tokio::test]
async fn error_details_are_text() {
    let home = Home::new();
    home.env("OLLAMA_HOST", "http://127.0.0.1:1");
    let mut agent = home.start(&["--model", "ollama/none"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = agent.new_session(&home).await;
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    let cases = [
        ("session/prompt", prompt, "unreachable", json!(true)),
        ("authenticate", json!({"methodId": "magic"}), "known", json!(["environment", "settings"])),
        ("session/new", json!({"cwd": "/no/such/dir"}), "nothing", Value::Null),
    ];
    for (method, params, fact, value) in cases {
        let error = agent.request(method, params).await.unwrap_err();
        assert_eq!(error["data"]["details"], error["message"], "{error}");
        let hint = error["data"]["hint"].as_str().unwrap_or_default();
        assert!(error["data"]["details"].as_str().unwrap().contains(hint), "{error}");
        assert_eq!(error["data"]["info"][fact], value, "{error}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn unknown_session_is_not_found() {
    let home = Home::new();
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    for (method, params) in [
        ("session/prompt", json!({"sessionId": "sess_x", "prompt": [{"type": "text", "text": "go"}]})),
        ("session/load", json!({"sessionId": "sess_x", "cwd": home.work()})),
        ("session/close", json!({"sessionId": "sess_x"})),
        ("session/set_mode", json!({"sessionId": "sess_x", "modeId": "ask"})),
        ("_nuncio/session/get", json!({"sessionId": "sess_x"})),
    ] {
        let error = agent.request(method, params).await.unwrap_err();
        assert_eq!((&error["code"], &error["message"]), (&json!(-32002), &json!("session sess_x not found")), "{method}");
    }
    agent.finish().await;
    let ran = home.run(&["sessions", "show", "sess_x"], "").await;
    assert!(ran.code == 2 && ran.stderr.contains("session sess_x not found"), "{ran:?}");
}

/// The title of a new session whose first prompt has one block for each text.
async fn title(agent: &mut Agent, home: &Home, texts: &[&str]) -> Value {
    let session = agent.new_session(home).await;
    let blocks: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
    agent.call("session/prompt", json!({"sessionId": session, "prompt": blocks})).await;
    agent.call("_nuncio/session/get", json!({"sessionId": session})).await["title"].clone()
}

#[tokio::test]
async fn titles_skip_wrappers_that_clients_add_to_prompts() {
    let home = Home::new();
    let (mut agent, _) = home.session(json!([]), &[]).await;
    let long = format!("<context>{}</context>\nwhat is this?", "x\n".repeat(5000));
    let cases: &[(&[&str], &str)] = &[
        (&["fix the bug"], "fix the bug"),
        (&["<previous_user_message>old</previous_user_message>\n\nfix the bug"], "fix the bug"),
        (&["<system-reminder priority=\"1\">\nbe nice\n</system-reminder><context><file>a</file></context> go\non"], "go"),
        (&["<context>c</context>", "<empty/>", "fix it"], "fix it"),
        (&[&long], "what is this?"),
        // Avante wraps the whole prompt when it recovers a session.
        (
            &["<previous_user_message>fix the bug</previous_user_message>", "<system_context>1 message</system_context>"],
            "fix the bug",
        ),
        (&["<a><b>\n inner \n</b></a>"], "inner"),
        // Texts without wrappers.
        (&["<T> is a parameter"], "<T> is a parameter"),
        (&["a < b > c"], "a < b > c"),
        (&["<div never closed"], "<div never closed"),
        (&["<é>x</é>"], "<é>x</é>"),
        (&["why does <b>x</b> not work?"], "why does <b>x</b> not work?"),
    ];
    for (texts, expected) in cases {
        assert_eq!(title(&mut agent, &home, texts).await, *expected, "{texts:?}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn relative_cwd_is_resolved_against_process_directory() {
    let home = Home::new();
    home.put("sub/file", "");
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    for (cwd, expected) in [(".", home.work()), ("sub", home.work().join("sub")), ("./sub/..", home.work())] {
        let made = agent.call("session/new", json!({"cwd": cwd, "additionalDirectories": ["sub"]})).await;
        let view = agent.call("_nuncio/session/get", json!({"sessionId": made["sessionId"]})).await;
        assert_eq!(view["cwd"], json!(expected), "{cwd}");
        assert_eq!(view["additionalDirectories"], json!([home.work().join("sub")]), "{cwd}");
        agent.call("session/load", json!({"sessionId": made["sessionId"], "cwd": cwd})).await;
        let view = agent.call("_nuncio/session/get", json!({"sessionId": made["sessionId"]})).await;
        assert_eq!(view["cwd"], json!(expected), "{cwd}");
        let listed = agent.call("session/list", json!({"cwd": cwd, "_meta": {"nuncio": {"empty": true}}})).await;
        assert_eq!(listed["sessions"][0]["sessionId"], made["sessionId"], "{cwd}");
    }
    let error = agent.request("session/new", json!({"cwd": "nowhere"})).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("cwd: "), "{error}");
    assert!(error["message"].as_str().unwrap().contains("nowhere is not a directory"), "{error}");
    agent.finish().await;
}

#[tokio::test]
async fn relative_cwd_over_rest_is_refused() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let answer = server.post("/v1/sessions", &json!({"cwd": "."})).send().await;
    assert_eq!(answer.error(), (400, "invalid_params".into()));
    server.stop().await;
}

#[tokio::test]
async fn prompt_answer_includes_usage() {
    let home = Home::new();
    let steps = json!([{"text": "looking", "tool_calls": [{"name": "list"}]}, {"text": "found"}, {"text": "x".repeat(400), "chunk_chars": 1, "delay_ms": 50}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    let answer = agent.call("session/prompt", prompt.clone()).await;
    // The answer to a waiting prompt that never runs has no usage.
    let running = agent.prompt(&session, "again").await;
    agent.until_update("agent_message_chunk").await;
    let waiting = agent.prompt(&session, "never").await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    for id in [running, waiting] {
        let answer = agent.answer(&id).await.unwrap();
        assert_eq!((&answer["stopReason"], answer.get("usage")), (&json!("cancelled"), None), "{answer}");
    }
    agent.finish().await;
    let log = home.log(&session).await;
    let counted = log.iter().filter(|event| event["body"]["type"] == "usage.updated");
    let sum = |field: &str| counted.clone().map(|event| event["body"][field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(counted.clone().count(), 2);
    let usage = &answer["usage"];
    assert!(sum("inputTokens") > 0 && sum("outputTokens") > 0);
    assert_eq!((&usage["inputTokens"], &usage["outputTokens"]), (&json!(sum("inputTokens")), &json!(sum("outputTokens"))));
    assert_eq!(usage["totalTokens"], json!(sum("inputTokens") + sum("outputTokens")));
    assert_eq!(answer["_meta"]["nuncio"]["usage"], *usage);
}

#[tokio::test]
async fn auth_methods_have_types() {
    let home = Home::new();
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    let hello = agent.call("initialize", json!({"protocolVersion": 1})).await;
    let methods = hello["authMethods"].as_array().unwrap();
    let types: Vec<(&Value, &Value)> = methods.iter().map(|method| (&method["id"], &method["type"])).collect();
    assert_eq!(types, [(&json!("settings"), &json!("agent"))]);
    // Clients may remember a method that earlier versions offered.
    for method in ["settings", "environment"] {
        agent.call("authenticate", json!({"methodId": method})).await;
    }
    let session = agent.new_session(&home).await;
    let (_, updates) = agent.turn(&session, "go").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "done");
    agent.finish().await;
}
