//! Rules that can never match are configuration errors. The error message suggests the nearest
//! name.

use harness::Home;

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

/// Rules with a field that calls of their tool do not have, and the words of the error. Such a deny
/// rule would never deny anything.
const DEAD: &[(&str, &[&str])] = &[
    (r#"tool = "write", pattern = "secret/**""#, &["`write`", "do not have pattern", "path"]),
    (r#"tool = "edit", pattern = "*""#, &["`edit`", "pattern"]),
    (r#"tool = "apply_patch", pattern = "*""#, &["`apply_patch`", "pattern"]),
    (r#"tool = "read", path = "a", pattern = "b""#, &["`read`", "pattern"]),
    (r#"tool = "read", kind = "write", path = "a""#, &["`read`", "kind = \"write\"", "kind = \"read\""]),
    (r#"tool = "fetch", path = "https://x/**""#, &["`fetch`", "path", "pattern"]),
    (r#"tool = "task", pattern = "*""#, &["`task`", "pattern"]),
    (r#"tool = "plan", path = "*""#, &["`plan`", "path"]),
    (r#"tool = "bash", kind = "write", pattern = "rm *""#, &["`bash`"]),
    (r#"tool = "{write,edit}", pattern = "*""#, &["`{write,edit}`", "pattern"]),
    (r#"tool = "wri*", pattern = "*""#, &["`wri*`", "pattern"]),
    (r#"tool = "mcp__files__write", pattern = "secret*""#, &["`mcp__files__write`", "pattern"]),
    (r#"tool = "mcp__files__*", path = "secret/**""#, &["`mcp__files__*`", "path"]),
    (r#"kind = "write", pattern = "secret/**""#, &["kind \"write\"", "pattern"]),
    (r#"kind = "read", pattern = "*""#, &["kind \"read\"", "pattern"]),
    (r#"kind = "network", path = "a""#, &["kind \"network\"", "path"]),
    (r#"tool = "*", kind = "write", pattern = "*""#, &["pattern"]),
];

#[tokio::test]
async fn rule_that_can_never_match_is_an_error() {
    let home = Home::new();
    let mut silent = Vec::new();
    for (rule, words) in DEAD {
        for policy in ["deny", "allow"] {
            home.config(&format!("[permissions]\nrules = [{{ {rule}, policy = \"{policy}\" }}]\n"));
            let ran = home.run(&["config", "check"], "").await;
            if ran.code != 2 || !words.iter().all(|word| ran.stderr.contains(word)) {
                silent.push(format!("{rule}: {ran:?}"));
            }
        }
    }
    assert!(silent.is_empty(), "{silent:#?}");
    let (rule, _) = DEAD[0];
    home.config("");
    home.put(".nuncio/config.toml", &format!("[permissions]\nrules = [{{ {rule}, policy = \"deny\" }}]\n"));
    assert_eq!(home.run(&["config", "check"], "").await.code, 2);
}

#[tokio::test]
async fn rule_with_the_fields_of_its_tool_is_valid() {
    let home = Home::new();
    for rule in [
        r#"tool = "write", path = "secret/**""#,
        r#"tool = "bash", path = "/tmp/**", pattern = "rm *""#,
        r#"tool = "bash", kind = "write", path = "secret/**""#,
        r#"tool = "verify", pattern = "make *""#,
        r#"tool = "git_commit", pattern = "git commit *""#,
        r#"tool = "git_branch", kind = "read", path = "*""#,
        r#"tool = "fetch", pattern = "https://docs.rs/*""#,
        r#"tool = "*", pattern = "rm *""#,
        r#"tool = "mcp__*", kind = "mcp""#,
        r#"tool = "plan""#,
        r#"kind = "exec", pattern = "rm *""#,
        r#"kind = "mcp", path = "secret/**""#,
        r#"pattern = "https://evil.example/*""#,
        r#"path = "secret/**", pattern = "rm *""#,
    ] {
        home.config(&format!("[permissions]\nrules = [{{ {rule}, policy = \"deny\" }}]\n"));
        let ran = home.run(&["config", "check"], "").await;
        assert_eq!(ran.code, 0, "{rule}: {ran:?}");
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
