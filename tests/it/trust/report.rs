//! The list that `nuncio trust` shows.

use serde_json::{Value, json};

use super::{CONFIG, hook, trust};
use crate::harness::Home;

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
        "  model",
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
async fn list_as_json_trusts_only_with_yes() {
    let home = project();
    let json =
        |ran: crate::harness::Ran| serde_json::from_str::<Value>(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let report = json(home.run(&["trust", "--json"], "").await);
    assert_eq!(report["runs"][0]["kind"], "hook");
    assert_eq!(json(home.run(&["trust", "--json"], "").await)["status"], "not trusted yet");
    home.run(&["trust", "--json", "--yes"], "").await;
    assert_eq!(json(home.run(&["trust", "--json"], "").await)["status"], "trusted");
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
