//! Taking the work of a workspace into the user's working tree.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{agent, create, git, repository, session};
use harness::{Agent, Home};

const APPLY: &str = "_nuncio/workspace/apply";

/// A repository with the files `a` to `d`, and a workspace `x`.
async fn start() -> (Home, Agent, String, PathBuf) {
    let home = repository();
    home.put("a", "one\ntwo\nthree\nfour\nfive\n");
    home.put("b", "b\n");
    home.put("c/d", "d\n");
    git(&home.work(), &["add", "."]);
    git(&home.work(), &["commit", "--quiet", "-m", "second"]);
    let mut agent = agent(&home, json!([]), &[]).await;
    let (workspace, path) = create(&mut agent, &home, "x").await;
    (home, agent, workspace["workspaceId"].as_str().unwrap().into(), path)
}

async fn apply(agent: &mut Agent, id: &str, mode: &str) -> Value {
    let mut params = json!({"workspaceId": id, "message": "Improve a"});
    if !mode.is_empty() {
        params["mode"] = mode.into();
    }
    agent.call(APPLY, params).await
}

fn write(directory: &Path, name: &str, text: &str) {
    let file = directory.join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// The files of a directory with their content, without those of git.
fn files(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
        match entry.path() {
            path if entry.file_name() == ".git" || path.ends_with("script.json") => {}
            path if path.is_dir() => found.extend(files(&path)),
            path => found.push((path.clone(), std::fs::read_to_string(&path).unwrap())),
        }
    }
    found.sort();
    found
}

/// The files, the index and the branches of the user.
fn state(home: &Home) -> (Vec<(PathBuf, String)>, String, String) {
    let directory = home.work();
    (files(&directory), git(&directory, &["diff", "--cached"]), git(&directory, &["rev-parse", "main", "HEAD"]))
}

/// Changes, deletes and adds files: one commit, and changes that are not committed.
fn work(path: &Path) {
    write(path, "a", "one\ntwo\nthree\nfour\nFIVE\n");
    git(path, &["commit", "--quiet", "-am", "change a"]);
    std::fs::remove_file(path.join("c/d")).unwrap();
    write(path, "new/file", "new\n");
}

#[tokio::test]
async fn comparison_or_workspace_ends_in_the_users_tree() {
    needs_linux!("sandbox");
    for (mode, commits, status) in
        [("", vec!["Improve a", "change a"], ""), ("squash", vec!["Improve a"], ""), ("patch", vec![], " M a\n D c/d\n?? new/\n")]
    {
        let (home, mut agent, id, path) = start().await;
        work(&path);
        let applied = apply(&mut agent, &id, mode).await;
        let files = json!({"count": 3, "paths": ["a", "c/d", "new/file"]});
        assert_eq!((&applied["applied"], &applied["files"]), (&json!(true), &files), "{mode}: {applied}");
        assert_eq!(applied["mode"], if mode.is_empty() { "merge" } else { mode });
        let shown = (home.get("a").unwrap(), home.get("c/d"), home.get("new/file").unwrap());
        assert_eq!(shown, ("one\ntwo\nthree\nfour\nFIVE\n".into(), None, "new\n".into()), "{mode}");
        let log = git(&home.work(), &["log", "--format=%s", "HEAD"]);
        let expected: Vec<&str> = commits.into_iter().chain(["second", "first"]).collect();
        assert_eq!(log.lines().collect::<Vec<_>>(), expected, "{mode}");
        assert_eq!(git(&home.work(), &["status", "--porcelain", "-uno"]), status.replace("?? new/\n", ""), "{mode}");
        let head = git(&home.work(), &["rev-parse", "HEAD"]);
        let commit = (mode != "patch").then(|| head.trim());
        assert_eq!(applied["commit"].as_str(), commit, "{mode}");
        // A merge commits the changes in the workspace, too.
        let left = if mode.is_empty() { "" } else { " D c/d\n?? new/\n" };
        assert_eq!(git(&path, &["status", "--porcelain"]), left, "{mode}");
        let again = apply(&mut agent, &id, mode).await;
        assert_eq!((&again["applied"], &again["conflicts"]["count"]), (&json!(false), &json!(0)), "{mode}: {again}");
        // The work goes on in the workspace, on the same lines.
        write(&path, "a", "one\ntwo\nthree\nfour\nFIVE\nSIX\n");
        write(&path, "new/file", "newer\n");
        let later = apply(&mut agent, &id, mode).await;
        assert_eq!((&later["applied"], &later["files"]["paths"]), (&json!(true), &json!(["a", "new/file"])), "{mode}: {later}");
        assert_eq!(home.get("new/file").unwrap(), "newer\n", "{mode}");
        if mode == "patch" {
            // Changes that the user has discarded can be applied again.
            git(&home.work(), &["checkout", "--quiet", "--", "."]);
            std::fs::remove_dir_all(home.work().join("new")).unwrap();
            assert_eq!(apply(&mut agent, &id, mode).await["applied"], true);
            assert_eq!(home.get("new/file").unwrap(), "newer\n");
        }
        agent.finish().await;
    }
}

#[tokio::test]
async fn branch_that_moved_on_is_merged() {
    needs_linux!("sandbox");
    let (home, mut agent, id, path) = start().await;
    work(&path);
    home.put("b", "changed\n");
    git(&home.work(), &["commit", "--quiet", "-am", "change b"]);
    let applied = apply(&mut agent, &id, "merge").await;
    assert_eq!(applied["applied"], true, "{applied}");
    let parents = git(&home.work(), &["log", "-1", "--format=%s|%p"]);
    assert!(parents.starts_with("Merge workspace x: Improve a|") && parents.trim().contains(' '), "{parents}");
    assert_eq!((home.get("b").unwrap(), home.get("c/d")), ("changed\n".into(), None));
    assert_eq!(git(&home.work(), &["status", "--porcelain", "-uno"]), "");
    agent.finish().await;
}

/// What the user changed, the result of each mode, and the paths of the conflicts.
type Case = (&'static str, fn(&Home), Result<&'static str, &'static [&'static str]>);

#[tokio::test]
async fn uncommitted_changes_of_the_user_are_merged_or_named() {
    needs_linux!("sandbox");
    let cases: [Case; 7] = [
        ("another file", |home| drop(home.put("b", "mine\n")), Ok("one\ntwo\nthree\nfour\nFIVE\n")),
        ("another line", |home| drop(home.put("a", "ONE\ntwo\nthree\nfour\nfive\n")), Ok("ONE\ntwo\nthree\nfour\nFIVE\n")),
        ("the line", |home| drop(home.put("a", "one\ntwo\nthree\nfour\nmine\n")), Err(&["a"])),
        ("a deleted file", |home| std::fs::remove_file(home.work().join("a")).unwrap(), Err(&["a"])),
        ("a new file", |home| drop(home.put("new/file", "mine\n")), Err(&["new/file"])),
        (
            "an ignored file",
            |home| {
                home.put(".gitignore", ".env\nignored/\nnew/\n");
                home.put("new/file", "mine\n");
            },
            Err(&["new/file"]),
        ),
        (
            "an ignored file in place of a directory",
            |home| {
                home.put(".gitignore", ".env\nignored/\nnew\n");
                home.put("new", "mine\n");
            },
            Err(&["new"]),
        ),
    ];
    for (name, change, expected) in cases {
        for mode in ["merge", "squash", "patch"] {
            let (home, mut agent, id, path) = start().await;
            work(&path);
            change(&home);
            let before = state(&home);
            let applied = apply(&mut agent, &id, mode).await;
            match expected {
                Ok(text) => {
                    assert_eq!(applied["applied"], true, "{name}, {mode}: {applied}");
                    assert_eq!(home.get("a").unwrap(), text, "{name}, {mode}");
                    if mode != "patch" {
                        let committed = git(&home.work(), &["show", "HEAD:a", "HEAD:b"]);
                        assert_eq!(committed, "one\ntwo\nthree\nfour\nFIVE\nb\n", "{name}, {mode}: only the work is committed");
                        assert_eq!(git(&home.work(), &["diff", "--cached"]), "", "{name}, {mode}");
                    }
                }
                Err(paths) => {
                    assert_eq!(
                        (&applied["applied"], &applied["conflicts"]["paths"]),
                        (&json!(false), &json!(paths)),
                        "{name}, {mode}: {applied}"
                    );
                    assert_eq!(state(&home), before, "{name}, {mode}: nothing is changed");
                }
            }
            agent.finish().await;
        }
    }
}

#[tokio::test]
async fn failed_application_leaves_the_tree_as_it_was() {
    needs_linux!("sandbox");
    // A filter fails for the last file: the others have been written before.
    let (home, mut agent, id, path) = start().await;
    write(&path, "a", "changed\n");
    std::fs::remove_file(path.join("b")).unwrap();
    write(&path, "new/file", "new\n");
    write(&path, ".gitattributes", "*.broken filter=broken\n");
    write(&path, "z.broken", "text\n");
    git(&home.work(), &["config", "filter.broken.clean", "cat"]);
    git(&home.work(), &["config", "filter.broken.smudge", "false"]);
    git(&home.work(), &["config", "filter.broken.required", "true"]);
    home.put("c/d", "mine\n");
    let before = state(&home);
    for mode in ["merge", "squash", "patch"] {
        let error = agent.request(APPLY, json!({"workspaceId": id, "mode": mode})).await.expect_err("the filter fails");
        assert!(error["message"].as_str().unwrap().contains("are as before"), "{mode}: {error}");
        assert_eq!(state(&home), before, "{mode}");
    }
    // Another process holds the index: the branch and the files go back.
    git(&home.work(), &["config", "filter.broken.smudge", "cat"]);
    home.put(".git/index.lock", "");
    let before = state_without_index(&home);
    for mode in ["merge", "squash"] {
        let error = agent.request(APPLY, json!({"workspaceId": id, "mode": mode})).await.expect_err("the index is locked");
        assert!(error["message"].as_str().unwrap().contains("index.lock"), "{mode}: {error}");
        assert_eq!(state_without_index(&home), before, "{mode}");
    }
    std::fs::remove_file(home.work().join(".git/index.lock")).unwrap();
    assert_eq!(apply(&mut agent, &id, "squash").await["applied"], true);
    assert_eq!((home.get("c/d").unwrap(), home.get("z.broken").unwrap()), ("mine\n".into(), "text\n".into()));
    agent.finish().await;
}

fn state_without_index(home: &Home) -> (Vec<(PathBuf, String)>, String) {
    (files(&home.work()), git(&home.work(), &["rev-parse", "main", "HEAD"]))
}

#[tokio::test]
async fn staged_changes_are_kept_or_named() {
    needs_linux!("sandbox");
    let (home, mut agent, id, path) = start().await;
    work(&path);
    home.put("b", "staged\n");
    git(&home.work(), &["add", "b"]);
    assert_eq!(apply(&mut agent, &id, "squash").await["applied"], true);
    assert_eq!(git(&home.work(), &["diff", "--cached", "--name-only"]), "b\n", "the staged change is not part of the commit");
    agent.finish().await;

    let (home, mut agent, id, path) = start().await;
    work(&path);
    home.put("a", "ONE\ntwo\nthree\nfour\nfive\n");
    git(&home.work(), &["add", "a"]);
    let before = state(&home);
    let error = agent.request(APPLY, json!({"workspaceId": id})).await.expect_err("staged changes of the same file");
    assert!(error["message"].as_str().unwrap().contains("staged changes"), "{error}");
    assert_eq!(state(&home), before);
    agent.finish().await;
}

#[tokio::test]
async fn running_turn_and_wrong_directories_are_refused() {
    needs_linux!("sandbox");
    let (home, mut agent, id, path) = start().await;
    work(&path);
    let other = home.work().join("other");
    git(&home.work(), &["clone", "--quiet", ".", "other"]);
    for (cwd, message) in [(&path, "is the workspace itself"), (&other, "is not in a working tree of")] {
        let error = agent.request(APPLY, json!({"workspaceId": id, "cwd": cwd})).await.expect_err(message);
        assert!(error["message"].as_str().unwrap().contains(message), "{error}");
    }
    git(&home.work(), &["checkout", "--quiet", "-b", "side"]);
    home.put("a", "side\n");
    git(&home.work(), &["commit", "--quiet", "-am", "side"]);
    git(&home.work(), &["checkout", "--quiet", "main"]);
    home.put("a", "main\n");
    git(&home.work(), &["commit", "--quiet", "-am", "main"]);
    let merge = std::process::Command::new("git").args(["merge", "--quiet", "side"]).current_dir(home.work()).output().unwrap();
    assert!(!merge.status.success());
    let error = agent.request(APPLY, json!({"workspaceId": id})).await.expect_err("a merge of the user");
    assert!(error["message"].as_str().unwrap().contains("is not finished"), "{error}");
    session(&mut agent, &path).await;
    agent.finish().await;
}

/// The program `.git` names in a workspace is not that of the user.
#[tokio::test]
async fn workspace_cannot_redirect_git_or_run_hooks() {
    needs_linux!("sandbox");
    let (home, mut agent, id, path) = start().await;
    work(&path);
    let evil = home.work().join("evil");
    git(&home.work(), &["init", "--quiet", "evil"]);
    git(&evil, &["config", "core.fsmonitor", &format!("touch {}", home.work().join("ran").display())]);
    for name in ["pre-commit", "post-checkout", "reference-transaction", "post-index-change"] {
        super::hook(&home, name, &format!("touch {}", home.work().join("ran").display()));
    }
    std::fs::write(path.join(".git"), format!("gitdir: {}\n", evil.join(".git").display())).unwrap();
    let applied = apply(&mut agent, &id, "squash").await;
    assert_eq!((&applied["applied"], home.get("ran")), (&json!(true), None), "{applied}");
    agent.finish().await;
}
