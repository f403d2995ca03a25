//! Repositories in a project that are not the session's: a clone can contain a bare repository,
//! whose configuration names programs that a harmless git command would run.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::workspaces::{git, repository};
use harness::Home;

/// A repository with directories in which git would use another one: `bare`, `nested`,
/// `reference` and `common`. Their configuration runs `evil`.
fn with_embedded() -> Home {
    let home = repository();
    let work = home.work();
    let evil = home.put("evil", &format!("#!/bin/sh\ntouch {}\n", ran(&home).display()));
    std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["bare", "nested"] {
        let directory = work.join(name);
        std::fs::create_dir(&directory).unwrap();
        git(&directory, if name == "bare" { &["init", "--quiet", "--bare"] } else { &["init", "--quiet"] });
        let git_dir = if name == "bare" { directory } else { directory.join(".git") };
        let config = format!("[core]\n\tbare = false\n\tworktree = {}\n\tfsmonitor = {}\n", work.display(), evil.display());
        std::fs::write(git_dir.join("config"), config).unwrap();
    }
    home.put("reference/.git", "gitdir: ../bare\n");
    home.put("common/HEAD", "ref: refs/heads/main\n");
    home.put("common/commondir", "../bare\n");
    home.put("common/gitdir", "../.git\n");
    home.put("src/file", "");
    home
}

fn ran(home: &Home) -> std::path::PathBuf {
    home.work().parent().unwrap().join("ran")
}

fn rules(patterns: &[&str]) -> String {
    let rules = patterns.iter().map(|pattern| format!("{{ tool = \"bash\", pattern = \"{pattern}\", policy = \"allow\" }}, "));
    format!("# In the mode ask, commands are not confined.\n[permissions]\nrules = [{}]\n", rules.collect::<String>())
}

async fn bash(home: &Home, mode: &str, input: Value) -> String {
    let ran = home.run(&["tool", "bash", "--mode", mode, &input.to_string()], "").await;
    ran.lines().pop().unwrap_or_else(|| panic!("{ran:?}"))["output"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn git_commands_in_other_repositories_ask() {
    let all = ["git *", "cd *", "env *", "git status", "find *"];
    for (cwd, command) in [
        ("bare", "git status"),
        ("bare", "git status --short"),
        ("bare/refs", "git status"),
        ("bare/objects/info", "git diff"),
        ("nested", "git status"),
        ("reference", "git status"),
        ("common", "git status"),
        (".", "git -C bare status"),
        (".", "git -C src -C ../bare status"),
        (".", "git --git-dir=bare status"),
        (".", "git --git-dir bare status"),
        (".", "git --work-tree=. --git-dir=bare status"),
        (".", "cd bare && git status"),
        (".", "cd src; cd ../bare; git status"),
        (".", "cd src/../bare; git status"),
        (".", "(cd nested && git status)"),
        (".", "cd bare; echo $(git status)"),
        (".", "env -C bare git status"),
        (".", "env --chdir=bare git status"),
        (".", "find bare -maxdepth 0 -execdir git status \\;"),
        ("src", "git -C ../bare log"),
    ] {
        let home = with_embedded();
        home.config(&rules(&all));
        let told = bash(&home, "ask", json!({"command": command, "cwd": cwd})).await;
        assert!(told.starts_with("denied: the call requires permission"), "{cwd}: {command}: {told}");
        assert!(!ran(&home).exists(), "{cwd}: {command}: {told}");
    }
}

#[tokio::test]
async fn git_commands_in_the_sessions_repository_do_not_ask() {
    let home = with_embedded();
    home.config(&rules(&["git status *", "git log *", "cd *"]));
    git(&home.work(), &["worktree", "add", "--quiet", "side"]);
    for (cwd, command) in [
        (".", "git status --short"),
        ("src", "git status --short"),
        ("side", "git status --short"),
        (".git", "git log --oneline"),
        (".", "cd src && git status --short"),
        (".", "cd side && git log --oneline"),
    ] {
        let told = bash(&home, "ask", json!({"command": command, "cwd": cwd})).await;
        assert!(told.ends_with("exit code: 0"), "{cwd}: {command}: {told}");
    }
}

/// Also where no rule is concerned: git refuses what it finds.
#[tokio::test]
async fn git_refuses_embedded_bare_repositories() {
    needs_linux!("sandbox");
    let home = with_embedded();
    for command in ["cd bare && git status", "cd bare/refs; git status", "cd common && git status"] {
        let told = bash(&home, "auto", json!({"command": command})).await;
        assert!(told.contains("cannot use bare repository") && !ran(&home).exists(), "{command}: {told}");
    }
    home.env("GIT_CONFIG_COUNT", "1");
    home.env("GIT_CONFIG_KEY_0", "user.name");
    home.env("GIT_CONFIG_VALUE_0", "Cleo");
    let told =
        bash(&home, "auto", json!({"command": "git config user.name; git -c user.name=Dan config user.name; cd bare; git status"}))
            .await;
    assert!(told.contains("Cleo\nDan\n") && told.contains("cannot use bare repository"), "{told}");
}

#[tokio::test]
async fn bare_roots_work() {
    needs_linux!("sandbox");
    let home = Home::new();
    git(&home.work(), &["init", "--quiet", "--bare"]);
    let told = bash(&home, "auto", json!({"command": "git rev-parse --is-bare-repository"})).await;
    assert_eq!(told, "true\nexit code: 0");
}

#[tokio::test]
async fn writes_that_complete_or_change_a_bare_repository_ask() {
    let complete = ["HEAD", "objects/x", "refs/x"];
    for (existing, written, asks) in [
        (&complete[..], "sub/config", true),
        (&complete, "sub/config.worktree", true),
        (&complete, "sub/hooks/post-checkout", true),
        (&complete, "sub/CONFIG", true),
        (&complete, "sub/HEAD", true),
        (&complete, "sub/other", true),
        (&["HEAD", "objects/x"], "sub/refs/heads/x", true),
        (&["HEAD", "refs/x"], "sub/objects/x", true),
        (&["objects/x", "refs/x"], "sub/HEAD", true),
        (&["HEAD"], "sub/commondir", true),
        (&["commondir"], "sub/HEAD", true),
        (&["objects/x", "config"], "sub/refs/x", false),
        (&["HEAD"], "sub/config", false),
        (&[], "sub/HEAD", false),
        (&["config"], "sub/config", false),
    ] {
        let home = Home::new();
        for name in existing {
            home.put(&format!("sub/{name}"), "ref: refs/heads/main\n");
        }
        let input = json!({"file_path": written, "content": "x\n"}).to_string();
        let ran = home.run(&["tool", "write", "--mode", "accept-edits", &input], "").await;
        let told = ran.lines()[0]["output"].as_str().unwrap().to_owned();
        assert_eq!(told.starts_with("denied: the call requires permission"), asks, "{existing:?} {written}: {told}");
    }
}
