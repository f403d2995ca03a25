//! Git's control files are protected in every state: when earlier commands left a repository
//! incomplete or unreadable, with more worktrees than nuncio lists, when a `.git` file names a
//! directory of the project, and while the user's own git runs beside a command.

use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::json;

use super::git_control::{bash, output, runs_evil, with_worktree_and_submodule};
use super::output_without;
use crate::workspaces::{git, repository};
use harness::steps::{calls_one, says};
use harness::{Home, tool};

/// Two commands, the first of which prepares what the second does. Without a sandbox, the second
/// one makes the user's next git command run `evil`.
const PREPARED: [(&str, &str); 13] = [
    ("mv .git/objects .git/o", "cp fake/config .git/config; mv .git/o .git/objects"),
    ("mv .git/refs .git/r", "cp fake/config .git/config; mv .git/r .git/refs"),
    ("mv .git/HEAD .git/h", "cp fake/config .git/config; mv .git/h .git/HEAD"),
    ("mv .git/HEAD .git/h", "mv .git g; cp -r fake .git"),
    ("mv .git/objects .git/o; mkdir .git/x", "cp evil .git/hooks/post-index-change; mv .git/o .git/objects"),
    ("mv .git/worktrees/side/HEAD .git/h", "echo $PWD/fake > .git/worktrees/side/commondir; mv .git/h .git/worktrees/side/HEAD"),
    ("mv .git/worktrees/side .git/s", "echo $PWD/fake > .git/s/commondir; mv .git/s .git/worktrees/side"),
    ("mv .git/worktrees .git/w", "echo $PWD/fake > .git/w/side/commondir; mv .git/w .git/worktrees"),
    ("mv .git/modules/deep/lib/HEAD .git/h", "cp fake/config .git/modules/deep/lib/config; cp .git/h .git/modules/deep/lib/HEAD"),
    (
        "mv .git/modules/deep/lib/refs .git/r",
        "cp evil .git/modules/deep/lib/hooks/post-index-change; mv .git/r .git/modules/deep/lib/refs",
    ),
    ("for i in $(seq 600); do mkdir .git/worktrees/a$i; done", "echo $PWD/fake > .git/worktrees/side/commondir"),
    ("for i in $(seq 600); do mkdir .git/modules/a$i; done", "git config -f .git/modules/deep/lib/config core.fsmonitor $PWD/evil"),
    ("touch .git/worktrees/side/locked", "echo $PWD/fake > .git/worktrees/side/commondir"),
];

#[tokio::test]
async fn commands_cannot_prepare_what_later_commands_do() {
    needs_linux!("sandbox");
    let (mut harmless, mut through) = (String::new(), String::new());
    for (first, second) in PREPARED {
        for (flags, found) in [(&[][..], &mut through), (&["--sandbox", "off"], &mut harmless)] {
            let home = with_worktree_and_submodule();
            let told = [bash(&home, flags, first).await, bash(&home, flags, second).await];
            // What the first command damaged is repaired, as the user would.
            for (moved, place) in [("h", "HEAD"), ("o", "objects"), ("r", "refs"), ("w", "worktrees"), ("s", "worktrees/side")] {
                let [moved, place] = [moved, place].map(|name| home.work().join(".git").join(name));
                if moved.exists() && !place.exists() {
                    std::fs::rename(moved, place).unwrap();
                }
            }
            if runs_evil(&home) == flags.is_empty() {
                writeln!(found, "{first}: {second}: {told:?}").unwrap();
            }
        }
    }
    assert_eq!(through, "");
    assert_eq!(harmless, "", "these do nothing without a sandbox");
}

#[test]
fn without_namespaces_commands_cannot_prepare_what_later_commands_do() {
    needs_linux!("sandbox");
    for (first, second) in PREPARED {
        let home = with_worktree_and_submodule();
        home.config("[permissions]\nrules = [{ tool = \"bash\", policy = \"allow\" }]\n");
        let told = [first, second].map(|line| {
            let input = json!({ "command": line }).to_string();
            let ran = output_without(libc::SYS_unshare, libc::EPERM, &home, &["tool", "bash", "--mode", "auto", &input]);
            String::from_utf8_lossy(&ran.stdout).into_owned()
        });
        assert!(!runs_evil(&home), "{first}: {second}: {told:?}");
    }
}

/// Runs a command as another user, to whom the home belongs.
fn as_another_user(home: &Home, line: &str) -> String {
    let input = json!({ "command": line }).to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(harness::program()).args(["tool", "bash", "--mode", "auto", &input]);
    let top = home.work().parent().unwrap().to_owned();
    let ran = command.current_dir(home.work()).envs(home.variables()).env("HOME", top).output().unwrap();
    format!("{ran:?}")
}

/// Modes of files do not restrict root.
#[test]
fn unreadable_directories_stay_protected() {
    needs_linux!("sandbox");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let config = "cp fake/config .git/config";
    let module = "cp fake/config .git/modules/deep/lib/config";
    let entry = "echo $PWD/fake > .git/worktrees/side/commondir";
    for (closed, mode, attack, changed) in [
        (".git", "0", config, ".git/config"),
        (".git", "300", config, ".git/config"),
        (".git", "600", config, ".git/config"),
        (".", "0", config, ".git/config"),
        (".", "300", config, ".git/config"),
        (".git/objects", "0", config, ".git/config"),
        (".git/refs", "0", config, ".git/config"),
        (".git/modules", "0", module, ".git/modules/deep/lib/config"),
        (".git/modules/deep", "0", module, ".git/modules/deep/lib/config"),
        (".git/modules/deep/lib", "0", module, ".git/modules/deep/lib/config"),
        (".git/worktrees", "0", entry, ".git/worktrees/side/commondir"),
        (".git/worktrees/side", "0", entry, ".git/worktrees/side/commondir"),
        ("side", "0", "echo gitdir: $PWD/fake > side/.git", "side/.git"),
    ] {
        let home = with_worktree_and_submodule();
        let top = home.work().parent().unwrap().to_owned();
        assert!(Command::new("chown").args(["-R", "65534:65534"]).arg(&top).status().unwrap().success());
        let told =
            [format!("chmod {mode} {closed}"), format!("chmod 755 {closed}; {attack}")].map(|line| as_another_user(&home, &line));
        // The user opens it again.
        std::fs::set_permissions(home.work().join(closed), std::fs::Permissions::from_mode(0o755)).unwrap();
        let told = format!("{closed} {mode}: {told:?} {}", as_another_user(&home, attack));
        let text = home.get(changed).unwrap();
        assert!(!text.contains("evil") && !text.contains("fake"), "{told}: {text}");
    }
}

/// A repository whose git directory is `.bare`, `store` or elsewhere in the project.
fn with_named_directory(name: &str, reference: &str) -> Home {
    let home = with_worktree_and_submodule();
    let work = home.work();
    std::fs::rename(work.join(".git"), work.join(name)).unwrap();
    match reference.strip_prefix("link ") {
        Some(target) => std::os::unix::fs::symlink(target, work.join(".git")).unwrap(),
        None => std::fs::write(work.join(".git"), format!("gitdir: {reference}\n")).unwrap(),
    }
    home
}

#[tokio::test]
async fn directories_that_a_reference_names_are_protected() {
    needs_linux!("sandbox");
    for (name, reference) in
        [(".bare", "./.bare"), ("store", "store"), ("store", "./store/"), ("store", "link store"), (".bare", "../work/.bare")]
    {
        for attack in [
            "cp fake/config NAME/config",
            "cp evil NAME/hooks/post-index-change",
            "echo $PWD/fake > NAME/commondir",
            "mv NAME moved; cp -r fake NAME",
            "rm .git; cp -r fake .git",
            "rm -rf .git; echo gitdir: ./fake > .git",
        ] {
            let befores = ["true", "mv NAME/HEAD NAME/h", "mv NAME/objects NAME/o", "mv NAME moved"];
            // The state before matters for what is in the directory.
            for before in befores.into_iter().take(if attack.starts_with("cp fake/config") { 4 } else { 1 }) {
                let home = with_named_directory(name, reference);
                let [before, attack] = [before, attack].map(|line| line.replace("NAME", name));
                let told = [bash(&home, &[], &before).await, bash(&home, &[], &attack).await];
                for (moved, place) in [("h", "HEAD"), ("o", "objects")] {
                    let [moved, place] = [moved, place].map(|part| home.work().join(name).join(part));
                    if moved.exists() && !place.exists() {
                        std::fs::rename(moved, place).unwrap();
                    }
                }
                assert!(!runs_evil(&home), "{name} {reference}: {before}: {attack}: {told:?}");
            }
        }
    }
    // The directory does not exist yet.
    let home = with_worktree_and_submodule();
    git(&home.work(), &["worktree", "remove", "side", "--force"]);
    std::fs::rename(home.work().join(".git"), home.work().join("../elsewhere")).unwrap();
    std::fs::write(home.work().join(".git"), "gitdir: ./later/git\n").unwrap();
    let told = bash(&home, &[], "mkdir -p later; cp -r fake later/git").await;
    assert!(!home.work().join("later").exists(), "{told}");
}

#[tokio::test]
async fn directories_that_variables_name_are_protected() {
    needs_linux!("sandbox");
    let home = repository();
    std::fs::rename(home.work().join(".git"), home.work().join("store")).unwrap();
    home.env("GIT_DIR", home.work().join("store").to_str().unwrap());
    for command in ["echo '[alias]' >> store/config", "mv store s && cp -r s store && echo '[alias]' >> store/config"] {
        let told = bash(&home, &[], command).await;
        assert!(!home.get("store/config").unwrap().contains("alias"), "{told}");
    }
}

#[tokio::test]
async fn settings_of_other_version_control_systems_are_protected() {
    needs_linux!("sandbox");
    for (existing, attack, changed) in [
        (".hg/hgrc", "echo evil >> .hg/hgrc", ".hg/hgrc"),
        (".hg/hgrc", "mv .hg h; cp -r h .hg; echo evil >> .hg/hgrc", ".hg/hgrc"),
        (".hg/requires", "echo evil > .hg/hgrc", ".hg/hgrc"),
        (".hg/requires", "echo evil > x; mv x .hg/hgrc", ".hg/hgrc"),
        (".hg/requires", "echo shared evil >> .hg/requires", ".hg/requires"),
        (".jj/repo/config.toml", "echo evil > .jj/repo/config.toml", ".jj/repo/config.toml"),
        (".jj/repo/store/type", "echo evil > .jj/repo/config.toml", ".jj/repo/config.toml"),
    ] {
        let home = Home::new();
        home.put(existing, "text\n");
        let told = bash(&home, &[], attack).await;
        assert!(!home.get(changed).unwrap_or_default().contains("evil"), "{existing}: {attack}: {told}");
    }
    for path in [".hg/hgrc", ".jj/repo/config.toml"] {
        let home = Home::new();
        let input = json!({"file_path": path, "content": "x\n"}).to_string();
        let ran = home.run(&["tool", "write", "--mode", "auto", &input], "").await;
        assert!(output(&ran.lines()[0]).starts_with("denied: the call requires permission"), "{path}: {ran:?}");
    }
}

/// Also through a name, and while the command is in the background.
#[tokio::test]
async fn commands_cannot_create_settings() {
    needs_linux!("sandbox");
    for command in [
        "mkdir -p .nuncio && echo x > .nuncio/config.toml",
        "mkdir x; echo x > x/config.toml; mv x .nuncio",
        "mkdir x; echo x > x/config.toml; ln -s x .nuncio",
        "echo x > .nuncio",
        "mkfifo .nuncio",
    ] {
        for without in [false, true] {
            let home = Home::new();
            let told = match without {
                false => bash(&home, &[], command).await,
                true => {
                    let input = json!({ "command": command }).to_string();
                    let ran = output_without(libc::SYS_unshare, libc::EPERM, &home, &["tool", "bash", "--mode", "auto", &input]);
                    output(&serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}")))
                }
            };
            assert!(home.work().join(".nuncio").symlink_metadata().is_err(), "{command}: {told}");
            assert!(told.contains(".nuncio.removed") && !told.contains("were restored"), "{command}: {told}");
        }
    }
}

/// A directory that was protected once stays so, also from a root above.
#[tokio::test]
async fn directories_that_were_protected_are_protected_from_other_roots() {
    needs_linux!("sandbox");
    let home = repository();
    let inner = home.work().join("inner");
    std::fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "--quiet"]);
    let line = "echo '[alias]' >> inner/.git/config";
    let input = json!({ "command": "true" }).to_string();
    home.run(&["--cwd", inner.to_str().unwrap(), "tool", "bash", "--mode", "auto", &input], "").await;
    let told = bash(&home, &[], line).await;
    assert!(!home.get("inner/.git/config").unwrap().contains("alias"), "{told}");
}

/// The user's git runs while a command waits, which then attacks. The second call proves that
/// nuncio has reacted, because it handles changes of files before it starts a command.
#[tokio::test]
async fn commands_cannot_use_what_the_users_git_replaces() {
    needs_linux!("sandbox");
    let config = "cp fake/config .git/config; cp fake/config .git/config.worktree";
    let twice = ["-c", "alias.twice=!git config user.name Bea; git config core.fsmonitor $PWD/evil", "twice"];
    let cases: [(&[&str], &str, &str); 8] = [
        // The second file can have the inode of the one that was mounted.
        (&twice, config, "Bea"),
        (&["config", "user.name", "Bea"], config, "Bea"),
        (&["config", "user.name", "Bea"], "rm -f .git/config; cp fake/config .git/config", "Bea"),
        (&["remote", "add", "origin", "https://example.org/x"], config, "https://example.org/x"),
        (&["branch", "--quiet", "-m", "renamed"], config, ""),
        (&["worktree", "add", "--quiet", "new"], "echo $PWD/fake > .git/worktrees/new/commondir", ""),
        (
            &["worktree", "add", "--quiet", "new"],
            "rm .git/worktrees/new/commondir; echo $PWD/fake > .git/worktrees/new/commondir",
            "",
        ),
        (&["worktree", "add", "--quiet", "new"], "cp fake/config .git/worktrees/new/config.worktree", ""),
    ];
    for (users, attack, kept) in cases {
        let home = with_worktree_and_submodule();
        let line = format!("echo > ready; cat go; {attack}; echo attacked > done; cat end");
        let start = calls_one("bash", json!({"command": line, "background": true}));
        let look = calls_one("bash", json!({"command": "cat ready"}));
        let again = calls_one("bash", json!({"command": "true"}));
        let finish = calls_one("bash", json!({"command": "echo > go; cat done; echo > end"}));
        let steps = json!([start, look, says("", "waits"), again, says("", "seen"), finish, says("", "over")]);
        let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
        for name in ["ready", "go", "done", "end"] {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mkfifoat(rustix::fs::CWD, home.work().join(name), mode).unwrap();
        }
        agent.turn(&session, "go").await;
        git(&home.work(), users);
        agent.turn(&session, "look").await;
        let (_, updates) = agent.turn(&session, "attack").await;
        let told = tool(&updates, 0)["content"].to_string();
        assert!(!runs_evil(&home), "{users:?} {attack}: {told}");
        let new = home.work().join("new");
        if new.exists() {
            let _ = Command::new("git").args(["status", "--short"]).current_dir(new).output().unwrap();
        }
        assert!(!runs_evil(&home), "{users:?} {attack}: {told}");
        agent.finish().await;
        assert!(!runs_evil(&home), "{users:?} {attack}, after it: {told}");
        assert!(home.get(".git/config").unwrap().contains(kept), "{users:?} {attack}: the user's change is lost");
    }
}

/// A change that reached the configuration in the moment in which it was not mounted.
#[test]
fn settings_that_name_programs_are_undone_and_others_kept() {
    needs_linux!("sandbox");
    for (added, kept, undone) in [
        ("[user]\n\tname = Bea\n", "name = Bea", ""),
        ("[core]\n\tfsmonitor = evil\n", "", "fsmonitor"),
        ("[user]\n\tname = Bea\n[core]\n\tfsmonitor = evil\n", "name = Bea", "fsmonitor"),
        ("[remote \"o\"]\n\turl = https://example.org\n\tuploadpack = evil\n", "example.org", "uploadpack"),
        ("[remote \"o\"]\n\turl = ext::evil\n", "", "ext::"),
        ("[branch \"m\"]\n\tremote = o\n\tmerge = refs/heads/m\n", "refs/heads/m", ""),
        ("[user]\n\tname = a \\\n[core]\n\tfsmonitor = evil\n", "", "fsmonitor"),
        ("[user] name = x\n[core] fsmonitor = evil\n", "", "fsmonitor"),
        ("[include]\n\tpath = evil\n", "", "path"),
        ("[alias]\n\tst = !evil\n", "", "evil"),
        ("[user \"x\"]\n\tname = y\n[CORE]\n\tFSMonitor = evil\n", "", "FSMonitor"),
    ] {
        let home = with_worktree_and_submodule();
        home.config("[permissions]\nrules = [{ tool = \"bash\", policy = \"allow\" }]\n");
        home.put("added", added);
        let input = json!({ "command": "cat added >> .git/config" }).to_string();
        let ran = output_without(libc::SYS_unshare, libc::EPERM, &home, &["tool", "bash", "--mode", "auto", &input]);
        let told = output(&serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}")));
        let text = home.get(".git/config").unwrap();
        assert!(text.contains(kept), "{added}: {text} {told}");
        assert!(undone.is_empty() || !text.contains(undone) && told.contains(undone), "{added}: {text} {told}");
        git(&home.work(), &["status", "--short"]);
    }
}

/// Git removes `worktrees` with the last linked worktree, and creates it again.
#[tokio::test]
async fn directories_that_were_removed_can_be_created_again() {
    needs_linux!("sandbox");
    let home = repository();
    for _ in 0..2 {
        git(&home.work(), &["worktree", "add", "--quiet", "side"]);
        bash(&home, &[], "git -C side status --short").await;
        git(&home.work(), &["worktree", "remove", "--force", "side"]);
        git(&home.work(), &["branch", "--quiet", "-D", "side"]);
        let told = bash(&home, &[], "git worktree add -q again && git -C again status --short").await;
        assert_eq!(told, "exit code: 0");
        git(&home.work(), &["worktree", "remove", "--force", "again"]);
        git(&home.work(), &["branch", "--quiet", "-D", "again"]);
    }
}

/// A supervisor that its command kills cannot report, but what the command changed is restored.
#[test]
fn killed_supervisors_leave_no_changes() {
    needs_linux!("sandbox");
    let home = with_worktree_and_submodule();
    home.config("[permissions]\nrules = [{ tool = \"bash\", policy = \"allow\" }]\n");
    let input = json!({ "command": "cp fake/config .git/config; cp evil .git/hooks/post-index-change; kill -9 $PPID" }).to_string();
    let ran = output_without(libc::SYS_unshare, libc::EPERM, &home, &["tool", "bash", "--mode", "auto", &input]);
    assert!(!home.get(".git/config").unwrap().contains("evil") && !runs_evil(&home), "{ran:?}");
}
