//! The command line: output and exit code of each command.

mod background;
mod concurrent_changes;
mod config_check;
mod config_edit;
mod detached;
mod doctor;
mod editor;
mod hints;
mod import;
mod input;
mod login;
mod markdown;
mod packaging;
mod resume;
mod run;
mod run_flags;
mod run_url;
mod script;
mod sessions;
mod show;
mod stop_reasons;
mod terminal;
mod update;

use serde_json::{Value, json};

use harness::{CommandResult, Home};

/// Asserts the exit code, and that each word is in standard output or standard error.
fn check(ran: &CommandResult, code: i32, words: &[&str]) {
    assert_eq!(ran.code, code, "{ran:#?}");
    for word in words {
        assert!(ran.stdout.contains(word) || ran.stderr.contains(word), "no {word:?}: {ran:#?}");
    }
}

#[tokio::test]
async fn usage_errors_exit_with_code_two() {
    let home = Home::new();
    let cases: &[(&[&str], &[&str])] = &[
        (&["--no-such-flag"], &["--no-such-flag"]),
        (&["no-such-command"], &["no-such-command"]),
        (&["run", "--mode", "x", "go"], &["unknown mode x", "accept-edits"]),
        (&["run", "--cwd", "/no/such/dir", "go"], &["/no/such/dir"]),
        (&["run", "--root", "/no/such/dir", "go"], &["/no/such/dir"]),
        (&["run", "--thinking", "x", "go"], &["minimal"]),
        (&["run", "--continue", "--resume", "x", "go"], &["--resume"]),
        (&["run", "--resume", "sess_none", "--model", "scripted:none", "go"], &["sess_none"]),
        (&["run", "--continue", "--model", "scripted:none", "go"], &["continue"]),
        (&["tool", "no_such", "{}"], &["no_such", "bash"]),
        (&["tool", "read", "{"], &["JSON"]),
        (&["tool", "read", "{}"], &["file_path"]),
        (&["sessions", "show", "sess_none"], &["sess_none"]),
        (&["sessions", "rm", "sess_none"], &["sess_none"]),
        (&["sessions", "rm"], &["IDS"]),
        (&["schema", "nonsense"], &["nonsense", "event"]),
        (&["trust", "/no/such/dir"], &["/no/such/dir"]),
    ];
    for (arguments, words) in cases {
        let ran = home.run(arguments, "").await;
        check(&ran, if arguments[0] == "trust" { ran.code } else { 2 }, words);
        assert!(ran.code != 0 && !ran.stderr.contains("panicked"), "{arguments:?}: {ran:#?}");
    }
}

#[tokio::test]
async fn hint_to_run_a_prompt_is_for_unknown_commands() {
    let home = Home::new();
    for (arguments, hint) in [(&["explain"][..], true), (&["trust", "one", "two"], false)] {
        let ran = home.run(arguments, "").await;
        assert_eq!((ran.code, ran.stderr.contains("nuncio run")), (2, hint), "{ran:#?}");
    }
}

#[tokio::test]
async fn closed_standard_error_does_not_change_the_exit_code() {
    let home = Home::new();
    for arguments in [&["explain"][..], &["trust", "remove", "x"], &["mcp", "login", "x"], &["run"]] {
        assert_eq!(home.run_without_reader(arguments).await, 2, "{arguments:?}");
    }
}

#[tokio::test]
async fn help_fits_one_screen() {
    let home = Home::new();
    let help = home.run(&["--help"], "").await;
    check(&help, 0, &["acp", "run", "demo", "tool", "sessions", "schema", "config", "models", "trust", "doctor", "--model"]);
    assert!(help.stdout.lines().count() <= 50, "{}", help.stdout);
    assert!(help.stdout.lines().all(|line| line.chars().count() <= 100), "{}", help.stdout);
    let version = home.run(&["--version"], "").await;
    assert_eq!(version.stdout, format!("nuncio {}\n", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn no_command_starts_acp_server() {
    let home = Home::new();
    let ran = home.run(&[], "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n").await;
    assert_eq!((ran.code, &ran.lines()[0]["result"]["protocolVersion"]), (0, &json!(1)), "{ran:?}");
}

#[tokio::test]
async fn tool_command_prints_one_json_line() {
    let home = Home::new();
    home.put("a.txt", "one\ntwo\n");
    // Arguments, standard input, exit code, word of the output.
    let cases: &[(&[&str], &str, i32, &str)] = &[
        (&["read", r#"{"file_path":"a.txt"}"#], "", 0, "two"),
        (&["read", "-"], r#"{"file_path":"a.txt"}"#, 0, "two"),
        (&["read_file", r#"{"path":"a.txt"}"#], "", 0, "two"),
        (&["list"], "", 0, "a.txt"),
        (&["read", r#"{"file_path":"missing"}"#], "", 1, "missing"),
        (&["edit", "--mode", "auto", r#"{"file_path":"a.txt","old_string":"none","new_string":"x"}"#], "", 1, "not"),
        (&["bash", "--mode", "auto", r#"{"command":"echo hi; exit 3"}"#], "", 0, "exit code: 3"),
        (&["write", r#"{"file_path":"b.txt","content":""}"#], "", 4, "requires permission"),
        (&["write", "--mode", "plan", r#"{"file_path":"b.txt","content":""}"#], "", 4, "plan"),
        (&["write", "--mode", "accept-edits", r#"{"file_path":"b.txt","content":"b"}"#], "", 0, "b.txt"),
    ];
    for (arguments, input, code, word) in cases {
        let ran = home.run(&[&["tool"], *arguments].concat(), input).await;
        assert_eq!(ran.code, *code, "{arguments:?}: {ran:?}");
        let [line] = ran.lines().try_into().unwrap_or_else(|lines| panic!("{arguments:?}: {lines:?}"));
        assert_eq!(line["ok"], json!(*code == 0), "{line}");
        assert!(line["output"].as_str().unwrap().contains(word), "{line}");
        let keys: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["ok", "output", "details"]);
        assert_eq!(line["details"].is_object(), *code == 0, "{line}");
    }
    assert_eq!(home.get("b.txt").as_deref(), Some("b"));
    // `nuncio tool` creates no session.
    assert_eq!(home.run(&["sessions", "list"], "").await.stdout, "");
}

#[tokio::test]
async fn config_commands_report_path_errors_and_sources() {
    let home = Home::new();
    let file = home.data().join("config.toml").display().to_string();
    check(&home.run(&["config", "path"], "").await, 0, &[&file]);
    check(&home.run(&["config", "check"], "").await, 0, &["valid"]);
    let faults = [
        ("modell = \"x\"", ["modell", "model"]),
        ("[permisions]\ndefault = \"ask\"", ["permisions", "permissions"]),
        ("[permissions]\ntimeout = 3", ["timeout", "timeout_s"]),
        ("[permissions]\ndefault = \"maybe\"", ["default", "maybe"]),
        ("[permissions]\nrules = [ { tool = \"bash\", polic = \"allow\" } ]", ["polic", "policy"]),
        ("[providers.local]\nbaseurl = \"x\"", ["baseurl", "base_url"]),
        ("durability = 7", ["durability", "config.toml"]),
        ("not toml", ["config.toml", "TOML"]),
    ];
    for (text, words) in faults {
        home.config(text);
        for command in [&["config", "check"][..], &["config", "show"], &["acp"], &["run", "go"]] {
            check(&home.run(command, "").await, 2, &words);
        }
    }
    home.config("model = \"ollama/x\"\n[permissions]\ntimeout_s = 7\n");
    check(&home.run(&["config"], "").await, 0, &["timeout_s = 7", "permissions.timeout_s: ", &file]);
    check(&home.run(&["config", "show", "--model", "ollama/y"], "").await, 0, &["ollama/y", "# model: --model"]);
    home.put(".nuncio/config.toml", "model = \"ollama/z\"\n[permissions]\ndefault = \"deny\"\n");
    check(&home.run(&["config", "check"], "").await, 0, &["not used: model", "nuncio trust"]);
    check(&home.run(&["trust"], "").await, 0, &["is trusted"]);
    check(&home.run(&["config", "show"], "").await, 0, &["ollama/z", "# permissions.default: "]);
    let other = home.put("../other.toml", "model = \"ollama/w\"\n").display().to_string();
    check(&home.run(&["config", "show", "--config", &other], "").await, 0, &["# permissions.default: "]);
    check(&home.run(&["config", "show", "--config", "missing.toml"], "").await, 2, &["missing.toml"]);
}

#[tokio::test]
async fn doctor_reports_missing_api_key() {
    let home = Home::new();
    let model = home.script(json!([]));
    let well = home.run(&["doctor", "--model", &model], "").await;
    check(&well, 0, &["ok", "settings", "store", "model", "shell"]);
    assert!(!well.stdout.contains("FAIL"), "{well:?}");
    check(&home.run(&["doctor", "--model", "anthropic/claude-sonnet-5"], "").await, 1, &["FAIL", "model", "ANTHROPIC_API_KEY"]);
}

#[tokio::test]
async fn demo_fixes_its_repository() {
    let home = Home::new();
    let ran = home.run(&["demo", "--yes"], "").await;
    check(&ran, 0, &["Changes:", "-    count = NR - 1", "+    count = NR", "all three tests pass", "nuncio sessions show sess_"]);
    let id = ran.stdout.split("nuncio sessions show ").nth(1).unwrap().trim();
    check(&home.run(&["sessions", "show", id], "").await, 0, &["> The tests of this repository fail", "mean.sh"]);
    let permissions = home.log(id).await.iter().filter(|event| event["body"]["type"] == "permission.requested").count();
    assert!(permissions >= 2, "{permissions} questions");
    // Without a terminal for questions, the error names `--yes`.
    check(&home.run(&["demo"], "").await, 4, &["--yes"]);
    let kept = home.work().join("kept");
    check(&home.run(&["demo", "--yes", "--keep", kept.to_str().unwrap()], "").await, 0, &["Changes:"]);
    assert!(kept.join("mean.sh").is_file());
    check(&home.run(&["demo", "--yes", "--keep", kept.to_str().unwrap()], "").await, 1, &["kept"]);
}

#[tokio::test]
async fn schema_command_lists_and_prints_schemas() {
    let home = Home::new();
    let ran = home.run(&["schema"], "").await;
    check(&ran, 0, &["methods", "event", "config"]);
    let methods: Value = serde_json::from_str(&home.run(&["schema", "methods"], "").await.stdout).unwrap();
    for method in ["initialize", "session/new", "session/load", "session/prompt", "session/cancel"] {
        assert!(methods[method]["doc"].is_string() && methods[method]["params"].is_object(), "{method}");
    }
}
