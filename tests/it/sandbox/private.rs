//! Nuncio's own directories in the sandbox: commands cannot read or lock files in them, and can
//! read other files.

use serde_json::{Value, json};

use harness::Home;

/// A home whose data directory contains the files of an earlier session.
fn home(settings: &str) -> Home {
    let home = Home::new();
    home.config(settings);
    for (path, content) in [("token", "owner-token\n"), ("trusted", "trusted-list\n"), ("locks/one", "lock-owner\n")] {
        home.put(&format!("../home/{path}"), content);
    }
    home
}

const NETWORK: &str = "# settings-text\n[sandbox]\nnetwork = true\n";

async fn bash(home: &Home, flags: &[&str], command: &str) -> (i64, String) {
    let input = json!({ "command": command }).to_string();
    let ran = home.run(&[&["tool", "bash", "--mode", "auto"], flags, &[&input]].concat(), "").await;
    let told: Value = ran.lines().pop().unwrap_or_else(|| panic!("{ran:?}"));
    (told["details"]["exitCode"].as_i64().unwrap_or_else(|| panic!("{ran:?}")), told["output"].as_str().unwrap().to_string())
}

const OPENS: [&str; 16] = [
    "cat ../home/token",
    "cat < ../home/token",
    "cat ../home/config.toml",
    "cat ../home/trusted",
    "head -c 9 ../home/nuncio.db",
    "cat /proc/self/root$PWD/../home/token",
    "cp ../home/token taken",
    "ln ../home/token taken",
    "ln -s ../home/token link && cat link",
    "ln -s ../home beside && cat beside/token",
    "cd ../home && cat token",
    "perl -e 'open F, q(../home/token) or exit 1; print <F>'",
    "flock -n ../home/locks/one true",
    "flock -n ../home/locks true",
    "exec 9<>../home/locks/one && flock -n 9",
    "ls ../home",
];

#[tokio::test]
async fn nuncio_files_cannot_be_read_or_locked_in_the_sandbox() {
    needs_linux!("sandbox");
    for (settings, flags) in [("# settings-text\n", &[][..]), (NETWORK, &[]), (NETWORK, &["--sandbox", "read-only"])] {
        let home = home(settings);
        home.run(&["sessions", "list"], "").await;
        let mut through = Vec::new();
        for command in OPENS {
            let (code, told) = bash(&home, flags, command).await;
            let read =
                ["owner-token", "settings-text", "trusted-list", "lock-owner", "SQLite"].iter().any(|text| told.contains(text));
            if code == 0 || read {
                through.push(format!("{command}: {told}"));
            }
        }
        assert_eq!(through, Vec::<String>::new(), "{settings} {flags:?}");
    }
}

#[tokio::test]
async fn other_files_can_be_read_in_the_sandbox() {
    needs_linux!("sandbox");
    let home = home("");
    home.put("../sibling/deep/file", "text\n");
    home.put("inside", "text\n");
    std::os::unix::fs::symlink("sibling", home.work().join("../link")).unwrap();
    let commands = [
        "cat ../sibling/deep/file && ls -R ../sibling && cat ../link/deep/file",
        "cat /etc/passwd > /dev/null && ls /usr/bin /proc/self /dev > /dev/null && cat /proc/self/status > /dev/null",
        "echo x > $TMPDIR/file && cat $TMPDIR/file && ls $TMPDIR && echo y > new && cat new inside && ls && rm new",
        "bash -c 'pwd -P && cd .. && pwd' && git --version && python3 -c 'import json'",
    ];
    for command in commands {
        let (code, told) = bash(&home, &[], command).await;
        assert_eq!(code, 0, "{command}: {told}");
    }
}

#[tokio::test]
async fn root_that_contains_nuncio_directories_is_usable_in_the_sandbox() {
    needs_linux!("sandbox");
    let home = home("");
    home.put("../file", "text\n");
    home.put("../.hidden/share/file", "text\n");
    let works = [
        "ls && cat file && echo x > new && cat new && mv new other && rm other",
        "mkdir d && echo x > d/x && cat d/x && mv d e && rm -r e",
        "cat .hidden/share/file && echo x > .hidden/share/new && cat .hidden/share/new",
        "git init -q . && git status --short > /dev/null && rm -r .git",
        "echo x > $TMPDIR/file && cat $TMPDIR/file && ls $TMPDIR",
    ];
    let refused = [
        "cat home/token",
        "cat home/config.toml",
        "mv home elsewhere",
        "ln home/token taken",
        "echo x > home/trusted && cat home/trusted",
        "flock -n home/locks/one true",
    ];
    let top = home.work().parent().unwrap().display().to_string();
    for command in works {
        let (code, told) = bash(&home, &["--cwd", &top], command).await;
        assert_eq!(code, 0, "{command}: {told}");
    }
    for command in refused {
        let (code, told) = bash(&home, &["--cwd", &top], command).await;
        assert!(code != 0 && !told.contains("owner-token"), "{command}: {told}");
    }
    assert_eq!(home.get("../home/token").as_deref(), Some("owner-token\n"));
    assert_eq!(home.get("../home/trusted").as_deref(), Some("trusted-list\n"));
}

/// Settings that a command creates would take effect unconfined in the next session.
#[tokio::test]
async fn missing_settings_directory_cannot_be_created_in_the_sandbox() {
    needs_linux!("sandbox");
    let home = Home::new();
    let missing = home.work().join("config/nuncio");
    home.env("NUNCIO_HOME", missing.to_str().unwrap());
    let command = "mkdir -p config/nuncio && printf '[sandbox]\\nmode = \"off\"\\n' > config/nuncio/config.toml";
    let (code, told) = bash(&home, &[], command).await;
    assert_ne!(code, 0, "{told}");
    assert!(!missing.join("config.toml").exists());
    let (code, told) = bash(&home, &[], "echo x > config/other && cat config/other").await;
    assert_eq!(code, 0, "{told}");
}

#[tokio::test]
async fn parents_of_nuncio_directories_cannot_be_renamed_in_the_sandbox() {
    needs_linux!("sandbox");
    let home = Home::new();
    let data = home.put("../.local/share/nuncio/token", "owner-token\n").parent().unwrap().to_owned();
    home.env("NUNCIO_HOME", data.to_str().unwrap());
    let top = home.work().parent().unwrap().display().to_string();
    let flags = ["--cwd", top.as_str()];
    for command in ["mv .local elsewhere", "mv .local/share .local/elsewhere", "rm -r .local"] {
        let (code, told) = bash(&home, &flags, command).await;
        assert_ne!(code, 0, "{command}: {told}");
    }
    let (code, told) = bash(&home, &flags, "cat elsewhere/share/nuncio/token .local/share/nuncio/token").await;
    assert!(code != 0 && !told.contains("owner-token"), "{told}");
    assert_eq!(home.get("../.local/share/nuncio/token").as_deref(), Some("owner-token\n"));
}

#[tokio::test]
async fn git_tools_cannot_read_nuncio_files_in_the_sandbox() {
    needs_linux!("sandbox");
    let home = home("");
    home.put("file", "text\n");
    home.put(".gitattributes", "file filter=steal\n");
    let init = std::process::Command::new("git").args(["init", "-q"]).current_dir(home.work()).status().unwrap();
    assert!(init.success());
    let filter = "cat ../home/token >&2; cat ../home/token";
    for (name, value) in [("filter.steal.clean", filter), ("user.name", "n"), ("user.email", "e@example.org")] {
        let set = std::process::Command::new("git").args(["config", name, value]).current_dir(home.work()).status().unwrap();
        assert!(set.success());
    }
    let ran = home.run(&["tool", "git_commit", "--mode", "auto", r#"{"message": "one", "paths": ["file"]}"#], "").await;
    let shown = std::process::Command::new("git").args(["show", "HEAD:file"]).current_dir(home.work()).output().unwrap();
    let all = format!("{ran:?} {}", String::from_utf8_lossy(&shown.stdout));
    assert!(!all.contains("owner-token"), "{all}");
}

#[tokio::test]
async fn command_can_read_saved_output_of_its_session() {
    needs_linux!("sandbox");
    let home = home("");
    let calls = json!([
        {"tool_calls": [{"name": "bash", "input": {"command": "seq 100000"}}]},
        {"tool_calls": [{"name": "bash", "input": {"command": "tail -q -n 1 $TMPDIR/../bash-*.log"}}]},
        {"text": "seen"},
    ]);
    let (mut agent, session) = home.session(calls, &["--mode", "auto"]).await;
    let (_, updates) = agent.turn(&session, "go").await;
    let told = harness::tool(&updates, 1)["content"].to_string();
    assert!(told.contains("100000"), "{told}");
    agent.finish().await;
}

#[test]
fn nuncio_files_stay_private_in_enclosing_root_without_namespaces() {
    needs_linux!("sandbox");
    let home = home("");
    home.put("../file", "text\n");
    let top = home.work().parent().unwrap().display().to_string();
    let told = |command: &str| {
        let input = json!({ "command": command }).to_string();
        let arguments = ["bash", "--mode", "auto", "--cwd", &top, &input];
        super::tool_without(libc::SYS_unshare, libc::EPERM, &home, &arguments)
    };
    for command in ["cat home/token", "flock -n home/locks/one true", "ls home", "mv home elsewhere", "echo x > home/trusted"] {
        let told = told(command);
        let output = told["output"].as_str().unwrap();
        assert!(told["details"]["exitCode"] != 0 && !output.contains("owner-token"), "{command}: {told}");
    }
    let told = told("cat file && echo x >> file && echo x > work/new && cat work/new && echo x > $TMPDIR/a && cat $TMPDIR/a");
    assert_eq!(told["details"]["exitCode"], 0, "{told}");
    assert_eq!(home.get("../home/trusted").as_deref(), Some("trusted-list\n"));
}
