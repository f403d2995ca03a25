//! The effects of hooks on model requests.

use serde_json::{Value, json};

use super::{Events, home, hook, read_a};

const SYSTEM: &str = "prompt.system.transform";
const MESSAGES: &str = "prompt.messages.transform";

/// A user message, as the answer of a hook.
const ONE_MESSAGE: &str = r#"echo '{"messages":[{"role":"user","parts":[{"type":"text","text":"said the hook"}]}]}'"#;

#[tokio::test]
async fn hooks_change_what_is_sent() {
    // Event, script, text that the request contains, outcome.
    let cases = [
        (SYSTEM, r#"echo '{"append":"said the hook"}'"#, "said the hook", "changed"),
        (SYSTEM, r#"echo '{"append":"said the hook"}'"#, "Working directory", "changed"),
        (SYSTEM, r#"echo '{"system":"said the hook"}'"#, "said the hook", "changed"),
        (SYSTEM, "true", "Working directory", "unchanged"),
        (SYSTEM, "exit 1", "Working directory", "failed"),
        (MESSAGES, ONE_MESSAGE, "said the hook", "changed"),
        (MESSAGES, "sed 's/.*\"messages\":\\(.*\\)}/{\"messages\":\\1}/'", "go", "changed"),
        (MESSAGES, r#"echo '{"messages":[]}'"#, "go", "failed"),
        (MESSAGES, r#"echo '{"messages":[{"role":"assistant","parts":[{"type":"text","text":"x"}]}]}'"#, "go", "failed"),
        (MESSAGES, r#"echo '{"output":"of another event"}'"#, "go", "failed"),
    ];
    for (event, script, expected, outcome) in cases {
        let home = home(&hook(event, script, ""));
        let ran = Events::from_run(&home, json!([{"text": "the end", "expect": expected}]), &[]).await;
        assert_eq!((ran.code, ran.outcomes()), (0, vec![outcome]), "{event} {script}: {:#?}", ran.events);
        // Later requests and other clients see what was stored.
        let stored = ran.all("message.completed")[0];
        assert_eq!(stored["parts"][0]["text"], "go", "{event} {script}");
    }
}

#[tokio::test]
async fn a_replaced_prompt_is_not_sent() {
    let home = home(&[hook(SYSTEM, r#"echo '{"system":"short"}'"#, ""), hook(MESSAGES, ONE_MESSAGE, "")].concat());
    for absent in ["Working directory", "a unique prompt"] {
        let model = home.script(json!([{"text": "the end", "expect": absent}]));
        let ran = home.run(&["run", "--model", &model, "a unique prompt"], "").await;
        assert_eq!(ran.code, 1, "{absent}: {ran:?}");
        assert!(ran.stderr.contains("does not contain"), "{ran:?}");
    }
}

#[tokio::test]
async fn blocked_request_fails_the_turn() {
    for (event, more) in [(SYSTEM, ""), (MESSAGES, ""), (SYSTEM, "on_failure = \"closed\""), (MESSAGES, "on_failure = \"closed\"")]
    {
        let script = if more.is_empty() { "echo confidential >&2; exit 2" } else { "echo confidential >&2; exit 3" };
        let home = home(&hook(event, script, more));
        let ran = Events::from_run(&home, json!([]), &[]).await;
        let failed = ran.all("turn.failed");
        assert_eq!((failed.len(), ran.all("message.delta").len()), (1, 0), "{event}: {:#?}", ran.events);
        assert_eq!(failed[0]["code"], "forbidden");
        assert!(failed[0]["message"].as_str().unwrap().contains("confidential"), "{event}: {:#?}", failed[0]);
    }
}

#[tokio::test]
async fn system_hook_runs_once_and_messages_hook_for_each_request() {
    let count =
        |name: &str| format!("cat > /dev/null; echo x >> {name}; echo \"{{\\\"append\\\":\\\"run $(wc -l < {name})\\\"}}\"");
    let home = home(&[hook(SYSTEM, &count("system"), ""), hook(MESSAGES, "cat > last.json; echo x >> messages", "")].concat());
    let steps = json!([
        {"tool_calls": [{"name": "read", "input": {"file_path": "a.txt"}}], "expect": "run 1"},
        {"text": "one", "expect": "run 1"},
        {"text": "two", "expect": "run 1"},
    ]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.turn(&session, "go").await;
    agent.turn(&session, "on").await;
    agent.finish().await;
    let lines = |name: &str| home.get(name).unwrap().lines().count();
    assert_eq!((lines("system"), lines("messages")), (1, 3));
    let last: Value = serde_json::from_str(&home.get("last.json").unwrap()).unwrap();
    let roles: Vec<&str> = last["messages"].as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"]);
    assert_eq!(last["messages"][1]["parts"][0]["type"], "tool_call");
    assert_eq!(last["messages"][2]["parts"][0]["id"], last["messages"][1]["parts"][0]["id"]);
}

#[tokio::test]
async fn prompt_hooks_match_the_model() {
    for (glob, runs) in [("scripted:*", 2), ("anthropic/*", 0)] {
        let home = home(&hook(MESSAGES, "true", &format!("match = \"{glob}\"")));
        assert_eq!(Events::from_run(&home, read_a(None), &[]).await.outcomes().len(), runs, "{glob}");
    }
}

/// The prompt of a cancelled or failed run of the hook is not kept for the session.
#[tokio::test]
async fn system_hook_runs_again_if_it_was_cancelled_or_failed() {
    const APPEND: &str = r#"echo '{"append":"said the hook"}'"#;
    let first = json!({"text": "one"});
    let second = json!({"text": "two", "expect": "said the hook"});

    let script = format!("[ -e started ] || {{ touch started; sleep 600; }}; {APPEND}");
    let home = home(&hook(SYSTEM, &script, "timeout_ms = 600000"));
    let (mut agent, session) = home.session(json!([second, second]), &[]).await;
    let prompt = agent.prompt(&session, "go").await;
    home.appears("started").await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "cancelled");
    assert_eq!(agent.turn(&session, "on").await.0, "end_turn");
    agent.finish().await;

    let home = super::home(&hook(SYSTEM, &format!("[ -e failed ] || {{ touch failed; exit 1; }}; {APPEND}"), ""));
    let (mut agent, session) = home.session(json!([first, second]), &[]).await;
    agent.turn(&session, "go").await;
    assert_eq!(agent.turn(&session, "on").await.0, "end_turn");
    agent.finish().await;
}
