//! Hostile clients: paths, sizes, slow connections and numbers. The server leaks no data, keeps
//! running, and bounds its memory.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use serde_json::{Value, json};

use harness::{Connection, Home, Server, bounded};

/// Limit of the server's resident memory after an attack, without the pages of the program.
const RESIDENT_KIB_MAX: u64 = 56 << 10;

/// Asserts that the server answers and that its memory is bounded. Stops the server and returns its
/// log.
async fn assert_healthy_and_stop(server: Server) -> String {
    server.get("/health").without("authorization").expect(200).await;
    server.get("/v1/sessions").expect(200).await;
    let resident = server.resident_kib();
    println!("{resident} KiB resident");
    assert!(resident < RESIDENT_KIB_MAX, "{resident} KiB resident");
    server.stop().await
}

#[tokio::test]
async fn path_traversal_reads_no_files() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let session = server.new_session(&home).await;
    let secret = "the secret of a file";
    std::fs::write(home.data().join("secret"), secret).unwrap();
    home.put("../secret", secret);
    home.put("secret", secret);
    let parts = [
        "..",
        ".",
        "../secret",
        "..%2fsecret",
        "%2e%2e%2fsecret",
        "%2e%2e",
        "..%5csecret",
        "%00",
        "secret%00",
        "%2fetc%2fpasswd",
        "%ff",
        "%252e%252e%252fsecret",
        "..;/secret",
        "%c0%ae%c0%ae%2fsecret",
        "*",
        "'%20OR%201=1--",
        "%0d%0aX-Injected:%201",
        "%F0%9F%98%80",
    ];
    let mut findings = Vec::new();
    for part in parts {
        for (method, path) in [
            ("GET", format!("/{part}")),
            ("GET", format!("/v1/{part}")),
            ("GET", format!("/v1/sessions/{part}")),
            ("GET", format!("/v1/sessions/{part}/events")),
            ("GET", format!("/v1/sessions/{session}/artifacts/{part}")),
            ("GET", format!("/v1/sessions/{session}/attachments/{part}")),
            ("POST", format!("/v1/sessions/{part}/resume")),
            ("POST", format!("/v1/sessions/{part}/close")),
            ("DELETE", format!("/v1/sessions/{part}")),
            ("GET", format!("/v1/sessions?cwd={part}")),
            ("GET", format!("/v1/sessions?cursor={part}")),
        ] {
            let answer = server.ask(method, &path).send().await;
            let known = [200, 400, 403, 404, 405].contains(&answer.status);
            let leaks = answer.body.contains(secret) || answer.body.contains("root:") || answer.header("x-injected").is_some();
            if !known
                || leaks
                || (answer.status >= 400 && answer.header("content-type").is_some() && answer.error().1 == "internal")
            {
                findings.push(format!("{method} {path}: {answer:?}"));
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert_eq!(home.get("secret").as_deref(), Some(secret));
    server.get(&format!("/v1/sessions/{session}")).expect(200).await;
    assert_healthy_and_stop(server).await;
}

/// A request head that is too long or malformed gets an error or a closed connection.
#[tokio::test]
async fn oversized_or_malformed_heads_are_refused() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let megabytes = "x".repeat(10 << 20);
    let many: String = (0..100_000).map(|number| format!("h{number}: x\r\n")).collect();
    let start = format!("GET /v1/sessions HTTP/1.1\r\nhost: {}\r\n", server.address);
    for head in [
        format!("{start}x: {megabytes}\r\n\r\n"),
        format!("{start}{many}\r\n"),
        format!("GET /{megabytes} HTTP/1.1\r\n\r\n"),
        format!("{megabytes}\r\n\r\n"),
        megabytes.clone(),
        "\0".repeat(100_000),
        format!("{start}content-length: 1\r\ncontent-length: 2\r\n\r\n"),
        format!("{start}transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\nhello"),
        format!("{start}transfer-encoding: gzip\r\n\r\n"),
        format!("{start}content-length: -1\r\n\r\n"),
        "GET /health HTTP/9.9\r\n\r\n".into(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(),
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}".into(),
    ] {
        let mut connection = Connection::open(server.address).await.unwrap();
        let talk = async {
            // The server may close the connection before the whole head is written.
            let _ = connection.write(head.as_bytes()).await;
            connection.finish().await;
            connection.try_answer("GET").await
        };
        if let Ok(answer) = bounded(&head[..head.len().min(60)], talk).await {
            assert!((400..500).contains(&answer.status), "{:?}: {answer:?}", &head[..head.len().min(60)]);
        }
    }
    assert_healthy_and_stop(server).await;
}

#[tokio::test]
async fn oversized_or_malformed_bodies_are_refused() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let head = |rest: &str| {
        let (address, token) = (server.address, &server.token);
        format!(
            "POST /v1/sessions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n{rest}\r\n\r\n"
        )
    };
    // A body with a declared length over the limit is refused before the body arrives.
    for length in ["1073741824", "9223372036854775807"] {
        let mut connection = Connection::open(server.address).await.unwrap();
        connection.write(head(&format!("content-length: {length}")).as_bytes()).await.unwrap();
        assert_eq!(connection.answer("POST").await.error(), (413, "too_large".into()), "{length}");
        assert!(connection.closed().await);
    }
    // An endless chunked body is read up to the limit.
    let mut connection = Connection::open(server.address).await.unwrap();
    connection.write(head("transfer-encoding: chunked").as_bytes()).await.unwrap();
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let endless = async { while connection.write(chunk.as_bytes()).await.is_ok() {} };
    bounded("the end of an endless body", endless).await;
    // Clients disconnect in the middle of a large body.
    for _ in 0..20 {
        let mut connection = Connection::open(server.address).await.unwrap();
        connection.write(head("content-length: 16000000").as_bytes()).await.unwrap();
        connection.write(&[b'['; 100_000]).await.unwrap();
    }
    let packed = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    for encoding in ["gzip", "br", "deflate", "identity, gzip"] {
        let bomb =
            server.ask("POST", "/v1/sessions").header("content-type", "application/json").header("content-encoding", encoding);
        assert_eq!(bomb.body(packed).send().await.error(), (415, "unsupported_media_type".into()), "{encoding}");
    }
    let deep = |open: &str, count: usize| format!("{{\"title\":{}", open.repeat(count));
    let keys: Vec<String> = (0..100_000).map(|number| format!("\"k{number}\":{number}")).collect();
    let numbers = format!("{{\"title\":\"x\",\"_meta\":{{\"n\":{}}}}}", "9".repeat(1 << 20));
    for (body, codes) in [
        (deep("[", 900_000), &["parse_error"][..]),
        (deep("[", 1_100_000), &["too_large"]),
        (deep("{\"a\":", 900_000), &["parse_error"]),
        (format!("{{{}}}", keys.join(",")), &["", "invalid_params"]),
        (numbers, &["", "parse_error", "invalid_params"]),
        (format!("{{\"title\":\"{}\"}}", "\\u0000".repeat(1000)), &["", "invalid_params"]),
        ("{\"title\":\"\\ud800\"}".into(), &[""]),
        ("{\"cwd\":\"/\\u0000\"}".into(), &["invalid_params", "forbidden"]),
    ] {
        let answer = server.ask("POST", "/v1/sessions").header("content-type", "application/json").body(body.clone()).send().await;
        let code = answer.json()["error"]["code"].as_str().unwrap_or("").to_string();
        assert!(codes.contains(&code.as_str()), "{}: {answer:?}", &body[..60.min(body.len())]);
    }
    assert_healthy_and_stop(server).await;
}

/// The server answers complete requests while 2000 connections are idle or half-open.
#[tokio::test]
async fn requests_are_served_among_many_slow_connections() {
    raise_open_files();
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "said"}]), &[]).await;
    let session = server.new_session(&home).await;
    let mut slow = Vec::new();
    for _ in 0..500 {
        let mut connection = Connection::open(server.address).await.unwrap();
        connection.write(b"GET /v1/sessions HTTP/1.1\r\nhost: 127.").await.unwrap();
        slow.push(connection);
    }
    for number in 0..1500 {
        slow.push(Connection::open(server.address).await.unwrap());
        // An answer shows that the server accepted all earlier connections.
        if number % 250 == 0 {
            server.get("/health").expect(200).await;
        }
    }
    server.prompt(&session, "go").expect(200).await;
    server.follow(&session).events().await.until("turn.completed").await;
    // A half-open connection can still complete its request.
    let rest = format!("0.0.1\r\nauthorization: Bearer {}\r\n\r\n", server.token);
    slow[7].write(rest.as_bytes()).await.unwrap();
    assert_eq!(slow[7].answer("GET").await.status, 200);
    server.get("/health").expect(200).await;
    assert!(server.resident_kib() < RESIDENT_KIB_MAX, "{} KiB resident", server.resident_kib());
    drop(slow);
    assert_healthy_and_stop(server).await;
}

fn raise_open_files() {
    let files = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum }).unwrap();
}

/// Limits the number of open files of a running server.
fn limit_open_files(server: &Server, files: u64) {
    let limit = Rlimit { current: Some(files), maximum: Some(files) };
    prlimit(Pid::from_raw(server.pid as i32), Resource::Nofile, limit).unwrap();
}

/// With more half-open connections than the server accepts, the owner can connect, and
/// authenticated connections stay open.
#[tokio::test]
async fn half_open_connections_do_not_block_owner() {
    raise_open_files();
    for (files, connections) in [(None, 4096 + 200), (Some(200), 400)] {
        let home = Home::new();
        let server = home.serve_script(json!([{"text": "said"}]), &[]).await;
        let session = server.new_session(&home).await;
        if let Some(files) = files {
            limit_open_files(&server, files);
        }
        let mut events = server.follow(&session).events().await;
        let mut kept = Connection::open(server.address).await.unwrap();
        assert_eq!(server.get("/v1/sessions").over(&mut kept).await.status, 200);
        let mut slow = Vec::new();
        for number in 0..connections {
            let mut connection = Connection::open(server.address).await.unwrap();
            // A write may fail, because the server may have closed the connection.
            let _ = connection.write(b"GET /v1/sessions HTTP/1.1\r\nhost: 127.").await;
            slow.push(connection);
            if number % 100 == 0 {
                server.get("/v1/sessions").expect(200).await;
            }
        }
        server.get("/v1/sessions").expect(200).await;
        server.prompt(&session, "go").expect(200).await;
        events.until("turn.completed").await;
        assert_eq!(server.get("/v1/sessions").over(&mut kept).await.status, 200, "a connection that authenticated was closed");
        assert!(slow[0].closed().await, "the oldest has made room");
        drop(slow);
        server.stop().await;
    }
}

#[tokio::test]
async fn exhausted_open_files_are_reported_as_overloaded() {
    needs_sqlite!("a session has no open file");
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    server.new_session(&home).await;
    limit_open_files(&server, 64);
    let mut connection = Connection::open(server.address).await.unwrap();
    let new = server.post("/v1/sessions", &json!({"cwd": home.work()}));
    let mut refused = Vec::new();
    for _ in 0..80 {
        let answer = new.over(&mut connection).await;
        if answer.status != 201 {
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
            refused.push(answer.error());
        }
    }
    assert!(!refused.is_empty() && refused.iter().all(|error| *error == (503, "overloaded".into())), "{refused:?}");
    server.stop().await;
}

/// The limit on the request head is exact and does not depend on the parser's buffer size.
#[tokio::test]
async fn head_longer_than_64_kib_is_refused() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    // Total bytes of headers, number of headers, and whether the request is refused.
    for (bytes, headers, refused) in [
        (60 << 10, 1, false),
        (60 << 10, 40, false),
        ((64 << 10) - 300, 1, false),
        ((64 << 10) + 1, 1, true),
        (80_000, 1, true),
        (100_000, 1, true),
        (100_000, 40, true),
    ] {
        let mut ask = server.get("/v1/sessions");
        for number in 0..headers {
            ask = ask.header(&format!("x-{number}"), &"x".repeat(bytes / headers));
        }
        let answer = ask.send().await;
        // The HTTP parser itself refuses heads over its buffer size.
        let statuses: &[u16] = if refused { &[413, 431] } else { &[200] };
        assert!(statuses.contains(&answer.status), "{bytes} in {headers}: {} {}", answer.status, answer.body);
    }
    server.stop().await;
}

/// HTML, control characters and forged frames in a text are not interpreted.
#[tokio::test]
async fn html_in_texts_is_not_interpreted() {
    let html = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'>&\u{2028}\u{202e}\u{1b}[2J\r\n\r\ndata: forged\nid: 9999\nevent: synced\n\n";
    let home = Home::new();
    let server = home.serve_script(json!([{"text": html, "thinking": html}]), &["--mode", "auto"]).await;
    let made = server.post("/v1/sessions", &json!({"title": html, "systemPrompt": html})).send().await;
    let session = made.json()["sessionId"].as_str().unwrap().to_string();
    // The stream reader asserts that no frame is forged.
    let mut events = server.follow(&session).events().await;
    assert_eq!(events.head.header("x-content-type-options"), Some("nosniff"));
    server.prompt(&session, html).expect(200).await;
    let seen = events.until("turn.completed").await;
    assert_eq!(seen[0].event["body"]["title"], html);
    let said = seen
        .iter()
        .filter(|shown| shown.kind() == "message.completed" && shown.event["body"]["parts"].to_string().contains("alert"));
    assert_eq!(said.count(), 3, "{seen:?}");
    let escaped = "%3Cscript%3Ealert(1)%3C/script%3E";
    for (method, path, body) in [
        ("GET", "/v1/sessions".to_string(), Value::Null),
        ("GET", format!("/v1/sessions/{session}"), Value::Null),
        ("GET", format!("/v1/sessions/{session}/messages"), Value::Null),
        ("GET", format!("/v1/sessions/{session}/turns"), Value::Null),
        ("GET", format!("/{escaped}"), Value::Null),
        ("GET", format!("/v1/sessions/{escaped}/events"), Value::Null),
        ("POST", format!("/v1/sessions/{escaped}/close"), json!({})),
        ("POST", "/v1/sessions".into(), json!({ "cwd": html })),
        ("POST", "/v1/sessions".into(), json!({ "mode": html })),
        ("POST", "/v1/sessions".into(), json!({ html: html })),
        ("PUT", format!("/v1/sessions/{session}/mode"), json!({ "modeId": html })),
        ("PUT", format!("/v1/sessions/{session}/config/{escaped}"), json!({ "value": html })),
        ("POST", format!("/v1/permissions/{escaped}"), json!({ "outcome": html })),
    ] {
        let ask = server.ask(method, &path);
        let ask = if body.is_null() { ask } else { ask.json(&body) };
        let answer = ask.send().await;
        assert_eq!(answer.header("content-type"), Some("application/json"), "{method} {path}: {answer:?}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{method} {path}: {answer:?}");
        assert!(answer.status < 500, "{answer:?}");
        answer.json();
    }
    // Every line of the log is valid JSON.
    for line in assert_healthy_and_stop(server).await.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    }
}
