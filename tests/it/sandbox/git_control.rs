//! Control files of git repositories and of a project's settings: a sandboxed command cannot make
//! the user's next git command run a program.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::output_without;
use crate::workspaces::{git, repository};
use harness::Home;

/// Each command makes the user's next git command in the repository, its linked worktree or its
/// submodule run `evil`. `fake` is a copy of the repository's git directory that names the program.
const ATTACKS: [&str; 19] = [
    "git config core.fsmonitor $PWD/evil",
    "printf '[core]\\nfsmonitor = %s/evil\\n' $PWD >> .git/config",
    "cp fake/config .git/new && mv -f .git/new .git/config",
    "rm -f .git/config; cp fake/config .git/config",
    "mv .git moved && cp -r moved .git && cp fake/config .git/config",
    "cp fake/config .git/config.worktree",
    "cp evil .git/hooks/post-index-change",
    "mv .git/hooks .git/before; mkdir -p .git/hooks && cp evil .git/hooks/post-index-change",
    "echo ../fake > .git/commondir",
    "echo gitdir: $PWD/fake > side/.git",
    "rm -f side/.git; mkdir -p side/.git && cp -r fake/. side/.git/",
    "echo $PWD/fake > .git/worktrees/side/commondir",
    "cp fake/config .git/worktrees/side/config.worktree",
    "mv .git/worktrees moved && cp -r moved .git/worktrees && echo $PWD/fake > .git/worktrees/side/commondir",
    "mv .git/worktrees/side moved && cp -r moved .git/worktrees/side && echo $PWD/fake > .git/worktrees/side/commondir",
    "git config -f .git/modules/deep/lib/config core.fsmonitor $PWD/evil",
    "echo $PWD/fake > .git/modules/deep/lib/commondir",
    "mv .git/modules/deep moved && cp -r moved .git/modules/deep && git config -f .git/modules/deep/lib/config core.fsmonitor $PWD/evil",
    "mv deep moved && cp -r moved deep && echo gitdir: $PWD/fake > deep/lib/.git",
];

/// Commands that change a control file and undo the change before they end. Each prints `changed`
/// if the change had an effect in between.
const UNDONE: [&str; 3] = [
    "cp .git/config kept; git config user.email x@y.z; git config user.email | grep -q x@y.z && echo changed; cp kept .git/config",
    "mkdir -p new && mv .git/hooks kept && mv new .git/hooks && echo changed; rm -rf .git/hooks; mv kept .git/hooks",
    "echo ../fake > .git/commondir; grep -q fake .git/commondir && echo changed; rm -f .git/commondir",
];

/// A repository with a linked worktree in `side` and a submodule in `deep/lib`.
pub fn with_worktree_and_submodule() -> Home {
    let home = repository();
    let work = home.work();
    let origin = home.put("../origin/file", "text\n").parent().unwrap().to_owned();
    git(&origin, &["init", "--quiet", "-b", "main"]);
    git(&origin, &["add", "."]);
    git(&origin, &["commit", "--quiet", "-m", "first"]);
    git(&work, &["submodule", "--quiet", "add", origin.to_str().unwrap(), "deep/lib"]);
    git(&work, &["commit", "--quiet", "-m", "submodule"]);
    git(&work, &["config", "extensions.worktreeConfig", "true"]);
    git(&work, &["worktree", "add", "--quiet", "side"]);
    let evil = home.put("evil", &format!("#!/bin/sh\ntouch {}\n", ran(&home).display()));
    std::fs::set_permissions(evil, std::fs::Permissions::from_mode(0o755)).unwrap();
    let copied = Command::new("cp").args(["-r", ".git", "fake"]).current_dir(&work).status().unwrap();
    assert!(copied.success());
    git(&work, &["config", "-f", "fake/config", "core.fsmonitor", &work.join("evil").display().to_string()]);
    home
}

/// The file that the program of an attack creates.
fn ran(home: &Home) -> PathBuf {
    home.work().parent().unwrap().join("ran")
}

/// Runs git as the user does, and returns whether the program of an attack ran.
pub fn runs_evil(home: &Home) -> bool {
    for directory in ["", "side", "deep/lib"] {
        let directory = home.work().join(directory);
        std::fs::write(directory.join("fresh"), "x").unwrap();
        for arguments in [&["status", "--short"][..], &["add", "fresh"]] {
            // An attack may have made the repository unusable.
            let _ = Command::new("git").args(arguments).current_dir(directory.as_path()).output().unwrap();
        }
    }
    std::fs::remove_file(ran(home)).is_ok()
}

pub async fn bash(home: &Home, flags: &[&str], command: &str) -> String {
    let input = json!({ "command": command }).to_string();
    let ran = home.run(&[&["tool", "bash", "--mode", "auto"], flags, &[&input]].concat(), "").await;
    output(&ran.lines().pop().unwrap_or_else(|| panic!("{ran:?}")))
}

pub fn output(told: &Value) -> String {
    told["output"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

/// Names of the files in a git directory that nuncio creates while a command runs.
fn placeholders(git_dir: &Path) -> Vec<&'static str> {
    ["commondir", "config.worktree"].into_iter().filter(|name| git_dir.join(name).exists()).collect()
}

#[tokio::test]
async fn commands_cannot_choose_the_programs_of_the_users_git() {
    needs_linux!("sandbox");
    let (mut harmless, mut through) = (Vec::new(), Vec::new());
    for attack in ATTACKS {
        let home = with_worktree_and_submodule();
        let told = bash(&home, &[], attack).await;
        if runs_evil(&home) {
            through.push(format!("{attack}: {told}"));
        }
        let home = with_worktree_and_submodule();
        let told = bash(&home, &["--sandbox", "off"], attack).await;
        if !runs_evil(&home) {
            harmless.push(format!("{attack}: {told}"));
        }
    }
    assert_eq!(through, Vec::<String>::new());
    assert_eq!(harmless, Vec::<String>::new(), "these attacks do nothing without a sandbox");
}

#[tokio::test]
async fn commands_cannot_change_control_files_for_a_while() {
    needs_linux!("sandbox");
    for command in UNDONE {
        let home = with_worktree_and_submodule();
        let told = bash(&home, &[], command).await;
        assert!(!told.contains("changed\n"), "{command}: {told}");
        let told = bash(&home, &["--sandbox", "off"], command).await;
        assert!(told.contains("changed\n"), "{command} does nothing without a sandbox: {told}");
    }
}

#[tokio::test]
async fn commands_in_a_linked_worktree_cannot_choose_programs() {
    needs_linux!("sandbox");
    for attack in [
        "echo $PWD/../fake > ../.git/worktrees/side/commondir",
        "echo gitdir: $PWD/../fake > .git",
        "rm -f .git; echo gitdir: $PWD/../fake > .git",
        "cp ../fake/config ../.git/worktrees/side/config.worktree",
    ] {
        let home = with_worktree_and_submodule();
        let input = json!({ "command": attack }).to_string();
        let side = home.work().join("side");
        let ran = home.run(&["--cwd", side.to_str().unwrap(), "tool", "bash", "--mode", "auto", &input], "").await;
        assert!(output(&ran.lines()[0]).contains("exit code: ") && !runs_evil(&home), "{attack}: {ran:?}");
    }
}

#[tokio::test]
async fn users_settings_can_allow_changes_of_gits_configuration() {
    needs_linux!("sandbox");
    let home = with_worktree_and_submodule();
    home.config("[sandbox]\ngit_config = true\n");
    assert_eq!(bash(&home, &[], ATTACKS[0]).await, "exit code: 0");
    assert!(runs_evil(&home));
    home.config("");
    home.put(".nuncio/config.toml", "[sandbox]\ngit_config = true\n");
    git(&home.work(), &["config", "--unset", "core.fsmonitor"]);
    bash(&home, &[], ATTACKS[0]).await;
    assert!(!runs_evil(&home), "a project must not widen the sandbox");
}

#[tokio::test]
async fn settings_of_a_project_are_read_only_for_commands() {
    needs_linux!("sandbox");
    for command in ["echo x > .nuncio/config.toml", "rm -r .nuncio", "mv .nuncio moved", "echo x > .nuncio/new"] {
        let home = Home::new();
        home.put(".nuncio/config.toml", "# settings\n");
        let told = bash(&home, &[], command).await;
        assert_eq!(home.get(".nuncio/config.toml").as_deref(), Some("# settings\n"), "{command}: {told}");
        assert!(home.get(".nuncio/new").is_none() && !told.contains("exit code: 0"), "{command}: {told}");
    }
}

#[tokio::test]
async fn usual_git_commands_work_in_the_sandbox_and_leave_no_files() {
    needs_linux!("sandbox");
    let home = with_worktree_and_submodule();
    crate::workspaces::hook(&home, "pre-commit", "echo hook >> hooked");
    for command in [
        "echo 1 > b && git add b && git commit -qm second && cat hooked",
        "git checkout -qb topic && git switch -q main && git branch -d topic",
        "echo 2 > b && git stash -q && git stash pop -q && git checkout -q b",
        "git worktree add -q ../work/other && git -C other status --short",
        "git worktree list && git -C other log --oneline",
        "git tag one && git gc -q && git fsck",
        "git clone -q . copy && git -C copy log --oneline",
        "git merge -q side && git rebase -q HEAD~1",
        "git submodule -q status",
    ] {
        let told = bash(&home, &[], command).await;
        // A note about git's configuration follows the exit code.
        let output = told.split("\n[sandbox: git's configuration").next().unwrap();
        assert!(output.ends_with("exit code: 0"), "{command}: {told}");
    }
    let git_dir = home.work().join(".git");
    for directory in ["", "modules/deep/lib"] {
        assert_eq!(placeholders(&git_dir.join(directory)), Vec::<&str>::new(), "{directory}");
    }
}

#[tokio::test]
async fn upstreams_and_remotes_are_set_with_permission_in_every_mode() {
    needs_linux!("sandbox");
    let home = repository();
    let input = json!({"action": "set_remote", "name": "x", "target": "https://example.org/x"}).to_string();
    for mode in ["ask", "accept-edits", "auto"] {
        let ran = home.run(&["tool", "git_branch", "--mode", mode, &input], "").await;
        assert!(output(&ran.lines()[0]).starts_with("denied: the call requires permission"), "{mode}: {ran:?}");
    }
    home.config("[permissions]\nrules = [{ tool = \"git_branch\", path = \".git/config\", policy = \"allow\" }]\n");
    let ran = home.run(&["tool", "git_branch", "--mode", "auto", &input], "").await;
    assert_eq!(output(&ran.lines()[0]), "x: set to https://example.org/x\n");
}

#[tokio::test]
async fn results_name_the_protection_of_gits_configuration() {
    needs_linux!("sandbox");
    let home = repository();
    let note = "git's configuration and hooks, and .nuncio, are read-only";
    for command in ["git config user.name x", "git remote add x https://example.org/x", "git config user.name x; true"] {
        let told = bash(&home, &[], command).await;
        assert!(told.contains(note), "{command}: {told}");
    }
    let told = bash(&home, &[], "git status --short").await;
    assert!(!told.contains(note), "{told}");
}

/// Runs a tool on a system that permits no namespaces.
fn without_namespaces(home: &Home, arguments: &[&str]) -> std::process::Output {
    output_without(libc::SYS_unshare, libc::EPERM, home, arguments)
}

#[test]
fn without_namespaces_mode_auto_asks_before_commands_in_repositories() {
    needs_linux!("sandbox");
    let home = repository();
    let asked = |command: &str| {
        let input = json!({ "command": command }).to_string();
        let ran = without_namespaces(&home, &["tool", "bash", "--mode", "auto", &input]);
        output(&serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))).starts_with("denied")
    };
    assert!(asked("touch made"));
    std::fs::rename(home.work().join(".git"), home.work().join("../elsewhere")).unwrap();
    assert!(!asked("touch made"), "a directory without git");
    let ran = without_namespaces(&home, &["doctor"]);
    assert!(String::from_utf8_lossy(&ran.stdout).contains("no mount namespaces"), "{ran:?}");
}

#[test]
fn without_namespaces_control_files_are_restored() {
    needs_linux!("sandbox");
    for attack in ATTACKS {
        let home = with_worktree_and_submodule();
        home.config("[permissions]\nrules = [{ tool = \"bash\", policy = \"allow\" }]\n");
        let input = json!({ "command": attack }).to_string();
        let ran = without_namespaces(&home, &["tool", "bash", "--mode", "auto", &input]);
        let told = output(&serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}")));
        assert!(!runs_evil(&home), "{attack}: {told}");
        assert!(told.contains("were restored: "), "{attack}: {told}");
    }
}

#[test]
fn control_files_are_read_only_for_other_users_too() {
    needs_linux!("sandbox");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let home = with_worktree_and_submodule();
    let top = home.work().parent().unwrap().to_owned();
    let owned = Command::new("chown").args(["-R", "65534:65534"]).arg(&top).status().unwrap();
    assert!(owned.success());
    for (attack, denied) in [("touch inside", false), (ATTACKS[1], true), (ATTACKS[4], true), (ATTACKS[8], true)] {
        let input = json!({ "command": attack }).to_string();
        let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut command = Command::new("setpriv");
        command.args(user).arg(harness::program()).args(["tool", "bash", "--mode", "auto", &input]);
        let ran = command.current_dir(home.work()).envs(home.variables()).env("HOME", &top).output().unwrap();
        let told = output(&serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}")));
        assert_eq!(!told.ends_with("exit code: 0"), denied, "{attack}: {told}");
        assert!(home.get(".git/commondir").is_none() && !home.get(".git/config").unwrap().contains("evil"), "{attack}: {told}");
    }
}
