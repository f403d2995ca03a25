//! Access control of forwarded calls: role and roots of a token hold for the sessions of other
//! processes as they do for those of the server itself.

use serde_json::{Value, json};

use super::{assert_complete, editor, prompt, says};
use harness::steps::asks;
use harness::{Agent, Bridge, Home, Server, changing_calls};

/// An editor whose session asks for a permission, and a server in another process.
async fn asking_editor(cwd: &str, flags: &[&str]) -> (Home, Agent, Value, String, Server) {
    let home = Home::new();
    std::fs::create_dir_all(home.work().join(cwd)).unwrap();
    let model = home.script(json!([asks(), says("after")]));
    let mut agent = editor(&home, &model, &[]).await;
    let made = agent.call("session/new", json!({"cwd": home.work().join(cwd), "mcpServers": []})).await;
    let session = made["sessionId"].as_str().unwrap().to_string();
    let running = agent.send("session/prompt", prompt(&session, "go")).await;
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
    let server = home.serve(&[&["--model", &model], flags].concat()).await;
    (home, agent, running, session, server)
}

async fn permission(server: &Bridge) -> String {
    let open = server.get("/v1/permissions").expect(200).await;
    open["permissions"][0]["permissionId"].as_str().unwrap_or_else(|| panic!("not listed: {open}")).into()
}

async fn token(home: &Home, server: &Server, arguments: &[&str]) -> Bridge {
    let made = home.run(&[&["token", "new"], arguments].concat(), "").await;
    assert_eq!(made.code, 0, "{made:?}");
    server.with_token(made.stdout.trim())
}

/// The session is as it was: its question is open, and nothing was added to its log.
async fn assert_unchanged(home: &Home, server: &Bridge, session: &str, before: &[Value]) {
    assert_eq!(home.log(session).await, before);
    let view = server.get(&format!("/v1/sessions/{session}")).expect(200).await;
    assert_eq!((&view["status"], &view["waiting"], &view["mode"]), (&json!("busy"), &json!(true), &json!("ask")), "{view}");
}

#[tokio::test]
async fn observer_changes_no_session_of_another_process() {
    let (home, mut agent, running, session, server) = asking_editor("", &[]).await;
    let observer = token(&home, &server, &["watcher", "--role", "observer"]).await;
    let asked = permission(&observer).await;
    let before = home.log(&session).await;
    for (method, path, body) in changing_calls(&session, &asked) {
        for prefer in ["", "respond-async"] {
            let answer = observer.ask(method, &path).json(&body).header("prefer", prefer).send().await;
            assert_eq!(answer.error(), (403, "forbidden".into()), "{method} {path}");
        }
    }
    let calls = [
        ("session/prompt", prompt(&session, "x")),
        ("_nuncio/session/message", json!({"sessionId": session, "parts": [{"type": "text", "text": "x"}]})),
        ("session/close", json!({"sessionId": session})),
        ("session/delete", json!({"sessionId": session})),
        ("session/set_mode", json!({"sessionId": session, "modeId": "auto"})),
        ("_nuncio/permission/answer", json!({"permissionId": asked, "outcome": "allow_once"})),
    ];
    let mut socket = observer.socket().await;
    for (method, params) in calls {
        let error = socket.request(method, params).await.unwrap_err();
        assert_eq!(error["data"]["code"], "forbidden", "{method}: {error}");
    }
    socket.raw(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}).to_string()).await;
    // An observer that follows the session cannot answer: it does not keep the question open.
    let mut events = observer.follow(&session).events().await;
    events.until("permission.requested").await;
    socket.call("_nuncio/session/get", json!({"sessionId": session})).await;
    assert_unchanged(&home, &server, &session, &before).await;
    drop((events, socket));
    // The owner's token does all of that.
    server.post(&format!("/v1/permissions/{asked}"), &json!({"outcome": "allow_once"})).expect(200).await;
    assert_eq!(agent.answer(&running).await.unwrap()["stopReason"], "end_turn");
    agent.finish().await;
    server.stop().await;
    assert_complete(&home.log(&session).await);
}

/// A revoked token loses access to the sessions of other processes too, also on an open socket.
#[tokio::test]
async fn revoked_token_changes_no_session_of_another_process() {
    let (home, mut agent, running, session, server) = asking_editor("", &[]).await;
    let worker = token(&home, &server, &["worker"]).await;
    let mut socket = worker.socket().await;
    let asked = permission(&worker).await;
    let before = home.log(&session).await;
    assert_eq!(home.run(&["token", "revoke", "worker"], "").await.code, 0);
    let answer = worker.post(&format!("/v1/permissions/{asked}"), &json!({"outcome": "allow_once"})).send().await;
    assert_eq!(answer.error(), (401, "unauthenticated".into()));
    let error = socket.request("session/prompt", prompt(&session, "x")).await.unwrap_err();
    assert_eq!(error["data"]["code"], "unauthenticated", "{error}");
    assert_unchanged(&home, &server, &session, &before).await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&running).await.unwrap();
    agent.finish().await;
    server.stop().await;
}

/// A token limited to a root, and a server limited to a root: neither reaches a session outside.
#[tokio::test]
async fn roots_hold_for_sessions_of_other_processes() {
    for limit in ["token", "server"] {
        let (home, mut agent, running, session, server) = asking_editor("other", &[]).await;
        let inner = home.put("inner/a.txt", "x").parent().unwrap().to_str().unwrap().to_string();
        let (limited, all) = match limit {
            "token" => (token(&home, &server, &["narrow", "--root", &inner]).await, None),
            _ => {
                let other = home.serve(&["--cwd", &inner]).await;
                ((*other).clone(), Some(other))
            }
        };
        let asked = permission(&server).await;
        let before = home.log(&session).await;
        for (method, path, body) in changing_calls(&session, &asked) {
            let answer = limited.ask(method, &path).json(&body).send().await;
            // A permission of a session that the caller may not see does not exist.
            let expected = if path.contains("/permissions/") { (404, "not_found".into()) } else { (403, "forbidden".into()) };
            assert_eq!(answer.error(), expected, "{limit}: {method} {path}");
            assert!(!answer.body.contains("other"), "reveals the directory: {answer:?}");
        }
        for path in ["", "/events", "/messages", "/turns", "/attachments", "/artifacts"] {
            let answer = limited.get(&format!("/v1/sessions/{session}{path}")).send().await;
            assert_eq!(answer.error(), (403, "forbidden".into()), "{limit}: {path}");
        }
        let answer = limited.get(&format!("/v1/permissions?sessionId={session}")).send().await;
        assert_eq!(answer.error(), (403, "forbidden".into()), "{limit}");
        assert_eq!(limited.get("/v1/permissions").expect(200).await, json!({"permissions": []}), "{limit}");
        assert_eq!(limited.get("/v1/sessions?empty=true").expect(200).await["sessions"], json!([]), "{limit}");
        assert_unchanged(&home, &server, &session, &before).await;
        agent.notify("session/cancel", json!({"sessionId": session})).await;
        agent.answer(&running).await.unwrap();
        agent.finish().await;
        server.stop().await;
        if let Some(server) = all {
            server.stop().await;
        }
    }
}

/// Directories in the params of a forwarded call are checked against the caller's roots, not
/// against those of the owner.
#[tokio::test]
async fn directories_in_params_of_forwarded_calls_are_checked() {
    let home = Home::new();
    let outside = home.put("../outside/a.txt", "x").parent().unwrap().to_path_buf();
    let inner = home.put("inner/a.txt", "x").parent().unwrap().to_path_buf();
    std::os::unix::fs::symlink(&outside, inner.join("link")).unwrap();
    let model = home.script(json!([]));
    let mut agent = editor(&home, &model, &[]).await;
    let made = agent.call("session/new", json!({"cwd": inner, "mcpServers": []})).await;
    let session = made["sessionId"].as_str().unwrap().to_string();
    agent.call("session/prompt", prompt(&session, "go")).await;
    let server = home.serve(&["--model", &model]).await;
    let narrow = token(&home, &server, &["narrow", "--root", inner.to_str().unwrap()]).await;
    let before = home.log(&session).await;
    let dirs = [home.work(), outside.clone(), inner.join("link"), inner.join("../../outside"), "/".into(), "/etc".into()];
    for dir in &dirs {
        for (route, body) in [
            ("resume", json!({"cwd": dir})),
            ("resume", json!({"cwd": inner, "additionalDirectories": [dir]})),
            ("fork", json!({"cwd": dir})),
            ("fork", json!({"additionalDirectories": [dir]})),
        ] {
            let answer = narrow.post(&format!("/v1/sessions/{session}/{route}"), &body).send().await;
            assert_eq!(answer.error(), (403, "forbidden".into()), "{route} {body}");
        }
        let load = json!({"sessionId": session, "cwd": dir, "mcpServers": []});
        let error = narrow.socket().await.request("session/load", load).await.unwrap_err();
        assert_eq!(error["data"]["code"], "forbidden", "{dir:?}: {error}");
    }
    assert_eq!(home.log(&session).await, before);
    let listed = server.get("/v1/sessions?empty=true").expect(200).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    // Inside of the roots the same calls work.
    narrow.post(&format!("/v1/sessions/{session}/fork"), &json!({"cwd": inner})).expect(201).await;
    narrow.prompt(&session, "go").expect(200).await;
    agent.finish().await;
    server.stop().await;
}

/// The attack list of a server on the ids of forwarded calls: no file is read, and the owner stays
/// healthy.
#[tokio::test]
async fn hostile_ids_are_refused_without_reaching_the_owner() {
    let (home, mut agent, running, session, server) = asking_editor("", &[]).await;
    let secret = "the secret of a file";
    std::fs::write(home.data().join("secret"), secret).unwrap();
    home.put("secret", secret);
    let before = home.log(&session).await;
    let ids = ["..", "../secret", "..%2fsecret", "%2e%2e%2fsecret", "%00", "%2fetc%2fpasswd", "%ff", "*", "%0d%0aX-Injected:%201"];
    for id in
        ids.into_iter().map(String::from).chain([format!("{session}%00"), format!("{session}%2f.."), format!("..%2f{session}")])
    {
        for (method, path) in [
            ("POST", format!("/v1/sessions/{id}/prompt")),
            ("POST", format!("/v1/sessions/{id}/cancel")),
            ("POST", format!("/v1/sessions/{id}/close")),
            ("POST", format!("/v1/sessions/{id}/messages")),
            ("GET", format!("/v1/sessions/{id}")),
            ("GET", format!("/v1/sessions/{session}/attachments/{id}")),
            ("GET", format!("/v1/sessions/{session}/artifacts/{id}")),
            ("POST", format!("/v1/sessions/{session}/turns/{id}/retry")),
            ("POST", format!("/v1/permissions/{id}")),
        ] {
            let body = match path.rsplit('/').next() {
                Some("prompt") => json!({"prompt": [{"type": "text", "text": "x"}]}),
                Some("messages") => json!({"parts": [{"type": "text", "text": "x"}]}),
                _ if path.starts_with("/v1/permissions") => json!({"outcome": "allow_once"}),
                _ => json!({}),
            };
            let ask = server.ask(method, &path);
            let answer = if method == "GET" { ask } else { ask.json(&body) }.send().await;
            assert!([400, 403, 404, 405, 409].contains(&answer.status), "{method} {path}: {answer:?}");
            assert!(!answer.body.contains(secret) && !answer.body.contains("root:"), "{method} {path}: {answer:?}");
            assert_eq!(answer.header("x-injected"), None, "{method} {path}");
        }
    }
    assert_unchanged(&home, &server, &session, &before).await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&running).await.unwrap();
    agent.finish().await;
    server.stop().await;
}

/// A token that is limited to roots cannot make any process start a program as an MCP server.
#[tokio::test]
async fn limited_token_cannot_give_programs() {
    let home = Home::new();
    let inner = home.put("inner/a.txt", "x").parent().unwrap().to_path_buf();
    let model = home.script(json!([]));
    let mut agent = editor(&home, &model, &[]).await;
    let made = agent.call("session/new", json!({"cwd": inner, "mcpServers": []})).await;
    let session = made["sessionId"].as_str().unwrap().to_string();
    agent.call("session/prompt", prompt(&session, "go")).await;
    let server = home.serve(&["--model", &model]).await;
    let narrow = token(&home, &server, &["narrow", "--root", inner.to_str().unwrap()]).await;
    let wide = token(&home, &server, &["wide"]).await;
    let programs = json!([{"name": "x", "command": "/bin/true", "args": [], "env": []}]);
    let body = json!({"cwd": inner, "mcpServers": programs});
    // The first call runs in the server, the others are forwarded to the owner.
    for path in ["/v1/sessions".to_owned(), format!("/v1/sessions/{session}/resume"), format!("/v1/sessions/{session}/fork")] {
        let answer = narrow.post(&path, &body).send().await;
        assert_eq!(answer.error(), (403, "forbidden".into()), "{path}");
        assert!(answer.body.contains("cannot start programs"), "{path}: {answer:?}");
        for unlimited in [&wide, &*server] {
            let answer = unlimited.post(&path, &body).send().await;
            assert!([200, 201].contains(&answer.status), "{path}: {answer:?}");
        }
    }
    let load = json!({"sessionId": session, "cwd": inner, "mcpServers": programs});
    let error = narrow.socket().await.request("session/load", load).await.unwrap_err();
    assert_eq!(error["data"]["code"], "forbidden", "{error}");
    agent.finish().await;
    server.stop().await;
}
