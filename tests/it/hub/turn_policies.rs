//! Hooks and checks in the turns of hosted agents.

use serde_json::{Value, json};

use super::{bodies, claude_code, codex, home_of, opencode, session};
use harness::{Home, Reply, text};

async fn home(more: &str) -> Home {
    home_of("claude-code", claude_code::CLAUDE, &[], more).await
}

/// A hook of an event whose shell command is `line`.
fn hook(event: &str, line: &str) -> String {
    format!("[[hooks]]\nevent = \"{event}\"\nmatch = \"bash\"\ncommand = {}\n", json!(["sh", "-c", line]))
}

#[tokio::test]
async fn hooks_block_calls_and_follow_them() {
    let block = hook("tool.execute.before", "grep -q forbidden && { echo no >&2; exit 2; }; exit 0");
    let change = hook("tool.execute.before", "grep -q rewrite && echo '{\"input\": {\"command\": \"true\"}}'; exit 0");
    let follow = hook("tool.execute.after", "cat >> $NUNCIO_WORKSPACE/followed");
    let hooks = [block, change, follow].concat();
    // Codex asks the hooks where it asks for permission, Claude Code before each call.
    for (kind, script, denied, allowed, notice) in [
        ("codex", codex::CODEX, "[decline]", "[accept]", json!(["Hooks before tool calls run only where the agent other asks"])),
        ("claude-code", claude_code::CLAUDE, "[deny]", "[allow]", json!([])),
    ] {
        let home = home_of(kind, script, &[], &hooks).await;
        let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
        for (prompt, said) in [("run touch forbidden", denied), ("run touch rewrite", denied), ("run touch made", allowed)] {
            let (_, updates) = agent.turn(&session, prompt).await;
            assert_eq!(text(&updates, "agent_message_chunk"), said, "{kind}: {prompt}");
            let file = prompt.rsplit(' ').next().unwrap();
            assert_eq!(home.get(file).is_some(), said == allowed, "{kind}: {prompt}");
        }
        agent.finish().await;
        let resolved = bodies(&home, &session, &["permission.resolved"]).await;
        let decided: Vec<&Value> = resolved.iter().map(|resolved| &resolved["by"]).collect();
        assert_eq!(decided, ["hook", "hook", "mode"], "{resolved:?}");
        assert!(resolved[0]["reason"].as_str().unwrap().contains("no"), "{resolved:?}");
        let followed = home.get("followed").unwrap();
        assert!(followed.contains("touch made") && followed.contains("\"status\":\"completed\""), "{followed}");
        let notices = bodies(&home, &session, &["notice"]).await;
        let notices: Vec<&Value> =
            notices.iter().map(|notice| &notice["title"]).filter(|title| title.as_str().unwrap().contains("ooks")).collect();
        assert_eq!(json!(notices), notice, "{kind}");
    }
}

#[tokio::test]
async fn claude_code_asks_the_hooks_before_calls_without_permission() {
    let block = hook("tool.execute.before", "grep -q forbidden && exit 2; exit 0") + "on_failure = \"closed\"\n";
    let fail = hook("tool.execute.before", "grep -q broken && exit 1; exit 0");
    let home = home(&(block + &fail)).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    for (prompt, said) in
        [("unasked touch forbidden", "[deny]"), ("unasked touch broken", "[deny]"), ("unasked touch made", "[allow]")]
    {
        let (_, updates) = agent.turn(&session, prompt).await;
        assert_eq!(text(&updates, "agent_message_chunk"), said, "{prompt}");
        assert_eq!(home.get(prompt.rsplit(' ').next().unwrap()).is_some(), said == "[allow]", "{prompt}");
    }
    agent.finish().await;
    assert_eq!(bodies(&home, &session, &["hook.completed"]).await.len(), 5);
}

#[tokio::test]
async fn opencode_asks_the_hooks_before_calls_without_permission() {
    let block = hook("tool.execute.before", "grep -q forbidden && exit 2; exit 0").replace("bash", "grep");
    for (hooks, said) in [(&*block, ["[reject]", "[once]"]), ("", ["[unasked]", "[unasked]"])] {
        let home = home_of("opencode", opencode::SERVER, &[], hooks).await;
        let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
        agent.otherwise = Reply::Error;
        for (prompt, said) in ["glob forbidden", "glob *.rs"].into_iter().zip(said) {
            let (_, updates) = agent.turn(&session, prompt).await;
            assert_eq!(text(&updates, "agent_message_chunk"), said, "{prompt}");
        }
        agent.finish().await;
    }
}

#[tokio::test]
async fn hook_that_must_block_on_failure_is_refused_where_the_agent_may_not_ask() {
    let hook = hook("tool.execute.before", "true") + "on_failure = \"closed\"\n";
    let home = home_of("codex", codex::CODEX, &[], &hook).await;
    let ran = home.run(&["run", "--agent", "other", "say"], "").await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("on_failure = \"closed\" is not possible with the agent other"), "{ran:?}");
}

#[tokio::test]
async fn failed_checks_prompt_the_agent_again() {
    needs_linux!("sandbox");
    for (rounds, stop, results) in [(3, "end_turn", json!([false, true])), (1, "end_turn", json!([false]))] {
        let settings = format!("verify = true\n[verify]\ncommands = [\"test -f fixed\"]\nmax_rounds = {rounds}\n");
        let home = home(&settings).await;
        let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
        // A turn without changes has no checks.
        agent.turn(&session, "say").await;
        let (stopped, updates) = agent.turn(&session, "change made").await;
        let said = if rounds == 3 { "changedfixed" } else { "changed" };
        assert_eq!((stopped.as_str(), text(&updates, "agent_message_chunk").as_str()), (stop, said));
        agent.finish().await;
        let checks = bodies(&home, &session, &["verify.completed"]).await;
        let passed: Vec<&Value> = checks.iter().map(|check| &check["passed"]).collect();
        assert_eq!(json!(passed), results);
    }
}

#[tokio::test]
async fn denied_call_that_the_agent_runs_is_reported() {
    let home = home(&hook("tool.execute.before", "grep -q made && exit 2; exit 0")).await;
    let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
    agent.turn(&session, "defiant touch made").await;
    agent.turn(&session, "run touch other").await;
    agent.finish().await;
    assert!(home.get("made").is_some());
    let notices = bodies(&home, &session, &["notice"]).await;
    let notices: Vec<[&Value; 2]> = notices.iter().map(|notice| [&notice["title"], &notice["description"]]).collect();
    assert_eq!(json!(notices), json!([["The agent reports that it ran a denied call", "touch made"]]));
}
