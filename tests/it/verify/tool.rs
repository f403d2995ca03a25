//! The tool `verify`, called by hand and by a model.

use serde_json::{Value, json};

use harness::{CommandResult, Home, Reply, tool};

const AGENTS: &str = "# Guide\n```sh\nfalse\n```\n## Test commands:\nRun these.\n\n```sh\n# all\n$ echo one\necho two && \\\n  echo three\n```\n\n## Other\n```\nfalse\n```\n";
const ITEMS: &str = "# Checks\n- `echo first`\n- see `false` for more\n* `echo second`\n# Notes\n- `false`\n";
const MAKEFILE: &str = "NAME := test: x\nall:\n\tfalse\ncheck test: \n\techo made\n";

async fn verify(home: &Home, input: &Value) -> CommandResult {
    home.run(&["tool", "verify", "--mode", "auto", &input.to_string()], "").await
}

fn result(ran: &CommandResult) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Where the commands come from: files, settings, trust, and the commands that run.
#[tokio::test]
async fn commands_come_from_input_settings_agents_file_or_makefile() {
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str, bool, Value, &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        ("the input", &[("Makefile", MAKEFILE)], "", false, json!({"commands": ["echo a", "echo b"]}), &["echo a", "echo b"]),
        ("the settings", &[("AGENTS.md", AGENTS)], "[verify]\ncommands = [\"echo set\"]\n", true, json!({}), &["echo set"]),
        (
            "AGENTS.md",
            &[("AGENTS.md", AGENTS), ("Makefile", MAKEFILE)],
            "",
            true,
            json!({}),
            &["echo one", "echo two && echo three"],
        ),
        ("list items", &[("AGENTS.md", ITEMS)], "", true, json!({}), &["echo first", "echo second"]),
        ("untrusted", &[("AGENTS.md", AGENTS), ("Makefile", MAKEFILE)], "", false, json!({}), &["make test"]),
        ("no target", &[("Makefile", "tests:\n\tfalse\n")], "", true, json!({}), &[]),
    ];
    for (name, files, config, trusted, input, expected) in cases {
        let home = Home::new();
        files.iter().for_each(|(path, text)| drop(home.put(path, text)));
        home.config(config);
        if *trusted {
            assert_eq!(home.run(&["trust", "."], "").await.code, 0);
        }
        let ran = verify(&home, input).await;
        if expected.is_empty() {
            assert_eq!(ran.code, 2, "{name}: {ran:?}");
            assert!(ran.stdout.contains("no check commands are known"), "{name}: {ran:?}");
            continue;
        }
        let result = result(&ran);
        let commands = result["details"]["commands"].as_array().unwrap_or_else(|| panic!("{name}: {result}"));
        let ran: Vec<&str> = commands.iter().map(|one| one["command"].as_str().unwrap()).collect();
        assert_eq!(ran, *expected, "{name}");
        assert_eq!((&result["details"]["passed"], &result["details"]["exitCode"]), (&json!(true), &json!(0)), "{name}: {result}");
    }
}

#[tokio::test]
async fn failing_part_and_whole_output_are_returned() {
    let home = Home::new();
    let long = "for i in $(seq 5000); do echo \"line $i of the log\"; done; echo 'error: wrong colour in paint.rs'; \
                for i in $(seq 5000); do echo \"tail $i\"; done; exit 7";
    let ran = verify(&home, &json!({"commands": ["echo fine", long, "echo broken; exit 1"]})).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let result = result(&ran);
    let output = result["output"].as_str().unwrap();
    for text in ["`echo fine` passed", "exit code 7", "error: wrong colour in paint.rs", "tail 5000", "lines left out", "broken"] {
        assert!(output.contains(text), "{text}: {output}");
    }
    assert!(!output.contains("\nfine\n") && output.len() < 20_000, "{output}");
    assert_eq!((&result["details"]["passed"], &result["details"]["exitCode"]), (&json!(false), &json!(7)), "{result}");
    let commands = &result["details"]["commands"];
    assert_eq!([&commands[0]["exitCode"], &commands[1]["exitCode"], &commands[2]["exitCode"]], [0, 7, 1], "{result}");
    assert!(commands[1]["durationMs"].is_u64(), "{result}");
    let whole = std::fs::read_to_string(commands[1]["artifact"].as_str().unwrap()).unwrap();
    assert!(whole.contains("line 2500 of the log") && whole.ends_with("tail 5000\n"), "{} bytes", whole.len());
}

#[tokio::test]
async fn command_that_hangs_is_ended() {
    let home = Home::new();
    home.config("[verify]\ntimeout_s = 3\n");
    let ran = verify(&home, &json!({"commands": ["echo begun; sleep 60", "echo next"]})).await;
    let result = result(&ran);
    let output = result["output"].as_str().unwrap();
    assert!(output.contains("was ended after 3 s") && output.contains("begun") && output.contains("passed"), "{output}");
    assert_eq!((&result["details"]["exitCode"], &result["details"]["commands"][0]["exitCode"]), (&json!(124), &Value::Null));
}

/// A command of the model is decided like one of `bash`, whatever stands next to it.
#[tokio::test]
async fn permission_rules_for_commands_apply() {
    let rules = "[permissions]\nrules = [\
        { tool = \"bash\", pattern = \"rm *\", policy = \"deny\" }, { pattern = \"curl *\", policy = \"deny\" }, \
        { tool = \"bash\", pattern = \"echo *\", policy = \"allow\" }, { tool = \"verify\", pattern = \"true *\", policy = \"allow\" }]\n";
    let cases: &[(&[&str], i32)] = &[
        (&["echo a"], 0),
        (&["true"], 0),
        (&["echo a", "echo b"], 0),
        (&["ls"], 4),
        (&["echo a", "ls"], 4),
        (&["rm -f x"], 4),
        (&["echo a", "curl x"], 4),
        (&["echo 'a", "rm -f x", "echo b'"], 4),
        (&["cat <<'X'", "rm -f x", "X"], 4),
        (&["echo a \\", "rm -f x"], 4),
    ];
    let home = Home::new();
    let rules_of_tools = "[permissions]\nrules = [{ tool = \"verify\", policy = \"allow\" }, \
        { tool = \"bash\", pattern = \"ls\", policy = \"allow\" }]\n";
    home.config(rules_of_tools);
    for (command, code) in [("ls", 0), ("touch x", 4)] {
        let ran = home.run(&["tool", "verify", &json!({ "commands": [command] }).to_string()], "").await;
        assert_eq!(ran.code, code, "a rule without a pattern allows no command of the model: {command}: {ran:?}");
    }
    home.config(rules);
    let mut wrong = Vec::new();
    for (commands, code) in cases {
        let ran = home.run(&["tool", "verify", &json!({ "commands": commands }).to_string()], "").await;
        if ran.code != *code {
            wrong.push((commands, ran));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn call_of_a_model_asks_and_shows_the_commands() {
    let home = Home::new();
    home.put("Makefile", MAKEFILE);
    let steps = json!([{"tool_calls": [{"name": "verify", "input": {}}]}, {"expect": "denied", "text": "ok"}]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.otherwise = Reply::Pick("reject_once");
    let (stop, updates) = agent.turn(&session, "go").await;
    assert_eq!(stop, "end_turn");
    let call = tool(&updates, 0);
    assert_eq!((call["title"].as_str(), call["status"].as_str()), (Some("Verify: make test"), Some("failed")), "{call}");
    let question = agent.frames.iter().find(|frame| frame["method"] == "session/request_permission").unwrap();
    assert_eq!(question["params"]["toolCall"]["content"][0]["content"]["text"], "make test", "{question}");
    agent.finish().await;
}
