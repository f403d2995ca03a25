//! Access control: hosts, origins, tokens, roles and roots.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use harness::{Answer, Ask, Bridge, Connection, Home, changing_calls, literal, session_routes};

/// Replaces headers of a request. An empty list of values removes the header.
fn with_headers(ask: Ask, headers: &[(&str, &[&str])]) -> Ask {
    headers.iter().fold(ask, |ask, (name, values)| {
        let bare = ask.without(name);
        values.iter().fold(bare, |ask, value| ask.also(name, value))
    })
}

/// Asserts that a refusal does not reveal the session.
fn assert_reveals_nothing(answer: &Answer, session: &str, what: &str) {
    assert!(!answer.body.contains(session), "{what}: {answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), None, "{what}: {answer:?}");
    assert!(answer.status >= 400, "{what}: {answer:?}");
}

#[tokio::test]
async fn unknown_hosts_and_origins_are_forbidden() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &["--allow-host", "Name.Example", "--allow-origin", "https://page.example"]).await;
    let session = server.new_session(&home).await;
    let port = server.address.port();
    let at = |name: &str| format!("{name}:{port}");
    let (own, other) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{}", port ^ 1));
    let (evil, local, v6, user) = (at("evil.example"), at("localhost"), at("[::1]"), at("localhost@evil.example"));
    let (inner, prefix, named) = (at("user@localhost"), at("localhost.evil.example"), at("name.example"));
    type Headers<'a> = Vec<(&'a str, Vec<&'a str>)>;
    let cases: Vec<(Headers<'_>, u16)> = vec![
        (vec![], 200),
        (vec![("host", vec![&local])], 200),
        (vec![("host", vec!["LOCALHOST"])], 200),
        (vec![("host", vec![&v6])], 200),
        (vec![("host", vec![&named])], 200),
        (vec![("host", vec!["localhost:1"])], 200),
        (vec![("host", vec![&evil])], 403),
        (vec![("host", vec!["evil.example"])], 403),
        (vec![("host", vec![&prefix])], 403),
        (vec![("host", vec![&user])], 403),
        (vec![("host", vec![&inner])], 403),
        (vec![("host", vec!["localhost."])], 403),
        (vec![("host", vec!["0.0.0.0"])], 403),
        (vec![("host", vec!["2130706433"])], 403),
        (vec![("host", vec!["[::ffff:127.0.0.1]"])], 403),
        (vec![("host", vec!["localhost, evil.example"])], 403),
        (vec![("host", vec!["localhost/evil"])], 403),
        (vec![("host", vec![""])], 403),
        (vec![("host", vec!["é"])], 403),
        (vec![("host", vec![])], 403),
        (vec![("host", vec![&local, &local])], 403),
        (vec![("host", vec![&local, &evil])], 403),
        (vec![("host", vec![&evil]), ("x-forwarded-host", vec![&local])], 403),
        (vec![("host", vec![&evil]), ("authorization", vec![])], 403),
        (vec![("origin", vec![&own])], 200),
        (vec![("origin", vec!["https://page.example"])], 200),
        (vec![("origin", vec!["https://page.example:444"])], 403),
        (vec![("origin", vec!["http://page.example"])], 403),
        (vec![("origin", vec!["https://page.example.evil"])], 403),
        (vec![("origin", vec![&other])], 403),
        (vec![("origin", vec!["http://evil.example"])], 403),
        (vec![("origin", vec!["null"])], 403),
        (vec![("origin", vec![""])], 403),
        (vec![("origin", vec!["*"])], 403),
        (vec![("origin", vec![&own, "http://evil.example"])], 403),
        (vec![("origin", vec!["https://page.example", "https://page.example"])], 403),
        (vec![("origin", vec![&own]), ("host", vec![&evil])], 403),
    ];
    for (headers, status) in &cases {
        let headers: Vec<(&str, &[&str])> = headers.iter().map(|(name, values)| (*name, values.as_slice())).collect();
        // A probe may name the server by any host.
        let is_probe = headers.iter().all(|(name, _)| *name != "origin");
        for (path, status) in [("/v1/sessions", *status), ("/health", if is_probe { 200 } else { *status })] {
            let answer = with_headers(server.get(path), &headers).send().await;
            assert_eq!(answer.status, status, "{path} {headers:?}: {answer:?}");
            if status == 403 {
                assert_eq!(answer.error().1, "forbidden");
                assert_reveals_nothing(&answer, &session, &format!("{headers:?}"));
            }
        }
        let preflight = with_headers(server.ask("OPTIONS", "/v1/sessions").without("authorization"), &headers).send().await;
        let allowed = headers.contains(&("origin", &["https://page.example"]));
        assert_eq!(preflight.status == 204, allowed, "{headers:?}: {preflight:?}");
    }
    // The answer names the allowed origin.
    let answer = server.get("/v1/sessions").header("origin", "https://page.example").send().await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://page.example"));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    assert!(answer.head.headers.contains(&("vary".into(), "origin".into())), "{answer:?}");
    let events = server.follow(&session).header("origin", "https://page.example").events().await;
    assert_eq!(events.head.header("access-control-allow-origin"), Some("https://page.example"));
    // A host in the request target takes precedence over the `Host` header.
    for (target, status) in [("http://evil.example/v1/sessions", 403), ("http://localhost/v1/sessions", 200)] {
        let answer = server.get(target).send().await;
        assert_eq!(answer.status, status, "{target}: {answer:?}");
    }
    drop(events);
    server.stop().await;
}

/// The address of the connection is a host of the server; other addresses of the machine are not.
#[tokio::test]
async fn address_of_the_connection_is_a_host() {
    let home = Home::new();
    for (listens, own, foreign) in [("127.0.0.5:0", "127.0.0.5", "127.0.0.6"), ("[::1]:0", "[::1]", "[::2]")] {
        let server = home.serve_at(listens, &[]).await;
        let port = server.address.port();
        assert_eq!(server.get("/v1/sessions").send().await.status, 200, "{listens}");
        for (host, status) in [(format!("{own}:{port}"), 200), (own.to_owned(), 200), (foreign.to_owned(), 403)] {
            for path in ["/v1/sessions", "/ready"] {
                let answer = server.get(path).header("host", &host).send().await;
                assert_eq!(answer.status, if path == "/ready" { 200 } else { status }, "{path} {host}: {answer:?}");
            }
        }
        server.stop().await;
    }
}

#[tokio::test]
async fn only_a_valid_bearer_token_is_accepted() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let session = server.new_session(&home).await;
    let mode = std::fs::metadata(home.data().join("token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = server.token.clone();
    assert!(token.len() >= 64, "256 bits");
    let bearer = format!("Bearer {token}");
    let half = format!("Bearer {}", &token[..32]);
    let more = format!("{bearer}0");
    let (basic, lower, bare) = (format!("Basic {token}"), format!("bearer {token}"), token.as_str());
    let two = format!("{bearer}, {bearer}");
    let cases: &[(&[&str], u16)] = &[
        (&[&bearer], 200),
        (&[&lower], 200),
        (&[], 401),
        (&[""], 401),
        (&["Bearer"], 401),
        (&["Bearer "], 401),
        (&["Bearer wrong"], 401),
        (&[&half], 401),
        (&[&more], 401),
        (&[&basic], 401),
        (&[bare], 401),
        (&[&two], 401),
        (&[&bearer, &bearer], 401),
        (&[&bearer, "Bearer wrong"], 401),
        (&["Bearer é"], 401),
    ];
    let get = format!("/v1/sessions/{session}/events");
    for (given, status) in cases {
        for path in ["/v1/sessions", "/v1/events", &get, "/v1/nothing"] {
            let expected = if (*status, path) == (200, "/v1/nothing") { 404 } else { *status };
            let mut connection = with_headers(server.get(path), &[("authorization", given)]).open().await;
            let head = connection.head().await.unwrap();
            assert_eq!(head.status, expected, "{path} {given:?}: {head:?}");
            assert_eq!(head.header("www-authenticate"), (*status == 401).then_some("Bearer"), "{head:?}");
        }
    }
    // Tokens in the query are refused, because addresses are kept in logs and histories.
    for query in ["token", "access_token", "authorization", "key"] {
        let answer = server.get(&format!("/v1/sessions?{query}={token}")).without("authorization").send().await;
        assert_eq!(answer.error(), (401, "unauthenticated".into()), "{query}");
        assert_reveals_nothing(&answer, &session, query);
    }
    let answer = server.get("/v1/sessions").without("authorization").also("cookie", &format!("token={token}")).send().await;
    assert_eq!(answer.status, 401);
    // The log does not contain the token, not even a token sent in a query.
    let said = server.stop().await;
    assert!(!said.contains(&token) && said.contains("\"status\":401"), "{said}");
}

/// Wrong tokens are rate-limited. A valid token is not.
#[tokio::test]
async fn wrong_tokens_are_rate_limited() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    let guess = || server.with_token("guess").get("/v1/sessions");
    let answers = futures_util::future::join_all((0..100).map(|_| async { guess().send().await })).await;
    let slowed: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(slowed.len() > 40 && answers.len() - slowed.len() >= 10, "{} slowed", slowed.len());
    for answer in slowed {
        assert_eq!((answer.error(), answer.header("retry-after")), ((429, "rate_limited".into()), Some("1")));
    }
    server.get("/v1/sessions").expect(200).await;
    server.stop().await;
}

/// Every route that changes state, with a valid body.
fn changes(session: &str) -> Vec<(&'static str, String, serde_json::Value)> {
    let mut calls = changing_calls(session, "perm_1");
    calls.push(("POST", "/v1/sessions".into(), json!({})));
    calls
}

/// `changing_calls` has a call of each changing route in the published OpenAPI document.
#[test]
fn changing_calls_are_complete() {
    let calls = changing_calls("sess_1", "perm_1");
    for (method, template) in session_routes().into_iter().filter(|(method, _)| method != "GET") {
        let fits = |path: &str| {
            let (path, template): (Vec<_>, Vec<_>) = (path.split('/').collect(), template.split('/').collect());
            path.len() == template.len() && path.iter().zip(template).all(|(part, name)| *part == name || name.starts_with('{'))
        };
        assert!(calls.iter().any(|(known, path, _)| *known == method && fits(path)), "no call of {method} {template}");
    }
}

#[tokio::test]
async fn observer_reads_until_its_token_is_revoked() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "one"}]), &[]).await;
    let session = server.new_session(&home).await;
    let made = home.run(&["token", "new", "watcher", "--role", "observer"], "").await;
    assert_eq!(made.code, 0, "{made:?}");
    let observer = server.with_token(made.stdout.trim());
    let mode = std::fs::metadata(home.data().join("tokens.json")).unwrap().permissions().mode();
    let kept = std::fs::read_to_string(home.data().join("tokens.json")).unwrap();
    assert!(mode & 0o777 == 0o600 && !kept.contains(&observer.token), "{kept}");

    let mut events = observer.follow(&session).events().await;
    for path in ["/v1/sessions".into(), format!("/v1/sessions/{session}"), "/v1/permissions".into(), "/v1/status".into()] {
        observer.get(&path).expect(200).await;
    }
    for (method, path, body) in changes(&session) {
        let answer = observer.ask(method, &path).json(&body).send().await;
        assert_eq!(answer.error(), (403, "forbidden".into()), "{method} {path}");
    }
    server.prompt(&session, "go").expect(200).await;
    events.until("turn.completed").await;

    assert_eq!(home.run(&["token", "revoke", "watcher"], "").await.code, 0);
    assert_eq!(observer.get("/v1/sessions").send().await.error(), (401, "unauthenticated".into()));
    server.get("/v1/sessions").expect(200).await;
    server.stop().await;
}

/// The server has roots, and a token has narrower roots.
#[tokio::test]
async fn sessions_outside_the_roots_are_forbidden() {
    let home = Home::new();
    for dir in ["inner", "inner/deep", "other", "../outside"] {
        std::fs::create_dir_all(home.work().join(dir)).unwrap();
    }
    std::os::unix::fs::symlink(home.work().join("../outside"), home.work().join("inner/link")).unwrap();
    let server = home.serve_script(json!([]), &[]).await;
    let made = home.run(&["token", "new", "narrow", "--root", home.work().join("inner").to_str().unwrap()], "").await;
    let narrow = server.with_token(made.stdout.trim());
    let dir = |path: &str| home.work().join(path).to_str().unwrap().to_string();
    let cases: &[(String, u16, u16)] = &[
        (dir("inner"), 201, 201),
        (dir("inner/deep"), 201, 201),
        (dir("inner/../inner"), 201, 201),
        (dir("other"), 201, 403),
        (dir("inner/../other"), 201, 403),
        (dir(""), 201, 403),
        (dir("inner/link"), 403, 403),
        (dir("../outside"), 403, 403),
        ("/".into(), 403, 403),
        ("/tmp".into(), 403, 403),
        ("inner".into(), 400, 400),
        (".".into(), 400, 400),
        ("".into(), 400, 400),
    ];
    let new = async |bridge: &Bridge, cwd: &str| bridge.post("/v1/sessions", &json!({"cwd": cwd})).send().await;
    for (cwd, owner, token) in cases {
        let (first, second) = (new(&server, cwd).await, new(&narrow, cwd).await);
        assert_eq!((first.status, second.status), (*owner, *token), "{cwd}: {first:?} {second:?}");
    }
    let session = new(&server, &dir("other")).await.json()["sessionId"].as_str().unwrap().to_string();
    for (method, path, body) in changes(&session).into_iter().filter(|(_, path, _)| path.contains(&session)) {
        let answer = narrow.ask(method, &path).json(&body).send().await;
        assert_eq!(answer.error(), (403, "forbidden".into()), "{method} {path}");
    }
    for path in ["", "/events", "/messages", "/turns"] {
        assert_eq!(narrow.get(&format!("/v1/sessions/{session}{path}")).send().await.error(), (403, "forbidden".into()), "{path}");
    }
    let additional = json!({"cwd": dir("inner"), "additionalDirectories": [dir("other")]});
    assert_eq!(narrow.post("/v1/sessions", &additional).send().await.error(), (403, "forbidden".into()));
    let listed = narrow.get("/v1/sessions").expect(200).await;
    let inside = |cwd: &serde_json::Value| cwd.as_str().unwrap().starts_with(&dir("inner"));
    assert!(listed["sessions"].as_array().unwrap().iter().all(|session| inside(&session["cwd"])), "{listed}");
    let seen = { narrow.get("/v1/events").events().await }.history().await;
    assert!(!seen.is_empty() && seen.iter().all(|shown| shown.event["sessionId"] != session.as_str()), "{seen:?}");
    server.stop().await;
}

/// The directories in the log of a session must be inside the roots, too, whatever its row says.
#[tokio::test]
async fn session_with_directories_outside_the_roots_is_forbidden() {
    let home = Home::new();
    for dir in ["inner", "../outside"] {
        std::fs::create_dir_all(home.work().join(dir)).unwrap();
    }
    let outside = std::fs::canonicalize(home.work().join("../outside")).unwrap();
    let (mut agent, _) = home.session(json!([]), &[]).await;
    let mut sessions = Vec::new();
    for (cwd, additional) in [(home.work().join("inner"), json!([outside])), (outside.clone(), json!([]))] {
        let params = json!({"cwd": cwd, "mcpServers": [], "additionalDirectories": additional});
        sessions.push(agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned());
    }
    agent.finish().await;
    let inner = literal(home.work().join("inner").to_str().unwrap());
    home.sql(&format!("UPDATE sessions SET cwd = {inner}, directories = '[]'"));
    let server = home.serve_script(json!([{"text": "answered"}]), &[]).await;
    for session in sessions {
        assert_eq!(server.prompt(&session, "go").send().await.error(), (403, "forbidden".into()), "{session}");
    }
    server.stop().await;
}

/// An address on other interfaces needs a flag, and TLS or a proxy.
#[tokio::test]
async fn public_address_needs_flag_and_tls_or_proxy() {
    let home = Home::new();
    let cases: &[(&[&str], &str)] = &[
        (&["serve", "--http", "0.0.0.0:0"], "--allow-public"),
        (&["serve", "--http", "[::]:0"], "--allow-public"),
        (&["serve", "--http", "0.0.0.0:0", "--behind-proxy"], "--allow-public"),
        (&["serve", "--http", "0.0.0.0:0", "--allow-public"], "TLS"),
        (&["acp", "--http", "0.0.0.0:0"], "--allow-public"),
        (&["serve", "--http", "nowhere"], ""),
        (&["serve", "--http", "127.0.0.1:99999"], ""),
        (&["token", "new", "owner"], "owner"),
        (&["token", "new", "a b"], "a b"),
        (&["token", "new", "x", "--role", "king"], "king"),
    ];
    for (arguments, word) in cases {
        let ran = home.run(arguments, "").await;
        assert!(ran.code == 2 && ran.stdout.is_empty() && ran.stderr.contains(word), "{arguments:?}: {ran:?}");
    }
    let server = home.serve(&["--allow-public", "--behind-proxy"]).await;
    let mut connection = Connection::open(server.address).await.unwrap();
    assert_eq!(server.get("/health").over(&mut connection).await.status, 200);
    server.stop().await;
}

/// A broken `tokens.json` admits no named token, does not block the owner, and is not reported to
/// clients.
#[tokio::test]
async fn broken_token_list_does_not_block_owner() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &[]).await;
    std::fs::write(home.data().join("tokens.json"), "{").unwrap();
    let wrong = server.with_token("0123456789abcdef0123456789abcdef").get("/v1/sessions").send().await;
    assert_eq!(wrong.error(), (401, "unauthenticated".into()));
    assert!(!wrong.body.contains("tokens.json"), "{wrong:?}");
    server.get("/v1/sessions").expect(200).await;
    server.stop().await;
}
