//! `nuncio mcp`: list, check, add, rm.

use serde_json::json;

use super::{SERVER, setting};
use harness::Home;

#[tokio::test]
async fn servers_are_added_listed_checked_and_removed() {
    let home = Home::new();
    home.config("# mine\nmodel = \"openai/x\" # kept\n");
    let before = home.config_text();
    let added = home.run(&["mcp", "add", "docs", "--env", "A=$B", "--", "python3", SERVER], "").await;
    assert_eq!(added.code, 0, "{added:?}");
    let added = home.run(&["mcp", "add", "web", "--url", "http://127.0.0.1:9/mcp", "--header", "X-A=b"], "").await;
    assert_eq!(added.code, 0, "{added:?}");
    assert!(home.config_text().starts_with(&before), "{}", home.config_text());
    let listed = home.run(&["mcp", "list"], "").await;
    assert_eq!(listed.stdout, format!("docs             python3 {SERVER}\nweb              http://127.0.0.1:9/mcp\n"));
    let listed = home.run(&["mcp", "list", "--json"], "").await.lines();
    assert_eq!((&listed[0]["settings"]["env"], &listed[1]["settings"]["headers"]), (&json!({"A": "$B"}), &json!({"X-A": "***"})));
    for name in ["docs", "web"] {
        assert_eq!(home.run(&["mcp", "rm", name], "").await.code, 0);
    }
    assert_eq!(home.config_text().trim_end(), before.trim_end());
}

#[tokio::test]
async fn check_reports_tools_versions_and_errors() {
    let home = Home::new();
    home.config(&(setting("good", &["resources"]) + &setting("bad", &["exit"])));
    let checked = home.run(&["mcp", "check"], "").await;
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(
        checked.stdout.contains("ok   good             11 tools, 0 prompts, resources; test 1.2.3 (protocol 2025-11-25)"),
        "{checked:?}"
    );
    assert!(checked.stdout.contains("FAIL bad              initialization failed"), "{checked:?}");
    assert!(checked.stdout.contains("exit code 4): cannot start"), "{checked:?}");
    let checked = home.run(&["mcp", "check", "good", "--json"], "").await;
    let line = &checked.lines()[0];
    assert_eq!((checked.code, &line["ok"], &line["tools"][0]), (0, &json!(true), &json!("echo")), "{line}");
}

#[tokio::test]
async fn wrong_uses_are_errors_and_change_nothing() {
    let home = Home::new();
    home.config(&setting("docs", &[]));
    let before = home.config_text();
    let cases: &[(&[&str], &str)] = &[
        (&["mcp", "add", "docs", "--", "x"], "already have a server docs"),
        (&["mcp", "add", "a.b", "--", "x"], "invalid name"),
        (&["mcp", "add", "a"], "--url"),
        (&["mcp", "add", "a", "--url", "ftp://x"], "the scheme must be http or https"),
        (&["mcp", "add", "a", "--env", "x", "--", "y"], "expected NAME=VALUE"),
        (&["mcp", "rm", "other"], "has no server other"),
        (&["mcp", "check", "other"], "MCP server \"other\" is unknown"),
    ];
    for (arguments, message) in cases {
        let ran = home.run(arguments, "").await;
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(message), "{arguments:?}: {ran:?}");
    }
    assert_eq!(home.config_text(), before);
    home.config("mcp = { docs = { command = [\"x\"] } }\n");
    let ran = home.run(&["mcp", "rm", "docs"], "").await;
    assert_eq!((ran.code, home.config_text().as_str()), (0, ""), "{ran:?}");
}
