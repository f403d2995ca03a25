//! Settings of a session that its hosted agent follows or refuses.

use serde_json::{Value, json};

use super::{AGENT, allowed, bodies, claude_code, codex, home_of, hosted, opencode, played, session, trust};
use harness::{Agent, Home, Reply, text};

const DOCUMENT: &str = include_str!("../../../docs/AGENTS.md");

/// The rows of the table in docs/AGENTS.md: the setting, and its cell for each agent.
fn table() -> (Vec<&'static str>, Vec<(&'static str, Vec<&'static str>)>) {
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    let mut lines = DOCUMENT.lines().skip_while(|line| !line.starts_with("| setting | acp |"));
    let agents = cells(lines.next().expect("the table")).split_off(1);
    let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(|line| {
        let mut row = cells(line);
        let means = row.split_off(1);
        (row[0], means)
    });
    (agents, rows.collect())
}

/// A home with an agent for each column of the table.
async fn home_of_all(more: &str) -> Home {
    let scripts = [
        ("acp", "acp", AGENT),
        ("claude-agent-acp", "acp", AGENT),
        ("claude-code", "claude-code", claude_code::CLAUDE),
        ("codex", "codex", codex::CODEX),
        ("opencode", "opencode", opencode::SERVER),
    ];
    let agents = scripts.map(|(name, kind, script)| played(name, kind, script, &[name]));
    let home = Home::new();
    home.config(&(allowed(&scripts.map(|(name, ..)| name)) + &agents.concat() + more));
    trust(&home).await;
    home
}

/// Sets a setting for a session of an agent. Returns the error, if any; `None` for a setting that
/// no client sets.
async fn set(agent: &mut Agent, home: &Home, name: &str, setting: &str) -> Option<Result<Value, Value>> {
    let limit = |field: &str| json!({"budget": {field: 1000}});
    let appended = json!({"mode": "append", "content": [{"type": "text", "text": "Rhyme."}]});
    let (mut ours, mut params) = (json!({}), json!({"cwd": home.work(), "mcpServers": []}));
    match setting {
        "`model`" => ours = json!({"model": "large"}),
        "`thinking`" => ours = json!({"thinking": "high"}),
        "`systemPrompt`, replaced" => ours = json!({"systemPrompt": "Rhyme."}),
        "`systemPrompt`, appended" => params["systemPrompt"] = appended,
        "`tools`" | "`messages`" | "`compact`" => {
            let session = hosted(agent, home, name).await;
            let messages = json!([{"role": "user", "parts": [{"type": "text", "text": "x"}]}]);
            let (method, params) = match setting {
                "`tools`" => ("configure", json!({"sessionId": session, "tools": ["Read"]})),
                "`messages`" => ("replace_messages", json!({"sessionId": session, "messages": messages})),
                _ => ("compact", json!({"sessionId": session})),
            };
            return Some(agent.request(&format!("_nuncio/session/{method}"), params).await);
        }
        _ => ours = limit(setting.strip_prefix("`budget.")?.trim_end_matches('`')),
    }
    ours["agent"] = name.into();
    params["_meta"] = json!({"nuncio": ours});
    Some(agent.request("session/new", params).await)
}

#[tokio::test]
async fn settings_are_followed_or_refused_as_documented() {
    let home = home_of_all("").await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let (agents, rows) = table();
    let mut tried = 0;
    for (setting, means) in rows {
        for (name, means) in agents.iter().zip(means) {
            let Some(result) = set(&mut agent, &home, name, setting).await else { continue };
            tried += 1;
            match means {
                "no" => {
                    let error = result.unwrap_err();
                    let expected = format!("the agent {name} cannot follow this setting");
                    assert!(error["message"].as_str().unwrap().contains(&expected), "{setting} {name}: {error}");
                    assert_eq!(error["data"]["code"], "invalid_params");
                }
                _ => assert!(result.is_ok(), "{setting} {name}: {result:?}"),
            }
        }
    }
    assert_eq!(tried, 11 * agents.len());
    agent.finish().await;
}

#[tokio::test]
async fn flags_that_an_agent_cannot_follow_are_refused() {
    let home = home_of_all("").await;
    for (flags, refused) in [
        (&["--agent", "acp", "--system-prompt", "Rhyme."][..], "systemPrompt"),
        (&["--agent", "opencode", "--thinking", "high"], "thinking"),
        (&["--agent", "acp", "--max-requests", "3"], "budget.maxRequests"),
        (&["--agent", "acp", "--tools", "read"], "tools"),
    ] {
        let ran = home.run(&[&["run", "say"], flags].concat(), "").await;
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(&format!("{refused}: the agent {} cannot follow this setting", flags[1])), "{ran:?}");
    }
    let ran = home.run(&["run", "chosen", "--agent", "codex", "--sandbox", "off", "--model", "other"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[tokio::test]
async fn claude_code_starts_with_the_settings_of_the_session_and_restarts_for_others() {
    let home = home_of("claude-code", claude_code::CLAUDE, &[], "").await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let appended = json!({"mode": "append", "content": [{"type": "text", "text": "Rhyme."}]});
    let ours = json!({"agent": "other", "systemPrompt": "You are terse.", "thinking": "high", "model": "deep"});
    let params = json!({"cwd": home.work(), "mcpServers": [], "systemPrompt": appended, "_meta": {"nuncio": ours}});
    let session = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
    let arguments = async |agent: &mut Agent| -> Vec<String> {
        let (_, updates) = agent.turn(&session, "arguments").await;
        serde_json::from_str(&text(&updates, "agent_message_chunk")).unwrap()
    };
    let value = |arguments: &[String], name: &str| {
        arguments.iter().position(|argument| argument == name).map(|place| arguments[place + 1].clone())
    };
    let first = arguments(&mut agent).await;
    for (name, expected) in [
        ("--system-prompt", Some("You are terse.")),
        ("--append-system-prompt", Some("Rhyme.")),
        ("--effort", Some("high")),
        ("--tools", None),
        ("--resume", None),
    ] {
        assert_eq!(value(&first, name).as_deref(), expected, "{name}: {first:?}");
    }
    let (_, updates) = agent.turn(&session, "model").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "deep");
    let tools = json!({"sessionId": session, "tools": ["Read", "Bash"], "systemPrompt": null});
    agent.call("_nuncio/session/configure", tools).await;
    let second = arguments(&mut agent).await;
    assert_eq!(value(&second, "--tools").as_deref(), Some("Read,Bash"));
    assert_eq!(value(&second, "--system-prompt"), None);
    assert_eq!(value(&second, "--resume"), value(&first, "--session-id"));
    agent.finish().await;
}

#[tokio::test]
async fn other_agents_receive_the_system_prompt_and_the_model() {
    let home = home_of_all("").await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let appended = json!({"mode": "append", "content": [{"type": "text", "text": "Rhyme."}]});
    for (name, prompt, said) in [
        ("codex", "instructions", "You are terse. Rhyme."),
        ("claude-agent-acp", "meta", r#""systemPrompt": "You are terse.\n\nRhyme.""#),
        ("opencode", "system", "Rhyme."),
    ] {
        let replaced = (name != "opencode").then_some("You are terse.");
        let ours = json!({"agent": name, "systemPrompt": replaced});
        let params = json!({"cwd": home.work(), "mcpServers": [], "systemPrompt": appended, "_meta": {"nuncio": ours}});
        let session = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
        let (_, updates) = agent.turn(&session, prompt).await;
        let answer = text(&updates, "agent_message_chunk");
        assert!(answer.contains(said), "{name}: {answer}");
    }
    let session = hosted(&mut agent, &home, "acp").await;
    let model = json!({"sessionId": session, "configId": "model", "value": "large"});
    agent.call("session/set_config_option", model).await;
    let (_, updates) = agent.turn(&session, "model").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "large");
    agent.finish().await;
}

#[tokio::test]
async fn conversations_are_compacted_by_the_agents() {
    let home = home_of_all("").await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let codex = hosted(&mut agent, &home, "codex").await;
    agent.turn(&codex, "say").await;
    agent.turn(&codex, "/compact").await;
    let opencode = hosted(&mut agent, &home, "opencode").await;
    agent.turn(&opencode, "say").await;
    let (stop, updates) = agent.turn(&opencode, "/compact").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", ""));
    let (_, updates) = agent.turn(&opencode, "summary").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "by fake/model");
    agent.finish().await;
    let calls = bodies(&home, &codex, &["tool.started"]).await;
    assert_eq!(calls.iter().map(|call| &call["title"]).collect::<Vec<_>>(), ["Compact the context"]);
    let notices = bodies(&home, &opencode, &["notice"]).await;
    let notices: Vec<&Value> = notices.iter().map(|notice| &notice["title"]).collect();
    assert_eq!(notices, ["The agent has replaced its conversation by a summary"]);
}

#[tokio::test]
async fn another_model_and_settings_of_files_are_reported_once() {
    let settings = "[budget]\nmax_cost = 9.0\n";
    let replaced = ["The agent other uses another model", "claude-opus-5-5, not claude-opus-4-1"];
    let not_followed = ["The agent other does not follow some of nuncio's settings", "budget.maxCost"];
    for (kind, script, more, expected) in
        [("claude-code", claude_code::CLAUDE, "", replaced), ("codex", codex::CODEX, settings, not_followed)]
    {
        let home = home_of(kind, script, &[], more).await;
        let (mut agent, session) = session(&home, &[]).await;
        if more.is_empty() {
            let model = json!({"sessionId": session, "configId": "model", "value": "claude-opus-4-1"});
            agent.call("session/set_config_option", model).await;
        }
        for prompt in ["say", "replaced claude-opus-5-5", "say", "say"] {
            agent.turn(&session, prompt).await;
        }
        agent.finish().await;
        let notices = bodies(&home, &session, &["notice"]).await;
        let notices = notices.iter().map(|notice| [&notice["title"], &notice["description"]]);
        let notices: Vec<_> = notices.filter(|[title, _]| title.as_str().unwrap().starts_with("The agent other")).collect();
        assert_eq!(json!(notices), json!([expected]), "{kind}");
    }
}

/// The budget as the field of a prompt.
fn within(session: &str, prompt: &str, budget: &Value) -> Value {
    let text = json!([{"type": "text", "text": prompt}]);
    json!({"sessionId": session, "prompt": text, "_meta": {"nuncio": {"budget": budget}}})
}

#[tokio::test]
async fn reached_limit_interrupts_the_agent() {
    let home = home_of_all("").await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = hosted(&mut agent, &home, "codex").await;
    agent.otherwise = Reply::Pick("reject_once");
    for (prompt, budget, used) in [
        ("spend 1", json!({"maxTokens": 100}), "this turn has used 101 of 100 tokens"),
        ("spend 2", json!({"maxRequests": 2}), "this turn has used 2 of 2 model requests"),
        ("wait", json!({"maxWallS": 1}), "this turn has used 1 of 1 s"),
    ] {
        let id = agent.send("session/prompt", within(&session, prompt, &budget)).await;
        assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "max_turn_requests", "{prompt}");
        let notices = bodies(&home, &session, &["notice"]).await;
        let last = notices.last().unwrap();
        assert_eq!(last["title"], "The budget is used up");
        assert!(last["description"].as_str().unwrap().starts_with(used), "{last}");
    }
    let asked = agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").count();
    assert_eq!(asked, 3);
    agent.finish().await;
}

#[tokio::test]
async fn limit_is_reported_if_the_agent_reports_no_usage() {
    let home = home_of_all("").await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let session = hosted(&mut agent, &home, "acp").await;
    for budget in [json!({"maxTokens": 1000}), json!({"maxWallS": 1000})] {
        let id = agent.send("session/prompt", within(&session, "say", &budget)).await;
        assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "end_turn");
    }
    // A cancelled turn may have used nothing.
    let id = agent.send("session/prompt", within(&session, "wait", &json!({"maxTokens": 1000}))).await;
    agent.until_update("tool_call").await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    agent.finish().await;
    let notices = bodies(&home, &session, &["notice"]).await;
    let titles: Vec<&Value> = notices.iter().map(|notice| &notice["title"]).collect();
    assert_eq!(titles, ["The agent acp reported no usage"]);
}

#[tokio::test]
async fn sandboxed_agent_writes_only_below_its_session() {
    needs_linux!("sandbox");
    let line = "touch made; touch ../outside; touch $TMPDIR/x ../.claude/x && echo ok";
    for (flags, setting, made) in [
        (&["--mode", "auto"][..], "sandbox = \"workspace-write\"\n", true),
        (&["--mode", "auto", "--sandbox", "read-only"], "sandbox = \"workspace-write\"\n", false),
        (&["--mode", "auto", "--sandbox", "workspace-write"], "", true),
    ] {
        let home = home_of("claude-code", claude_code::CLAUDE, &[], setting).await;
        let (mut agent, session) = session(&home, flags).await;
        let (_, updates) = agent.turn(&session, &format!("run {line}")).await;
        assert_eq!(text(&updates, "agent_message_chunk"), "[allow]");
        let outside = home.work().parent().unwrap().join("outside");
        assert_eq!((home.get("made").is_some(), outside.exists()), (made, false), "{flags:?}");
        agent.finish().await;
        let calls = bodies(&home, &session, &["tool.completed"]).await;
        assert_eq!(calls[0]["output"][0]["text"], "ok\n", "{calls:?}");
        // Without the flag, another process works outside of the sandbox.
        if setting.is_empty() {
            let ran = home.run(&["run", "--resume", &session, "--mode", "auto", "run touch ../outside"], "").await;
            assert_eq!((ran.code, outside.exists()), (0, true), "{ran:?}");
        }
    }
}

/// The first process of a sandboxed agent replaces what it can write by links; the second one must
/// not write where they lead.
#[tokio::test]
async fn sandboxed_agent_does_not_choose_where_the_next_process_writes() {
    needs_linux!("sandbox");
    let escape = "touch ../outside /var/tmp/outside-PID DATA/outside";
    let replaced = "echo $TMPDIR > first";
    // The kind of the agent, a word of its command, and a command of the first process.
    for (kind, word, first) in [
        ("acp", "", "rm -rf $TMPDIR; ln -s / $TMPDIR"),
        ("acp", "", "mv $TMPDIR $TMPDIR-old; ln -s / $TMPDIR"),
        ("acp", "", "mv ${TMPDIR%/*} ${TMPDIR%/*}-old; ln -s / ${TMPDIR%/*}"),
        ("acp", "", "ln -s / $TMPDIR/link; chmod 0 $TMPDIR"),
        ("acp", "", "mkdir -p DATA/agents/other; rm -rf DATA/agents/other/tmp; ln -s / DATA/agents/other/tmp"),
        ("acp", "", "rm -rf DATA/agents/other; ln -s / DATA/agents/other"),
        ("acp", "", "rm -rf sub; ln -s / sub"),
        ("acp", "", "rm -rf sub; ln -s ../.. sub"),
        (
            "acp",
            "",
            "mkdir -p g/worktrees/x; echo gitdir: g/worktrees/x > .git; echo $PWD/.git > g/worktrees/x/gitdir; ln -s / g/objects",
        ),
        ("acp", "codex-acp", "mv $CODEX_HOME $CODEX_HOME-old; ln -s / $CODEX_HOME"),
        ("acp", "codex-acp", "rm -rf $CODEX_HOME/sessions; ln -s / $CODEX_HOME/sessions"),
        ("codex", "codex", "rm -rf ~/.codex; ln -s / ~/.codex"),
        ("claude-code", "claude", "rm -rf ~/.claude; ln -s / ~/.claude"),
    ] {
        let script = super::PLAYED.iter().find(|(played, _)| *played == kind).unwrap().1;
        let home = home_of(kind, script, &[word], "sandbox = \"workspace-write\"\n").await;
        home.put("sub/file", "");
        let data = home.data().display().to_string();
        let mut agent = home.start(&["--mode", "auto"]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let meta = json!({"nuncio": {"agent": "other"}});
        let directories = [home.work().join("sub")];
        let params = json!({"cwd": home.work(), "mcpServers": [], "additionalDirectories": directories, "_meta": meta});
        let session = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
        agent.turn(&session, &format!("run {replaced}; {}", first.replace("DATA", &data))).await;
        agent.finish().await;
        assert!(home.get("first").is_some(), "{first}");
        let pid = std::process::id().to_string();
        let line = escape.replace("PID", &pid).replace("DATA", &data);
        let again = format!("run {line}; echo $TMPDIR > second; touch $TMPDIR/usable && echo ok");
        let ran = home.run(&["run", "--resume", &session, "--mode", "auto", &again], "").await;
        let elsewhere = std::path::PathBuf::from(format!("/var/tmp/outside-{pid}"));
        let made = [home.work().join("../outside"), home.data().join("outside"), elsewhere.clone()].map(|path| path.exists());
        let _ = std::fs::remove_file(elsewhere);
        assert_eq!(made, [false; 3], "{kind} {first}: {ran:?}");
        match home.get("second") {
            Some(second) => assert_ne!(home.get("first"), Some(second), "{first}"),
            // The agent does not start.
            None => assert!(ran.stderr.contains("cannot be writable: a symlink"), "{first}: {ran:?}"),
        }
    }
}
