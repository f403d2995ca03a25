//! ACP over stdio. Each bad line gets one specific answer and the connection continues.

mod client_file_faults;
mod client_files;
mod client_formatters;
mod clients;
mod content;
mod finished_turns;
mod order;
mod params;
mod permission_requests;
mod persistence;
mod replay;
mod sessions;
mod settings;
mod slow_clients;
mod subscriptions;
mod turn_ends;
mod updates;
mod waiting_prompts;

use serde_json::{Value, json};

use harness::{Agent, Home, on_postgres};

/// The expected answer to a bad line: id, code and a word of the message. None: no answer.
type ExpectedAnswer = Option<(Value, i64, &'static str)>;

async fn check(agent: &mut Agent, line: &[u8], expected: ExpectedAnswer) {
    let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
    let before = agent.frames.len();
    if let Some((id, _, _)) = &expected
        && !id.is_null()
        && serde_json::from_slice::<Value>(line).is_err()
    {
        agent.expect_answer(id);
    }
    agent.raw(line).await;
    // `session/list` is answered after the bad line, so the answer to the bad line has been
    // received, unless it needs another statement of a database server.
    agent.call("session/list", json!({})).await;
    let list = agent.frames.pop().unwrap();
    if on_postgres() && expected.is_some() && agent.frames.len() == before {
        agent.until("the answer to the bad line", |frame| frame["error"].is_object()).await;
    }
    agent.frames.push(list);
    let frames = &agent.frames[before..agent.frames.len() - 1];
    match (frames, expected) {
        ([], None) => {}
        ([frame], Some((id, code, word))) => {
            assert_eq!(frame["id"], id, "{shown}: {frame}");
            assert_eq!(frame["error"]["code"], code, "{shown}: {frame}");
            let message = frame["error"]["message"].as_str().unwrap();
            assert!(message.contains(word), "{shown}: {message:?} does not say {word:?}");
            assert!(frame["error"]["data"]["code"].is_string(), "{shown}: {frame}");
        }
        (frames, expected) => panic!("{shown}: expected {expected:?}, got {frames:#?}"),
    }
}

#[tokio::test]
async fn bad_lines_are_answered_and_connection_continues() {
    let home = Home::new();
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let null = |code, word| Some((Value::Null, code, word));
    let seven = |code, word| Some((json!(7), code, word));
    let cases: &[(&str, ExpectedAnswer)] = &[
        // Invalid JSON.
        ("{", null(-32700, "not JSON")),
        ("nonsense", null(-32700, "not JSON")),
        (r#"{"jsonrpc":"2.0","id":"list","method":"session/list"} {}"#, Some((json!("list"), -32700, "not JSON"))),
        (
            r#"{"jsonrpc":"2.0","method":"session/list","params":{"id":8,"x":"\"id\":9,"},"id":"list",}"#,
            Some((json!("list"), -32700, "not JSON")),
        ),
        (r#"{"jsonrpc":"2.0","method":"session/list","id":"sev"#, null(-32700, "not JSON")),
        ("Content-Length: 46", null(-32700, "one JSON message per line")),
        // Valid JSON, invalid messages.
        ("7", null(-32600, "object")),
        ("\"text\"", null(-32600, "object")),
        ("null", null(-32600, "object")),
        ("[]", null(-32600, "batches")),
        (
            r#"[{"jsonrpc":"2.0","id":7,"method":"session/list"},{"jsonrpc":"2.0","id":8,"method":"session/list"}]"#,
            null(-32600, "batches"),
        ),
        ("{}", null(-32600, "jsonrpc")),
        (r#"{"jsonrpc":"2.0"}"#, null(-32600, "method")),
        (r#"{"id":7,"method":"session/list"}"#, seven(-32600, "jsonrpc")),
        (r#"{"jsonrpc":"1.0","id":7,"method":"session/list"}"#, seven(-32600, "jsonrpc")),
        (r#"{"jsonrpc":2.0,"id":7,"method":"session/list"}"#, seven(-32600, "jsonrpc")),
        (r#"{"jsonrpc":"2.0","id":7,"method":8}"#, seven(-32600, "method")),
        (r#"{"jsonrpc":"2.0","id":7,"method":null}"#, seven(-32600, "method")),
        (r#"{"jsonrpc":"2.0","id":7}"#, seven(-32600, "method")),
        (r#"{"jsonrpc":"2.0","id":7,"result":1,"error":{}}"#, seven(-32600, "has both")),
        // Invalid methods and params.
        (r#"{"jsonrpc":"2.0","id":7,"method":"no/such"}"#, seven(-32601, "no/such")),
        (r#"{"jsonrpc":"2.0","id":7,"method":""}"#, seven(-32601, "method")),
        (r#"{"jsonrpc":"2.0","id":"seven","method":"no/such"}"#, Some((json!("seven"), -32601, "no/such"))),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/cancel","params":{"sessionId":"x"}}"#, seven(-32601, "session/cancel")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/list","params":[]}"#, seven(-32602, "params")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/list","params":"x"}"#, seven(-32602, "params")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/list","params":{"cwd":7}}"#, seven(-32602, "cwd")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/list","params":{"cursor":"x"}}"#, seven(-32602, "cursor")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}"#, seven(-32602, "protocolVersion")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"1"}}"#, seven(-32602, "protocolVersion")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1.5}}"#, seven(-32602, "protocolVersion")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":-1.0}}"#, seven(-32602, "protocolVersion")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/new","params":{}}"#, seven(-32602, "cwd")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"relative"}}"#, seven(-32602, "cwd")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"/no/such/dir"}}"#, seven(-32602, "cwd")),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"session/new","params":{"cwd":"/","_meta":{"nuncio":{"mode":"x"}}}}"#,
            seven(-32602, "_meta.nuncio.mode"),
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"prompt":[]}}"#, seven(-32602, "sessionId")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}"#, seven(-32602, "prompt")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"x","prompt":"hi"}}"#, seven(-32602, "prompt")),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"x","prompt":[{"type":"text","text":"hi"}]}}"#,
            seven(-32002, "x"),
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"x","cwd":"/"}}"#, seven(-32002, "x")),
        (r#"{"jsonrpc":"2.0","id":7,"method":"session/close","params":{"sessionId":"x"}}"#, seven(-32002, "x")),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"session/set_mode","params":{"sessionId":"x","modeId":"x"}}"#,
            seven(-32602, "modeId"),
        ),
        // An escape of half a character is U+FFFD.
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"session/close","params":{"sessionId":"half \ud83d"}}"#,
            seven(-32002, "half \u{fffd}"),
        ),
        // Lines without an answer.
        (r#"{"jsonrpc":"2.0","id":99,"result":{}}"#, None),
        (r#"{"jsonrpc":"2.0","id":"99","error":{"code":1,"message":""}}"#, None),
        (r#"{"jsonrpc":"2.0","method":"no/such"}"#, None),
        (r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}"#, None),
        (r#"{"jsonrpc":"2.0","method":"session/cancel","params":7}"#, None),
        (r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"none"}}"#, None),
        (r#"{"jsonrpc":"2.0","method":"$/cancel_request"}"#, None),
        ("", None),
        (" \t ", None),
    ];
    for (line, expected) in cases {
        check(&mut agent, format!("{line}\n").as_bytes(), expected.clone()).await;
    }
    let bytes: &[(&[u8], ExpectedAnswer)] = &[
        (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}\n", seven(-32700, "UTF-8")),
        (b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"no/such\"}\n", seven(-32601, "no/such")),
        (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"no/such\"}\r\n", seven(-32601, "no/such")),
        (b"\r\n\n\r\n", None),
    ];
    for (line, expected) in bytes {
        check(&mut agent, line, expected.clone()).await;
    }
    let deep = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"session/list","params":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
    check(&mut agent, format!("{deep}\n").as_bytes(), seven(-32700, "recursion")).await;
    agent.finish().await;
}

#[tokio::test]
async fn unusual_number_is_returned_as_id_unchanged() {
    let home = Home::new();
    for id in ["9007199254740993", "18446744073709551615", "-9223372036854775808", "123456789012345678901234", "7.0", "1e3"] {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"initialize\",\"params\":{{\"protocolVersion\":1}}}}\n");
        let answer = home.run(&["acp", "--model", &home.script(json!([]))], &line).await.stdout;
        assert!(answer.contains(&format!("\"id\":{id},")), "{id}: {answer}");
    }
}

#[tokio::test]
async fn overlong_line_is_skipped() {
    let home = Home::new();
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    let mut line = vec![b'x'; 33 << 20];
    line.push(b'\n');
    check(&mut agent, &line, Some((Value::Null, -32012, "longer"))).await;
    let start = br#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":""#;
    line[..start.len()].copy_from_slice(start);
    check(&mut agent, &line, Some((json!(7), -32012, "longer"))).await;
    agent.finish().await;
}

#[tokio::test]
async fn last_line_without_newline_is_processed() {
    let home = Home::new();
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    agent.raw(br#"{"jsonrpc":"2.0","id":"last","method":"initialize","params":{"protocolVersion":1}}"#).await;
    let frames = agent.finish().await;
    assert_eq!(frames.len(), 1, "{frames:#?}");
    assert_eq!(frames[0]["id"], "last");
    assert_eq!(frames[0]["result"]["protocolVersion"], 1);
}

#[tokio::test]
async fn request_id_in_use_is_refused() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "long", "chunk_chars": 1, "delay_ms": 60_000}]), &[]).await;
    let running = agent.prompt(&session, "go").await;
    agent.until_update("session_info_update").await;
    agent.raw(format!("{{\"jsonrpc\":\"2.0\",\"id\":{running},\"method\":\"session/list\"}}\n").as_bytes()).await;
    let refused = agent.answer(&running).await.unwrap_err();
    assert_eq!(refused["code"], -32600, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("id"), "{refused}");
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    let stopped = agent.until("the answer to the prompt", |frame| frame["id"] == running).await;
    assert_eq!(stopped["result"]["stopReason"], "cancelled");
    agent.finish().await;
}

#[tokio::test]
async fn initialize_returns_version_and_capabilities() {
    let home = Home::new();
    let mut agent = home.start(&["--model", "anthropic/no-key-is-needed-for-this"]).await;
    for version in [json!(1), json!(1.0), json!(0), json!(2), json!(65535)] {
        let hello = agent.call("initialize", json!({"protocolVersion": version, "clientCapabilities": {}})).await;
        assert_eq!(hello["protocolVersion"], 1);
        assert_eq!(hello["agentInfo"]["name"], "nuncio");
        assert_eq!(hello["agentInfo"]["version"], env!("CARGO_PKG_VERSION"));
        let can = &hello["agentCapabilities"];
        assert_eq!(can["loadSession"], true);
        for (capability, there) in [("image", true), ("embeddedContext", true), ("audio", true)] {
            assert_eq!(can["promptCapabilities"][capability].as_bool().unwrap_or(false), there, "{capability}");
        }
        for capability in ["list", "delete", "resume", "close", "fork", "archive", "title"] {
            assert!(can["sessionCapabilities"][capability].is_object(), "{capability}: {can}");
        }
        assert_eq!(can["sessionCapabilities"]["systemPrompt"], json!({"mode": {"override": {}}}), "{can}");
        assert!(can["auth"]["logout"].is_object() && can["auth"]["status"].is_object(), "{can}");
        assert_eq!(hello["_meta"]["nuncio"], json!({"fork": true}));
    }
    agent.finish().await;
    assert!(!home.store().exists(), "initialize opened the store");
}
