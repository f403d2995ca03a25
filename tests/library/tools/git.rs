//! The git tools, on real repositories.

use std::process::Command;

use nuncio::internal::process::Sandbox;

use super::*;

/// Runs git directly, with a fixed author.
pub(super) fn git(directory: &Path, arguments: &[&str]) -> String {
    let people = [("GIT_AUTHOR_NAME", "Ann"), ("GIT_AUTHOR_EMAIL", "ann@example.org"), ("GIT_AUTHOR_DATE", "2026-02-03T04:05:06Z")];
    let output = Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .envs(people)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A repository with `a` and `dir/b` committed on `main`.
pub(super) fn repository() -> World {
    let world = World::with_files(&[("a", "one\ntwo\nthree\n"), ("dir/b", "b\n")]);
    git(&world.path(""), &["init", "--quiet", "-b", "main"]);
    for (name, value) in [("user.name", "Ann"), ("user.email", "ann@example.org"), ("core.hooksPath", ".git/hooks")] {
        git(&world.path(""), &["config", name, value]);
    }
    git(&world.path(""), &["add", "."]);
    git(&world.path(""), &["commit", "--quiet", "-m", "first"]);
    world
}

pub(super) fn hook(world: &World, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = format!(".git/hooks/{name}");
    world.put(&path, format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(world.path(&path), std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn short(world: &World, revision: &str) -> String {
    git(&world.path(""), &["rev-parse", revision])[..10].to_owned()
}

#[tokio::test]
async fn missing_repository_is_reported() {
    needs_linux!("sandbox");
    let world = World::new();
    let expected = format!("error {} is not in a git repository", world.path("").display());
    let expected = expected.replace("/ is", " is");
    for (name, input) in [
        ("git_status", json!({})),
        ("git_diff", json!({})),
        ("git_log", json!({})),
        ("git_commit", json!({"message": "x"})),
        ("git_branch", json!({"action": "list"})),
    ] {
        assert_eq!(world.told(name, input).await, expected, "{name}");
    }
}

#[tokio::test]
async fn repository_without_commits_is_supported() {
    needs_linux!("sandbox");
    let world = World::with_files(&[("a", "a\n")]);
    git(&world.path(""), &["init", "--quiet", "-b", "trunk"]);
    assert_eq!(world.told("git_status", json!({})).await, "ok on trunk, no commits yet\nuntracked:\n  a\n");
    assert_eq!(world.told("git_log", json!({})).await, "ok no commits yet\n");
    assert_eq!(world.told("git_branch", json!({"action": "list"})).await, "ok no commits yet; the first one will be on trunk\n");
    git(&world.path(""), &["add", "a"]);
    let told = world.told("git_diff", json!({"staged": true})).await;
    assert!(told.starts_with("ok diff --git a/a b/a\nnew file mode 100644\n") && told.ends_with("\n+a\n"), "{told}");
    for (name, value) in [("user.name", "Ann"), ("user.email", "ann@example.org")] {
        git(&world.path(""), &["config", name, value]);
    }
    let told = world.told("git_commit", json!({"message": "root"})).await;
    assert_eq!(told, format!("ok committed {} on trunk\n  added a +1 -0\n", short(&world, "HEAD")));
}

#[tokio::test]
async fn status_lists_changed_files_by_state() {
    needs_linux!("sandbox");
    let world = repository();
    assert_eq!(world.told("git_status", json!({})).await, "ok on main\nno changes\n");
    world.put("a", "one\n2\nthree\n");
    world.put("dir/new", "x\n");
    world.put("other/deep/x", "x\n");
    git(&world.path(""), &["mv", "dir/b", "dir/c d"]);
    world.put("- strange\nname*é", "x\n");
    git(&world.path(""), &["add", "--", "- strange\nname*é"]);
    let output = world.call("git_status", json!({})).await.unwrap();
    insta::assert_snapshot!(plain_text(&output.parts), @r#"
    on main
    staged:
      added "- strange\nname*é"
      renamed dir/b -> dir/c d
    not staged:
      modified a
    untracked:
      dir/new
      other/
    "#);
    assert_eq!(output.details["staged"][1], json!({"path": "dir/c d", "status": "renamed", "from": "dir/b"}));
    assert_eq!((&output.details["branch"], &output.details["truncated"]), (&json!("main"), &json!(false)));
    git(&world.path(""), &["checkout", "--quiet", "--detach"]);
    let told = world.told("git_status", json!({})).await;
    assert!(told.starts_with(&format!("ok detached at {}\n", short(&world, "HEAD"))), "{told}");
}

#[tokio::test]
async fn status_reports_upstream_and_conflicts() {
    needs_linux!("sandbox");
    let world = repository();
    let other = world.directory.path().join("clone");
    git(&world.path(""), &["clone", "--quiet", ".", other.to_str().unwrap()]);
    git(&world.path(""), &["remote", "add", "origin", other.to_str().unwrap()]);
    git(&other, &["commit", "--quiet", "--allow-empty", "-m", "theirs"]);
    world.put("a", "ours\n");
    git(&world.path(""), &["commit", "--quiet", "-am", "ours"]);
    git(&world.path(""), &["fetch", "--quiet", "origin"]);
    git(&world.path(""), &["branch", "--quiet", "--set-upstream-to=origin/main"]);
    assert_eq!(world.told("git_status", json!({})).await, "ok on main, 1 ahead and 1 behind origin/main\nno changes\n");
    let told = world.told("git_branch", json!({"action": "list"})).await;
    assert_eq!(told, format!("ok * main {} [origin/main: ahead 1, behind 1] ours\n", &short(&world, "HEAD")[..7]));

    git(&world.path(""), &["checkout", "--quiet", "-b", "side", "HEAD~1"]);
    world.put("a", "side\n");
    git(&world.path(""), &["commit", "--quiet", "-am", "side"]);
    let merged = Command::new("git").args(["merge", "main"]).current_dir(world.path("")).output().unwrap();
    assert!(!merged.status.success());
    assert_eq!(world.told("git_status", json!({})).await, "ok on side\nconflicts:\n  UU a\n");
    let output = world.call("git_diff", json!({})).await.unwrap();
    assert_eq!(output.details["files"][0]["status"], "conflicted", "{}", output.details);
    assert!(plain_text(&output.parts).starts_with("diff --cc a\n"), "{output:?}");
    let told = world.told("git_commit", json!({"message": "too early"})).await;
    assert!(told.starts_with("error git failed with exit code 128: ") && told.contains("unmerged files"), "{told}");
}

#[tokio::test]
async fn diffs_are_unified_and_counted() {
    needs_linux!("sandbox");
    let world = repository();
    let none = "ok no unstaged changes; set staged to see staged ones\n";
    assert_eq!(world.told("git_diff", json!({})).await, none);
    world.put("a", "one\n2\nthree\n");
    world.put("dir/b", b"b\0\n");
    let output = world.call("git_diff", json!({})).await.unwrap();
    let files = json!([
        {"path": "a", "status": "modified", "insertions": 1, "deletions": 1},
        {"path": "dir/b", "status": "modified"},
    ]);
    assert_eq!(output.details, json!({"files": files, "truncated": false}));
    let told = world.told("git_diff", json!({"path": "a"})).await;
    assert!(told.ends_with("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n") && !told.contains("dir/b"), "{told}");
    assert_eq!(world.told("git_diff", json!({"staged": true})).await, "ok no staged changes\n");
    git(&world.path(""), &["mv", "a", "z"]);
    let output = world.call("git_diff", json!({"staged": "true"})).await.unwrap();
    assert_eq!(output.details["files"], json!([{"path": "z", "status": "renamed", "from": "a", "insertions": 0, "deletions": 0}]));
    let told = world.told("git_diff", json!({"path": "../elsewhere"})).await;
    assert_eq!(told, format!("error ../elsewhere is not in the repository {}", world.context.workspace.cwd.display()));
}

#[tokio::test]
async fn long_diffs_are_truncated_and_list_all_files() {
    needs_linux!("sandbox");
    let world = repository();
    world.put("a", (0..20_000).map(|number| format!("{number}\n")).collect::<String>());
    world.put("dir/b", "c\n");
    let output = world.call("git_diff", json!({})).await.unwrap();
    let told = plain_text(&output.parts);
    assert!(told.len() < 52_000, "{} bytes", told.len());
    let end = "changed files:\n  modified a +20000 -3\n  modified dir/b +1 -1\n[truncated; set path to one of the changed files to see its changes]";
    assert!(told.ends_with(end), "{}", &told[told.len() - 200..]);
    assert_eq!(output.details["truncated"], true);
}

#[tokio::test]
async fn hidden_files_are_omitted() {
    needs_linux!("sandbox");
    let mut world = repository();
    world.put("a", "secret\n");
    world.put("dir/b", "open\n");
    let secret = world.path("a");
    world.context.path_filter = Some(Arc::new(move |real: &Path| real == secret));
    let told = world.told("git_diff", json!({})).await;
    assert!(told.contains("+open") && !told.contains("secret"), "{told}");
    assert_eq!(world.told("git_status", json!({})).await, "ok on main\nnot staged:\n  modified dir/b\n");
}

#[tokio::test]
async fn only_files_inside_the_roots_are_shown() {
    needs_linux!("sandbox");
    let mut world = repository();
    world.put("a", "outside\n");
    world.put("dir/b", "inside\n");
    world.context.workspace = Arc::new(Workspace::new(&world.path("dir"), [], world.directory.path()));
    let told = world.told("git_diff", json!({})).await;
    assert!(told.contains("+inside") && !told.contains("outside"), "{told}");
    assert_eq!(world.told("git_status", json!({})).await, "ok on main\nnot staged:\n  modified b\n");
}

#[tokio::test]
async fn log_can_be_limited_to_a_path() {
    needs_linux!("sandbox");
    let world = repository();
    let first = short(&world, "HEAD");
    world.put("a", "x\n");
    git(&world.path(""), &["commit", "--quiet", "-am", "second: with | and\tmore\n\nbody"]);
    git(&world.path(""), &["tag", "v1"]);
    let second = short(&world, "HEAD");
    let newest = format!("{second} 2026-02-03 Ann (HEAD -> main, tag: v1): second: with | and\tmore\n");
    let oldest = format!("{first} 2026-02-03 Ann: first\n");
    let cases = [
        (json!({}), format!("ok {newest}{oldest}")),
        (json!({"count": 1}), format!("ok {newest}")),
        (json!({"path": "dir"}), format!("ok {oldest}")),
        (json!({"path": "nowhere"}), "ok no commit changes this path\n".into()),
    ];
    for (input, told) in cases {
        assert_eq!(world.told("git_log", input.clone()).await, told, "{input}");
    }
    let details = world.call("git_log", json!({"path": "dir"})).await.unwrap().details;
    let commit = git(&world.path(""), &["rev-parse", "HEAD~1"]);
    assert_eq!(
        details["commits"],
        json!([{"commit": commit.trim(), "author": "Ann", "date": "2026-02-03T04:05:06Z", "refs": "", "subject": "first"}])
    );
}

#[tokio::test]
async fn commit_includes_staged_or_named_files() {
    needs_linux!("sandbox");
    let world = repository();
    let nothing = "error nothing is staged; set paths, or run git add with bash";
    assert_eq!(world.told("git_commit", json!({"message": "x"})).await, nothing);
    world.put("a", "one\n");
    assert_eq!(world.told("git_commit", json!({"message": "x"})).await, nothing);
    assert_eq!(world.told("git_commit", json!({"message": " "})).await, "error git_commit: message is empty; describe the change");
    world.put("dir/b", "changed\n");
    world.put("-new*", "new\n");
    world.put("-newer", "new\n");
    git(&world.path(""), &["add", "dir/b"]);
    let output = world.call("git_commit", json!({"message": "# said 'so'\n\nbody", "paths": ["a", "-new*"]})).await.unwrap();
    let head = short(&world, "HEAD");
    assert_eq!(plain_text(&output.parts), format!("committed {head} on main\n  added -new* +1 -0\n  modified a +0 -2\n"));
    assert_eq!(output.details["branch"], "main");
    assert_eq!(git(&world.path(""), &["log", "-1", "--format=%B"]).trim_end(), "# said 'so'\n\nbody");
    let status = "ok on main\nstaged:\n  modified dir/b\nuntracked:\n  -newer\n";
    assert_eq!(world.told("git_status", json!({})).await, status);
    let told = world.told("git_commit", json!({"message": "the rest"})).await;
    assert_eq!(told, format!("ok committed {} on main\n  modified dir/b +1 -1\n", short(&world, "HEAD")));
    let told = world.told("git_commit", json!({"message": "x", "paths": ["nowhere"]})).await;
    assert!(told.starts_with("error git failed with exit code 1: error: pathspec '"), "{told}");
    std::fs::remove_file(world.path("dir/b")).unwrap();
    let told = world.told("git_commit", json!({"message": "gone", "paths": ["dir"]})).await;
    assert!(told.ends_with("on main\n  deleted dir/b +0 -1\n"), "{told}");
}

#[tokio::test]
async fn hook_output_is_reported_and_hooks_can_reject_a_commit() {
    needs_linux!("sandbox");
    let world = repository();
    world.put("a", "x\n");
    world.put("new", "x\n");
    hook(&world, "pre-commit", "echo the hook says no; exit 1");
    let told = world.told("git_commit", json!({"message": "x", "paths": ["a", "new"]})).await;
    assert_eq!(told, "error git failed with exit code 1: the hook says no");
    assert_eq!(world.told("git_status", json!({})).await, "ok on main\nnot staged:\n  modified a\nuntracked:\n  new\n");
    hook(&world, "pre-commit", "cat; echo fine >&2");
    let told = world.told("git_commit", json!({"message": "x", "paths": ["a"]})).await;
    assert_eq!(told, format!("ok committed {} on main\n  modified a +1 -3\noutput of hooks:\nfine\n", short(&world, "HEAD")));
}

#[tokio::test]
async fn hanging_hook_is_killed_with_its_call() {
    needs_linux!("sandbox");
    let world = repository();
    world.put("a", "x\n");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        world.path(".git/ready"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    hook(&world, "pre-commit", "trap '' TERM; echo $$ >.git/ready; sleep 300");
    let (cancel, ready) = (world.context.cancel.clone(), world.path(".git/ready"));
    let hanging = std::thread::spawn(move || {
        let process = std::fs::read_to_string(ready).unwrap();
        cancel.cancel();
        process.trim().to_owned()
    });
    assert_eq!(world.told("git_commit", json!({"message": "x", "paths": ["a"]})).await, "error cancelled");
    let process = hanging.join().unwrap();
    assert!(!Path::new("/proc").join(process).exists());
}

#[tokio::test]
async fn hooks_run_in_the_sandbox() {
    needs_linux!("sandbox");
    let mut world = repository();
    world.put("a", "x\n");
    hook(&world, "pre-commit", "touch inside; touch ../outside");
    let writable = world.context.workspace.roots.clone();
    let temp = world.context.shell.temp().to_owned();
    world.context.sandbox = Some(Sandbox { writable, temp, network: false, required: true, ..Sandbox::default() });
    let told = world.told("git_commit", json!({"message": "x", "paths": ["a"]})).await;
    assert!(told.contains("../outside") && told.contains("Permission denied"), "{told}");
    assert!(world.path("inside").exists() && !world.directory.path().join("outside").exists());
    hook(&world, "pre-commit", "true");
    let told = world.told("git_commit", json!({"message": "x", "paths": ["a"]})).await;
    assert!(told.starts_with("ok committed "), "{told}");
}

#[tokio::test]
async fn branches_are_listed_created_and_switched() {
    needs_linux!("sandbox");
    let world = repository();
    let commit = short(&world, "HEAD")[..7].to_owned();
    assert_eq!(world.told("git_branch", json!({"action": "create", "name": "side"})).await, "ok created side; still on main\n");
    assert_eq!(world.told("git_branch", json!({"action": "switch", "name": "side"})).await, "ok switched to side\n");
    let output = world.call("git_branch", json!({"action": "list"})).await.unwrap();
    assert_eq!(plain_text(&output.parts), format!("  main {commit} first\n* side {commit} first\n"));
    assert_eq!((&output.details["current"], &output.details["branches"][1]["name"]), (&json!("side"), &json!("side")));
    let cases = [
        (json!({"action": "create"}), "error git_branch: name: missing; this action requires the name of a branch or remote"),
        (json!({"action": "create", "name": "-D"}), "error git_branch: name: \"-D\" is not a valid branch name"),
        (json!({"action": "create", "name": "a..b"}), "error git_branch: name: \"a..b\" is not a valid branch name"),
        (
            json!({"action": "create", "name": "side"}),
            "error git failed with exit code 128: fatal: a branch named 'side' already exists",
        ),
        (json!({"action": "switch", "name": "none"}), "error git failed with exit code 128: fatal: invalid reference: none"),
        (
            json!({"action": "delete", "name": "x"}),
            "error git_branch: action: unknown variant `delete`, expected one of `list`, `create`, `switch`, \
             `set_upstream`, `set_remote`; it takes action: \"list\"|\"create\"|\"switch\"|\"set_upstream\"|\"set_remote\", \
             name?: string, target?: string",
        ),
    ];
    for (input, told) in cases {
        assert_eq!(world.told("git_branch", input.clone()).await, told, "{input}");
    }
}

#[tokio::test]
async fn reads_do_not_run_programs_from_repository_settings() {
    needs_linux!("sandbox");
    let world = repository();
    let ran = world.path("ran");
    let plant = format!("touch {}; false", ran.display());
    world.put(".gitattributes", "* diff=evil\n");
    for name in ["core.fsmonitor", "core.pager", "diff.external", "diff.evil.textconv", "diff.evil.command", "gpg.program"] {
        git(&world.path(""), &["config", name, &plant]);
    }
    git(&world.path(""), &["config", "log.showSignature", "true"]);
    git(&world.path(""), &["config", "core.hooksPath", ".git/hooks"]);
    for name in ["post-index-change", "pre-commit", "reference-transaction"] {
        hook(&world, name, &plant);
    }
    world.put("a", "changed\n");
    for (name, input) in [
        ("git_status", json!({})),
        ("git_diff", json!({})),
        ("git_diff", json!({"staged": true})),
        ("git_log", json!({})),
        ("git_branch", json!({"action": "list"})),
    ] {
        let told = world.told(name, input).await;
        assert!(told.starts_with("ok ") && !ran.exists(), "{name}: {told}");
    }
    // The settings are effective: git itself runs the first program.
    let _ = Command::new("git").args(["status"]).current_dir(world.path("")).output().unwrap();
    assert!(ran.exists());
}

#[tokio::test]
async fn worktrees_and_submodules_are_supported() {
    needs_linux!("sandbox");
    let mut world = repository();
    let sub = world.directory.path().join("sub");
    git(&world.path(""), &["clone", "--quiet", ".", sub.to_str().unwrap()]);
    git(&world.path(""), &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub.to_str().unwrap(), "module"]);
    let told = world.told("git_commit", json!({"message": "module"})).await;
    assert!(told.ends_with("on main\n  added .gitmodules +3 -0\n  added module +1 -0\n"), "{told}");
    git(&world.path("module"), &["commit", "--quiet", "--allow-empty", "-m", "inner"]);
    assert_eq!(world.told("git_status", json!({})).await, "ok on main\nnot staged:\n  modified module\n");
    let told = world.told("git_diff", json!({})).await;
    assert!(told.contains("\n-Subproject commit "), "{told}");
    let tree = world.directory.path().join("tree");
    git(&world.path(""), &["worktree", "add", "--quiet", "-b", "there", tree.to_str().unwrap()]);
    world.context.workspace = Arc::new(Workspace::new(&tree, [], world.directory.path()));
    std::fs::write(tree.join("a"), "x\n").unwrap();
    assert_eq!(world.told("git_status", json!({})).await, "ok on there\nnot staged:\n  modified a\n");
    let told = world.told("git_commit", json!({"message": "there", "paths": ["a"]})).await;
    assert!(told.contains(" on there\n"), "{told}");
}
