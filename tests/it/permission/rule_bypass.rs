//! Shell syntax around a command, or another path to a file, does not bypass a rule.

use serde_json::{Value, json};

use harness::Home;

/// The result of a `nuncio tool` call: `ok`, `denied`, or the exit code with the output.
async fn outcome(home: &Home, mode: &str, tool: &str, input: Value) -> String {
    let ran = home.run(&["tool", "--mode", mode, tool, &input.to_string()], "").await;
    match ran.code {
        0 => "ok".into(),
        4 => "denied".into(),
        code => format!("{code}: {}", ran.stdout),
    }
}

#[tokio::test]
async fn environment_variable_names_do_not_match_command_patterns() {
    let home = Home::new();
    home.config("[permissions]\nrules = [{ tool = \"bash\", pattern = \"git status *\", policy = \"allow\" }]\n");
    for name in ["git status x", "git", "A", "a b"] {
        let input = json!({ "command": "touch pwned", "env": { name: "" } });
        assert_eq!(outcome(&home, "ask", "bash", input).await, "denied", "{name}");
    }
    assert_eq!(home.get("pwned"), None);
}

#[tokio::test]
async fn denied_command_is_denied_in_any_shell_syntax() {
    let home = Home::new();
    home.config("[permissions]\nrules = [{ tool = \"bash\", pattern = \"rm *\", policy = \"deny\" }]\n");
    home.put("kept", "");
    let dresses = [
        "rm kept",
        "true; rm kept",
        "for f in kept; do rm $f; done",
        "if true; then rm kept; fi",
        "! rm kept",
        ">log rm kept",
        "2> log rm kept",
        r"X=a\ b rm kept",
        "X='a b' rm kept",
        "A+=1 rm kept",
        "(rm kept)",
        "echo `rm kept`",
        " rm kept\n",
    ];
    for command in dresses {
        assert_eq!(outcome(&home, "auto", "bash", json!({ "command": command })).await, "denied", "{command}");
    }
    for value in ["x;y", "it's", "a b", "(", "$HOME"] {
        let input = json!({ "command": "rm kept", "env": { "A": value } });
        assert_eq!(outcome(&home, "auto", "bash", input).await, "denied", "A={value}");
    }
    assert!(home.get("kept").is_some());
    assert_eq!(outcome(&home, "auto", "bash", json!({ "command": "echo rm kept", "env": { "A": "it's; ok" } })).await, "ok");
}

#[tokio::test]
async fn path_rule_matches_for_every_spelling_of_its_path() {
    let home = Home::new();
    home.put("secrets/key", "hunter2");
    std::os::unix::fs::symlink(home.work(), home.work().join("../link")).unwrap();
    let link = home.work().join("../link").display().to_string();
    // The tests' home directory is the parent of the work directory.
    for path in ["secrets/**", "~/work/secrets/**", &format!("{link}/secrets/**"), &format!("{}/secrets/*", home.work().display())]
    {
        home.config(&format!("[permissions]\nrules = [{{ kind = \"read\", path = \"{path}\", policy = \"deny\" }}]\n"));
        assert_eq!(outcome(&home, "auto", "read", json!({ "file_path": "secrets/key" })).await, "denied", "{path}");
        let ran = home.run(&["tool", "grep", r#"{"pattern":"hunter"}"#], "").await;
        assert!(ran.code == 0 && !ran.stdout.contains("hunter2"), "{path}: {ran:?}");
    }
}

#[tokio::test]
async fn protected_files_need_a_rule_that_names_the_path() {
    let home = Home::new();
    let write = |path: &str| json!({ "file_path": path, "content": "x" });
    home.config("[permissions]\nrules = [{ kind = \"write\", policy = \"allow\" }]\n");
    assert_eq!(outcome(&home, "ask", "write", write("a.txt")).await, "ok");
    for path in [".git/hooks/pre-commit", ".nuncio/config.toml", "../home/config.toml", "../home/trusted"] {
        assert_eq!(outcome(&home, "ask", "write", write(path)).await, "denied", "{path}");
    }
    home.config("[permissions]\nrules = [{ kind = \"write\", path = \".git/hooks/*\", policy = \"allow\" }]\n");
    assert_eq!(outcome(&home, "ask", "write", write(".git/hooks/pre-commit")).await, "ok");
}

#[tokio::test]
async fn search_of_an_allowed_directory_includes_its_files() {
    let home = Home::new();
    home.put("src/a.rs", "needle");
    home.config("[permissions]\nrules = [{ kind = \"read\", path = \"src/**\", policy = \"ask\" }]\n");
    let grep = json!([{ "tool_calls": [{ "name": "grep", "input": { "pattern": "needle", "path": "src" } }] }, { "expect": "a.rs", "text": "seen" }]);
    let (mut agent, session) = home.session(grep, &[]).await;
    let (stop, updates) = agent.turn(&session, "look").await;
    assert_eq!((stop.as_str(), harness::text(&updates, "agent_message_chunk").as_str()), ("end_turn", "seen"));
    agent.finish().await;
    // A search of the whole work directory makes no permission request and omits the file.
    let ran = home.run(&["tool", "grep", r#"{"pattern":"needle"}"#], "").await;
    assert!(!ran.stdout.contains("a.rs"), "{ran:?}");
}

#[tokio::test]
async fn exported_variables_make_later_commands_require_permission() {
    let home = Home::new();
    home.config("[permissions]\nrules = [{ tool = \"bash\", pattern = \"true *\", policy = \"allow\" }]\n");
    let bash = |command: &str| json!({"tool_calls": [{"name": "bash", "input": {"command": command}}]});
    let calls =
        [bash("true 1"), bash("export PATH=/elsewhere:$PATH GREETING=hello"), bash("true 1"), bash("export PATH"), bash("true 2")];
    let (mut agent, session) = home.session(json!(calls.iter().chain([&json!({})]).collect::<Vec<_>>()), &[]).await;
    agent.turn(&session, "go").await;
    let asked = |frame: &&Value| frame["method"] == "session/request_permission";
    let asked: Vec<&Value> =
        agent.frames.iter().filter(asked).map(|frame| &frame["params"]["toolCall"]["rawInput"]["command"]).collect();
    assert_eq!(asked, ["export PATH=/elsewhere:$PATH GREETING=hello", "true 1", "export PATH", "true 2"]);
    agent.finish().await;
}
