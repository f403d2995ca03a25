//! The chat with the sessions of a server elsewhere.

use serde_json::json;

use super::{SIZE, answer, end, session};
use harness::Home;
use harness::steps::bash_call;

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
