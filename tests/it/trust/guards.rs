//! A change of trusted files removes no guard.

use std::os::unix::fs::chown;
use std::path::Path;

use serde_json::json;

use super::{CONFIG, hook, notices, results, run, trust};
use harness::Home;

/// Changes of a project's settings that remove everything from them.
const CHANGES: [&str; 3] = ["empty", "other", "absent"];

fn change(home: &Home, change: &str) {
    match change {
        "empty" => drop(home.put(CONFIG, "")),
        "other" => drop(home.put(CONFIG, "[permissions]\nrules = [{ tool = \"bash\", policy = \"ask\" }]\n")),
        _ => std::fs::remove_file(home.work().join(CONFIG)).unwrap(),
    }
}

#[tokio::test]
async fn restrictions_remain_after_a_change() {
    let trusted = "[budget]\nmax_requests = 7\n[sandbox]\nmode = \"read-only\"\n[permissions]\ndefault = \"deny\"\ntimeout_s = 5\n";
    for name in CHANGES {
        let home = Home::new();
        home.put(CONFIG, trusted);
        trust(&home).await;
        change(&home, name);
        let shown = home.run(&["config", "show"], "").await.stdout;
        for part in ["max_requests = 7", "mode = \"read-only\"", "default = \"deny\"", "timeout_s = 5", "as it was trusted"] {
            assert!(shown.contains(part), "{name}: {part}: {shown}");
        }
        let check = home.run(&["config", "check"], "").await.stdout;
        assert!(check.contains("changed since they were trusted"), "{name}: {check}");
        trust(&home).await;
        let shown = home.run(&["config", "show"], "").await.stdout;
        assert!(!shown.contains("max_requests = 7") && shown.contains("default = \"ask\""), "{name}: {shown}");
    }
}

#[tokio::test]
async fn deny_and_ask_rules_remain_after_a_change() {
    let rules = "[permissions]\nrules = [{ tool = \"bash\", pattern = \"touch denied\", policy = \"deny\" },\n\
                 { tool = \"bash\", pattern = \"touch asked\", policy = \"ask\" }]\n";
    for name in ["empty", "absent"] {
        let home = Home::new();
        home.put(CONFIG, rules);
        trust(&home).await;
        change(&home, name);
        let bash = |command: &str| ("bash", json!({ "command": command }));
        let ran = run(&home, "auto", &[bash("touch denied"), bash("touch asked"), bash("touch free")]).await;
        for (file, exists) in [("denied", false), ("asked", false), ("free", true)] {
            assert_eq!(home.work().join(file).exists(), exists, "{name}: {file}: {ran:?}");
        }
        let told = notices(&ran);
        assert!(told.contains("changed since they were trusted") && told.contains("nuncio trust --diff"), "{name}: {told}");
    }
}

/// A rule of the changed settings does not weaken a trusted one, nor the reverse.
#[tokio::test]
async fn stricter_rule_of_the_trusted_and_the_changed_settings_decides() {
    let rule =
        |policy: &str| format!("[permissions]\nrules = [{{ tool = \"bash\", pattern = \"touch x\", policy = \"{policy}\" }}]\n");
    for (trusted, changed) in [("deny", "ask"), ("deny", "allow"), ("ask", "deny"), ("allow", "deny")] {
        let home = Home::new();
        home.put(CONFIG, &rule(trusted));
        trust(&home).await;
        home.put(CONFIG, &rule(changed));
        let ran = run(&home, "auto", &[("bash", json!({"command": "touch x"}))]).await;
        let told = results(&ran);
        assert!(told[0].contains("denied") && !home.work().join("x").exists(), "{trusted}, {changed}: {told:?}");
    }
}

#[tokio::test]
async fn restrictions_remain_if_another_user_owns_the_settings() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let home = Home::new();
    home.put(CONFIG, "[budget]\nmax_requests = 7\n");
    trust(&home).await;
    chown(home.work().join(".nuncio"), Some(65_534), Some(65_534)).unwrap();
    let shown = home.run(&["config", "show"], "").await.stdout;
    assert!(shown.contains("max_requests = 7"), "{shown}");
    let untrusted = Home::new();
    untrusted.put(CONFIG, "[budget]\nmax_requests = 7\n");
    chown(untrusted.work().join(".nuncio"), Some(65_534), Some(65_534)).unwrap();
    let shown = untrusted.run(&["config", "show"], "").await.stdout;
    assert!(!shown.contains("max_requests = 7"), "{shown}");
}

/// Whether a call of a tool runs, in a project whose settings were trusted with a hook.
async fn is_blocked(home: &Home) -> bool {
    let ran = run(home, "auto", &[("read", json!({"file_path": "a.txt"}))]).await;
    let results = results(&ran);
    let blocked = results[0].contains("blocked by") && results[0].contains("nuncio trust --diff");
    assert!(blocked || results[0].contains("alpha"), "{results:?}");
    blocked
}

#[tokio::test]
async fn hook_remains_if_the_texts_of_its_files_are_large() {
    needs_linux!("sandbox");
    let home = Home::new();
    home.put("a.txt", "alpha\n");
    let padding = "# padding\n".repeat(70_000);
    for name in ["guard.sh", "other.sh"] {
        home.put(name, &padding);
    }
    let hooks = hook("tool.execute.before", "guard.sh", "") + &hook("tool.execute.after", "other.sh", "");
    home.put(CONFIG, &hooks);
    trust(&home).await;
    assert!(!is_blocked(&home).await);
    home.put(CONFIG, "");
    assert!(is_blocked(&home).await);
}

#[tokio::test]
async fn unknown_trusted_hooks_block_after_a_change() {
    needs_linux!("sandbox");
    for change in [None, Some("empty"), Some("absent")] {
        let home = Home::new();
        home.put("a.txt", "alpha\n");
        home.put(CONFIG, "[verify]\nauto = false\n");
        trust(&home).await;
        std::fs::remove_dir_all(home.data().join("trusted-content")).unwrap();
        if let Some(name) = change {
            self::change(&home, name);
        }
        assert_eq!(is_blocked(&home).await, change.is_some(), "{change:?}");
        trust(&home).await;
        assert!(!is_blocked(&home).await, "{change:?}");
    }
}

/// A program over 1 MiB is compared, too.
#[tokio::test]
async fn large_program_that_changed_does_not_start() {
    needs_linux!("sandbox");
    let home = Home::new();
    home.put("a.txt", "alpha\n");
    let program = |line: &str| format!("{line}\n{}", "# padding\n".repeat(120_000));
    home.put("guard.sh", &program("true"));
    home.put(CONFIG, &hook("tool.execute.before", "guard.sh", ""));
    trust(&home).await;
    assert!(!is_blocked(&home).await);
    home.put("guard.sh", &program("echo x > ran"));
    assert!(is_blocked(&home).await);
    assert_eq!(home.get("ran"), None);
    let diff = home.run(&["trust", "--diff"], "").await.stdout;
    assert!(diff.contains("bytes, SHA-256"), "{diff}");
}

#[tokio::test]
async fn checks_of_agents_md_run_only_if_the_trusted_ones_are_known() {
    needs_linux!("sandbox");
    for known in [true, false] {
        let home = Home::new();
        home.put("AGENTS.md", "# Checks\n\n- `touch checked`\n");
        trust(&home).await;
        if !known {
            std::fs::remove_dir_all(home.data().join("trusted-content")).unwrap();
        }
        run(&home, "accept-edits", &[("write", json!({"file_path": "new.txt", "content": "x\n"}))]).await;
        assert!(home.get("new.txt").is_some());
        assert_eq!(home.get("checked").is_some(), known);
    }
}

/// Files of a project that a command loads are compared.
#[tokio::test]
async fn files_that_a_command_loads_are_compared() {
    let outside = |home: &Home, name: &str| home.put(&format!("../{name}"), "true\n");
    let cases = [
        ("--config=tool.toml", "[\"tool\", \"--config=tool.toml\"]", "tool.toml"),
        ("node DIR", "[\"node\", \"server\"]", "server/index.js"),
        ("node DIR with a manifest", "[\"node\", \"server\"]", "server/lib/main.js"),
        ("python -m", "[\"python3\", \"-m\", \"tools.server\"]", "tools/server.py"),
        ("python -m package", "[\"/usr/bin/python3\", \"-m\", \"tools\"]", "tools/__main__.py"),
        ("link", "[\"sh\", \"link.sh\"]", "link.sh"),
    ];
    for (name, command, file) in cases {
        let home = Home::new();
        for file in ["tool.toml", "server/index.js", "server/lib/main.js", "tools/server.py", "tools/__main__.py"] {
            home.put(file, "one\n");
        }
        home.put("server/package.json", "{\"main\": \"lib/main.js\"}");
        let (one, other) = (outside(&home, "one.sh"), outside(&home, "other.sh"));
        std::os::unix::fs::symlink(&one, home.work().join("link.sh")).unwrap();
        home.put(CONFIG, &format!("[mcp.x]\ncommand = {command}\n"));
        trust(&home).await;
        assert_eq!(status(&home).await, "trusted", "{name}");
        match file {
            "link.sh" => relink(&home.work().join(file), &other),
            _ => drop(home.put(file, "two\n")),
        }
        assert_eq!(status(&home).await, "changed since it was trusted", "{name}");
    }
}

fn relink(link: &Path, target: &Path) {
    std::fs::remove_file(link).unwrap();
    std::os::unix::fs::symlink(target, link).unwrap();
}

async fn status(home: &Home) -> String {
    let listed = home.run(&["trust", "list"], "").await.stdout;
    match listed.trim() {
        line if line == home.work().display().to_string() => "trusted".into(),
        line if line.contains("have changed") => "changed since it was trusted".into(),
        line => panic!("{line}"),
    }
}
