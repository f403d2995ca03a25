//! Commands and changes of files of Codex: asked, decided by nuncio's rules, or refused where Codex
//! does not ask.

use serde_json::{Value, json};

use super::codex::CODEX;
use super::{allowed, bodies, home_of, played, session, trust, turn};
use harness::{Home, Reply, needs_linux, text};

/// Rules that deny a command that writes, one that only reads, and the change of a file.
const DENIED: &str = r#"[permissions]
rules = [
  {tool = "bash", pattern = "rm *", policy = "deny"},
  {tool = "bash", pattern = "cat *", policy = "deny"},
  {kind = "write", path = "new.txt", policy = "deny"},
]
"#;

/// A home with a file that Codex deletes if it may, with these settings of the agent and others.
async fn home(more: &str) -> Home {
    let home = home_of("codex", CODEX, &[], more).await;
    home.put("kept", "");
    home
}

/// The policies with which Codex runs a turn in each of the modes.
async fn policies(home: &Home, flags: &[&str], modes: &[&str]) -> Vec<[String; 2]> {
    let (mut agent, session) = session(home, flags).await;
    let mut found = Vec::new();
    for mode in modes {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        let (_, updates) = agent.turn(&session, "settings").await;
        let said: Value = serde_json::from_str(&text(&updates, "agent_message_chunk")).unwrap();
        found.push([&said["approvalPolicy"], &said["sandboxPolicy"]["type"]].map(|value| value.as_str().unwrap().to_owned()));
    }
    agent.finish().await;
    found
}

#[tokio::test]
async fn command_and_change_of_a_file_are_not_made_unasked_in_mode_ask() {
    let home = home("").await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    let prompts = ["run rm kept", "run cat kept", "escalate rm kept", "subagent rm kept", "unannounced rm kept", "edit"];
    for prompt in prompts {
        let (said, _) = turn(&mut agent, &session, prompt, &[Reply::Pick("reject_once")]).await;
        assert_eq!((said.as_str(), home.get("kept").is_some(), home.get("new.txt")), ("[decline]", true, None), "{prompt}");
    }
    for prompt in ["edit", "run rm kept"] {
        let (said, _) = turn(&mut agent, &session, prompt, &[Reply::Pick("allow_once")]).await;
        assert_eq!(said, "[accept]", "{prompt}");
    }
    agent.finish().await;
    assert_eq!((home.get("kept"), home.get("new.txt").as_deref()), (None, Some("one\n")));
    assert_eq!(bodies(&home, &session, &["permission.requested"]).await.len(), prompts.len() + 2);
}

#[tokio::test]
async fn mode_accept_edits_asks_only_about_commands() {
    let home = home("").await;
    let (mut agent, session) = session(&home, &["--mode", "accept-edits"]).await;
    assert_eq!(turn(&mut agent, &session, "edit", &[]).await.0, "[accept]");
    assert_eq!(turn(&mut agent, &session, "run rm kept", &[Reply::Pick("reject_once")]).await.0, "[decline]");
    agent.finish().await;
    assert!(home.get("new.txt").is_some() && home.get("kept").is_some());
}

#[tokio::test]
async fn denied_command_and_change_are_not_made_in_any_mode() {
    let home = home(DENIED).await;
    let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
    for mode in ["auto", "accept-edits", "ask"] {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        for prompt in ["run rm kept", "run cat kept", "run true && rm kept", "escalate rm kept", "subagent rm kept", "edit"] {
            assert_eq!(turn(&mut agent, &session, prompt, &[]).await.0, "[decline]", "{mode}: {prompt}");
        }
    }
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).await;
    assert_eq!(turn(&mut agent, &session, "run touch made", &[]).await.0, "[accept]");
    // The terminal that gets the input may run it.
    assert_eq!(turn(&mut agent, &session, "stdin rm kept", &[Reply::Pick("reject_once")]).await.0, "[decline]");
    assert_eq!(turn(&mut agent, &session, "stdin yes", &[]).await.0, "[accept]");
    agent.finish().await;
    let files = ["kept", "new.txt", "made"].map(|name| home.get(name).is_some());
    assert_eq!(files, [true, false, true]);
    let resolved = bodies(&home, &session, &["permission.resolved"]).await;
    assert!(resolved[..18].iter().all(|body| body["by"] == "rule"), "{resolved:?}");
    let ran = home.run(&["run", "--agent", "other", "--mode", "auto", "run rm kept"], "").await;
    assert!(ran.stdout.contains("[decline]") && home.get("kept").is_some(), "{ran:?}");
    assert!(ran.stderr.contains("denied by a rule"), "{ran:?}");
}

#[tokio::test]
async fn rule_of_the_project_denies_a_command() {
    let home = Home::new();
    home.config(&(allowed(&["other"]) + &played("other", "codex", CODEX, &[])));
    home.put(".nuncio/config.toml", DENIED);
    home.put("kept", "");
    trust(&home).await;
    let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
    assert_eq!(turn(&mut agent, &session, "run rm kept", &[]).await.0, "[decline]");
    agent.finish().await;
}

#[tokio::test]
async fn denied_command_is_refused_before_the_turn_where_codex_does_not_ask() {
    let replaced = |value: &str| format!("config = '{{{value}}}'\n");
    let file = "prefix_rule(pattern=[\"rm\"], decision=\"allow\")\n";
    for (value, named, in_plan, runs) in [
        ("\"approval_policy\": \"on-request\"", "approval_policy = \"on-request\" in config of [agents.other]", false, false),
        ("\"approval_policy\": \"never\"", "approval_policy = \"never\" in config of [agents.other]", false, false),
        (
            "\"approvals_reviewer\": \"auto_review\"",
            "approvals_reviewer = \"auto_review\" in config of [agents.other]",
            false,
            true,
        ),
        ("", ".codex/rules/default.rules", true, true),
    ] {
        let home = home(&(replaced(value) + DENIED)).await;
        if value.is_empty() {
            home.put("../.codex/rules/default.rules", file);
            home.put("../.codex/rules/empty.rules", "");
        }
        let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
        let refused = agent.failure(&session, "run rm kept").await;
        let (message, hint) = (refused["message"].as_str().unwrap(), refused["data"]["hint"].as_str().unwrap());
        assert_eq!(refused["data"]["code"], "unsupported", "{refused}");
        assert!(message.starts_with("agent other: ") && message.contains(named), "{refused}");
        assert!(message.contains(r#"the rule {"tool":"bash","pattern":"rm *","policy":"deny"}"#), "{refused}");
        assert!(hint.contains(named), "{refused}");
        // nuncio's mode plan replaces the settings, and not the files.
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).await;
        match in_plan {
            true => assert_eq!(agent.failure(&session, "say").await["data"]["code"], "unsupported"),
            false => assert_eq!(agent.turn(&session, "say").await.0, "end_turn"),
        }
        agent.finish().await;
        let ran = home.run(&["run", "--agent", "other", "--mode", "auto", "run rm kept"], "").await;
        assert!(ran.code != 0 && ran.stderr.contains(named) && home.get("kept").is_some(), "{ran:?}");
        // Without the rules, the session says by which rules the agent acts.
        home.config(&home.config_text().replace(DENIED, ""));
        let (mut agent, session) = super::session(&home, &["--mode", "ask"]).await;
        let (said, _) = turn(&mut agent, &session, "run rm kept", &[]).await;
        assert_eq!((said.as_str(), home.get("kept").is_none()), ("[unasked]", runs), "{named}");
        let view = agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
        assert!(view["agentRules"].as_str().unwrap().ends_with(named), "{view}");
        agent.finish().await;
        let notices = bodies(&home, &session, &["notice"]).await;
        let own = |notice: &&Value| notice["title"] == "The agent other acts by its own rules, without asking nuncio";
        assert_eq!(notices.iter().filter(own).count(), 1, "{notices:?}");
    }
}

#[tokio::test]
async fn settings_without_effect_on_the_denied_calls_refuse_nothing() {
    let edits = "[permissions]\nrules = [{kind = \"write\", path = \"new.txt\", policy = \"deny\"}]\n";
    let others =
        "[permissions]\nrules = [{tool = \"fetch\", policy = \"deny\"}, {tool = \"bash\", pattern = \"rm *\", policy = \"ask\"}]\n";
    // Codex asks before each change, whatever its files of rules say.
    let home_with_file = home(edits).await;
    home_with_file.put("../.codex/rules/default.rules", "prefix_rule(pattern=[\"rm\"], decision=\"allow\")\n");
    // A sandbox does not decide about what Codex asks.
    let wide = home(&("config = '{\"sandbox_mode\": \"danger-full-access\"}'\n".to_owned() + DENIED)).await;
    let never = home(&("config = '{\"approval_policy\": \"never\"}'\n".to_owned() + others)).await;
    for (home, prompt, said) in
        [(home_with_file, "edit", "[decline]"), (wide, "run rm kept", "[decline]"), (never, "whole", "never streamed")]
    {
        let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
        assert_eq!(turn(&mut agent, &session, prompt, &[]).await.0, said);
        agent.finish().await;
    }
}

#[tokio::test]
async fn agent_rules_are_missing_where_codex_asks() {
    let home = home("").await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.turn(&session, "say").await;
    let view = agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
    assert_eq!((&view["agent"], &view["agentRules"]), (&json!("other"), &Value::Null));
    agent.finish().await;
}

#[tokio::test]
async fn requirement_that_keeps_codex_from_asking_fails_the_start() {
    let home = home_of("codex", CODEX, &["managed"], "").await;
    let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
    let failed = agent.failure(&session, "run rm kept").await;
    assert!(failed["message"].as_str().unwrap().contains("approvalPolicy \"on-request\", not untrusted"), "{failed}");
    assert!(failed["data"]["hint"].as_str().unwrap().contains("\"approval_policy\": \"on-request\""), "{failed}");
    agent.finish().await;
}

#[tokio::test]
async fn policies_follow_the_mode_also_after_a_restart() {
    let home = home("").await;
    let asks = ["untrusted", "readOnly"].map(String::from);
    let plans = ["never", "readOnly"].map(String::from);
    let found = policies(&home, &[], &["ask", "plan", "accept-edits", "auto"]).await;
    assert_eq!(found, [&asks, &plans, &asks, &asks].map(Clone::clone));
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.turn(&session, "say").await;
    agent.kill().await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.load(&home, &session).await;
    let (_, updates) = agent.turn(&session, "history").await;
    let said = text(&updates, "agent_message_chunk");
    let resumed = said.split(" / ").next().unwrap().strip_prefix("thread/resume ").unwrap();
    let resumed: Value = serde_json::from_str(resumed).unwrap();
    let given = ["sandbox", "approvalPolicy", "approvalsReviewer"].map(|field| resumed[field].as_str().unwrap());
    assert_eq!(given, ["read-only", "untrusted", "user"]);
    agent.finish().await;
}

#[tokio::test]
async fn codex_asks_in_the_sandbox_of_nuncio() {
    needs_linux!("sandbox");
    let home = home(DENIED).await;
    let found = policies(&home, &["--sandbox", "workspace-write"], &["auto", "plan"]).await;
    assert_eq!(found, [["untrusted", "externalSandbox"], ["never", "externalSandbox"]].map(|row| row.map(String::from)));
    let (mut agent, session) = session(&home, &["--sandbox", "workspace-write", "--mode", "auto"]).await;
    assert_eq!(turn(&mut agent, &session, "run rm kept", &[]).await.0, "[decline]");
    agent.finish().await;
    assert!(home.get("kept").is_some());
}

#[tokio::test]
async fn chat_says_that_codex_acts_by_its_own_rules() {
    const SIZE: (u16, u16) = (24, 100);
    let home = home("config = '{\"approval_policy\": \"on-request\"}'\n").await;
    let mut terminal = home.terminal(&["chat", "--agent", "other", "--mode", "ask"]);
    terminal.resize(SIZE.0, SIZE.1);
    terminal.until_screen("ask · other: own rules", SIZE).await;
    terminal.say("/status\r").await;
    terminal.until_screen("own rules  approval_policy = \"on-request\" in config of [agents.other]\n", SIZE).await;
    terminal.say("\u{4}").await;
    terminal.end().await;
}
