//! Results whose contents cannot all be read, and lists whose cursors make no progress.

use serde_json::{Value, json};

use super::{calls, home, session, text};
use harness::steps::{calls_one, says};

/// A call whose result has these fields.
fn raw(result: &str) -> Value {
    let line = format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{result}}}"#);
    calls_one("mcp__docs__raw", json!({ "line": line }))
}

/// The fields of a result, and the text of the call.
const RESULTS: &[(&str, &str)] = &[
    (
        r#"{"content":[{"type":"text","text":"one"},{"type":"video","data":"x"},{"type":"text","text":"two"}]}"#,
        r#"one[content of the unknown type "video" omitted]two"#,
    ),
    (r#"{"content":[{"type":"image","data":"x"},{"type":"text","text":"two"}]}"#, "[image omitted: missing field `mimeType`]two"),
    (
        r#"{"content":[{"type":"text","text":5},{"type":"text","text":"two"}]}"#,
        "[text omitted: invalid type: integer `5`, expected a string]two",
    ),
    (r#"{"content":[{"text":"one"},null,"two"]}"#, "[content without a type omitted][content without a type omitted]two"),
    (r#"{"content":[{"type":"text","text":"one","annotations":{"audience":"all"},"_meta":[]}]}"#, "one"),
    (
        r#"{"content":[{"type":"resource","resource":{"uri":"x://y"}},{"type":"text","text":"two"}]}"#,
        "[resource omitted: data did not match any variant of untagged enum ResourceContents]two",
    ),
    (r#"{"content":"only a string"}"#, "only a string"),
    (r#"{"content":{"type":"text","text":"no list"}}"#, "no list"),
    (r#"{"content":[{"type":"text","text":"one"}],"isError":"no","_meta":"x"}"#, "one"),
    (r#"{"content":null,"structuredContent":{"a":1}}"#, r#"{"a":1}"#),
];

#[tokio::test]
async fn unknown_content_does_not_lose_the_rest_of_the_result() {
    let steps: Vec<Value> = RESULTS.iter().map(|(result, _)| raw(result)).collect();
    let finished = calls(&home(&["raw"]), &steps).await;
    for ((result, shown), call) in RESULTS.iter().zip(&finished) {
        assert_eq!((text(call).as_str(), &call["status"]), (*shown, &json!("completed")), "{result}");
    }
    let failed =
        calls(&home(&["raw"]), &[raw(r#"{"content":[{"type":"text","text":"bad"},{"type":"x"}],"isError":"true"}"#)]).await;
    assert_eq!((text(&failed[0]).contains("bad"), &failed[0]["status"]), (true, &json!("failed")), "{}", failed[0]);
}

#[tokio::test]
async fn broken_contents_of_a_resource_are_notes() {
    let home = home(&["resources=broken"]);
    let read = |input| calls_one("mcp_resource", input);
    let steps = [read(json!({"server": "docs", "uri": "test://broken"})), read(json!({"server": "docs"}))];
    let finished = calls(&home, &steps).await;
    let shown = finished[0]["content"].to_string();
    assert_eq!(finished[0]["status"], "completed", "{shown}");
    assert!(shown.contains("readable") && shown.contains("annotated") && shown.matches("contents omitted").count() == 4, "{shown}");
    assert!(text(&finished[1]).starts_with("x://good: good\n"), "{}", finished[1]);
}

#[tokio::test]
async fn broken_prompt_does_not_disable_its_server() {
    let home = home(&["prompts=broken"]);
    let words = ["[content of the unknown type \\\"video\\\" omitted]", "readable", "in a list", "[image omitted", "a string"];
    let (mut agent, id) = session(&home, json!([says("a string", "seen")])).await;
    let (stop, updates) = agent.turn(&id, "/mcp__docs__talk").await;
    assert_eq!(stop, "end_turn", "{updates:?}");
    agent.finish().await;
    let log = json!(home.log(&id).await).to_string();
    for word in words {
        assert!(log.contains(word), "{word}: {log}");
    }
}

#[tokio::test]
async fn list_whose_cursor_makes_no_progress_ends() {
    for cursor in ["same", "first", "empty", "fresh", "number"] {
        let log = harness::Home::new();
        let file = log.put("server.log", "");
        let home = home(&[&format!("cursor={cursor}"), &format!("log={}", file.display())]);
        let finished = calls(&home, &[calls_one("mcp__docs__add", json!({"a": 1, "b": 2}))]).await;
        assert_eq!(finished[0]["status"], "completed", "{cursor}: {}", finished[0]);
        let requests = std::fs::read_to_string(&file).unwrap().lines().filter(|line| *line == "tools/list").count();
        assert!((3..=4).contains(&requests), "{cursor}: {requests} requests");
    }
}
