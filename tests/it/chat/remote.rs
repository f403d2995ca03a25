//! The chat with the sessions of a server elsewhere.

use serde_json::json;

use super::{SIZE, answer, end, session};
use harness::steps::bash_call;
use harness::{Home, Site};

#[tokio::test]
async fn chat_works_on_a_server_elsewhere() {
    let server_home = Home::new();
    let steps = json!([{"tool_calls": [bash_call("touch made")]}, {"text": "done there"}, {"text": "again"}]);
    let server = server_home.serve_script(steps, &[]).await;
    let url = format!("http://{}", server.address);
    let home = Home::new();
    home.env("NUNCIO_TOKEN", &server.token);
    let mut terminal = home.terminal(&["chat", "--url", &url, "--title", "Elsewhere"]);
    terminal.until_screen("/help", SIZE).await;
    terminal.say("go\r").await;
    terminal.until_screen("[1] Allow", SIZE).await;
    answer(&mut terminal, "1").await;
    terminal.until_screen("done there\n", SIZE).await;
    assert!(server_home.get("made").is_some() && home.get("made").is_none());
    terminal.say("/status\r").await;
    terminal.until_screen("title      Elsewhere", SIZE).await;
    terminal.say("!ls\r").await;
    terminal.until_screen("not available with --url", SIZE).await;
    terminal.say("\u{3}").await;
    let shown = end(terminal).await;
    let id = session(&shown).to_owned();
    // The session is on the server only.
    let mut terminal = home.terminal(&["chat", "--url", &url, "--resume", &id[..20]]);
    terminal.until_screen("done there\n", SIZE).await;
    terminal.say("more\r").await;
    terminal.until_screen("again\n", SIZE).await;
    end(terminal).await;
    server.stop().await;

    for (address, words) in
        [("http://127.0.0.1:1", "is nuncio serve running there?"), ("ftp://x", "expected http"), ("http://x?token=y", "a token")]
    {
        let (code, shown) = home.terminal(&["chat", "--url", address]).end().await;
        assert!(code != 0 && shown.contains(words), "{address}: {code} {shown}");
    }
}

/// The text of a server is no path on the machine of the user, and not larger than the limit.
#[tokio::test]
async fn hostile_server_names_no_files_and_does_not_fill_the_memory() {
    // The same body answers all calls, so it has the fields of all results.
    let all = |id: &str, listed: &str| {
        let modes = json!({"currentModeId": "ask", "availableModes": []});
        let ours = json!({"nuncio": {"status": "idle", "waiting": false, "pendingToolCalls": []}});
        let session =
            json!({"sessionId": listed, "cwd": "/tmp", "updatedAt": "2026-01-01T00:00:00Z", "archived": false, "_meta": ours});
        let result = json!({
            "cwd": "/tmp", "sessionId": id, "modes": modes, "configOptions": [], "sessions": [session], "turns": [],
            "version": "0.1.0", "uptimeMs": 1, "status": "idle", "directories": [], "terminals": [], "cursor": 1,
            "principal": "x", "role": "controller",
        });
        json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string()
    };
    let answer = |id: &str| {
        let mut body: serde_json::Value = serde_json::from_str(&all(id, id)).unwrap();
        body["result"]["sessions"] = json!({"open": 0, "busy": 0, "waiting": 0});
        body.to_string()
    };
    let list = |id: &str| all("sess_x", id);
    let large = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"{}\"}}", "x".repeat(40 << 20));
    let invalid = "which is not the id of a session";
    let ids = ["../../out", "/tmp/out", "..", ".", "", "a/b", "a\\b", "a\0b", "sess_\u{1b}[2J", "sess_\u{202e}", &"x".repeat(300)];
    let begins = ids.iter().map(|id| (answer(id), &[][..], invalid));
    let continues = ids.iter().filter(|id| !id.is_empty()).map(|id| (list(id), &["--continue"][..], invalid));
    let others = [
        (large, &[][..], "an answer is larger than 33 MiB"),
        (answer("sess_x"), &[], "an event is larger than 16 MiB"),
        (list("other"), &["--resume", "sess_x"], "not found"),
    ];
    let event = format!("data: {}", "x".repeat(17 << 20));
    for (body, flags, words) in begins.chain(continues).chain(others) {
        let site = Site::start().await;
        site.page("/rpc", "200 OK\ncontent-type: application/json", &body);
        site.page("/v1/sessions/sess_x/events?after=0&interactive=true", "200 OK\ncontent-type: text/event-stream", &event);
        let home = Home::new();
        home.env("NUNCIO_TOKEN", "token");
        let (code, shown) = home.terminal(&[&["chat", "--url", &site.url("")], flags].concat()).end().await;
        assert!(code != 0 && shown.contains(words), "{flags:?} {}: {code} {shown}", &body[..body.len().min(200)]);
        assert!(!home.data().join("../out").exists() && !home.data().join("drafts").exists(), "{shown}");
        assert!(!shown.contains("\u{1b}[2J") && !shown.contains('\u{202e}'), "{shown:?}");
    }
}
