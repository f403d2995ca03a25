//! `/rpc`: the API as JSON-RPC over WebSockets and POST, and the subscription to events.

use serde_json::{Value, json};

use harness::{Home, Server, Socket, bounded};

const FOLLOW: &str = "_nuncio/events/follow";
const EVENT: &str = "_nuncio/events/event";

async fn started(flags: &[&str]) -> (Home, Server) {
    let home = Home::new();
    let echo = json!({"name": "bash", "input": {"command": "echo said"}});
    let server = home.serve_script(json!([{"text": "one", "tool_calls": [echo]}, {"text": "two"}, {"text": "three"}]), flags).await;
    (home, server)
}

async fn session(home: &Home, socket: &mut Socket) -> String {
    let made = socket.call("session/new", json!({"cwd": home.work()})).await;
    made["sessionId"].as_str().unwrap().into()
}

fn prompt(session: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
}

/// Notifications of a subscription, up to the first one that `fits` accepts.
async fn until(socket: &mut Socket, subscription: &Value, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut told = Vec::new();
    loop {
        told.push(socket.told(EVENT, subscription).await.unwrap_or_else(|| panic!("closed after {told:#?}")));
        if fits(told.last().unwrap()) {
            return told;
        }
    }
}

fn is(kind: &str) -> impl Fn(&Value) -> bool {
    move |told| told["event"]["body"]["type"] == kind
}

/// Cursors of the events, which rise by one because `seq` has no gaps.
fn cursors(told: &[Value]) -> Vec<u64> {
    told.iter().filter_map(|one| one["cursor"].as_u64()).collect()
}

#[tokio::test]
async fn subscription_sends_history_then_live_events_then_end() {
    let (home, server) = started(&["--mode", "auto"]).await;
    let mut asks = server.socket().await;
    let session = session(&home, &mut asks).await;
    assert_eq!(asks.call("session/prompt", prompt(&session)).await["stopReason"], "end_turn");

    let mut reads = server.socket().await;
    let subscription = reads.call(FOLLOW, json!({ "sessionId": session })).await;
    let mut told = until(&mut reads, &subscription, |one| one.get("synced").is_some()).await;
    let synced = told.pop().unwrap();
    assert_eq!(told.last().unwrap()["event"]["body"]["type"], "turn.completed");
    assert_eq!(synced["synced"], told.last().unwrap()["cursor"]);
    // A prompt on the same socket: answers and events do not interfere.
    assert_eq!(reads.call("session/prompt", prompt(&session)).await["stopReason"], "end_turn");
    told.extend(until(&mut reads, &subscription, is("turn.completed")).await);
    let cursors = cursors(&told);
    assert!(cursors.is_sorted() && cursors[0] == 1, "{cursors:?}");
    assert_eq!(cursors.len() as u64, *cursors.last().unwrap(), "{cursors:?}");
    assert_eq!(told.iter().filter(|one| is("turn.started")(one)).count(), 2);

    // A subscription after a cursor, filtered by type.
    let after = json!({"sessionId": session, "after": cursors[cursors.len() - 3], "types": "turn.*"});
    let mut rest = server.socket().await;
    let subscribed = rest.call(FOLLOW, after).await;
    let told = until(&mut rest, &subscribed, |one| one.get("synced").is_some()).await;
    let kinds: Vec<&Value> = told[..told.len() - 1].iter().map(|one| &one["event"]["body"]["type"]).collect();
    assert_eq!(kinds, ["turn.completed"]);

    // After `unfollow`, the client receives no further events.
    assert_eq!(rest.call("_nuncio/events/unfollow", json!([subscribed])).await, true);
    server.stop().await;
    let end = until(&mut reads, &subscription, |one| one.get("ended").is_some()).await;
    assert_eq!(end.last().unwrap(), &json!({"ended": true}));
    assert!(reads.message().await.is_none() && rest.message().await.is_none());
}

#[tokio::test]
async fn permission_is_answered_over_websocket() {
    let (home, server) = started(&[]).await;
    let mut asks = server.socket().await;
    let session = session(&home, &mut asks).await;
    let mut answers = server.socket().await;
    let subscription = answers.call(FOLLOW, json!({})).await;
    let answering = async {
        until(&mut answers, &subscription, is("permission.requested")).await;
        let open = answers.call("_nuncio/permission/list", json!({ "sessionId": session })).await;
        let permission = &open["permissions"][0]["permissionId"];
        let wrong = json!({"permissionId": permission, "optionId": "nothing"});
        let refused = answers.request("_nuncio/permission/answer", wrong).await.unwrap_err();
        assert_eq!((&refused["code"], &refused["data"]["code"]), (&json!(-32602), &json!("invalid_params")));
        answers.call("_nuncio/permission/answer", json!({"permissionId": permission, "outcome": "allow_once"})).await;
        until(&mut answers, &subscription, is("turn.completed")).await
    };
    let (stopped, told) = tokio::join!(asks.call("session/prompt", prompt(&session)), answering);
    assert_eq!(stopped["stopReason"], "end_turn");
    let resolved = told.iter().find(|one| is("permission.resolved")(one)).unwrap();
    assert_eq!(resolved["event"]["body"]["by"], "owner", "{resolved}");
    server.stop().await;
}

#[tokio::test]
async fn errors_have_a_number_and_a_code() {
    let (home, server) = started(&[]).await;
    let token = home.run(&["token", "new", "watcher", "--role", "observer"], "").await.stdout.trim().to_string();
    let mut owner = server.socket().await;
    let session = session(&home, &mut owner).await;
    let mut watcher = server.with_token(&token).socket().await;
    let cases = [
        ("_nuncio/session/get", json!({"sessionId": "nobody"}), -32002, "not_found"),
        ("session/new", json!({"cwd": "here"}), -32602, "invalid_params"),
        ("session/new", json!({"cwd": 7}), -32602, "invalid_params"),
        ("session/new", json!({"cwd": "/"}), -32011, "forbidden"),
        ("session/prompt", json!({"sessionId": session}), -32602, "invalid_params"),
        // serde accepts a number as the variant in this field.
        ("session/prompt", json!({"sessionId": session, "prompt": [{"type": 0, "text": "x"}]}), -32602, "invalid_params"),
        (FOLLOW, json!({"sessionId": "nobody"}), -32002, "not_found"),
        (FOLLOW, json!({"sessionId": session, "after": 1_000_000}), -32602, "invalid_params"),
        (FOLLOW, json!({"after": "x"}), -32602, "invalid_params"),
    ];
    for (method, params, number, code) in cases {
        let error = owner.request(method, params.clone()).await.unwrap_err();
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(number), &json!(code)), "{method} {params}: {error}");
    }
    let error = owner.request("no/such", json!({})).await.unwrap_err();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32601), &json!("unsupported")), "{error}");
    // An observer can read, but cannot prompt or create sessions.
    for (method, params) in [("session/prompt", prompt(&session)), ("session/new", json!({"cwd": home.work()}))] {
        let error = watcher.request(method, params).await.unwrap_err();
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32011), &json!("forbidden")), "{method}: {error}");
    }
    watcher.call("_nuncio/session/get", json!({ "sessionId": session })).await;
    let subscription = watcher.call(FOLLOW, json!({ "sessionId": session })).await;
    until(&mut watcher, &subscription, |one| one.get("synced").is_some()).await;
    server.stop().await;
}

#[tokio::test]
async fn post_accepts_calls_and_batches() {
    let (home, server) = started(&[]).await;
    let request = |id: u64, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let made = server.post("/rpc", &request(1, "session/new", json!({"cwd": home.work()}))).send().await;
    assert_eq!(made.status, 200, "{made:?}");
    let made: Value = serde_json::from_str(&made.body).unwrap();
    let session = made["result"]["sessionId"].as_str().unwrap();
    let get = |id| request(id, "_nuncio/session/get", json!({ "sessionId": session }));
    let batch = async |calls: u64| {
        let calls: Vec<Value> = (0..calls).map(get).collect();
        serde_json::from_str::<Value>(&server.post("/rpc", &json!(calls)).send().await.body).unwrap()
    };
    let answers = batch(100).await;
    let mut ids: Vec<u64> = answers.as_array().unwrap().iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..100).collect::<Vec<u64>>());
    assert!(answers.as_array().unwrap().iter().all(|answer| answer["result"]["sessionId"] == session), "{answers}");
    let refused = batch(101).await;
    assert_eq!((&refused["error"]["data"]["code"], &refused["id"]), (&json!("too_large"), &Value::Null), "{refused}");
    let cases = [
        ("{", -32700, "parse_error"),
        ("{bad", -32700, "parse_error"),
        (r#"{"id": 3}"#, -32600, "invalid_request"),
        ("[]", -32600, "invalid_request"),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "no/such"}"#, -32601, "unsupported"),
        (r#"{"jsonrpc": "2.0", "id": 1, "method": "_nuncio/events/follow"}"#, -32601, "unsupported"),
    ];
    for (body, number, code) in cases {
        let answer = server.ask("POST", "/rpc").header("content-type", "application/json").body(body).send().await;
        let answer: Value = serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{body}: {error}: {answer:?}"));
        let error = &answer["error"];
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(number), &json!(code)), "{body}: {answer}");
    }
    // The server ignores an upgrade to an unknown protocol and reads the body.
    let status = request(1, "_nuncio/status", json!({}));
    let answer = server.post("/rpc", &status).header("upgrade", "x").header("connection", "upgrade").send().await;
    assert_eq!(serde_json::from_str::<Value>(&answer.body).unwrap()["id"], 1, "{answer:?}");
    server.stop().await;
}

#[tokio::test]
async fn revoked_token_ends_access_of_its_socket() {
    let (home, server) = started(&["--mode", "auto"]).await;
    let token = home.run(&["token", "new", "worker"], "").await.stdout.trim().to_string();
    let mut owner = server.socket().await;
    let session = session(&home, &mut owner).await;
    let mut worker = server.with_token(&token).socket().await;
    let subscription = worker.call(FOLLOW, json!({ "sessionId": session })).await;
    until(&mut worker, &subscription, |one| one.get("synced").is_some()).await;
    assert_eq!(home.run(&["token", "revoke", "worker"], "").await.code, 0);
    // A batch is refused as well.
    let get = json!({"jsonrpc": "2.0", "id": "b", "method": "_nuncio/session/get", "params": {"sessionId": session}});
    worker.raw(&json!([get]).to_string()).await;
    let answer = worker.message().await.unwrap();
    assert_eq!(answer[0]["error"]["data"]["code"], "unauthenticated", "{answer}");
    for (method, params) in
        [("_nuncio/session/get", json!({"sessionId": session})), (FOLLOW, json!({})), ("session/prompt", prompt(&session))]
    {
        let error = worker.request(method, params).await.unwrap_err();
        assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32000), &json!("unauthenticated")), "{method}: {error}");
    }
    owner.call("session/prompt", prompt(&session)).await;
    assert_eq!(worker.told(EVENT, &subscription).await.unwrap(), json!({"ended": true}));
    server.stop().await;
}

/// A socket counts as a connection only while the socket is open.
#[tokio::test]
async fn open_sockets_count_as_connections() {
    let (_home, server) = started(&[]).await;
    let connections = async || {
        let metrics = server.get("/metrics").header("connection", "close").send().await.body;
        let line = metrics.lines().find_map(|line| line.strip_prefix("nuncio_http_connections "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let mut sockets = Vec::new();
    for _ in 0..5 {
        let mut socket = server.socket().await;
        socket.call("_nuncio/status", json!({})).await;
        sockets.push(socket);
    }
    // The request for the metrics is the sixth connection.
    bounded("five sockets and who asks", async { while connections().await != 6 {} }).await;
    drop(sockets);
    bounded("the end of the sockets", async { while connections().await != 1 {} }).await;
    server.stop().await;
}

/// Answers that a client does not read are limited. Requests over the limit are refused, and the
/// socket stays open.
#[tokio::test]
async fn unread_answers_are_limited() {
    const ASKED: usize = 120;
    let (home, server) = started(&[]).await;
    let mut owner = server.socket().await;
    let session = session(&home, &mut owner).await;
    let named = json!({"sessionId": session, "name": "large.txt"});
    let mut large = named.clone();
    large["data"] = "QUJD".repeat(1 << 19).into();
    owner.call("_nuncio/attachment/add", large).await;
    let before = server.resident_kib();
    let mut greedy = server.socket().await;
    for id in 0..ASKED {
        let get = json!({"jsonrpc": "2.0", "id": id, "method": "_nuncio/attachment/get", "params": named});
        greedy.raw(&get.to_string()).await;
    }
    // Other clients are served during this time.
    for _ in 0..5 {
        owner.call("_nuncio/attachment/get", named.clone()).await;
    }
    let grown = (server.resident_kib().saturating_sub(before)) >> 10;
    assert!(grown < 80, "{grown} MiB");
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..ASKED {
        let answer = greedy.message().await.unwrap();
        match answer.get("error") {
            None => answered += 1,
            Some(error) => {
                assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32001), &json!("overloaded")), "{error}");
                refused += 1;
            }
        }
    }
    assert!(answered >= 32 && refused > 0, "{answered} answered, {refused} refused");
    // The memory of the answers is released after the client reads them.
    for _ in 0..34 {
        greedy.raw(&json!({"jsonrpc": "2.0", "id": 0, "method": "_nuncio/attachment/get", "params": named}).to_string()).await;
        assert!(greedy.message().await.unwrap().get("error").is_none());
    }
    server.stop().await;
}

/// In ACP, `session/cancel` is a notification: the request has no id and gets no answer.
#[tokio::test]
async fn cancel_is_accepted_as_notification() {
    for batch in [false, true] {
        let (home, server) = started(&[]).await;
        let mut asks = server.socket().await;
        let session = session(&home, &mut asks).await;
        let mut cancels = server.socket().await;
        let subscription = cancels.call(FOLLOW, json!({ "sessionId": session })).await;
        let cancelling = async {
            until(&mut cancels, &subscription, is("permission.requested")).await;
            let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
            cancels.raw(&if batch { json!([cancel]) } else { cancel }.to_string()).await;
        };
        let (stopped, ()) = tokio::join!(asks.call("session/prompt", prompt(&session)), cancelling);
        assert_eq!(stopped["stopReason"], "cancelled");
        server.stop().await;
    }
}

/// Access control precedes the upgrade, and refusals have the common error envelope.
#[tokio::test]
async fn unauthorized_client_gets_no_socket() {
    let (_home, server) = started(&[]).await;
    let upgrade = server
        .get("/rpc")
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    let large = format!("\"{}\"", "x".repeat(16 << 20));
    let cases = [
        (upgrade.clone().without("authorization"), 401, "unauthenticated"),
        (upgrade.clone().header("authorization", "Bearer wrong"), 401, "unauthenticated"),
        (upgrade.clone().header("origin", "http://elsewhere.example"), 403, "forbidden"),
        (upgrade.clone().header("host", "elsewhere.example"), 403, "forbidden"),
        (server.get("/rpc"), 405, "method_not_allowed"),
        (server.get("/rpc").header("connection", "upgrade").header("upgrade", "h2c"), 405, "method_not_allowed"),
        (upgrade.clone().without("sec-websocket-key"), 400, "invalid_request"),
        (server.ask("PUT", "/rpc"), 405, "method_not_allowed"),
        (server.ask("POST", "/rpc").header("upgrade", "x").body("{}"), 415, "unsupported_media_type"),
        (
            server.post("/rpc", &json!({})).header("upgrade", "websocket").header("content-type", "text/plain"),
            415,
            "unsupported_media_type",
        ),
        (server.ask("POST", "/rpc").body("{}"), 415, "unsupported_media_type"),
        (server.ask("POST", "/rpc").header("content-type", "text/plain").body("{}"), 415, "unsupported_media_type"),
        (server.ask("POST", "/rpc").header("content-type", "application/json").body(large), 413, "too_large"),
        (server.post("/rpc", &json!({})).without("authorization"), 401, "unauthenticated"),
    ];
    for (ask, status, code) in cases {
        let answer = ask.send().await;
        assert_eq!(answer.error(), (status, code.into()), "{answer:?}");
    }
    server.stop().await;
}
