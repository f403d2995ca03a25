//! `nuncio doctor`, and `nuncio tool` without a name.

use super::check;
use harness::Home;
use harness::provider::Exchange;
use harness::provider::session;
use harness::wires::WIRES;

#[tokio::test]
async fn doctor_reports_unreachable_model() {
    let home = Home::new();
    // Base URL, words of the line with the problem.
    let cases: &[(&str, &[&str])] = &[
        ("http://127.0.0.1:1/v1", &["FAIL model", "127.0.0.1:1"]),
        ("127.0.0.1:8080/v1", &["FAIL model", "127.0.0.1:8080/v1", "base_url"]),
        ("localhost:8080/v1", &["FAIL model", "localhost:8080/v1", "base_url"]),
    ];
    for (base_url, words) in cases {
        check(&home.run(&["doctor", "--model", "local/x", "--base-url", base_url], "").await, 1, words);
    }
}

#[tokio::test]
async fn doctor_reports_refused_key() {
    for wire in WIRES {
        let refused = Exchange::error(401, r#"{"error":{"message":"wrong key"}}"#);
        let (home, provider, name) = session::home(wire, vec![refused]).await;
        check(&home.run(&["doctor"], "").await, 1, &["FAIL model", "key was refused", "api_key_command"]);
        assert_eq!(provider.finish().await.len(), 1, "{name}");

        let (home, provider, name) = session::home(wire, vec![Exchange::events(wire.plain)]).await;
        let well = home.run(&["doctor"], "").await;
        check(&well, 0, &["ok   model", &name, "answers"]);
        assert!(!well.stdout.contains("FAIL"), "{well:?}");
        provider.finish().await;
    }
}

/// `doctor` sends one request to a busy provider and does not retry.
#[tokio::test]
async fn doctor_does_not_retry_busy_provider() {
    let busy = Exchange::error(429, r#"{"error":{"message":"slow down"}}"#).header("retry-after", "60");
    let (home, provider, _) = session::home(&WIRES[1], vec![busy]).await;
    check(&home.run(&["doctor"], "").await, 1, &["FAIL model", "slow down"]);
    provider.finish().await;
}

/// A set variable does not prove that its key is valid.
#[tokio::test]
async fn doctor_checks_key_even_if_variable_is_set() {
    let home = Home::new();
    home.env("OPENAI_API_KEY", "sk-test");
    let ran = home.run(&["doctor", "--model", "openai/x", "--base-url", "http://127.0.0.1:1/v1"], "").await;
    check(&ran, 1, &["openai: from $OPENAI_API_KEY", "FAIL model"]);
}

/// A home with a model, and a model server for one request.
fn ready(settings: &str) -> Home {
    let home = Home::new();
    home.config(&format!("model = \"{}\"\n{settings}", home.script(serde_json::json!([]))));
    home
}

#[tokio::test]
async fn doctor_reports_programs_of_the_settings_with_remedies() {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/mcp/server.py");
    let home = ready(&format!(
        r#"
        [mcp.good]
        command = ["python3", "{server}"]
        [mcp.bad]
        command = ["python3", "{server}", "exit"]
        [mcp.off]
        command = ["no-such-server"]
        enabled = false
        [[hooks]]
        event = "tool.execute.after"
        command = ["python3", "missing.py"]
        [[hooks]]
        event = "tool.execute.after"
        command = ["sh", "-c", "true"]
        [lsp.own]
        command = ["no-such-language-server"]
        files = ["*.x"]
        [agents]
        allowed = ["gone", "here"]
        [agents.gone]
        kind = "acp"
        command = ["no-such-agent"]
        [agents.here]
        kind = "acp"
        command = ["sh"]
        "#
    ));
    let ran = home.run(&["doctor"], "").await;
    let mut expected = vec![
        "ok   mcp       good: 11 tools",
        "FAIL mcp       bad: ",
        "nuncio mcp check bad",
        "FAIL hook      python3 ",
        "missing.py does not exist",
        "ok   hook      sh -c true",
        "FAIL agent     gone: no-such-agent was not found",
        "ok   agent     here: found; to test its login: nuncio agents check here",
        "FAIL lsp       own: no-such-language-server was not found",
        "git",
        "sandbox",
    ];
    expected.retain(|words| !ran.stdout.contains(words));
    assert!(ran.code == 1 && expected.is_empty(), "no {expected:?}: {ran:#?}");
    assert!(!ran.stdout.contains("off"), "{ran:#?}");
}

#[tokio::test]
async fn doctor_without_optional_programs_does_not_fail() {
    let home = ready("");
    let bin = home.put("bin/sh", "");
    std::fs::remove_file(&bin).unwrap();
    for program in ["sh", "bash"] {
        std::os::unix::fs::symlink(format!("/bin/{program}"), bin.with_file_name(program)).unwrap();
    }
    home.env("PATH", bin.parent().unwrap().to_str().unwrap());
    let ran = home.run(&["doctor"], "").await;
    check(
        &ran,
        0,
        &[
            "note mcp       none; to add one: nuncio mcp add",
            "note agent     none; to add one: nuncio agents add",
            "note lsp",
            "note git",
        ],
    );
}

#[tokio::test]
async fn doctor_starts_no_program_of_an_untrusted_project() {
    let home = ready("");
    home.put("run.sh", "touch ran\n");
    home.put(
        ".nuncio/config.toml",
        "[mcp.evil]\ncommand = [\"sh\", \"run.sh\"]\n[lsp.evil]\ncommand = [\"sh\", \"run.sh\"]\nfiles = [\"*.x\"]\n[[hooks]]\nevent = \"tool.execute.before\"\ncommand = [\"sh\", \"run.sh\"]\n",
    );
    home.put(".git/config", "[core]\n\tfsmonitor = \"sh run.sh\"\n\trepositoryformatversion = 0\n");
    home.put(".git/HEAD", "ref: refs/heads/main\n");
    home.put(".git/objects/x", "");
    home.put(".git/refs/x", "");
    let ran = home.run(&["doctor"], "").await;
    check(&ran, 0, &["not used of this project: lsp, mcp, hooks", "git"]);
    assert!(home.get("ran").is_none() && !ran.stdout.contains("evil"), "{ran:#?}");
}

#[tokio::test]
async fn tool_without_name_lists_tools() {
    let home = Home::new();
    let ran = home.run(&["tool"], "").await;
    check(&ran, 0, &["read", "file_path, offset?, limit?", "bash", "command, timeout_ms?", "repo_map"]);
    assert!(ran.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ran.stdout);
}

#[tokio::test]
async fn doctor_names_protections_of_system() {
    let said = ready("").run(&["doctor"], "").await.stdout;
    let words = if harness::POSIX {
        ["POSIX: commands end with their processes, except", "not provided: confinement of commands", "daemon"]
    } else {
        ["Linux: commands end with all their processes", "memory", "commands can be confined (Landlock)"]
    };
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}
