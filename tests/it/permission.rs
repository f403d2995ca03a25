//! Permission decisions for tool calls: modes, rules, client answers, and untrusted projects.

mod answers;
mod deadlines;
mod embedded_repositories;
mod kept_rules;
mod large_files;
mod plan_approval;
mod rule_bypass;
mod scope;
mod secrets;
mod settings;
mod trust;
mod unasked_git;
mod web;

use serde_json::{Value, json};

use harness::Home;
use harness::verdict::Verdict::{Allow, Ask, Deny};
use harness::verdict::{Verdict, verdict};

fn calls(home: &Home) -> Vec<(&'static str, Value)> {
    home.put("in.txt", "text\n");
    let outside = home.put("../outside.txt", "text\n");
    vec![
        ("read", json!({"file_path": "in.txt"})),
        ("write", json!({"file_path": "new.txt", "content": ""})),
        ("bash", json!({"command": "true"})),
        ("read", json!({"file_path": outside})),
        ("write", json!({"file_path": outside, "content": ""})),
    ]
}

#[tokio::test]
async fn modes_decide_without_matching_rules() {
    let home = Home::new();
    let calls = calls(&home);
    // read inside, write inside, exec, read outside, write outside
    let modes = [
        ("ask", [Allow, Ask, Ask, Ask, Ask]),
        ("accept-edits", [Allow, Allow, Ask, Ask, Ask]),
        ("plan", [Allow, Deny, Deny, Deny, Deny]),
        ("auto", [Allow, Allow, Allow, Ask, Ask]),
    ];
    for (mode, verdicts) in modes {
        for ((tool, input), expected) in calls.iter().zip(verdicts) {
            assert_eq!(verdict(&home, mode, tool, input).await, expected, "{mode}: {tool} {input}");
        }
    }
    // `default` replaces the verdict `ask` in mode ask only.
    for (default, expected) in [("allow", Allow), ("deny", Deny)] {
        home.config(&format!("[permissions]\ndefault = \"{default}\"\n"));
        for (index, (tool, input)) in calls.iter().enumerate() {
            let expected = if index == 0 { Allow } else { expected };
            assert_eq!(verdict(&home, "ask", tool, input).await, expected, "default {default}: {tool} {input}");
        }
        assert_eq!(verdict(&home, "accept-edits", "bash", &json!({"command": "true"})).await, Ask);
        assert_eq!(verdict(&home, "plan", "bash", &json!({"command": "true"})).await, Deny);
    }
}

/// A table row: the user's rules, the mode, the tool, the tool input, and the expected verdict.
type Row = (&'static str, &'static str, &'static str, Value, Verdict);

#[tokio::test]
async fn rules_override_modes_except_plan() {
    let home = Home::new();
    calls(&home);
    std::fs::create_dir(home.work().join("secrets")).unwrap();
    home.put("secrets/key", "k");
    std::os::unix::fs::symlink("secrets/key", home.work().join("innocent")).unwrap();
    let bash = |command: &str| json!({"command": command});
    let file = |path: &str| json!({"file_path": path, "content": ""});
    let echo = r#"{ tool = "bash", pattern = "echo *", policy = "allow" }"#;
    let secrets = r#"{ kind = "write", path = "secrets/**", policy = "deny" }"#;
    let rows: Vec<Row> = vec![
        // An allow pattern must match every command in the line; redirections need permission.
        (echo, "ask", "bash", bash("echo hi there"), Allow),
        (echo, "ask", "bash", bash("echo"), Allow),
        (echo, "ask", "bash", bash("echoes"), Ask),
        (echo, "ask", "bash", bash("true"), Ask),
        (echo, "ask", "bash", bash("echo a; rm -rf x"), Ask),
        (echo, "ask", "bash", bash("echo a && true"), Ask),
        (echo, "ask", "bash", bash("echo a && echo b | echo c"), Allow),
        (echo, "ask", "bash", bash("echo $(echo a)"), Allow),
        (echo, "ask", "bash", bash("echo a | sh"), Ask),
        (echo, "ask", "bash", bash("echo $(true)"), Ask),
        (echo, "ask", "bash", bash("echo `true`"), Ask),
        (echo, "ask", "bash", bash("echo a > in.txt"), Ask),
        (echo, "ask", "bash", bash("echo a\ntrue"), Ask),
        (echo, "ask", "bash", bash("echo a &"), Allow),
        (echo, "plan", "bash", bash("echo hi"), Deny),
        (echo, "ask", "write", file("new.txt"), Ask),
        // A deny rule matches any command in the line.
        (r#"{ tool = "bash", pattern = "rm *", policy = "deny" }"#, "auto", "bash", bash("rm -f nothing"), Deny),
        (r#"{ tool = "bash", pattern = "rm *", policy = "deny" }"#, "auto", "bash", bash("true && rm -f nothing"), Deny),
        (r#"{ tool = "bash", pattern = "rm *", policy = "deny" }"#, "auto", "bash", bash("true; (rm -f nothing)"), Deny),
        (r#"{ tool = "bash", pattern = "rm *", policy = "deny" }"#, "auto", "bash", bash("true"), Allow),
        // Path rules match the path with symlinks resolved.
        (secrets, "auto", "write", file("secrets/key"), Deny),
        (secrets, "auto", "write", file("secrets/deep/er"), Deny),
        (secrets, "auto", "write", file("x/../secrets/key"), Deny),
        (secrets, "auto", "write", file("innocent"), Deny),
        (secrets, "auto", "write", file("new.txt"), Allow),
        (secrets, "auto", "read", json!({"file_path": "secrets/key"}), Allow),
        (r#"{ path = "*.txt", policy = "allow" }"#, "ask", "write", file("new.txt"), Allow),
        (r#"{ path = "*.txt", policy = "allow" }"#, "ask", "write", file("dir/new.txt"), Ask),
        // Output redirections of the shell count as writes.
        (secrets, "auto", "bash", bash("echo a > secrets/key"), Deny),
        (secrets, "auto", "bash", bash("true; { echo a; } 2>> ./x/../secrets/key"), Deny),
        (secrets, "auto", "bash", bash("echo a > innocent"), Deny),
        (secrets, "auto", "bash", json!({"command": "echo a > key", "cwd": "secrets"}), Deny),
        (secrets, "auto", "bash", bash("cd secrets && echo a > key"), Ask),
        (secrets, "auto", "bash", bash("for f in *; do echo a > $f; done"), Ask),
        (secrets, "auto", "bash", bash("cat < secrets/key > new.txt 2>&1"), Allow),
        // Rules for a tool also match calls under the tool's aliases.
        (r#"{ tool = "bash", policy = "deny" }"#, "auto", "shell", bash("true"), Deny),
        (r#"{ tool = "wri*", policy = "allow" }"#, "ask", "write_file", file("new.txt"), Allow),
        // The last matching rule of a scope decides.
        (r#"{ tool = "bash", policy = "deny" }, { tool = "bash", policy = "allow" }"#, "ask", "bash", bash("true"), Allow),
        (r#"{ tool = "bash", policy = "allow" }, { tool = "bash", policy = "deny" }"#, "auto", "bash", bash("true"), Deny),
        (r#"{ tool = "bash", policy = "allow" }, { pattern = "sh *", policy = "ask" }"#, "auto", "bash", bash("sh -c true"), Ask),
        (r#"{ kind = "read", policy = "ask" }"#, "auto", "read", json!({"file_path": "in.txt"}), Ask),
        (r#"{ kind = "read", policy = "deny" }"#, "ask", "read", json!({"file_path": "in.txt"}), Deny),
        (r#"{ kind = "exec", policy = "allow" }"#, "ask", "bash", bash("true && true"), Allow),
        (r#"{ policy = "allow" }"#, "ask", "read", json!({"file_path": "../outside.txt"}), Allow),
        (r#"{ policy = "allow" }"#, "plan", "read", json!({"file_path": "../outside.txt"}), Deny),
    ];
    for (rules, mode, tool, input, expected) in rows {
        home.config(&format!("[permissions]\nrules = [ {rules} ]\n"));
        assert_eq!(verdict(&home, mode, tool, &input).await, expected, "{rules} in {mode}: {tool} {input}");
    }
}

#[tokio::test]
async fn additional_roots_count_as_inside() {
    let home = Home::new();
    let outside = home.put("../wide/x.txt", "text\n");
    let wide = outside.parent().unwrap().to_str().unwrap().to_string();
    let read = json!({"file_path": outside}).to_string();
    assert_eq!(home.run(&["tool", "read", &read], "").await.code, 4);
    assert_eq!(home.run(&["tool", "read", "--root", &wide, &read], "").await.code, 0);
    home.config(&format!("allowed_paths = [\"{wide}\"]\n"));
    assert_eq!(home.run(&["tool", "read", &read], "").await.code, 0);
    // A symlink inside the roots to a file outside them counts as outside.
    home.config("");
    std::os::unix::fs::symlink(&outside, home.work().join("link")).unwrap();
    assert_eq!(verdict(&home, "auto", "read", &json!({"file_path": "link"})).await, Ask);
    assert_eq!(verdict(&home, "auto", "write", &json!({"file_path": "link", "content": ""})).await, Ask);
    assert_eq!(verdict(&home, "auto", "read", &json!({"file_path": "../wide/x.txt"})).await, Ask);
}
