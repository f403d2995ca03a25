//! Rules that can never match are configuration errors. The error message suggests the nearest
//! name.

use crate::harness::Home;

/// Invalid rules, and the words that the error message must contain.
const FAULTS: &[(&str, &[&str])] = &[
    (r#"{ tool = "bahs", pattern = "rm *", policy = "deny" }"#, &["bahs", "did you mean `bash`?"]),
    (r#"{ tool = "Bash", pattern = "rm *", policy = "deny" }"#, &["Bash", "did you mean `bash`?"]),
    (r#"{ tool = "shell", policy = "deny" }"#, &["shell", "did you mean `bash`?"]),
    (r#"{ tool = "write_file", policy = "deny" }"#, &["write_file", "did you mean `write`?"]),
    (r#"{ tool = "applypatch", policy = "deny" }"#, &["applypatch", "did you mean `apply_patch`?"]),
    (r#"{ tool = "zzzzzz", policy = "deny" }"#, &["zzzzzz", "bash", "apply_patch"]),
    (r#"{ tool = "", policy = "deny" }"#, &["unknown tool ``"]),
    (r#"{ kind = "exce", policy = "deny" }"#, &["exce", "did you mean `exec`?"]),
    (r#"{ kind = "exec", policy = "denny" }"#, &["denny", "did you mean `deny`?"]),
    (r#"{ kind = "exec", mode = "auto", policy = "deny" }"#, &["mode"]),
];

#[tokio::test]
async fn invalid_rule_is_an_error_with_the_nearest_name() {
    let home = Home::new();
    for (rule, words) in FAULTS {
        home.config(&format!("[permissions]\nrules = [{rule}]\n"));
        for command in [&["config", "check"][..], &["config", "show"], &["acp"], &["run", "go"], &["tool", "bash", "{}"]] {
            let ran = home.run(command, "").await;
            let output = format!("{}{}", ran.stdout, ran.stderr);
            assert!(ran.code == 2 && words.iter().all(|word| output.contains(word)), "{rule}, {command:?}: {ran:?}");
        }
    }
    home.config("");
    home.put(".nuncio/config.toml", "[permissions]\nrules = [{ tool = \"bahs\", policy = \"deny\" }]\n");
    for command in [&["config", "check"][..], &["run", "go", "--model", "scripted:none"], &["tool", "bash", "{}"]] {
        let ran = home.run(command, "").await;
        let output = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code != 0 && output.contains("bahs") && output.contains("`bash`"), "{command:?}: {ran:?}");
    }
}

#[tokio::test]
async fn tool_patterns_and_mcp_tool_names_are_not_checked() {
    let home = Home::new();
    for tool in ["bash", "ba*", "*", "{bash,edit}", "b?sh", "[b]ash", "mcp__files__read", "mcp__files__*"] {
        home.config(&format!("[permissions]\nrules = [{{ tool = \"{tool}\", policy = \"deny\" }}]\n"));
        let ran = home.run(&["config", "check"], "").await;
        assert_eq!(ran.code, 0, "{tool}: {ran:?}");
    }
}
