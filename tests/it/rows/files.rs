//! Attachments and artifacts: stored with the session, with safe names, and sent to the model.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::refused;
use crate::harness::{Agent, Home};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n rest";

async fn add(agent: &mut Agent, session: &str, name: &str, bytes: &[u8]) -> Value {
    let params = json!({"sessionId": session, "name": name, "data": STANDARD.encode(bytes), "mimeType": "a/lie"});
    agent.call("_nuncio/attachment/add", params).await
}

#[tokio::test]
async fn attachments_are_stored_unchanged() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    // Name, content, stored name, MIME type.
    let cases: &[(&str, &[u8], &str, &str)] = &[
        ("img.png", PNG, "img.png", "image/png"),
        ("img.png", b"\xff\xd8\xff and so on", "img-2.png", "image/jpeg"),
        ("img.png", b"GIF89a", "img-3.png", "image/gif"),
        ("img-2.png", b"RIFF1234WEBP", "img-2-2.png", "image/webp"),
        ("a paper", b"%PDF-1.7\xff", "a paper", "application/pdf"),
        ("a paper", "Grüße".as_bytes(), "a paper-2", "text/plain"),
        ("empty", b"", "empty", "text/plain"),
        ("100% ünï.bin", b"a\0b", "100% ünï.bin", "application/octet-stream"),
    ];
    for (name, bytes, kept, kind) in cases {
        let added = add(&mut agent, &session, name, bytes).await;
        assert_eq!(
            (&added["name"], &added["mimeType"], &added["size"]),
            (&json!(kept), &json!(kind), &json!(bytes.len())),
            "{name}: {added}"
        );
        let path = home.data().join("attachments").join(&session).join(kept);
        assert_eq!(std::fs::read(&path).unwrap(), *bytes);
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
    for (_, bytes, kept, kind) in cases {
        let got = agent.call("_nuncio/attachment/get", json!({"sessionId": session, "name": kept})).await;
        assert_eq!(got, json!({"name": kept, "mimeType": kind, "size": bytes.len(), "data": STANDARD.encode(bytes)}));
    }
    let listed = agent.call("_nuncio/attachment/list", json!({"sessionId": session})).await;
    let names: Vec<&str> = listed["attachments"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["100% ünï.bin", "a paper", "a paper-2", "empty", "img-2-2.png", "img-2.png", "img-3.png", "img.png"]);
    assert!(listed["attachments"][0]["uri"].as_str().unwrap().ends_with("/100%25%20%C3%BCn%C3%AF.bin"), "{listed}");

    let out = home.data().join("out");
    let ran = home.run(&["sessions", "export", &session, "--layout", out.to_str().unwrap()], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(std::fs::read(out.join("attachments/img.png")).unwrap(), PNG);
    agent.call("session/delete", json!({"sessionId": session})).await;
    assert!(!home.data().join("attachments").join(&session).exists());
    agent.finish().await;
}

#[tokio::test]
async fn invalid_names_are_refused() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    add(&mut agent, &session, "there", b"").await;
    std::fs::create_dir_all(home.data().join("artifacts").join(&session)).unwrap();
    for kind in ["attachments", "artifacts"] {
        std::os::unix::fs::symlink("/etc/passwd", home.data().join(kind).join(&session).join("link")).unwrap();
    }
    let long = "x".repeat(256);
    for name in ["", ".", "..", ".hidden", "a/b", "/etc/passwd", "../there", "a\0b", "a\nb", &long] {
        let get = json!({"sessionId": session, "name": name});
        let put = json!({"sessionId": session, "name": name, "data": ""});
        refused(
            &mut agent,
            &[
                ("_nuncio/attachment/add", put, -32602, "name"),
                ("_nuncio/attachment/get", get.clone(), -32602, "name"),
                ("_nuncio/artifact/get", get, -32602, "name"),
            ],
        )
        .await;
    }
    for name in ["link", "missing"] {
        let get = json!({"sessionId": session, "name": name});
        refused(&mut agent, &[("_nuncio/attachment/get", get.clone(), -32002, name), ("_nuncio/artifact/get", get, -32002, name)])
            .await;
    }
    refused(
        &mut agent,
        &[
            ("_nuncio/attachment/add", json!({"sessionId": "x", "name": "a", "data": ""}), -32002, "x"),
            ("_nuncio/attachment/add", json!({"sessionId": session, "name": "a", "data": "*"}), -32602, "data"),
            (
                "_nuncio/attachment/add",
                json!({"sessionId": session, "name": "a", "data": STANDARD.encode(vec![0; (10 << 20) + 1])}),
                -32012,
                "10 MiB",
            ),
            ("_nuncio/artifact/list", json!({"sessionId": "../x"}), -32002, "x"),
        ],
    )
    .await;
    let longest = "y".repeat(255);
    add(&mut agent, &session, &longest, b"").await;
    let second = add(&mut agent, &session, &longest, b"").await;
    assert_eq!(second["name"], format!("{}-2", &longest[..253]));
    assert_eq!(agent.call("_nuncio/artifact/list", json!({"sessionId": session})).await, json!({"artifacts": []}));
    agent.finish().await;
}

#[tokio::test]
async fn links_to_attachments_are_resolved_for_model() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"expect": "the text of it", "text": "one"}]), &[]).await;
    let text = add(&mut agent, &session, "a note.txt", b"the text of it").await;
    let image = add(&mut agent, &session, "img", PNG).await;
    let binary = add(&mut agent, &session, "bin", b"\0").await;
    let other = agent.new_session(&home).await;
    let foreign = add(&mut agent, &other, "a note.txt", b"the text of another").await;
    let link = |added: &Value| json!({"type": "resource_link", "name": "x", "uri": added["uri"]});
    let prompt = json!([link(&text), link(&image), link(&binary), link(&foreign)]);
    agent.call("session/prompt", json!({"sessionId": session, "prompt": prompt})).await;
    let parts = json!([link(&image)]);
    agent.call("_nuncio/session/message", json!({"sessionId": session, "parts": parts, "autoRun": false})).await;
    let messages = agent.call("_nuncio/session/messages", json!({"sessionId": session})).await["messages"].clone();
    let picture = json!({"type": "image", "mimeType": "image/png", "data": STANDARD.encode(PNG)});
    assert_eq!(
        messages[0]["parts"],
        json!([
            {"type": "resource", "uri": text["uri"], "mimeType": "text/plain", "text": "the text of it"},
            picture,
            {"type": "resource_link", "name": "x", "uri": binary["uri"]},
            {"type": "resource_link", "name": "x", "uri": foreign["uri"]},
        ])
    );
    assert_eq!(messages[2]["parts"], json!([picture]));
    agent.finish().await;
}

#[tokio::test]
async fn tools_read_attachments_and_create_artifacts() {
    let home = Home::new();
    let path = |session: &str| home.data().join("attachments").join(session).join("a.txt");
    let (mut agent, session) = home.session(json!([]), &[]).await;
    add(&mut agent, &session, "a.txt", b"what it says\n").await;
    let steps = json!([
        {"tool_calls": [
            {"name": "read", "input": {"file_path": path(&session)}},
            {"name": "bash", "input": {"command": "yes | head -n 50000"}},
        ]},
        {"expect": "what it says", "text": "done"},
    ]);
    let model = home.script(steps);
    agent.call("session/set_config_option", json!({"sessionId": session, "configId": "model", "value": model})).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    assert_eq!(agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").count(), 1, "only the command");
    let listed = agent.call("_nuncio/artifact/list", json!({"sessionId": session})).await;
    let artifact = &listed["artifacts"][0];
    assert_eq!((&artifact["size"], &artifact["mimeType"]), (&json!(100_000), &json!("text/plain")), "{listed}");
    assert!(artifact["modifiedAtMs"].is_u64());
    let got = agent.call("_nuncio/artifact/get", json!({"sessionId": session, "name": artifact["name"]})).await;
    assert_eq!(STANDARD.decode(got["data"].as_str().unwrap()).unwrap(), "y\n".repeat(50_000).as_bytes());
    agent.finish().await;
}
