//! Hooks that hang, crash or answer nonsense: the turn goes on as the policy says, in bounded time
//! and memory, and no process is left.

use serde_json::json;

use super::{Events, home, hook, one_call, read_a};

/// Name, script, outcome, text of the error.
const FAILURES: &[(&str, &str, &str, &str)] = &[
    ("a hook that hangs", "sleep 600", "timed_out", "no answer in 1000 ms"),
    ("a hook that ignores TERM", "trap '' TERM; while :; do sleep 1; done", "timed_out", "no answer in 1000 ms"),
    ("a process of the hook that hangs", "setsid sleep 600 & sleep 600", "timed_out", "no answer in 1000 ms"),
    ("a hook that crashes", "kill -SEGV $$", "failed", "exit code 139"),
    ("a hook that prints no JSON", "echo nonsense", "failed", "invalid answer"),
    ("a hook that prints bytes", "head -c 1000 /dev/urandom", "failed", "invalid answer"),
    ("a hook that prints half an answer", "printf '{\"input\":'", "failed", "invalid answer"),
    ("a hook that prints 100 MB", "head -c 100000000 /dev/zero", "failed", "the answer has more than 16 MiB"),
    ("a hook that prints without an end", "yes", "failed", "the answer has more than 16 MiB"),
    ("a hook that prints 100 MB of errors", "head -c 100000000 /dev/zero >&2; exit 1", "failed", "exit code 1"),
];

/// Settings of a hook that fails, with its policy. Only a hook that hangs needs a short time limit.
fn failing(event: &str, script: &str, policy: &str, timeout_ms: u32) -> String {
    hook(event, script, &format!("timeout_ms = {timeout_ms}\non_failure = \"{policy}\""))
}

#[tokio::test]
async fn failed_hook_blocks_or_has_no_effect_as_its_policy_says() {
    for (name, script, outcome, error) in FAILURES {
        for policy in ["closed", "open"] {
            let timeout_ms = if *outcome == "timed_out" { 1_000 } else { 20_000 };
            let home = home(&failing("tool.execute.before", script, policy, timeout_ms));
            let (mut agent, session) = home.session(read_a(None), &[]).await;
            let (stop, _) = agent.turn(&session, "go").await;
            agent.finish().await;
            assert_eq!(stop, "end_turn", "{name}");
            let ran = Events { code: 0, events: home.log(&session).await };
            let completed = ran.all("hook.completed")[0];
            assert_eq!(completed["outcome"], *outcome, "{name}: {completed}");
            assert!(completed["error"].as_str().unwrap().contains(error), "{name}: {completed}");
            let (status, output) = ran.result();
            match policy {
                "closed" => assert!(status == "failed" && output.contains(error), "{name}: {output}"),
                _ => assert!(status == "completed" && output.contains("alpha"), "{name}: {output}"),
            }
        }
    }
}

#[tokio::test]
async fn missing_program_is_a_failure() {
    for (policy, status) in [("closed", "failed"), ("open", "completed")] {
        let settings =
            format!("[[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"no-such-program\"]\non_failure = \"{policy}\"\n");
        let ran = Events::from_run(&home(&settings), read_a(None), &[]).await;
        assert_eq!((ran.outcomes(), ran.result().0), (vec!["failed"], status));
        assert!(ran.all("hook.completed")[0]["error"].as_str().unwrap().contains("no-such-program"));
    }
}

#[tokio::test]
async fn policy_of_each_event_has_a_default() {
    for (event, status, output, notices) in [
        ("tool.execute.before", "failed", "blocked by hook", 0),
        ("tool.execute.after", "completed", "alpha", 1),
        ("tool.result.validate", "completed", "alpha", 1),
    ] {
        let ran = Events::from_run(&home(&hook(event, "exit 1", "")), read_a(None), &[]).await;
        assert_eq!(ran.result().0, status, "{event}");
        assert!(ran.result().1.contains(output), "{event}: {}", ran.result().1);
        assert_eq!(ran.all("notice").len(), notices, "{event}");
    }
    let withheld = Events::from_run(&home(&failing("tool.execute.after", "exit 1", "closed", 20_000)), read_a(None), &[]).await;
    assert!(withheld.result().1.contains("withheld"), "{}", withheld.result().1);
    let noted =
        Events::from_run(&home(&failing("tool.result.validate", "exit 7", "closed", 20_000)), read_a(Some("exit code 7")), &[])
            .await;
    assert_eq!((noted.code, noted.result().0), (0, "completed"));
}

#[tokio::test]
async fn large_request_is_no_problem_for_a_hook_that_does_not_read() {
    let text = "x".repeat(3 << 20);
    let call = one_call("write", &json!({"file_path": "large.txt", "content": text}), None);
    for script in ["true", "exec <&-; true", "cat > copy.json"] {
        let home = home(&hook("tool.execute.before", script, ""));
        let ran = Events::from_run(&home, call.clone(), &[]).await;
        assert_eq!((ran.outcomes(), ran.result().0), (vec!["unchanged"], "completed"), "{script}");
        assert_eq!(home.get("large.txt").unwrap().len(), text.len());
    }
}

#[tokio::test]
async fn background_process_of_a_hook_ends_with_the_hook() {
    let home = home(&hook("tool.execute.before", r#"setsid sleep 600 & echo '{"input":{"file_path":"b.txt"}}'"#, ""));
    let (mut agent, session) = home.session(read_a(Some("beta")), &[]).await;
    agent.turn(&session, "go").await;
    // Asserts that no process is left.
    agent.finish().await;
}

#[tokio::test]
async fn cancelled_turn_ends_its_hook() {
    for event in ["tool.execute.before", "tool.execute.after", "prompt.system.transform", "prompt.messages.transform"] {
        let home = home(&hook(event, "touch started; sleep 600", "timeout_ms = 600000"));
        let (mut agent, session) = home.session(read_a(None), &[]).await;
        let prompt = agent.prompt(&session, "go").await;
        home.appears("started").await;
        agent.notify("session/cancel", json!({"sessionId": session})).await;
        assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "cancelled", "{event}");
        agent.finish().await;
        let ran = Events { code: 0, events: home.log(&session).await };
        assert_eq!(ran.outcomes(), ["failed"], "{event}");
        assert_eq!(ran.all("hook.completed")[0]["error"], "cancelled", "{event}");
    }
}

/// A hook that a cancel prevents from running counts as failed.
#[tokio::test]
async fn cancel_withholds_a_result_that_a_closed_hook_has_not_seen() {
    for (policy, status) in [("closed", "failed"), ("open", "completed")] {
        let home = home(
            &[
                hook("tool.execute.before", r#"echo '{"input":{"file_path":"b.txt"}}'"#, ""),
                hook("tool.execute.after", "touch started; sleep 600", "timeout_ms = 600000\non_failure = \"open\""),
                hook("tool.execute.after", "true", &format!("on_failure = \"{policy}\"")),
            ]
            .concat(),
        );
        let (mut agent, session) = home.session(read_a(None), &[]).await;
        let prompt = agent.prompt(&session, "go").await;
        home.appears("started").await;
        agent.notify("session/cancel", json!({"sessionId": session})).await;
        assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "cancelled", "{policy}");
        agent.finish().await;
        let ran = Events { code: 0, events: home.log(&session).await };
        let (found, output) = ran.result();
        assert_eq!((found, output.contains("beta")), (status, policy == "open"), "{policy}: {output}");
        assert_eq!(output.contains("withheld"), policy == "closed", "{policy}: {output}");
        assert!(output.contains("a hook changed the input of this call"), "{policy}: {output}");
    }
}
