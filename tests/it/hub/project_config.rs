//! Hosted agents do not load the configuration of the project, also after `nuncio trust`.

use serde_json::{Value, json};

use super::opencode::SERVER;
use super::{AGENT, allowed, home_of, played, session, trust};
use harness::{Home, Reply};

/// Returns the answer of the agent to `prompt`, in a home with these settings and files.
async fn answer(kind: &str, script: &str, flags: &[&str], more: &str, files: &[&str], prompt: &str) -> String {
    let home = home_of(kind, script, flags, more).await;
    for file in files {
        home.put(file, "{}");
    }
    let (mut agent, session) = session(&home, &[]).await;
    let answer = agent.reply(&session, prompt).await;
    agent.finish().await;
    answer
}

#[tokio::test]
async fn variables_turn_the_configuration_of_the_project_off() {
    for (variable, value) in
        [("GEMINI_CLI_TRUST_WORKSPACE", "false"), ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"), ("QWEN_CODE_SAFE_MODE", "1")]
    {
        let prompt = format!("env {variable}");
        assert_eq!(answer("acp", AGENT, &[], "", &[], &prompt).await, value);
        // The user's settings take precedence.
        let more = format!("env = {{ {variable} = \"mine\" }}\n");
        assert_eq!(answer("acp", AGENT, &[], &more, &[], &prompt).await, "mine");
    }
    assert_eq!(answer("opencode", SERVER, &[], "", &[], "env OPENCODE_DISABLE_PROJECT_CONFIG").await, "1");
    assert_eq!(answer("opencode", SERVER, &[], "", &[], "env OPENCODE_CONFIG_CONTENT").await, "(unset)");
}

#[tokio::test]
async fn opencode_gets_the_instructions_of_the_project() {
    let prompt = "env OPENCODE_CONFIG_CONTENT";
    let config = "config = '{\"username\": \"me\", \"instructions\": [\"mine.md\"]}'\n";
    let content = answer("opencode", SERVER, &[], config, &["CLAUDE.md", "AGENTS.md"], prompt).await;
    let content: Value = serde_json::from_str(&content).unwrap();
    let instructions: Vec<&str> = content["instructions"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    assert_eq!((&content["username"], instructions.len(), instructions[0]), (&json!("me"), 2, "mine.md"));
    assert!(instructions[1].ends_with("/AGENTS.md"), "{instructions:?}");
}

#[tokio::test]
async fn plugins_of_the_project_keep_opencode_from_starting() {
    let allow = "env = { OPENCODE_DISABLE_PROJECT_CONFIG = \"false\" }\n";
    for (file, content) in [
        (".opencode/plugin/evil.js", ""),
        (".opencode/plugins/evil.ts", ""),
        ("opencode.json", "{\"plugin\": [\"./evil.js\"]}"),
        (".opencode/opencode.jsonc", "{// a comment\n\"pl\\u0075gin\": [\"./evil.js\"]}"),
    ] {
        let home = home_of("opencode", SERVER, &[], "").await;
        home.put(file, content);
        let (mut agent, id) = session(&home, &[]).await;
        let failed = agent.failure(&id, "say").await;
        let message = failed["message"].as_str().unwrap();
        assert!(
            message.contains("would run programs that") && message.contains(file.split('/').next().unwrap()),
            "{file}: {failed}"
        );
        agent.finish().await;
        // The hint names the setting that allows it.
        let ran = home.run(&["run", "--agent", "other", "say"], "").await;
        assert!(ran.stderr.contains("[agents.other.env]: OPENCODE_DISABLE_PROJECT_CONFIG = \"false\""), "{ran:?}");
        home.config(&(home.config_text() + allow));
        let ran = home.run(&["run", "--agent", "other", "say"], "").await;
        assert!(ran.code == 0 && ran.stdout.contains("Hello, world"), "{file}: {ran:?}");
    }
}

#[tokio::test]
async fn hooks_of_the_project_keep_copilot_from_starting() {
    // Recognized by its command, and by the name that it reports.
    for flag in ["copilot", "GitHub Copilot"] {
        for state in ["file", "empty directory", "link", "later", "elsewhere", "home"] {
            let home = home_of("acp", AGENT, &[flag], "").await;
            let hooks = home.work().join(".github/hooks");
            let make = || std::fs::create_dir_all(&hooks).unwrap();
            match state {
                "file" => drop(home.put(".github/hooks/evil.json", "{}")),
                "empty directory" => make(),
                "link" => {
                    home.put(".github/x", "");
                    std::os::unix::fs::symlink("nowhere", &hooks).unwrap();
                }
                "home" => drop(home.put("../.github/hooks/evil.json", "{}")),
                "elsewhere" => drop(home.put(".github/workflows/hooks/ci.json", "{}")),
                _ => {}
            }
            let (mut agent, id) = session(&home, &[]).await;
            match state {
                "elsewhere" | "home" => assert_eq!(agent.reply(&id, "say").await, "Hello, world"),
                "later" => {
                    assert_eq!(agent.reply(&id, "say").await, "Hello, world");
                    make();
                    // The process ends, and another one is not started.
                    agent.failure(&id, "crash").await;
                    let failed = agent.failure(&id, "say").await;
                    assert!(failed["message"].as_str().unwrap().contains(".github/hooks"), "{flag}: {failed}");
                }
                _ => {
                    let failed = agent.failure(&id, "say").await;
                    let message = failed["message"].as_str().unwrap();
                    assert!(
                        message.contains("it would run programs that") && message.contains(".github/hooks"),
                        "{flag}, {state}: {failed}"
                    );
                }
            }
            agent.finish().await;
        }
    }
    let home = home_of("acp", AGENT, &[], "").await;
    home.put(".github/hooks/evil.json", "{}");
    let (mut agent, id) = session(&home, &[]).await;
    assert_eq!(agent.reply(&id, "say").await, "Hello, world");
    agent.finish().await;
}

#[tokio::test]
async fn codex_ignores_the_configuration_of_the_project() {
    let untrusted = json!({"trust_level": "untrusted"});
    let given = |answer: String| -> Value {
        let params = answer.split(" / ").next().unwrap().split_once(' ').unwrap().1.to_owned();
        serde_json::from_str::<Value>(&params).unwrap()["config"]["projects"].clone()
    };
    let projects = given(answer("codex", super::codex::CODEX, &[], "", &[], "history").await);
    let own = projects.as_object().unwrap().iter().filter(|(path, level)| path.ends_with("/work") && **level == untrusted);
    assert!(own.count() == 1 && projects["/"] == untrusted, "{projects}");
    let more = "config = '{\"projects\": {\"/mine\": {\"trust_level\": \"trusted\"}}}'\n";
    let projects = given(answer("codex", super::codex::CODEX, &[], more, &[], "history").await);
    assert_eq!(projects, json!({"/mine": {"trust_level": "trusted"}}));
}

#[tokio::test]
async fn codex_acp_writes_to_a_copy_of_the_users_configuration() {
    let home = Home::new();
    home.config(&(allowed(&["other"]) + &played("other", "acp", AGENT, &["codex-acp"])));
    trust(&home).await;
    let config = home.put("../.codex/config.toml", "model = \"mine\"\n");
    let login = home.put("../.codex/auth.json", "old");
    let (mut agent, id) = session(&home, &["--mode", "ask"]).await;
    agent.otherwise = Reply::Pick("allow_once");
    let command = "run cat $CODEX_HOME/config.toml > seen; echo more >> $CODEX_HOME/config.toml; \
        echo new > $CODEX_HOME/auth.json; touch $CODEX_HOME/sessions/one";
    agent.turn(&id, command).await;
    assert_eq!(home.get("seen").as_deref(), Some("model = \"mine\"\n"));
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "model = \"mine\"\n");
    assert_eq!(std::fs::read_to_string(&login).unwrap(), "new\n");
    assert!(config.with_file_name("sessions").join("one").exists());
    agent.finish().await;
    home.put(".codex/config.toml", "");
    let ran = home.run(&["run", "--agent", "other", "say"], "").await;
    assert!(ran.code != 0 && ran.stderr.contains("[agents.other.env]: CODEX_HOME"), "{ran:?}");
}
