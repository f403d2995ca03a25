//! The git tools with hostile repositories, unusual names, cancelled calls, failures and rules.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use nuncio::internal::permission::hidden::Hidden;
use nuncio::internal::permission::rules::Rules;
use nuncio::internal::process::Sandbox;

use super::git::{git, hook, repository};
use super::*;

const READS: [&str; 4] = ["git_status", "git_diff", "git_log", "git_branch"];

fn input(name: &str) -> Value {
    if name == "git_branch" { json!({"action": "list"}) } else { json!({}) }
}

/// A repository next to the session's directory, with a changed secret.
fn elsewhere(world: &World) -> PathBuf {
    let other = world.directory.path().canonicalize().unwrap().join("elsewhere");
    git(world.directory.path(), &["clone", "--quiet", "work", "elsewhere"]);
    std::fs::write(other.join("a"), "secret\n").unwrap();
    git(&other, &["checkout", "--quiet", "-b", "secret"]);
    other
}

fn confine(world: &mut World, writable: Vec<PathBuf>) {
    let temp = world.context.shell.temp().to_owned();
    world.context.sandbox = Some(Sandbox { writable, temp, network: false, required: true, ..Sandbox::default() });
}

#[tokio::test]
async fn repository_outside_the_session_is_rejected() {
    needs_linux!("sandbox");
    type Plant = fn(&Path, &Path);
    let fake: Plant = |work, other| {
        for (name, names) in [("commondir", other.join(".git")), ("gitdir", work.join(".git"))] {
            std::fs::write(work.join(".git").join(name), names.as_os_str().as_bytes()).unwrap();
        }
    };
    let cases: [(&str, Plant); 6] = [
        ("its settings name a working tree", |work, other| {
            git(work, &["config", "core.worktree", other.to_str().unwrap()]);
        }),
        ("a file names it", |work, other| {
            std::fs::remove_dir_all(work.join(".git")).unwrap();
            std::fs::write(work.join(".git"), format!("gitdir: {}/.git\n", other.display())).unwrap();
        }),
        ("a file names the linked worktree of another", |work, other| {
            git(other, &["worktree", "add", "--quiet", "../tree"]);
            std::fs::remove_dir_all(work.join(".git")).unwrap();
            std::fs::copy(work.join("../tree/.git"), work.join(".git")).unwrap();
        }),
        ("a link leads to it", |work, other| {
            std::fs::remove_dir_all(work.join(".git")).unwrap();
            symlink(other.join(".git"), work.join(".git")).unwrap();
        }),
        ("it says that it is a linked worktree", fake),
        ("it says so, and is a worktree with settings of its own", |work, other| {
            git(other, &["config", "extensions.worktreeConfig", "true"]);
            git(work, &["config", "--file", ".git/config.worktree", "core.worktree", work.to_str().unwrap()]);
            std::fs::write(work.join(".git/commondir"), other.join(".git").as_os_str().as_bytes()).unwrap();
        }),
    ];
    for (how, plant) in cases {
        let mut world = repository();
        let other = elsewhere(&world);
        plant(&world.path("").canonicalize().unwrap(), &other);
        for name in READS {
            let told = world.told(name, input(name)).await;
            assert!(told.starts_with("error ") && told.contains("outside") && !told.contains("secret"), "{how}: {name}: {told}");
        }
        let told = world.told("git_commit", json!({"message": "x"})).await;
        assert!(told.contains("outside"), "{how}: {told}");
        // A repository in a root is accepted, unless its working tree is elsewhere.
        let roots = [other.clone()];
        world.context.workspace = Arc::new(Workspace::new(&world.path(""), roots, world.directory.path()));
        let told = world.told("git_log", json!({})).await;
        assert_eq!(told.starts_with("ok "), how != "its settings name a working tree", "{how}: {told}");
    }
}

#[tokio::test]
async fn without_roots_nothing_is_shown() {
    let mut world = repository();
    world.put("a", "secret\n");
    let mut workspace = Workspace::clone(&world.context.workspace);
    workspace.roots.clear();
    world.context.workspace = Arc::new(workspace);
    for name in ["git_status", "git_diff"] {
        let told = world.told(name, json!({})).await;
        assert!(
            told.starts_with("error the repository ") && told.ends_with(" is outside the session's directories"),
            "{name}: {told}"
        );
    }
}

#[tokio::test]
async fn submodules_and_worktrees_can_be_the_session_directory() {
    needs_linux!("sandbox");
    let mut world = repository();
    let sub = world.directory.path().join("sub");
    git(&world.path(""), &["clone", "--quiet", ".", sub.to_str().unwrap()]);
    git(&world.path(""), &["submodule", "--quiet", "add", sub.to_str().unwrap(), "module"]);
    git(&world.path("module"), &["worktree", "add", "--quiet", "../../tree"]);
    let top = world.path("");
    for (place, branch) in [("module", "main"), ("module/dir", "main"), ("../tree", "tree")] {
        world.context.workspace = Arc::new(Workspace::new(&top.join(place), [], world.directory.path()));
        let told = world.told("git_status", json!({})).await;
        assert!(told.starts_with(&format!("ok on {branch}")) && told.ends_with("\nno changes\n"), "{place}: {told}");
    }
}

#[tokio::test]
async fn filters_of_reads_cannot_write() {
    needs_linux!("sandbox");
    let mut world = repository();
    let ran = world.path("ran");
    let plant = format!("touch {0} {0}$$; cat", ran.display());
    git(&world.path(""), &["config", "filter.evil.clean", &plant]);
    world.put(".gitattributes", "a filter=evil\n");
    world.put("a", "one\nTWO\nthree\n");
    for confined in [false, true] {
        if confined {
            let roots = world.context.workspace.roots.clone();
            confine(&mut world, roots);
        }
        for (name, what) in [("git_status", "modified a"), ("git_diff", "+TWO")] {
            let told = world.told(name, json!({})).await;
            assert!(told.starts_with("ok ") && told.contains(what) && !ran.exists(), "{name}: {told}");
        }
    }
    // The filter is effective: git itself runs it.
    git(&world.path(""), &["diff"]);
    assert!(ran.exists());
}

#[tokio::test]
async fn large_files_of_git_lfs_can_be_compared() {
    needs_linux!("sandbox");
    let world = repository();
    world.put(".git/lfs/kept", "");
    git(&world.path(""), &["config", "filter.lfs.clean", "cat >.git/lfs/kept && echo pointer"]);
    git(&world.path(""), &["config", "filter.lfs.required", "true"]);
    world.put(".gitattributes", "a filter=lfs\n");
    world.put("a", "large\n");
    let told = world.told("git_diff", json!({})).await;
    assert!(told.contains("+pointer"), "{told}");
}

#[tokio::test]
async fn names_that_are_not_utf8_are_hidden_and_committed() {
    needs_linux!("sandbox");
    let mut world = repository();
    let strange = world.path("dir").join(OsStr::from_bytes(b"\xff"));
    std::fs::write(&strange, "open\n").unwrap();
    let told = world.told("git_commit", json!({"message": "strange", "paths": ["dir"]})).await;
    assert!(told.contains("added dir/") && told.ends_with(" +1 -0\n"), "{told}");
    std::fs::write(&strange, "secret\n").unwrap();
    world.put("a", "open\n");
    world.context.path_filter = Some(Arc::new(move |real: &Path| real == strange));
    let told = world.told("git_diff", json!({})).await;
    assert!(told.contains("+open") && !told.contains("secret") && !told.contains("dir/"), "{told}");
}

#[tokio::test]
async fn directory_rule_hides_the_directory() {
    needs_linux!("sandbox");
    let mut world = repository();
    world.put("secrets/a", "secret\n");
    let absolute = world.path("secrets").display().to_string();
    for rule in ["secrets/**", "secrets", &format!("{absolute}/**"), &absolute] {
        let rule = json!([{"path": rule, "policy": "deny"}]);
        let rules = Rules { user: serde_json::from_value(rule.clone()).unwrap(), ..Rules::default() };
        let hidden = Hidden::from_rules(&rules, "git_status", &world.context.workspace.cwd, false).unwrap();
        world.context.path_filter = Some(Arc::new(move |real: &Path| hidden.hides(real)));
        assert_eq!(world.told("git_status", json!({})).await, "ok on main\nno changes\n", "{rule}");
    }
}

#[tokio::test]
async fn renamed_file_stays_hidden() {
    needs_linux!("sandbox");
    let mut world = repository();
    let lines: String = (0..20).map(|number| format!("line {number}\n")).collect();
    world.put("a", format!("{lines}secret\n"));
    git(&world.path(""), &["commit", "--quiet", "-am", "secret"]);
    git(&world.path(""), &["mv", "a", "z"]);
    world.put("z", &lines);
    git(&world.path(""), &["add", "z"]);
    let hidden = world.path("a");
    world.context.path_filter = Some(Arc::new(move |real: &Path| real == hidden));
    let output = world.call("git_diff", json!({"staged": true})).await.unwrap();
    let told = plain_text(&output.parts);
    assert!(told.contains("+line 7") && !told.contains("secret"), "{told}");
    assert_eq!(output.details["files"], json!([{"path": "z", "status": "added", "insertions": 20, "deletions": 0}]));
}

#[tokio::test]
async fn cancelled_commit_restores_the_index() {
    needs_linux!("sandbox");
    let world = repository();
    world.put("new", "x\n");
    let ready = world.path(".git/ready");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &ready, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    hook(&world, "pre-commit", "echo >.git/ready; sleep 300");
    let cancel = world.context.cancel.clone();
    let hanging = std::thread::spawn(move || {
        std::fs::read_to_string(ready).unwrap();
        cancel.cancel();
    });
    assert_eq!(world.told("git_commit", json!({"message": "x", "paths": ["new"]})).await, "error cancelled");
    hanging.join().unwrap();
    assert_eq!(git(&world.path(""), &["status", "--porcelain"]), "?? new\n");
}

#[tokio::test]
async fn commit_of_many_new_files_succeeds_or_restores_the_index() {
    needs_linux!("sandbox");
    let world = repository();
    let name = |number: usize| format!("many/{number:0120}");
    (0..1500).for_each(|number| world.put(&name(number), "x\n"));
    hook(&world, "pre-commit", "echo no; exit 1");
    let call = json!({"message": "many", "paths": ["many"]});
    assert_eq!(world.told("git_commit", call.clone()).await, "error git failed with exit code 1: no");
    assert_eq!(git(&world.path(""), &["status", "--porcelain"]), "?? many/\n");
    hook(&world, "pre-commit", "true");
    let told = world.told("git_commit", call).await;
    assert!(told.contains(&format!("added {} +1 -0\n", name(0))), "{told}");
    assert_eq!(git(&world.path(""), &["ls-files", "many"]).lines().count(), 1500);
    assert_eq!(git(&world.path(""), &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn failures_describe_the_sandbox() {
    needs_linux!("sandbox");
    let mut world = repository();
    world.put("a", "x\n");
    confine(&mut world, Vec::new());
    let told = world.told("git_commit", json!({"message": "x", "paths": ["a"]})).await;
    let sandbox = "\n[sandbox read-only: writes only below $TMPDIR; no network, no sockets]";
    assert!(told.contains("index.lock': Permission denied") && told.ends_with(sandbox), "{told}");
    let told = world.told("git_branch", json!({"action": "create", "name": "side"})).await;
    assert!(told.ends_with(sandbox), "{told}");
}

#[tokio::test]
async fn paths_may_contain_symlinks() {
    needs_linux!("sandbox");
    let world = repository();
    let link = world.directory.path().join("link");
    symlink(world.path(""), &link).unwrap();
    symlink("dir", world.path("inner")).unwrap();
    world.put("a", "changed\n");
    world.put("dir/b", "changed\n");
    for (path, what) in [(link.join("a"), "+++ b/a\n"), (link.join("inner/b"), "+++ b/dir/b\n"), (link, "+++ b/a\n")] {
        let told = world.told("git_diff", json!({ "path": path })).await;
        assert!(told.starts_with("ok ") && told.contains(what), "{}: {told}", path.display());
    }
    // A link in the repository is committed itself.
    let told = world.told("git_commit", json!({"message": "link", "paths": ["inner"]})).await;
    assert!(told.ends_with("\n  added inner +1 -0\n"), "{told}");
}

#[tokio::test]
async fn empty_commits_are_explained() {
    needs_linux!("sandbox");
    let world = repository();
    world.put("new", "x\n");
    world.put(".git/info/exclude", "*.log\n");
    world.put("a.log", "x\n");
    let nothing = "error nothing is staged; set paths, or run git add with bash";
    let ignored =
        "error a.log is ignored by git (.gitignore or similar); to commit it, run git add --force with bash, then git_commit";
    let cases = [
        (json!({"message": "x"}), nothing),
        (json!({"message": "x", "paths": ["a"]}), "error these paths have no changes"),
        (json!({"message": "x", "paths": ["new", "a.log"]}), ignored),
    ];
    for (input, told) in cases {
        assert_eq!(world.told("git_commit", input.clone()).await, told, "{input}");
    }
    assert_eq!(git(&world.path(""), &["status", "--porcelain"]), "?? new\n");
    // git runs in a fixed locale.
    hook(&world, "pre-commit", "echo $LC_ALL; exit 1");
    let told = world.told("git_commit", json!({"message": "x", "paths": ["new"]})).await;
    assert_eq!(told, "error git failed with exit code 1: C.UTF-8");
}

#[tokio::test]
async fn command_rules_apply_to_git_tools() {
    let world = repository();
    let access =
        |name: &str, input: Value| world.tools.prepare(name, input, &world.context).map_err(|error| error.0).unwrap().access;
    let commit = access("git_commit", json!({"message": "it's", "paths": ["a b"]}));
    assert_eq!(commit.command.as_deref(), Some(r"git commit -m 'it'\''s' -- 'a b'"));
    assert_eq!((commit.paths, commit.kind), (vec!["a b".to_owned()], nuncio::internal::permission::AccessKind::Exec));
    let switch = access("git_branch", json!({"action": "switch", "name": "x"}));
    assert_eq!(switch.command.as_deref(), Some("git switch x"));
    let list = access("git_branch", json!({"action": "list"}));
    assert_eq!((list.kind, list.command), (nuncio::internal::permission::AccessKind::Read, None));
}
