//! Diagnostics in the results of edits: each new diagnostic appears once, in the result of the edit
//! that caused it.

use serde_json::json;

use super::{diagnostics, home, outputs, said, write, writing_session};
use harness::{Agent, Home, tool};

#[tokio::test]
async fn edit_result_shows_new_diagnostics() {
    // Servers that report the document version, omit the version, or first report an old version.
    for mode in ["", "unversioned", "late"] {
        let home = home(&[mode]);
        home.put("warm.x", "");
        let steps = [
            diagnostics("warm.x"),
            write("a.x", "ERR one\nWARN two\nHINT\n"),
            write("a.x", "fine\nERR one\nWARN two\n"),
            write("a.x", "WARN two\né 🦀 ERR three\nERR one\n"),
            write("a.x", "ERR one\nERR one\n"),
            diagnostics("a.x"),
            write("a.txt", "ERR\n"),
        ];
        let told: Vec<String> = outputs(&home, &steps).await.into_iter().map(|(told, _)| told).collect();
        let expected = [
            "no diagnostics in warm.x",
            "errors in a.x:\na.x:1:1: error: bad; ERR one\n",
            "",
            "new diagnostics in a.x:\na.x:2:5: error: bad; é 🦀 ERR three\n",
            "new diagnostics in a.x:\na.x:2:1: error: bad; ERR one\n",
            "a.x:1:1: error: bad; ERR one\na.x:2:1: error: bad; ERR one\n",
            "",
        ];
        assert_eq!(told, expected, "{mode}");
    }
}

#[tokio::test]
async fn edit_waits_for_work_that_the_server_starts() {
    let home = home(&["works"]);
    home.put("warm.x", "");
    let outputs = outputs(&home, &[diagnostics("warm.x"), write("a.x", "BUILD\n")]).await;
    assert_eq!(outputs[1].0, "errors in a.x:\na.x:1:1: error: bad; ERR\n");
}

#[tokio::test]
async fn repeated_diagnostics_of_an_unfinished_build_are_not_new() {
    let home = home(&["stale"]);
    let steps = [write("a.x", "fine\nERR one\n"), write("a.x", "a\nmended\n"), write("a.x", "b\nb\nERR two\n")];
    let told: Vec<String> = outputs(&home, &steps).await.into_iter().map(|(told, _)| told).collect();
    let expected =
        ["errors in a.x:\na.x:2:1: error: bad; ERR one\n", "", "new diagnostics in a.x:\na.x:3:1: error: bad; ERR two\n"];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn diagnostics_reach_the_model_and_the_raw_output() {
    let home = home(&[]);
    home.put("warm.x", "");
    let mut after = diagnostics("a.x");
    after["expect"] = json!("errors in a.x:\na.x:1:1: error: bad; ERR one");
    let outputs =
        outputs(&home, &[diagnostics("warm.x"), write("a.x", "ERR one\n"), after, write("a.x", ""), write("a.txt", "")]).await;
    let found =
        json!([{"filePath": home.work().join("a.x"), "line": 1, "column": 1, "severity": "error", "message": "bad; ERR one"}]);
    let details: Vec<_> = outputs.iter().map(|(_, details)| details["diagnostics"].clone()).collect();
    assert_eq!(details, [json!([]), found.clone(), found, json!([]), json!(null)]);
}

#[tokio::test]
async fn patch_reports_diagnostics_of_all_its_files() {
    let home = home(&[]);
    home.put("gone.x", "ERR gone\n");
    home.put("a.x", "one\ntwo\n");
    let patch = "*** Begin Patch\n*** Update File: a.x\n@@\n one\n-two\n+ERR two\n*** Delete File: gone.x\n*** Add File: b.x\n+ERR b\n*** End Patch\n";
    let read = json!({"tool_calls": [{"name": "read", "input": {"file_path": "gone.x"}}]});
    let apply = json!({"tool_calls": [{"name": "apply_patch", "input": {"patch": patch}}]});
    let known = json!({"tool_calls": [{"name": "diagnostics", "input": {}}]});
    let outputs = outputs(&home, &[diagnostics("a.x"), diagnostics("gone.x"), read, apply, write("c.x", ""), known]).await;
    let told = "new diagnostics in a.x:\na.x:2:1: error: bad; ERR two\nerrors in b.x:\nb.x:1:1: error: bad; ERR b\n";
    assert_eq!(outputs[3].0, told);
    assert_eq!(outputs[3].1["diagnostics"].as_array().map(Vec::len), Some(2));
    assert_eq!(outputs[5].0, "b.x:1:1: error: bad; ERR b\na.x:2:1: error: bad; ERR two\n");
}

#[tokio::test]
async fn long_diagnostics_are_truncated_with_errors_first() {
    let home = home(&[]);
    home.put("a.x", &("WARN\n".repeat(15) + &"ERR\n".repeat(15)));
    let outputs = outputs(&home, &[diagnostics("a.x")]).await;
    let told: Vec<&str> = outputs[0].0.lines().collect();
    assert_eq!(told.len(), 21);
    assert_eq!((told[0], told[15]), ("a.x:16:1: error: bad; ERR", "a.x:1:1: warning: bad; WARN"));
    assert_eq!(told[20], "[the first 20 of 30]");
}

#[tokio::test]
async fn any_file_name_works_but_not_any_content() {
    let home = home(&[]);
    home.put("spaß #1%20?.x", "ERR\n");
    home.put("large.x", &" ".repeat((1 << 20) + 1));
    std::fs::write(home.work().join("latin.x"), b"ERR \xe9\n").unwrap();
    let paths = ["spaß #1%20?.x", "large.x", "latin.x", "missing.x"];
    let told: Vec<String> = outputs(&home, &paths.map(diagnostics)).await.into_iter().map(|(told, _)| told).collect();
    let expected = [
        "spaß #1%20?.x:1:1: error: bad; ERR\n",
        "large.x: the file has more than 1 MiB",
        "latin.x: reading the file: stream did not contain valid UTF-8",
        "missing.x: reading the file: No such file or directory (os error 2)",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn changes_by_other_tools_update_diagnostics() {
    let home = home(&[]);
    home.put("a.x", "ERR a\n");
    home.put("b.x", "ERR b\n");
    let bash = json!({"tool_calls": [{"name": "bash", "input": {"command": "echo fine > a.x; rm b.x"}}]});
    let known = json!({"tool_calls": [{"name": "diagnostics", "input": {}}]});
    let steps = [diagnostics("a.x"), diagnostics("b.x"), known.clone(), bash, write("c.x", "ERR c\n"), known];
    let outputs = outputs(&home, &steps).await;
    assert_eq!(outputs[2].0, "a.x:1:1: error: bad; ERR a\nb.x:1:1: error: bad; ERR b\n");
    assert_eq!(outputs[5].0, "c.x:1:1: error: bad; ERR c\n");
}

#[tokio::test]
async fn diagnostics_of_denied_files_are_hidden() {
    let home = home(&[]);
    let settings = home.config_text();
    home.config(&format!("[permissions]\nrules = [ {{ kind = \"read\", path = \"secret/**\", policy = \"deny\" }} ]\n{settings}"));
    home.put("a.x", "ERR a\n");
    let known = json!({"tool_calls": [{"name": "diagnostics", "input": {}}]});
    let steps = [diagnostics("a.x"), write("secret/b.x", "ERR b\n"), diagnostics("secret/b.x"), known];
    let outputs = outputs(&home, &steps).await;
    assert!(outputs[2].0.starts_with("denied"), "{outputs:?}");
    assert_eq!(outputs[3].0, "a.x:1:1: error: bad; ERR a\n");
}

#[tokio::test]
async fn requests_of_the_server_are_answered() {
    let home = home(&["replies"]);
    let outputs =
        outputs(&home, &[diagnostics("a.x"), write("a.x", "1"), diagnostics("a.x"), write("a.x", "2"), diagnostics("a.x")]).await;
    assert!(outputs[0].0.starts_with("a.x: reading the file: No such file"), "{outputs:?}");
    assert_eq!(outputs[4].0, "a.x:1:1: information: [[null, null], null, null, -32601]\n");
}

/// The process ID of the language server that serves the session.
async fn server(agent: &mut Agent, session: &str) -> String {
    let (_, updates) = agent.turn(session, "go").await;
    said(&tool(&updates, 0)).1["diagnostics"][0]["code"].as_str().unwrap().to_string()
}

#[tokio::test]
async fn sessions_share_a_server_until_the_last_session_closes() {
    let home = home(&["root"]);
    home.put("a.x", "");
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    // Each session runs the script from its first step.
    let (mut agent, one) = home.session(json!([diagnostics("a.x"), {"text": "done"}, diagnostics("a.x")]), &[]).await;
    let two = agent.new_session(&home).await;
    let first = server(&mut agent, &one).await;
    assert_eq!(server(&mut agent, &two).await, first);
    agent.call("session/close", json!({ "sessionId": two })).await;
    assert_eq!(server(&mut agent, &one).await, first);
    agent.call("session/close", json!({ "sessionId": one })).await;
    let three = agent.new_session(&home).await;
    assert_ne!(server(&mut agent, &three).await, first);
    agent.finish().await;
}

#[tokio::test]
async fn server_starts_only_when_needed() {
    let home = Home::new();
    // A server that creates the file `started` on start.
    home.config(&super::setting("own", &["sh", "-c", "touch started; cat"]));
    let (mut agent, session) =
        writing_session(&home, json!([write("a.txt", "ERR\n"), {"text": "done"}, write("a.x", "ERR\n")])).await;
    agent.turn(&session, "go").await;
    assert_eq!(home.get("started"), None);
    agent.turn(&session, "go").await;
    assert_eq!(home.get("started").as_deref(), Some(""));
    agent.finish().await;
}
