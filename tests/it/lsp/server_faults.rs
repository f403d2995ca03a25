//! Language servers that crash, hang, flood the client or send invalid output. Edits still succeed,
//! and no processes remain.

use harness::limits;
use serde_json::json;

use super::{diagnostics, home, outputs, said, setting, write, writing_session};
use harness::{Home, tool};

#[tokio::test]
async fn broken_server_is_reported_once() {
    let cases: &[(&[&str], &str)] = &[
        (&["nuncio-no-such-server"], "nuncio-no-such-server was not found"),
        (&["sh", "-c", "exit 3"], "sh failed 4 times; last error: exit code 3"),
        (
            &["sh", "-c", "printf 'hello\\r\\n\\r\\n'; printf 'Content-Length: x\\r\\n\\r\\n'; exec cat"],
            "sh failed 4 times; last error: invalid output: header without Content-Length: \"hello\"",
        ),
        (
            &["sh", "-c", "printf 'Content-Length: 99999999\\r\\n\\r\\n'; exec cat"],
            "sh failed 4 times; last error: invalid output: message too large: 99999999 bytes",
        ),
        (&["cat"], "cat failed 4 times; last error: initialization failed: initialize: unknown method initialize"),
        (&["sh", "-c", "exec yes"], "sh failed 4 times; last error: invalid output: no end of header in"),
    ];
    for (command, why) in cases {
        let home = Home::new();
        home.config(&setting("own", command));
        let outputs = outputs(&home, &[diagnostics("a.x"), write("a.x", "one"), write("a.x", "two")]).await;
        let told = format!("the language server own does not work: {why}");
        assert!(outputs[0].0.starts_with(&format!("a.x: {told}")), "{command:?}: {outputs:?}");
        assert!(outputs[1].0.starts_with(&format!("[{told}")), "{command:?}: {outputs:?}");
        assert_eq!(outputs[2].0, "", "{command:?}");
        assert_eq!(home.get("a.x").as_deref(), Some("two"));
    }
}

#[tokio::test]
async fn crashed_server_is_restarted() {
    let home = home(&[]);
    home.put("a.x", "ERR one\n");
    home.put("crash.x", "CRASH\n");
    let edit = json!({"file_path": "crash.x", "old_string": "CRASH", "new_string": "ERR two"});
    let edit = json!({"tool_calls": [{"name": "edit", "input": edit}]});
    let steps = [diagnostics("a.x"), diagnostics("crash.x"), diagnostics("a.x"), edit];
    let told: Vec<String> = outputs(&home, &steps).await.into_iter().map(|(told, _)| told).collect();
    let expected = [
        "a.x:1:1: error: bad; ERR one\n",
        "crash.x: the language server own reported nothing for the file in time; call again later",
        "a.x:1:1: error: bad; ERR one\n",
        "errors in crash.x:\ncrash.x:1:1: error: bad; ERR two\n",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn silent_server_does_not_block_edits() {
    for command in [&["sleep", "60"][..], &["sh", "-c", "trap '' TERM; sleep 60; sleep 60"]] {
        let home = Home::new();
        home.config(&setting("own", command));
        let outputs = outputs(&home, &[write("a.x", "ERR\n")]).await;
        assert_eq!((outputs[0].0.as_str(), &outputs[0].1["diagnostics"]), ("", &json!(null)), "{command:?}");
    }
}

#[tokio::test]
async fn cancel_ends_the_wait_for_a_server() {
    let home = Home::new();
    home.config(&setting("own", &["sh", "-c", "touch started; exec sleep 60"]));
    let (mut agent, session) = writing_session(&home, json!([diagnostics("a.x")])).await;
    let turn = agent.prompt(&session, "go").await;
    agent.until("the call runs", |frame| frame["params"]["update"]["status"] == "in_progress").await;
    agent.notify("session/cancel", json!({ "sessionId": session })).await;
    assert_eq!(agent.answer(&turn).await.unwrap()["stopReason"], "cancelled");
    assert_eq!(said(&tool(&agent.updates(&session), 0)).0, "cancelled");
    agent.finish().await;
}

#[tokio::test]
async fn number_of_running_servers_is_limited() {
    let home = Home::new();
    let server = json!(["python3", concat!(env!("CARGO_MANIFEST_DIR"), "/lsp/server.py")]);
    let names: Vec<String> = (0..=limits::LSP_SERVERS_MAX).map(|number| format!("x{number}")).collect();
    // Different arguments make each entry a separate server.
    let setting = |name: &String| {
        let mut command = server.clone();
        command.as_array_mut().unwrap().push(json!(name));
        format!("[lsp.{name}]\ncommand = {command}\nfiles = [\"*.{name}\"]\n")
    };
    home.config(&names.iter().map(setting).collect::<String>());
    let steps: Vec<_> = names.iter().map(|name| diagnostics(&home.put(&format!("a.{name}"), "").display().to_string())).collect();
    let outputs = outputs(&home, &steps).await;
    let (last, others) = outputs.split_last().unwrap();
    assert!(others.iter().all(|(told, _)| told.starts_with("no diagnostics in")), "{outputs:?}");
    assert_eq!(last.0, "a.x8: 8 language servers are running already");
}

#[tokio::test]
async fn flooding_or_lingering_server_is_killed() {
    for mode in ["flood", "lingers"] {
        let home = home(&[mode]);
        let outputs = outputs(&home, &[write("a.x", "one")]).await;
        assert_eq!((outputs[0].0.as_str(), home.get("a.x").as_deref()), ("", Some("one")), "{mode}");
    }
}

#[tokio::test]
async fn killed_nuncio_leaves_no_servers() {
    for mode in ["", "flood", "lingers"] {
        let home = home(&[mode]);
        let (mut agent, session) = writing_session(&home, json!([write("a.x", "one")])).await;
        agent.turn(&session, "go").await;
        assert!(harness::marked(&agent.marker).len() > 2, "{mode}: no server runs");
        agent.kill().await;
    }
}
