//! Messages of servers that are not well formed, and servers that write no messages.

use serde_json::{Value, json};

use super::{calls, home, session, setting, text};
use harness::steps::calls_one;
use harness::{Home, bounded};

fn raw(line: &str) -> Value {
    calls_one("mcp__docs__raw", json!({ "line": line }))
}

/// A result with this text, which has `ID` in place of the call's id.
fn answer(text: &str) -> Value {
    raw(&format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#))
}

#[tokio::test]
async fn half_an_emoji_in_a_result_is_a_replacement_character() {
    let finished = calls(&home(&["raw"]), &[answer(r"cut \\ud83d here"), answer(r"whole \\ud83d\\ude00")]).await;
    assert_eq!(text(&finished[0]), "cut \u{fffd} here", "{}", finished[0]);
    assert_eq!(text(&finished[1]), "whole \u{1f600}", "{}", finished[1]);
}

#[tokio::test]
async fn answer_that_cannot_be_read_fails_its_call_at_once() {
    let steps = [
        raw(r#"{"jsonrpc":"2.0","id":ID,"result":{"content":DEEP}}"#),
        answer(r"\xff\xfe"),
        answer("LONG"),
        raw(r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"x"}}"#),
        raw(r#"{"jsonrpc":"2.0","id":ID,"error":"broken"}"#),
        raw(r#"\xef\xbb\xbf{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"marked"}]}}"#),
    ];
    let finished = calls(&home(&["raw"]), &steps).await;
    for (index, why) in ["recursion limit", "UTF-8", "bytes", "both a result and an error", "cannot be read"].iter().enumerate() {
        let shown = text(&finished[index]);
        assert_eq!(finished[index]["status"], "failed", "{shown}");
        assert!(shown.contains("the MCP server docs: ") && shown.contains(why), "{why}: {shown}");
    }
    assert_eq!(text(&finished[5]), "marked", "a byte order mark is skipped");
}

#[tokio::test]
async fn malformed_tool_does_not_disable_its_server() {
    let home = home(&["malformed"]);
    let finished =
        calls(&home, &[calls_one("mcp__docs__echo", json!({"text": "hi"})), calls_one("mcp__docs__either", json!({}))]).await;
    assert_eq!((text(&finished[0]).as_str(), text(&finished[1]).as_str()), ("hi", "called either"));
    let checked = home.run(&["mcp", "check", "--json"], "").await;
    let line = &checked.lines()[0];
    let names: Vec<&str> = line["tools"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert!(names.contains(&"either"), "{line}");
    // The latter can only run as a task.
    assert!(!names.contains(&"broken") && !names.contains(&"later"), "{line}");
    let omitted = line["omitted"].to_string();
    assert!(omitted.contains("broken: inputSchema") && omitted.contains("later: it runs only as a task"), "{line}");
    let checked = home.run(&["mcp", "check"], "").await;
    assert!(checked.stdout.contains("not offered: broken: inputSchema"), "{checked:?}");
}

#[tokio::test]
async fn resource_templates_are_listed() {
    let finished = calls(&home(&["resources=templates"]), &[calls_one("mcp_resource", json!({"server": "docs"}))]).await;
    let listed = text(&finished[0]);
    assert!(listed.contains("test://one: The first"), "{listed}");
    assert!(listed.contains("test://{name}/text (template): A text by its name"), "{listed}");
}

#[tokio::test]
async fn program_that_writes_no_messages_is_named_at_once() {
    for (command, fault) in
        [(setting("docs", &["usage"]), "usage: docs [--stdio]"), ("[mcp.docs]\ncommand = [\"cat\"]\n".into(), "")]
    {
        let home = Home::new();
        // Without the fault, the turn would wait for an hour.
        home.config(&format!("[tools]\nmcp_wait_s = 3600\n{command}"));
        let (mut agent, id) = session(&home, json!([{"text": "one"}])).await;
        let (_, updates) = bounded("the turn", agent.turn(&id, "go")).await;
        let notice = updates.iter().find(|update| update["sessionUpdate"] == "notice").unwrap_or_else(|| panic!("{updates:?}"));
        assert!(notice["title"].as_str().unwrap().starts_with("MCP server docs "), "{notice}");
        let why = notice["description"].as_str().unwrap();
        assert!(why.contains("is not a message of MCP") && why.contains(fault), "{notice}");
        agent.finish().await;
    }
}

/// A library's own log lines do not reach the user's terminal.
#[tokio::test]
async fn errors_of_a_server_are_told_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
            let _ = stream.write_all(page.as_bytes()).await;
        }
    });
    let home = Home::new();
    home.config(&format!("[mcp.docs]\nurl = \"http://{address}/mcp\"\n"));
    let checked = home.run(&["mcp", "check"], "").await;
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(checked.stdout.contains("FAIL docs"), "{checked:?}");
    assert!(!checked.stderr.contains("rmcp"), "{checked:?}");
    serving.abort();
}
