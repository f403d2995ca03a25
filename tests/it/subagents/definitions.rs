//! Agent definitions: where they are found, what they set, and what an untrusted project may not.

use serde_json::{Value, json};

use harness::steps::{calls, says, task};
use harness::subagents::define;
use harness::{Agent, Home};

async fn subagents(agent: &mut Agent, home: &Home) -> Vec<Value> {
    agent.call("_nuncio/agent/list", json!({"cwd": home.work()})).await["subagents"].as_array().unwrap().clone()
}

/// Lines of a frontmatter, and what they mean: the list of tools and the mode, or a part of the
/// reason for which the definition is skipped.
type Case = (&'static str, Result<(&'static str, &'static str), &'static str>);

const ALL: &str = "";
const NO_BASH: &str = "* !bash !git_branch !git_commit !verify";

const RESTRICTIONS: &[Case] = &[
    // Claude Code: tools.
    ("tools: Read, Grep", Ok(("read grep", ""))),
    ("tools: Read Grep", Ok(("read grep", ""))),
    ("tools: [\"Read\", 'Grep'] # not Bash", Ok(("read grep", ""))),
    ("tools: Read # not Bash", Ok(("read", ""))),
    ("tools: [Read,\n  Grep]", Ok(("read grep", ""))),
    ("tools: # none but\n  - Read\n  # - Bash\n  - Grep # search", Ok(("read grep", ""))),
    ("Tools: Read", Ok(("read", ""))),
    ("\"tools\": Read", Ok(("read", ""))),
    ("tools:", Ok((" ", ""))),
    ("tools: []", Ok((" ", ""))),
    ("tools: NoSuchTool", Err("tools: there is no tool NoSuchTool (line 4)")),
    ("tools: NoSuchTool, WebSearch", Err("there is no tool NoSuchTool and no tool WebSearch")),
    ("tools: NoSuchTool, Read", Ok(("read", ""))),
    ("tools: ['*', NoSuchTool]", Ok((ALL, ""))),
    ("tools: '*'", Ok((ALL, ""))),
    ("tools: Bash(*)", Ok(("bash", ""))),
    ("tools: Bash(git:*), Read", Err("Bash(git:*): the calls of Bash cannot be limited")),
    ("tools: [Bash(git log:*, git diff:*)]", Err("cannot be limited")),
    ("tools: Task(worker)", Err("Task(worker): the calls of Task cannot be limited")),
    ("tools: Read(", Err("cannot be limited")),
    ("tools: mcp__docs, mcp__db__query", Ok(("mcp__docs__* mcp__db__query", ""))),
    // Claude Code: disallowedTools.
    ("disallowedTools: Bash", Ok((NO_BASH, ""))),
    ("disallowed-tools: Bash", Ok((NO_BASH, ""))),
    ("disallowed_tools:\n  - Bash", Ok((NO_BASH, ""))),
    ("disallowedTools:\n  -\n    Bash", Ok((NO_BASH, ""))),
    ("disallowedTools: PowerShell", Ok((NO_BASH, ""))),
    ("tools: Read, Bash\ndisallowedTools: Bash", Ok(("read bash !bash !git_branch !git_commit !verify", ""))),
    ("disallowedTools: Write, Edit, NotebookEdit", Ok(("* !write !apply_patch !edit !apply_patch", ""))),
    ("disallowedTools: Agent, AskUserQuestion", Ok(("* !task", ""))),
    ("disallowedTools: WebFetch, WebSearch", Ok(("* !fetch", ""))),
    ("disallowedTools: apply_patch", Ok(("* !apply_patch", ""))),
    ("disallowedTools: mcp__docs, mcp__db__drop.all", Ok(("* !mcp__docs* !mcp__db__drop_all*", ""))),
    ("disallowedTools: '*'", Ok(("* !*", ""))),
    ("disallowedTools: []", Ok((ALL, ""))),
    ("disallowedTools: Bash(rm:*)", Err("Bash(rm:*): the calls of Bash cannot be limited")),
    ("disallowedTools: Bsh", Err("there is no tool Bsh")),
    ("disallowedTools: Git*", Err("there is no tool Git*")),
    ("disallowedTools: &x [Bash]", Err("anchors are not supported (line 4)")),
    ("disallowedTools: !!str Bash", Err("tags are not supported")),
    (
        "disallowedTools: [Bash, # no commands\n  'Write', \"Edit\"]",
        Ok(("* !bash !git_branch !git_commit !verify !write !apply_patch !edit !apply_patch", "")),
    ),
    ("disallowedTools:\n- Bash # no commands", Ok((NO_BASH, ""))),
    ("disallowedTools: >-\n  Bash", Ok((NO_BASH, ""))),
    // Modes.
    ("permissionMode: plan", Ok((ALL, "plan"))),
    ("permission-mode: Plan # reads only", Ok((ALL, "plan"))),
    ("permissionMode: default", Ok((ALL, "ask"))),
    ("permissionMode: acceptEdits", Ok((ALL, "accept-edits"))),
    ("permissionMode: bypassPermissions", Ok((ALL, "auto"))),
    ("permissionMode: plan\nmode: auto", Ok((ALL, "plan"))),
    ("mode: plan\npermissionMode: acceptEdits", Ok((ALL, "plan"))),
    ("permissionMode: dontAsk", Err("dontAsk is not supported")),
    ("permissionMode: {a: plan}", Err("is not supported")),
    ("mode: plna", Err("mode: plna is not supported (line 4)")),
    ("mode: plan # read only", Ok((ALL, "plan"))),
    ("mode: \"plan\" # read only", Ok((ALL, "plan"))),
    ("mode: [plan]", Ok((ALL, "plan"))),
    ("mode: |\n  plan", Ok((ALL, "plan"))),
    ("mode:\n  plan", Ok((ALL, "plan"))),
    ("mode: primary", Err("mode: primary is not supported")),
    ("mode: subagent", Ok((ALL, ""))),
    // Fields that are not applied.
    ("hooks:\n  PreToolUse:\n    - matcher: Bash", Err("the field hooks")),
    ("mcpServers: [docs]", Err("the field mcpServers")),
    ("isolation: worktree", Err("the field isolation")),
    ("allowed-tools: Read", Err("the field allowed-tools")),
    // OpenCode.
    ("permission:\n  edit: deny", Err("the field permission")),
    ("tools:\n  write: false\n  bash: false", Err("expected a list")),
    ("tools: {bash: false}", Err("expected a list")),
    ("disable: true", Err("the field disable")),
    ("hidden: true", Err("the field hidden")),
    // Copilot, Cursor, Gemini CLI, Qwen Code.
    ("disable-model-invocation: true", Err("the field disable-model-invocation")),
    ("infer: false", Err("the field infer")),
    ("agents: [worker]", Err("the field agents")),
    ("target: vscode", Err("the field target")),
    ("mcp-servers:\n  docs:\n    tools: ['*']", Err("the field mcp-servers")),
    ("readonly: true", Err("the field readonly")),
    ("kind: remote", Err("the field kind")),
    ("timeout_mins: 5", Err("the field timeout_mins")),
    ("approvalMode: plan", Err("the field approvalMode")),
    ("sandbox: read-only", Err("the field sandbox")),
    ("NoSuchField: x", Ok((ALL, ""))),
    ("disalowedTools: Bash", Err("similar to disallowedtools")),
    ("tool: Read", Err("similar to tools, which restricts the agent (line 4)")),
    ("permision-mode: plan", Err("similar to permissionmode")),
    // Limits.
    ("maxTurns: 0", Err("maxTurns: expected a number above 0, got 0")),
    ("max_turns: many", Err("expected a number")),
    // Text that is no YAML.
    ("when_to_use: Use when: a", Ok((ALL, ""))),
    ("title: [a] [b]\ntools: Read", Ok(("read", ""))),
    ("title: @x\nmode: plan", Ok((ALL, "plan"))),
    ("tools: Read: x", Err("the field tools is not YAML")),
    ("tools: *", Err("the field tools is not YAML")),
    ("tools: - Read", Err("the field tools is not YAML")),
    ("tools:Read", Err("the field tools is not YAML")),
    ("\"tools: Read", Err("the field tools is not YAML")),
    ("title: a: b\n  tools: Read", Err("the field title is not YAML")),
    ("title: a: b\n- tools: Read", Err("the field title is not YAML")),
    // YAML that is not understood.
    ("tools: Read\ntools: Bash", Err("occurs twice")),
    ("tools: Read\nTools: Bash", Err("occurs twice")),
    ("? disallowedTools\n: Bash", Ok((NO_BASH, ""))),
    ("<<: *base", Err("is no field: <<")),
    ("color: red\rdisallowedTools: Bash", Err("control characters")),
    ("color: red\u{85}disallowedTools: Bash", Err("control characters")),
    // What restricts nothing.
    ("model: sonnet\ncolor: '#ff0000'\neffort: high\nmemory: user\nskills: a, b\nbackground: true", Ok((ALL, ""))),
    ("hooks:\nmcpServers: []", Ok((ALL, ""))),
];

#[tokio::test]
async fn restrictions_of_other_programs_are_applied_or_the_definition_is_skipped() {
    let home = Home::new();
    home.put(".git/HEAD", "ref: refs/heads/main\n");
    for (number, (head, _)) in RESTRICTIONS.iter().enumerate() {
        let text = format!("---\nname: case-{number}\ndescription: A case.\n{head}\n---\nWork.\n");
        // At most 64 definitions are used.
        home.put(&format!("d{}/.claude/agents/{number}.md", number / 50), &text);
    }
    let (mut agent, _) = home.session(json!([]), &[]).await;
    for (number, (head, expected)) in RESTRICTIONS.iter().enumerate() {
        let cwd = home.work().join(format!("d{}", number / 50));
        let found = agent.call("_nuncio/agent/list", json!({"cwd": cwd})).await;
        let named = |list: &str| -> Option<Value> {
            found[list].as_array().unwrap().iter().find(|one| one["name"] == format!("case-{number}")).cloned()
        };
        match expected {
            Ok((tools, mode)) => {
                let one = named("subagents").unwrap_or_else(|| panic!("{head:?}: {:?}", named("skipped")));
                let list = one["tools"].as_array().map(|list| list.iter().map(|name| name.as_str().unwrap()).collect::<Vec<_>>());
                let list = list.map(|list| if list.is_empty() { " ".into() } else { list.join(" ") }).unwrap_or_default();
                assert_eq!((list.as_str(), one["mode"].as_str().unwrap_or_default()), (*tools, *mode), "{head:?}");
            }
            Err(reason) => {
                let one = named("skipped").unwrap_or_else(|| panic!("{head:?}: {:?}", named("subagents")));
                assert!(one["reason"].as_str().unwrap().contains(reason), "{head:?}: {one}");
            }
        }
    }
    agent.finish().await;
}

#[tokio::test]
async fn parts_of_a_definition_without_effect_are_reported() {
    let home = Home::new();
    home.put(".git/HEAD", "ref: refs/heads/main\n");
    let head = "name: a\ndescription: Use when: a\nmodel: sonnet\ncolour: red\ntools: Read, NoSuchTool";
    home.put(".claude/agents/a.md", &format!("--- \n{head}\n---\nWork.\n"));
    let (mut agent, session) = home.session(json!([{"text": "ok"}]), &[]).await;
    let found = subagents(&mut agent, &home).await;
    assert_eq!((&found[0]["description"], &found[0]["tools"]), (&json!("Use when: a"), &json!(["read"])));
    agent.turn(&session, "go").await;
    agent.finish().await;
    let log = home.log(&session).await;
    let notices = harness::log::bodies(&log, "notice");
    let text = notices.iter().find_map(|notice| notice["description"].as_str().filter(|text| text.contains("a.md"))).unwrap();
    for part in [
        "the model sonnet is unknown: the model of the session is used (line 4)",
        "the field colour is unknown and has no effect (line 5)",
        "tools: there is no tool NoSuchTool (line 6)",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn skipped_definitions_are_reported_and_not_replaced_by_others() {
    let home = Home::new();
    define(&home, "reviewer", "", json!([]));
    home.put(".git/HEAD", "ref: refs/heads/main\n");
    home.put(".claude/agents/a.md", "---\nname: Reviewer\ndescription: x\ntools: Bash(git:*)\n---\nReview.\n");
    home.put(".claude/agents/b.md", "---\nname: other\n");
    home.put(".claude/agents/README.md", "# Agents\n");
    let reviewer = json!([calls(&[task("reviewer", "work")]), says("a.md is skipped: tools: Bash(git:*)", "ok")]);
    for trusted in [false, true] {
        if trusted {
            home.run(&["trust", "."], "").await;
        }
        let steps = if trusted { reviewer.clone() } else { json!([{"text": "ok"}]) };
        let (mut agent, session) = home.session(steps, &[]).await;
        // A definition of an untrusted project does not replace the user's, and is not reported.
        let names = |list: &Value| list.as_array().unwrap().iter().map(|one| one["name"].clone()).collect::<Vec<_>>();
        let listed = agent.call("_nuncio/agent/list", json!({"cwd": home.work()})).await;
        let expected: (&[&str], &[&str]) = if trusted { (&[], &["b", "Reviewer"]) } else { (&["reviewer"], &["b"]) };
        assert_eq!((names(&listed["subagents"]), names(&listed["skipped"])), (json_list(expected.0), json_list(expected.1)));
        assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
        agent.finish().await;
        let log = home.log(&session).await;
        let notices = harness::log::bodies(&log, "notice");
        let notice = notices.iter().find(|notice| notice["title"].as_str().unwrap().contains("are skipped")).unwrap();
        let text = notice["description"].as_str().unwrap();
        assert!(text.contains("b.md is skipped: the line --- after the front matter is missing"), "{text}");
        assert_eq!(text.contains("a.md is skipped"), trusted, "{text}");
    }
}

fn json_list(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| json!(name)).collect()
}

#[tokio::test]
async fn restrictions_apply_to_subagents_of_subagents() {
    let home = Home::new();
    let bash = || harness::steps::bash("touch made");
    let no_bash = "there is no tool bash";
    define(&home, "inner", "", json!([bash(), says(no_bash, "inner has no bash")]));
    define(
        &home,
        "outer",
        "disallowedTools: Bash\n",
        json!([bash(), says(no_bash, ""), calls(&[task("inner", "work")]), says("inner has no bash", "neither has outer")]),
    );
    let (mut agent, session) =
        home.session(json!([calls(&[task("outer", "work")]), says("neither has outer", "ok")]), &["--mode", "auto"]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    assert_eq!(home.get("made"), None);
    agent.finish().await;
}

#[tokio::test]
async fn call_of_the_model_does_not_widen_the_mode_of_a_definition() {
    let home = Home::new();
    let write = json!({"tool_calls": [{"name": "write", "input": {"file_path": "made", "content": "x"}}]});
    define(&home, "planner", "permissionMode: plan\n", json!([write, says("plan", "refused")]));
    let start = json!({"tool_calls": [{"name": "task", "input": {"prompt": "work", "agent": "planner", "mode": "auto"}}]});
    let (mut agent, session) = home.session(json!([start, says("refused", "ok")]), &["--mode", "auto"]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    assert_eq!(home.get("made"), None);
    agent.finish().await;
}

#[tokio::test]
async fn maximum_of_turns_limits_the_model_requests() {
    let home = Home::new();
    define(&home, "short", "maxTurns: 2\n", json!([harness::steps::bash("true"), harness::steps::bash("true"), {"text": "late"}]));
    let (mut agent, session) =
        home.session(json!([calls(&[task("short", "work")]), says("was stopped", "ok")]), &["--mode", "auto"]).await;
    agent.otherwise = harness::Reply::Pick("reject_once");
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
}

#[tokio::test]
async fn definitions_of_project_and_user_are_listed() {
    let home = Home::new();
    home.put(".git/HEAD", "ref: refs/heads/main\n");
    define(&home, "reviewer", "tools: Read, Grep, LS, WebFetch, Bash(*), NoSuchTool\n", json!([]));
    home.put(".claude/agents/tester.md", "---\nname: tester\ndescription: >\n  Runs the\n  tests\nmodel: sonnet\n---\nTest it.\n");
    home.put(
        ".nuncio/agents/writer.md",
        "---\ndescription: \"Writes: docs\"\ntools:\n  - Write\n  - mcp__docs__find\n---\nWrite.\n",
    );
    home.put(".nuncio/agents/tester.md", "---\nname: tester\ndescription: ours\nmode: plan\nmodel: openai/x\n---\nTest it.\n");
    home.put(".nuncio/agents/none.md", "no frontmatter\n");
    home.put("../secret.md", "---\nname: secret\ndescription: outside\n---\nsecret\n");
    std::os::unix::fs::symlink(home.work().join("../secret.md"), home.work().join(".nuncio/agents/secret.md")).unwrap();
    let (mut agent, _) = home.session(json!([]), &[]).await;
    let found = subagents(&mut agent, &home).await;
    let names: Vec<&str> = found.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["reviewer", "tester", "writer"], "{found:#?}");
    assert_eq!(found[0]["tools"], json!(["read", "grep", "list", "fetch", "bash"]));
    assert_eq!((&found[1]["description"], &found[1]["mode"], &found[1]["model"]), (&json!("ours"), &json!("plan"), &Value::Null));
    assert_eq!((&found[2]["description"], &found[2]["tools"]), (&json!("Writes: docs"), &json!(["write", "mcp__docs__find"])));
    agent.finish().await;

    // After trust, the model of a project's definition counts.
    home.run(&["trust", "."], "").await;
    let (mut agent, _) = home.session(json!([]), &[]).await;
    assert_eq!(subagents(&mut agent, &home).await[1]["model"], "openai/x");
    agent.finish().await;
}

#[tokio::test]
async fn tools_of_a_definition_are_all_that_its_subagent_has() {
    let home = Home::new();
    let refused = "there is no tool bash; available: grep, read";
    define(
        &home,
        "reader",
        "tools: [Read, Grep]\n",
        json!([harness::steps::bash("touch made"), says(refused, "only grep and read")]),
    );
    let (mut agent, session) =
        home.session(json!([calls(&[task("reader", "work")]), says("only grep and read", "ok")]), &["--mode", "auto"]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    assert_eq!(home.get("made"), None);
    agent.finish().await;
}

#[tokio::test]
async fn unknown_agent_is_reported_with_the_known_ones() {
    let home = Home::new();
    define(&home, "reader", "", json!([]));
    let steps = json!([calls(&[task("writer", "work")]), says("there is no agent writer; use one of reader", "ok")]);
    let (mut agent, session) = home.session(steps, &[]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
}

#[tokio::test]
async fn definition_of_an_untrusted_project_does_not_replace_one_of_the_user() {
    let home = Home::new();
    define(&home, "reader", "", json!([says("You are reader", "from the user")]));
    home.put(".nuncio/agents/reader.md", "---\nname: reader\ndescription: other\n---\nYou are another.\n");
    let (mut agent, session) = home.session(json!([calls(&[task("reader", "work")]), says("from the user", "ok")]), &[]).await;
    assert_eq!(agent.turn(&session, "go").await.0, "end_turn");
    agent.finish().await;
}
