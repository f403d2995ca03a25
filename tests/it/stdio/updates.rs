//! Updates that only clients with a capability receive: compactions, and command output in
//! terminals.

use serde_json::{Value, json};

use harness::steps::bash;
use harness::{Agent, Home, kinds, session_updates, text, tool};

/// Starts a client with these capabilities, and a session.
async fn client(home: &Home, steps: Value, capabilities: Value, arguments: &[&str]) -> (Agent, String) {
    let model = home.script(steps);
    let mut agent = home.start(&[&["--model", &model], arguments].concat()).await;
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let session = agent.new_session(home).await;
    (agent, session)
}

#[tokio::test]
async fn compactions_are_sent_only_to_clients_that_support_them() {
    let supported = json!({"session": {"compaction": {}}});
    for (capabilities, is_sent) in [(supported.clone(), true), (json!({"session": {}}), false), (json!({}), false)] {
        let home = Home::new();
        let steps = json!([{"text": "red"}, {"text": "blue"}, {"text": "Colors were named."}, {"text": "green"}]);
        let (mut agent, session) = client(&home, steps, capabilities, &[]).await;
        agent.turn(&session, "first").await;
        agent.turn(&session, "second").await;
        let (_, live) = agent.turn(&session, "/compact").await;
        let loaded = agent.load(&home, &session).await;
        agent.finish().await;
        for updates in [&live, &loaded] {
            let sent: Vec<&Value> = updates.iter().filter(|update| update["sessionUpdate"] == "compaction_update").collect();
            assert_eq!(sent.len(), if is_sent { 2 } else { 0 }, "{updates:#?}");
            let [started, ended] = sent[..] else { continue };
            assert_eq!((&started["status"], &ended["status"]), (&json!("in_progress"), &json!("completed")));
            assert_eq!(started["compactionId"], ended["compactionId"]);
            assert_eq!(ended["summary"], json!([{"type": "text", "text": "Colors were named."}]), "{ended}");
        }
    }
}

/// The data of all `terminal_output`, joined.
fn printed(updates: &[Value]) -> String {
    updates.iter().filter_map(|update| update["_meta"]["terminal_output"]["data"].as_str()).collect()
}

fn zed() -> Value {
    json!({"terminal": true, "_meta": {"terminal_output": true}})
}

#[tokio::test]
async fn command_output_is_shown_live_in_terminals_of_clients_that_announce_them() {
    let home = Home::new();
    let wait = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 3";
    let (mut agent, session) = client(&home, json!([bash(wait), {"text": "done"}]), zed(), &["--mode", "auto"]).await;
    let before = agent.frames.len();
    let prompt = agent.prompt(&session, "go").await;
    let shown = agent.until("output", |frame| frame["params"]["update"]["_meta"]["terminal_output"].is_object()).await;
    let shown = &shown["params"]["update"];
    let id = shown["toolCallId"].clone();
    assert_eq!(shown["_meta"]["terminal_output"], json!({"terminal_id": id, "data": "one\n"}), "{shown}");
    assert_eq!(shown["content"], json!([{"type": "terminal", "terminalId": id}]), "{shown}");
    home.put("go", "");
    agent.answer(&prompt).await.unwrap();
    let live = session_updates(&agent.frames[before..], &session);
    let started = live.iter().find(|update| update["sessionUpdate"] == "tool_call").unwrap();
    assert_eq!(started["_meta"]["terminal_info"], json!({"terminal_id": id, "cwd": home.work()}), "{started}");
    let replayed = agent.load(&home, &session).await;
    for updates in [&live, &replayed] {
        // A note about the sandbox follows the output of a command that failed.
        assert!(printed(updates).starts_with("one\ntwo\n"), "{updates:#?}");
        let call = tool(updates, 0);
        assert_eq!(call["content"], json!([{"type": "terminal", "terminalId": id}]), "{call}");
        assert_eq!(call["_meta"]["terminal_exit"], json!({"terminal_id": id, "exit_code": 3, "signal": null}), "{call}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn denied_and_other_calls_have_no_terminal() {
    let home = Home::new();
    let steps = json!([
        bash("touch made"),
        {"tool_calls": [{"name": "list", "input": {}}]},
        {"text": "done"},
    ]);
    let (mut agent, session) = client(&home, steps, zed(), &["--mode", "plan"]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    let (denied, list) = (tool(&updates, 0), tool(&updates, 1));
    assert_eq!((&denied["status"], &denied["content"][0]["type"]), (&json!("failed"), &json!("content")), "{denied}");
    assert_eq!((&list["status"], &list["_meta"]), (&json!("completed"), &Value::Null), "{list}");
    assert_eq!(printed(&updates), "");
    agent.finish().await;
}

#[tokio::test]
async fn long_output_and_clients_without_terminals() {
    let lines: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    for (capabilities, has_terminal) in [(zed(), true), (json!({"_meta": {"terminal_output": false}}), false), (json!({}), false)] {
        let home = Home::new();
        let steps = json!([bash("seq 20000"), {"text": "done"}]);
        let (mut agent, session) = client(&home, steps, capabilities, &["--mode", "auto"]).await;
        let (_, updates) = agent.turn(&session, "go").await;
        let call = tool(&updates, 0);
        let printed = printed(&updates);
        assert!(kinds(&updates).contains(&"tool_call_update"));
        assert_eq!(text(&updates, "agent_message_chunk"), "done");
        if has_terminal {
            assert_eq!(call["content"][0]["type"], "terminal", "{call}");
            assert!(printed.ends_with("19999\n20000\n"), "{}", &printed[printed.len().saturating_sub(200)..]);
            let numbers = printed.lines().filter(|line| line.parse::<u32>().is_ok()).count();
            assert!(numbers > 1000 && printed.len() < 4 * lines.len(), "{numbers} lines, {} bytes", printed.len());
        } else {
            assert_eq!((printed.as_str(), &call["content"][0]["type"], &call["_meta"]), ("", &json!("content"), &Value::Null));
            assert!(updates.iter().all(|update| update["_meta"]["terminal_info"].is_null()));
        }
        agent.finish().await;
    }
}
