//! The sign-in of the console: a cookie in place of a token, and codes for one use.

use serde_json::json;

use harness::{Answer, Ask, Bridge, Home, Server};

fn login(bridge: &Bridge, body: serde_json::Value) -> Ask {
    bridge.post("/console/login", &body).without("authorization")
}

/// The cookie of an answer, `NAME=VALUE`, and its attributes.
fn cookie(answer: &Answer) -> (String, Vec<String>) {
    let header = answer.header("set-cookie").expect("a cookie");
    let mut parts = header.split("; ").map(String::from);
    (parts.next().unwrap(), parts.collect())
}

fn with_cookie(ask: Ask, cookie: &str) -> Ask {
    ask.without("authorization").header("cookie", cookie)
}

async fn served(home: &Home) -> Server {
    home.serve_script(json!([]), &[]).await
}

#[tokio::test]
async fn browser_signs_in_with_a_cookie_that_ends_with_its_token() {
    let home = Home::new();
    let server = served(&home).await;
    let made = home.run(&["token", "new", "phone", "--role", "observer"], "").await;
    let answer = login(&server, json!({"token": made.stdout.trim(), "keep": true})).send().await;
    let (pair, attributes) = cookie(&answer);
    for attribute in ["Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=2592000"] {
        assert!(attributes.iter().any(|one| one == attribute), "{attribute}: {attributes:?}");
    }
    let name = pair.split('=').next().unwrap();
    assert_eq!(name, format!("nuncio-{}", server.address.port()));
    let status = with_cookie(server.get("/v1/status"), &pair).expect(200).await;
    assert_eq!((&status["principal"], &status["role"]), (&json!("phone"), &json!("observer")));
    with_cookie(server.post("/v1/sessions", &json!({})), &pair).expect(403).await;
    // The value is not stored.
    let stored = std::fs::read_to_string(home.data().join("logins.json")).unwrap();
    assert!(!stored.contains(pair.split('=').nth(1).unwrap()), "{stored}");
    home.run(&["token", "revoke", "phone"], "").await;
    with_cookie(server.get("/v1/status"), &pair).expect(401).await;
    server.stop().await;
}

#[tokio::test]
async fn sign_in_survives_a_restart_and_ends_with_a_sign_out() {
    let home = Home::new();
    let server = served(&home).await;
    let owner = std::fs::read_to_string(home.data().join("token")).unwrap();
    let (pair, attributes) = cookie(&login(&server, json!({"token": owner})).send().await);
    assert!(!attributes.iter().any(|one| one.starts_with("Max-Age")), "{attributes:?}");
    let value = pair.split_once('=').unwrap().1.to_owned();
    server.stop().await;
    let server = served(&home).await;
    let pair = format!("nuncio-{}={value}", server.address.port());
    with_cookie(server.get("/v1/status"), &pair).expect(200).await;
    let (gone, attributes) = cookie(&with_cookie(server.post("/console/logout", &json!({})), &pair).send().await);
    assert!(gone.ends_with('=') && attributes.contains(&"Max-Age=0".into()), "{gone} {attributes:?}");
    with_cookie(server.get("/v1/status"), &pair).expect(401).await;
    server.stop().await;
}

/// Browsers send cookies to all ports of a host, and for requests that other pages make.
#[tokio::test]
async fn cookie_is_for_the_page_of_the_server_alone() {
    let home = Home::new();
    let server = home.serve_script(json!([]), &["--allow-origin", "https://friend.example"]).await;
    let owner = std::fs::read_to_string(home.data().join("token")).unwrap();
    let (pair, _) = cookie(&login(&server, json!({"token": owner})).send().await);
    let port = server.address.port();
    let own = format!("http://127.0.0.1:{port}");
    for (name, value, status) in [
        ("origin", own.as_str(), 200),
        ("origin", "https://friend.example", 403),
        ("sec-fetch-site", "same-origin", 200),
        ("sec-fetch-site", "none", 200),
        ("sec-fetch-site", "same-site", 403),
        ("sec-fetch-site", "cross-site", 403),
    ] {
        with_cookie(server.get("/v1/status"), &pair).also(name, value).expect(status).await;
        let stream = with_cookie(server.get("/v1/events?after=0"), &pair).also(name, value);
        assert_eq!(stream.try_events().await.is_ok(), status == 200, "{name}: {value}");
    }
    // Another port's cookie, and a token that is sent and wrong.
    let other = pair.replacen(&port.to_string(), &(port - 1).to_string(), 1);
    with_cookie(server.get("/v1/status"), &other).expect(401).await;
    server.get("/v1/status").header("cookie", &pair).header("authorization", "Bearer wrong").expect(401).await;
    login(&server, json!({"token": "x"})).also("sec-fetch-site", "cross-site").expect(403).await;
    server.stop().await;
}

#[tokio::test]
async fn code_signs_in_once() {
    let home = Home::new();
    let server = served(&home).await;
    let made = home.run(&["token", "new", "helper", "--role", "controller"], "").await;
    let helper = server.with_token(made.stdout.trim());
    let code = helper.post("/console/code", &json!({})).expect(200).await["code"].clone();
    let (pair, _) = cookie(&login(&server, json!({"code": code})).send().await);
    assert_eq!(with_cookie(server.get("/v1/status"), &pair).expect(200).await["principal"], "helper");
    login(&server, json!({"code": code})).expect(401).await;
    // A signed-in browser makes codes, too.
    let next = with_cookie(server.post("/console/code", &json!({})), &pair).expect(200).await["code"].clone();
    login(&server, json!({"code": next})).expect(200).await;
    for (body, status) in [
        (json!({}), 400),
        (json!({"token": "a", "code": "b"}), 400),
        (json!({"code": "wrong"}), 401),
        (json!({"token": "wrong"}), 401),
        (json!({"token": "a", "more": 1}), 400),
        (json!([]), 400),
    ] {
        login(&server, body).expect(status).await;
    }
    server.post("/console/code", &json!({})).without("authorization").expect(401).await;
    server.stop().await;
}

/// `serve --open` gives the browser a code, since other users see its command line.
#[tokio::test]
async fn serve_opens_the_console_with_a_code() {
    let home = Home::new();
    let browser = home.put("browser", "#!/bin/sh\necho \"$1\" > \"$0.opened\" && touch \"$0.done\"\n");
    std::fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    home.env("BROWSER", browser.to_str().unwrap());
    let server = home.serve_script(json!([]), &["--open"]).await;
    home.appears("browser.done").await;
    let opened = home.get("browser.opened").unwrap();
    let owner = std::fs::read_to_string(home.data().join("token")).unwrap();
    assert!(!opened.contains(owner.trim()), "{opened}");
    let code = opened.trim().split_once("/#code=").unwrap().1;
    login(&server, json!({"code": code})).expect(200).await;
    server.stop().await;
}
