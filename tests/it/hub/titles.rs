//! Permission requests that describe a call only by its title, as Gemini CLI does, or not at all.

use serde_json::{Value, json};

use super::{bodies, session, setting, trust};
use harness::{Home, Reply, text};

const RULES: &str = r#"[permissions]
rules = [
  { tool = "bash", pattern = "rm *", policy = "deny" },
  { tool = "bash", pattern = "touch *", policy = "allow" },
]
"#;

/// The mode, a prompt, and then the answer to the agent and the number of questions to the client,
/// which rejects.
type Case = (&'static str, &'static str, &'static str, usize);

async fn check(rules: &str, cases: &[Case]) {
    check_agent(&[], rules, cases).await;
}

/// Checks the cases with these flags of the agent.
async fn check_agent(flags: &[&str], rules: &str, cases: &[Case]) {
    let home = Home::new();
    home.config(&(rules.to_owned() + &setting("other", flags)));
    trust(&home).await;
    home.put("sub/file", "");
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.otherwise = Reply::Pick("reject_once");
    for (mode, prompt, said, asked) in cases {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        let before = agent.questions();
        let (_, updates) = agent.turn(&session, prompt).await;
        let found = (text(&updates, "agent_message_chunk"), agent.questions() - before);
        assert_eq!(found, ((*said).to_owned(), *asked), "{mode}: {prompt}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn rules_apply_to_a_command_that_is_only_in_the_title() {
    check(
        RULES,
        &[
            ("ask", "gemini touch made", "[yes]", 0),
            ("ask", "old-gemini touch made", "[yes]", 0),
            ("ask", "gemini echo hi", "[no]", 1),
            ("auto", "gemini rm made", "[no]", 0),
            ("auto", "old-gemini rm made", "[no]", 0),
            ("auto", "gemini touch x; rm made", "[no]", 0),
            ("plan", "gemini touch made", "[no]", 0),
        ],
    )
    .await;
    let path = "[permissions]\nrules = [{ tool = \"bash\", path = \"sub/**\", policy = \"deny\" }, { tool = \"bash\", path = \"sub\", policy = \"deny\" }]\n";
    check(path, &[("auto", "gemini-sub echo hi", "[no]", 0), ("auto", "gemini echo hi", "[yes]", 0)]).await;
}

#[tokio::test]
async fn commands_in_titles_run_without_a_client_in_mode_auto() {
    let home = Home::new();
    home.config(&setting("other", &[]));
    trust(&home).await;
    for prompt in ["gemini echo hi", "old-gemini echo hi"] {
        let ran = home.run(&["run", "--agent", "other", "--mode", "auto", prompt], "").await;
        assert!(ran.code == 0 && ran.stdout.contains("[yes]"), "{prompt}: {ran:?}");
    }
}

#[tokio::test]
async fn unknown_command_matches_every_deny_rule_and_no_allow_rule() {
    let unknown = [
        "titled touch made",
        "titled Run the tests",
        // The description could contain the end of the command.
        "twice touch made",
        r#"about {"kind": "execute", "rawInput": {}}"#,
        r#"about {"kind": "execute", "rawInput": "touch made"}"#,
        r#"about {"kind": "execute", "rawInput": ["touch made"]}"#,
        r#"about {"kind": "execute", "rawInput": {"command": ""}}"#,
        r#"about {"kind": "execute", "rawInput": {"command": " \n"}}"#,
        r#"about {"kind": "execute", "rawInput": {"command": null}}"#,
        r#"about {"kind": "execute", "rawInput": {"command": []}}"#,
        r#"about {"kind": "execute", "rawInput": {"command": ["touch", 1]}}"#,
        r#"about {"kind": "execute", "rawInput": {"command": {"line": "touch made"}}}"#,
        r#"about {"kind": "execute", "rawInput": {"command": "touch", "args": "made"}}"#,
        r#"about {"kind": "execute", "rawInput": {"cmd": "touch made"}}"#,
        // Only Kimi Code has the arguments in the content.
        r#"kimi {"command": "touch made"}"#,
    ];
    let table = |rules: &'static str, expected: &[(&'static str, &'static str, usize)]| {
        let case =
            |prompt: &&'static str| expected.iter().map(|(mode, said, asked)| (*mode, *prompt, *said, *asked)).collect::<Vec<_>>();
        (rules, unknown.iter().flat_map(case).collect::<Vec<Case>>())
    };
    for (rules, cases) in [
        table("", &[("ask", "[no]", 1), ("auto", "[no]", 1), ("plan", "[no]", 0)]),
        table("[permissions]\ndefault = \"allow\"\n", &[("ask", "[no]", 1)]),
        table("[permissions]\nrules = [{ tool = \"bash\", policy = \"allow\" }]\n", &[("ask", "[no]", 1)]),
        table("[permissions]\nrules = [{ tool = \"bash\", pattern = \"*\", policy = \"allow\" }]\n", &[("ask", "[no]", 1)]),
        table(RULES, &[("ask", "[no]", 0), ("auto", "[no]", 0)]),
        table("[permissions]\nrules = [{ tool = \"bash\", path = \"sub/**\", policy = \"deny\" }]\n", &[("auto", "[no]", 0)]),
        table("[permissions]\nrules = [{ kind = \"exec\", pattern = \"x\", policy = \"ask\" }]\n", &[("auto", "[no]", 1)]),
        // Rules about files are no rules about commands.
        table("[permissions]\nrules = [{ kind = \"write\", path = \"sub/**\", policy = \"deny\" }]\n", &[("auto", "[no]", 1)]),
    ] {
        check(rules, &cases).await;
    }
}

#[tokio::test]
async fn whole_command_counts() {
    let split = r#"about {"kind": "execute", "rawInput": {"command": "rm", "args": ["made"]}}"#;
    let list = r#"about {"kind": "execute", "rawInput": {"command": ["rm"], "args": ["made"]}}"#;
    let other = r#"about {"kind": "other", "rawInput": {"command": "rm made"}}"#;
    let touch = r#"about {"kind": "execute", "rawInput": {"command": "touch", "args": ["made"]}}"#;
    let rules = r#"[permissions]
rules = [
  { tool = "bash", pattern = "rm made", policy = "deny" },
  { tool = "bash", pattern = "touch made", policy = "allow" },
]
"#;
    let cases = [("auto", split, "[no]", 0), ("auto", list, "[no]", 0), ("auto", other, "[no]", 0), ("ask", touch, "[yes]", 0)];
    check(rules, &cases).await;
}

#[tokio::test]
async fn kimi_sends_the_command_before_its_request() {
    check_agent(
        &["Kimi Code CLI"],
        RULES,
        &[
            ("ask", r#"kimi {"command": "touch made"}"#, "[yes]", 0),
            ("ask", r#"kimi {"command": "echo hi"}"#, "[no]", 1),
            ("auto", r#"kimi {"command": "echo hi"}"#, "[yes]", 0),
            ("auto", r#"kimi {"command": "rm made"}"#, "[no]", 0),
            ("auto", r#"kimi {"command": "touch x; rm made"}"#, "[no]", 0),
            // The text is incomplete or has no command.
            ("auto", r#"kimi {"command": "echo hi""#, "[no]", 0),
            ("auto", r#"kimi {"line": "echo hi"}"#, "[no]", 0),
            ("auto", "kimi echo hi this is text", "[no]", 0),
        ],
    )
    .await;
    let url = "[permissions]\nrules = [{ tool = \"fetch\", pattern = \"http://evil/*\", policy = \"deny\" }]\n";
    let case = ("auto", r#"kimi-fetch {"url": "http://evil/x"}"#, "[no]", 0);
    check_agent(&["Kimi Code CLI"], url, &[case]).await;
}

#[tokio::test]
async fn hooks_receive_the_command_or_that_it_is_unknown() {
    let record = "[[hooks]]\nevent = \"tool.execute.before\"\nmatch = \"bash\"\ncommand = [\"sh\", \"-c\", \"cat >> $NUNCIO_WORKSPACE/seen; echo >> $NUNCIO_WORKSPACE/seen\"]\n";
    let home = Home::new();
    home.config(&(record.to_owned() + &setting("other", &["Kimi Code CLI"])));
    trust(&home).await;
    let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
    agent.otherwise = Reply::Pick("reject_once");
    let prompts = [
        r#"kimi {"command": "touch made"}"#,
        "titled touch made",
        r#"about {"kind": "execute", "rawInput": ["touch"]}"#,
        r#"about {"kind": "other", "rawInput": {"command": "touch made"}}"#,
    ];
    for prompt in prompts {
        agent.turn(&session, prompt).await;
    }
    agent.finish().await;
    let seen = home.get("seen").unwrap();
    let seen: Vec<Value> = seen.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect();
    let commands: Vec<&Value> = seen.iter().map(|request| &request["tool"]["input"]["command"]).collect();
    assert_eq!(commands, [&json!("touch made"), &Value::Null, &Value::Null, &json!("touch made")], "{seen:?}");
    assert!(seen.iter().all(|request| request["tool"]["input"].as_object().unwrap().contains_key("command")), "{seen:?}");
}

#[tokio::test]
async fn request_without_kind_and_input_is_never_allowed_by_the_mode() {
    check("", &[("auto", "nameless touch made", "[no]", 1), ("auto", "nothing touch made", "[no]", 1)]).await;
    check("[permissions]\ndefault = \"allow\"\n", &[("ask", "nameless touch made", "[no]", 1)]).await;
}

#[tokio::test]
async fn option_id_with_two_kinds_refuses() {
    let home = Home::new();
    home.config(&setting("other", &[]));
    trust(&home).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.otherwise = Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": "same"}}));
    let (_, updates) = agent.turn(&session, "twins touch made").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "[same]");
    agent.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).await;
    // The id would not tell the agent that the call is allowed.
    let (_, updates) = agent.turn(&session, "twins touch made").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "[cancelled]");
    agent.finish().await;
    let resolved: Vec<Value> = bodies(&home, &session, &["permission.resolved"]).await;
    assert_eq!(resolved[0]["outcome"], "reject_once", "{resolved:?}");
}
