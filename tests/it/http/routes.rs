//! Routes and errors: the shape of answers and the common error envelope.

use serde_json::{Value, json};

use harness::{Answer, Bridge, Connection, Home};

/// Fields of a request: method, path (`{s}` is a session), headers, body. Fields of the result:
/// status, code, words of the message.
type Case = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str, u16, &'static str, &'static str);

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

async fn ask(bridge: &Bridge, session: &str, case: &Case) -> Answer {
    let (method, path, headers, body, ..) = case;
    let mut ask = bridge.ask(method, &path.replace("{s}", session));
    if !body.is_empty() {
        ask = ask.body(*body);
    }
    for (name, value) in *headers {
        ask = ask.header(name, value);
    }
    ask.send().await
}

#[tokio::test]
async fn errors_have_a_common_envelope() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let session = server.new_session(&home).await;
    let cases: &[Case] = &[
        ("POST", "/v1/sessions", JSON, "{\"cwd\":7}", 400, "invalid_params", "cwd"),
        ("POST", "/v1/sessions", JSON, "{\"cwd\":\"here\"}", 400, "invalid_params", "cwd: here is not an absolute path"),
        ("POST", "/v1/sessions", JSON, "{\"cwd\":\"/no/such\"}", 403, "forbidden", "roots"),
        ("POST", "/v1/sessions", JSON, "{\"cwd\":\"/\"}", 403, "forbidden", "roots"),
        ("POST", "/v1/sessions", JSON, "{\"mode\":\"wild\"}", 400, "invalid_params", "mode"),
        ("POST", "/v1/sessions", JSON, "{\"title\":[]}", 400, "invalid_params", "title"),
        ("POST", "/v1/sessions", JSON, "{\"model\":\"nobody\"}", 400, "invalid_params", "model"),
        (
            "POST",
            "/v1/sessions",
            JSON,
            "{\"autoRun\":true}",
            400,
            "invalid_params",
            "autoRun: unknown field; it belongs to a message",
        ),
        (
            "POST",
            "/v1/sessions",
            JSON,
            "{\"prompt\":\"go\"}",
            400,
            "invalid_params",
            "it belongs to a prompt: POST /v1/sessions/{sessionId}/prompt",
        ),
        ("POST", "/v1/sessions", JSON, "{", 400, "parse_error", "JSON"),
        ("POST", "/v1/sessions", JSON, "{\"cwd\":\"\u{1}\"", 400, "parse_error", "JSON"),
        ("POST", "/v1/sessions", JSON, "[]", 400, "invalid_params", "object"),
        ("POST", "/v1/sessions", JSON, "null", 400, "invalid_params", "object"),
        ("POST", "/v1/sessions", JSON, "\"text\"", 400, "invalid_params", "object"),
        ("GET", "/v1/sessions?cursor=1.1&cursor=2.2", &[], "", 400, "invalid_params", "cursor: given twice"),
        ("GET", "/v1/sessions?cursor=x", &[], "", 400, "invalid_params", "cursor"),
        ("POST", "/v1/sessions", &[], "{}", 415, "unsupported_media_type", "type"),
        ("POST", "/v1/sessions", &[("content-type", "text/plain")], "{}", 415, "unsupported_media_type", "text/plain"),
        (
            "POST",
            "/v1/sessions",
            &[("content-type", "application/x-www-form-urlencoded")],
            "a=b",
            415,
            "unsupported_media_type",
            "form",
        ),
        ("GET", "/v1/nothing", &[], "", 404, "not_found", "route"),
        ("GET", "/v1", &[], "", 404, "not_found", "route"),
        ("GET", "/v1/sessions/", &[], "", 404, "not_found", ""),
        ("GET", "//v1/sessions", &[], "", 404, "not_found", "route"),
        ("POST", "/v1/sessions/nobody/resume", JSON, "{}", 404, "not_found", "nobody"),
        ("POST", "/v1/sessions/nobody/close", JSON, "{}", 404, "not_found", "nobody"),
        ("POST", "/v1/sessions/nobody/cancel", JSON, "{}", 404, "not_found", "nobody"),
        (
            "POST",
            "/v1/sessions/nobody/prompt",
            JSON,
            "{\"prompt\":[{\"type\":\"text\",\"text\":\"x\"}]}",
            404,
            "not_found",
            "nobody",
        ),
        ("PUT", "/v1/sessions/nobody/mode", JSON, "{\"modeId\":\"auto\"}", 404, "not_found", "nobody"),
        ("GET", "/v1/sessions/nobody/events", &[], "", 404, "not_found", "nobody"),
        ("POST", "/v1/sessions/{s}/prompt", JSON, "{}", 400, "invalid_params", "prompt"),
        ("POST", "/v1/sessions/{s}/prompt", JSON, "{\"prompt\":[]}", 400, "invalid_params", "prompt: is empty"),
        ("POST", "/v1/sessions/{s}/prompt", JSON, "{\"prompt\":\" \\n\"}", 400, "invalid_params", "prompt: is empty"),
        ("POST", "/v1/sessions/{s}/prompt", JSON, "{\"prompt\":[{\"type\":\"text\"}]}", 400, "invalid_params", "prompt[0]"),
        ("PUT", "/v1/sessions/{s}/mode", JSON, "{\"modeId\":\"wild\"}", 400, "invalid_params", "modeId"),
        ("PUT", "/v1/sessions/{s}/config/nothing", JSON, "{\"value\":\"x\"}", 400, "invalid_params", "configId"),
        ("PATCH", "/v1/sessions", JSON, "{}", 405, "method_not_allowed", "method"),
        ("PUT", "/v1/sessions/{s}/prompt", JSON, "{}", 405, "method_not_allowed", "method"),
        ("DELETE", "/v1/sessions/{s}/events", &[], "", 405, "method_not_allowed", "method"),
        ("POST", "/health", JSON, "{}", 405, "method_not_allowed", "method"),
        (
            "POST",
            "/v1/sessions",
            &[("content-type", "application/json"), ("idempotency-key", "")],
            "{}",
            400,
            "invalid_params",
            "Idempotency-Key",
        ),
        (
            "POST",
            "/v1/sessions",
            &[("content-type", "application/json"), ("idempotency-key", "é")],
            "{}",
            400,
            "invalid_params",
            "Idempotency-Key",
        ),
    ];
    let mut findings = Vec::new();
    for case in cases {
        let answer = ask(&server, &session, case).await;
        let (method, path, _, _, status, code, words) = case;
        let is_right = answer.status == *status
            && answer.error() == (*status, code.to_string())
            && answer.json()["error"]["message"].as_str().unwrap().contains(words)
            && answer.header("allow").is_some_and(|allow| !allow.is_empty()) == (*status == 405)
            && answer.header("x-content-type-options") == Some("nosniff");
        if !is_right {
            findings.push(format!("{method} {path} ({status} {code} {words:?}): {answer:?}"));
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    server.stop().await;
}

/// Path parameters override query parameters, which override fields of the body.
#[tokio::test]
async fn path_overrides_query_and_query_overrides_body() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "one"}, {"text": "two"}]), &[]).await;
    let (first, second) = (server.new_session(&home).await, server.new_session(&home).await);
    let prompt = json!({"sessionId": second, "prompt": [{"type": "text", "text": "go"}]});
    server.post(&format!("/v1/sessions/{first}/prompt?sessionId={second}"), &prompt).expect(200).await;
    assert_eq!(home.log(&second).await.len(), 1);
    let path = |query: &str| format!("/v1/sessions/{first}/config/mode?{query}");
    let set = async |query: &str, body: Value| server.ask("PUT", &path(query)).json(&body).expect(200).await;
    let mode = |options: Value| options["configOptions"][0]["currentValue"].as_str().unwrap().to_string();
    assert_eq!(mode(set("value=plan", json!({"value": "auto", "configId": "model"})).await), "plan");
    assert_eq!(mode(set("", json!({"value": "auto"})).await), "auto");
    server.stop().await;
}

/// Long answers are compressed for clients that accept gzip. Streams are not compressed.
#[tokio::test]
async fn long_answers_are_compressed() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let session = server.new_session(&home).await;
    let plain = server.get("/v1/openapi.json").send().await;
    assert_eq!(plain.header("content-encoding"), None);
    let packed = server.get("/v1/openapi.json").header("accept-encoding", "gzip").send().await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < plain.body.len() / 3, "{} of {}", packed.body.len(), plain.body.len());
    assert_eq!(server.get("/v1/nothing").header("accept-encoding", "gzip").send().await.error(), (404, "not_found".into()));
    let mut events = server.get(&format!("/v1/sessions/{session}/events")).header("accept-encoding", "gzip").events().await;
    assert_eq!(events.history().await.len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "one"}]), &[]).await;
    // `/health` needs no token and reveals no details.
    let health = server.get("/health").without("authorization").expect(200).await;
    assert_eq!(health, json!({"status": "ok"}));
    let head = server.ask("HEAD", "/health").without("authorization").send().await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));

    // One connection serves many requests, also after errors.
    let mut connection = Connection::open(server.address).await.unwrap();
    let made = server.post("/v1/sessions", &json!({"title": "A title", "mode": "plan"})).over(&mut connection).await;
    assert_eq!(made.status, 201);
    let session = made.json()["sessionId"].as_str().unwrap().to_string();
    assert_eq!(made.json()["modes"]["currentModeId"], "plan");
    let mut ids = vec![made.header("x-request-id").unwrap().to_string()];
    for (method, path, status) in [
        ("GET", "/v1/sessions?empty=true", 200),
        ("GET", "/v1/nothing", 404),
        ("PATCH", "/v1/sessions", 405),
        ("POST", "/v1/sessions/{s}/cancel", 200),
        ("POST", "/v1/sessions/{s}/resume", 200),
        ("POST", "/v1/sessions/{s}/close", 200),
        ("POST", "/v1/sessions/{s}/close", 200),
        ("DELETE", "/v1/sessions/{s}", 200),
        ("DELETE", "/v1/sessions/{s}", 200),
        ("POST", "/v1/sessions/{s}/close", 404),
        ("DELETE", "/v1/sessions/nobody", 200),
    ] {
        let answer = server.ask(method, &path.replace("{s}", &session)).over(&mut connection).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert!(answer.json().is_object(), "{answer:?}");
        ids.push(answer.header("x-request-id").unwrap().to_string());
        if (method, path) == ("GET", "/v1/sessions?empty=true") {
            let listed = &answer.json()["sessions"];
            assert_eq!((&listed[0]["sessionId"], &listed[0]["title"]), (&json!(session), &json!("A title")));
        }
    }
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id twice");
    server.stop().await;
}

/// A body over the size limit is refused.
#[tokio::test]
async fn body_over_the_size_limit_is_refused() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let large = format!("{{\"title\":\"{}\"}}", "x".repeat(16 << 20));
    let answer = server.ask("POST", "/v1/sessions").header("content-type", "application/json").body(large).send().await;
    assert_eq!(answer.error(), (413, "too_large".into()));
    let fits = format!("{{\"title\":\"{}\"}}", "x".repeat(8 << 20));
    server.ask("POST", "/v1/sessions").header("content-type", "application/json").body(fits).expect(201).await;
    server.stop().await;
}

/// Steps of a turn that runs until it is cancelled.
fn endless_turn() -> Value {
    json!([{"text": "slow ".repeat(100_000), "chunk_chars": 1, "delay_ms": 5}])
}

#[tokio::test]
async fn turns_are_limited_per_session_and_in_total() {
    let home = Home::new();
    home.config("[http]\nmax_turns = 1\n");
    let server = home.serve_script(endless_turn(), &[]).await;
    let (first, second) = (server.new_session(&home).await, server.new_session(&home).await);
    server.begin(&first, "go").await;
    for ask in [server.prompt(&second, "go"), server.prompt(&second, "go").header("prefer", "respond-async")] {
        let answer = ask.send().await;
        assert_eq!(answer.error(), (503, "overloaded".into()));
        assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
    }
    server.post(&format!("/v1/sessions/{first}/cancel"), &json!({})).expect(200).await;
    server.follow(&first).events().await.until("turn.cancelled").await;
    server.stop().await;

    home.config("");
    let server = home.serve_script(endless_turn(), &[]).await;
    server.begin(&first, "go").await;
    for form in ["respond-async", "wait=1"] {
        let answer = server.prompt(&first, "go").header("prefer", form).send().await;
        assert_eq!(answer.error(), (409, "session_busy".into()));
    }
    let answer = server.prompt(&first, "go").header("accept", "text/event-stream").send().await;
    assert_eq!(answer.error(), (409, "session_busy".into()));
    server.kill().await;
}

/// Sessions with a running turn stay open. Idle sessions are evicted.
#[tokio::test]
async fn open_sessions_are_limited() {
    let home = Home::new();
    home.config("[http]\nmax_sessions = 2\n");
    let server = home.serve_script(endless_turn(), &[]).await;
    let mut sessions = Vec::new();
    for _ in 0..5 {
        sessions.push(server.new_session(&home).await);
    }
    server.begin(&sessions[0], "go").await;
    server.begin(&sessions[1], "go").await;
    let answer = server.post("/v1/sessions", &json!({})).send().await;
    assert_eq!(answer.error(), (503, "overloaded".into()));
    let answer = server.prompt(&sessions[2], "go").send().await;
    assert_eq!(answer.error(), (503, "overloaded".into()));
    assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
    server.post(&format!("/v1/sessions/{}/close", sessions[0]), &json!({})).expect(200).await;
    server.begin(&sessions[2], "go").await;
    server.kill().await;
}

/// A form may be as large as the largest attachment.
#[tokio::test]
async fn form_size_limit_equals_attachment_size_limit() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let path = format!("/v1/sessions/{}/attachments", server.new_session(&home).await);
    for (size, status) in [(3 << 20, 201), (10 << 20, 201), ((10 << 20) + 1, 413)] {
        let file = "x".repeat(size);
        let form = format!("--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n{file}\r\n--b--\r\n");
        let sent = server.ask("POST", &path).header("content-type", "multipart/form-data; boundary=b").body(form).send().await;
        assert_eq!(sent.status, status, "{size}: {sent:?}");
    }
    server.stop().await;
}
