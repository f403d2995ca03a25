//! The list that `nuncio trust` shows.

use serde_json::{Value, json};

use super::{CONFIG, hook, trust};
use harness::Home;

fn project() -> Home {
    let home = Home::new();
    let settings = "model = \"x/y\"\n[mcp.docs]\ncommand = [\"npx\", \"-y\", \"@acme/docs\"]\n[worktree]\nsetup = [\"./setup.sh\"]\n\
                    [permissions]\nrules = [{ tool = \"bash\", pattern = \"npm *\", policy = \"allow\" }]\n";
    home.put(CONFIG, &format!("{settings}{}", hook("tool.execute.after", "scripts/fmt.sh", "")));
    home.put("scripts/fmt.sh", "true\ntrue\n");
    home.put("setup.sh", "true\n");
    home.put("AGENTS.md", "# Checks\n\n- `cargo test`\n");
    home.put(".nuncio/skills/release/publish.sh", "true\n");
    home.put(".mcp.json", &json!({"mcpServers": {"one": {"command": "x"}}}).to_string());
    home
}

#[tokio::test]
async fn trust_shows_what_a_project_starts_and_allows() {
    let home = project();
    let ran = home.run(&["trust"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let expected = [
        "not trusted yet",
        "hook   tool.execute.after     sh scripts/fmt.sh  (no network)",
        "mcp    docs                   npx -y @acme/docs  (no network)",
        "check  AGENTS.md              cargo test  (no network)",
        "setup  worktree               ./setup.sh  (no network)",
        ".nuncio/skills/release/publish.sh",
        "bash npm *",
        "  model = \"x/y\"",
        ".mcp.json (1 MCP server), by Claude Code",
        "scripts/fmt.sh (2 lines)",
        "imports",
        "is trusted, until",
    ];
    for part in expected {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
}

#[tokio::test]
async fn list_as_json_trusts_as_the_list_for_people_does() {
    let home = project();
    let json =
        |ran: harness::CommandResult| serde_json::from_str::<Value>(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let report = json(home.run(&["trust", "--json"], "").await);
    assert_eq!(report["runs"][0]["kind"], "hook");
    assert_eq!(report["status"], "not trusted yet");
    assert_eq!(json(home.run(&["trust", "--json", "--yes"], "").await)["status"], "trusted");
}

/// The list as JSON.
async fn report(home: &Home) -> Value {
    let ran = home.run(&["trust", "--json"], "").await;
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[tokio::test]
async fn list_has_the_values_of_settings() {
    let home = Home::new();
    let sets = [
        "allowed_paths = [\"/srv\"]",
        "agents.allowed = [\"native\"]",
        "prompts.* = \"prompt.md\"",
        "verify.baseline = true",
        "providers.openai.base_url = \"http://127.0.0.1:9/v1\"",
        "mcp.docs.env.KEY = \"$OTHER_KEY\"",
        "mcp.docs.cwd = \"sub\"",
        "mcp.web.headers.X-Key = \"$OTHER_KEY\"",
        "mcp.web.bearer_token_env = \"OTHER_KEY\"",
        "mcp.web.sampling = true",
        "worktree.copy = [\".env\"]",
    ];
    home.put(
        CONFIG,
        "allowed_paths = [\"/srv\"]\n[agents]\nallowed = [\"native\"]\n[prompts]\n\"*\" = \"prompt.md\"\n[verify]\nbaseline = true\n\
         [providers.openai]\nbase_url = \"http://127.0.0.1:9/v1\"\n[mcp.docs]\ncommand = [\"docs\"]\nenv = { KEY = \"$OTHER_KEY\" }\n\
         cwd = \"sub\"\n[mcp.web]\nurl = \"https://docs.test/mcp\"\nheaders = { X-Key = \"$OTHER_KEY\" }\n\
         bearer_token_env = \"OTHER_KEY\"\nsampling = true\n[worktree]\ncopy = [\".env\"]\n",
    );
    let report = report(&home).await;
    let mut expected: Vec<&str> = sets.into();
    expected.sort_unstable();
    let mut listed: Vec<&str> = report["sets"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    listed.sort_unstable();
    assert_eq!(listed, expected);
    assert_eq!(report["connects"], json!(["mcp web: https://docs.test/mcp"]));
    assert_eq!(report["runs"].as_array().unwrap().len(), 1, "{report}");
    let text = home.run(&["trust"], "").await.stdout;
    assert!(text.contains(" connects to:\n  mcp web: https://docs.test/mcp\n"), "{text}");
}

#[tokio::test]
async fn list_has_the_checks_that_run() {
    let makefile = ("Makefile", "test:\n\ttrue\n");
    let above = ("../AGENTS.md", "# Checks\n\n- `make above`\n");
    let own = ("AGENTS.md", "# Checks\n\n- `make own`\n");
    let cases = [
        (vec![makefile], json!([["Makefile", "make test"]]), json!([])),
        (vec![makefile, above], json!([]), json!(["check of an AGENTS.md above: make above"])),
        (vec![makefile, above, own], json!([["AGENTS.md", "make own"]]), json!([])),
    ];
    for (files, runs, asks) in cases {
        let home = Home::new();
        crate::workspaces::git(&home.work().join(".."), &["init", "--quiet"]);
        for (name, text) in &files {
            home.put(name, text);
        }
        let report = report(&home).await;
        let listed: Vec<Value> =
            report["runs"].as_array().unwrap().iter().map(|run| json!([run["name"], run["command"]])).collect();
        assert_eq!((json!(listed), &report["asks"]), (runs, &asks), "{files:?}");
    }
}

#[tokio::test]
async fn list_has_programs_of_the_user_and_of_path() {
    let home = Home::new();
    let hooks = hook("tool.execute.after", "x.sh", "cwd = \"$WORKSPACE\"") + &hook("tool.execute.before", "x.sh", "");
    home.config(&format!(
        "{hooks}[mcp.here]\ncommand = [\"here\"]\ncwd = \"$WORKSPACE\"\n[mcp.file]\ncommand = [\"sh\", \"$WORKSPACE/x.sh\"]\n\
         [mcp.elsewhere]\ncommand = [\"elsewhere\", \"$WORKSPACE\"]\n"
    ));
    home.put("x.sh", "true\n");
    let bin = home.put("../bin/gopls", "#!/bin/sh\n");
    std::fs::set_permissions(&bin, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    home.env("PATH", bin.parent().unwrap().to_str().unwrap());
    let report = report(&home).await;
    let listed: Vec<Value> = report["ownPrograms"].as_array().unwrap().iter().map(|run| run["name"].clone()).collect();
    assert_eq!(listed, ["tool.execute.after", "file", "here"]);
    assert_eq!(report["pathServers"], json!(["go: gopls"]));
}

#[tokio::test]
async fn list_counts_the_scripts_that_it_omits() {
    let home = Home::new();
    for number in 0..205 {
        home.put(&format!(".nuncio/skills/many/{number}.sh"), "true\n");
    }
    let report = report(&home).await;
    assert_eq!(report["skillScripts"].as_array().unwrap().len(), 200);
    assert_eq!(report["skillScriptsOmitted"], 5);
    assert!(home.run(&["trust"], "").await.stdout.contains("and at least 5 more"));
}

/// A file that changes while the question is open is not trusted.
#[tokio::test]
async fn content_of_the_list_is_trusted() {
    for changes in [false, true] {
        let home = project();
        let mut terminal = home.terminal(&["trust"]);
        terminal.until("Trust it?").await;
        if changes {
            home.put("scripts/fmt.sh", "echo other\n");
        }
        // Pasted text is no answer.
        terminal.say("y\n").await;
        terminal.until_times("Trust it?", 2).await;
        terminal.say("y").await;
        terminal.until("is trusted, until").await;
        assert_eq!(terminal.end().await.0, 0);
        let listed = home.run(&["trust", "list"], "").await.stdout;
        assert_eq!(listed.contains("not in effect"), changes, "{listed}");
    }
}

#[tokio::test]
async fn diff_shows_the_changes_since_the_trust() {
    let home = project();
    let ran = home.run(&["trust", "--diff"], "").await;
    assert!(ran.code != 0 && ran.stderr.contains("is not trusted"), "{ran:?}");
    trust(&home).await;
    let ran = home.run(&["trust", "--diff"], "").await;
    assert!(ran.stdout.contains("nothing changed"), "{ran:?}");
    home.put("scripts/fmt.sh", "true\nfalse\n");
    home.put("AGENTS.md", "# Checks\n\n- `cargo test --all`\n");
    let ran = home.run(&["trust", "--diff"], "").await;
    for part in ["--- a/scripts/fmt.sh", "-true\n+false", "-cargo test\n+cargo test --all"] {
        assert!(ran.stdout.contains(part), "{part}: {ran:?}");
    }
    let ran = home.run(&["trust", "--json"], "").await;
    assert!(ran.stdout.contains("changed since it was trusted"), "{ran:?}");
}
