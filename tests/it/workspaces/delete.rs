//! Deleting worktrees: nothing is lost without being named first.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

use super::{CREATE, DELETE, agent, branches, create, git, linked, list, repository, session};
use harness::steps::bash;
use harness::{Agent, Home, Reply, tool};

async fn delete(agent: &mut Agent, id: &Value, more: Value) -> Value {
    let mut params = json!({"workspaceId": id});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent.call(DELETE, params).await
}

/// Changes in a worktree, with what the answer names: pointers and values.
struct Case {
    name: &'static str,
    prepare: fn(&Home, &Path),
    expected: Value,
    /// Params of the deletion.
    params: Value,
    /// Branches after the deletion, besides `main`.
    branches: &'static [&'static str],
}

fn write(path: &Path, name: &str) {
    std::fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
    std::fs::write(path.join(name), "text\n").unwrap();
}

fn commit(path: &Path, message: &str) {
    git(path, &["commit", "--quiet", "--allow-empty", "-m", message]);
}

fn list_of(paths: &[&str]) -> Value {
    json!({"count": paths.len(), "paths": paths})
}

fn cases() -> Vec<Case> {
    let case = |name, prepare, expected| Case { name, prepare, expected, params: json!({}), branches: &[] };
    let unmerged: fn(&Home, &Path) = |_, path| commit(path, "work");
    vec![
        case("clean", |_, _| {}, json!({"/workspace/changes/ignored": list_of(&[]), "/workspace/state": "ready"})),
        case(
            "files",
            |_, path| {
                for name in ["a", "new", "b/c", ".env", "ignored/x", "ignored/y"] {
                    write(path, name);
                }
                git(path, &["add", "new"]);
            },
            json!({
                "/workspace/changes/modified": list_of(&["a", "new"]),
                "/workspace/changes/untracked": list_of(&["b/c"]),
                "/workspace/changes/ignored": list_of(&[".env", "ignored/"]),
            }),
        ),
        case(
            "a renamed file",
            |_, path| {
                git(path, &["mv", "a", "renamed file"]);
            },
            json!({"/workspace/changes/modified": list_of(&["renamed file"])}),
        ),
        Case {
            branches: &["nuncio/x"],
            ..case("commits", unmerged, json!({"/workspace/unmergedCommits": 1, "/lostCommits/count": 0}))
        },
        case(
            "merged commits",
            |home, path| {
                commit(path, "work");
                git(&home.work(), &["merge", "--quiet", "nuncio/x"]);
            },
            json!({"/workspace/unmergedCommits": 0}),
        ),
        Case {
            params: json!({"branch": "delete"}),
            ..case("commits with their branch", unmerged, json!({"/workspace/unmergedCommits": 1, "/lostCommits/count": 1}))
        },
        Case { params: json!({"branch": "keep"}), branches: &["nuncio/x"], ..case("kept branch", |_, _| {}, json!({})) },
        case(
            "detached commits",
            |_, path| {
                git(path, &["checkout", "--quiet", "--detach"]);
                commit(path, "lost one");
            },
            json!({"/workspace/unmergedCommits": 1, "/lostCommits/count": 1, "/workspace/branch": null}),
        ),
        case(
            "locked by the user",
            |home, path| {
                git(&home.work(), &["worktree", "unlock", path.to_str().unwrap()]);
                git(&home.work(), &["worktree", "lock", "--reason", "on a stick", path.to_str().unwrap()]);
            },
            json!({"/workspace/locked": "on a stick"}),
        ),
        case(
            "submodule",
            |home, path| {
                git(home.work().parent().unwrap(), &["clone", "--quiet", "work", "part"]);
                let part = home.work().parent().unwrap().join("part");
                git(path, &["submodule", "--quiet", "add", part.to_str().unwrap(), "part"]);
                git(path, &["commit", "--quiet", "-m", "part"]);
                git(&home.work(), &["merge", "--quiet", "nuncio/x"]);
            },
            json!({"/workspace/changes/submodules": list_of(&["part"]), "/workspace/changes/modified/count": 0}),
        ),
        case("directory removed by hand", |_, path| std::fs::remove_dir_all(path).unwrap(), json!({"/workspace/state": "missing"})),
        case(
            "worktree removed by hand",
            |home, path| {
                git(&home.work(), &["worktree", "remove", "-f", "-f", path.to_str().unwrap()]);
            },
            json!({"/workspace/state": "missing"}),
        ),
        case(
            "directory without its reference to git",
            |_, path| {
                std::fs::remove_file(path.join(".git")).unwrap();
                write(path, "new");
            },
            json!({"/workspace/changes/untracked": list_of(&["new"])}),
        ),
        case(
            "directory that git does not know",
            |home, path| {
                std::fs::remove_dir_all(home.work().join(".git/worktrees")).unwrap();
                std::fs::remove_file(path.join(".gitignore")).unwrap();
            },
            json!({"/workspace/changes/untracked": list_of(&["a"])}),
        ),
        case(
            "directory without write permission",
            |_, path| {
                use std::os::unix::fs::PermissionsExt;
                write(path, "ignored/sub/file");
                std::fs::set_permissions(path.join("ignored/sub"), std::fs::Permissions::from_mode(0o500)).unwrap();
            },
            json!({"/workspace/changes/ignored": list_of(&["ignored/"])}),
        ),
        case(
            "interrupted deletion",
            |_, path| {
                let trash = path.with_file_name(".deleted-x");
                std::fs::rename(path, &trash).unwrap();
                std::fs::remove_file(trash.join("a")).unwrap();
            },
            json!({"/workspace/state": "missing"}),
        ),
    ]
}

#[tokio::test]
async fn deletion_names_what_would_be_lost() {
    needs_linux!("sandbox");
    stream::iter(cases())
        .for_each_concurrent(2, |case| async move {
            let Case { name, prepare, expected, params, branches: kept } = case;
            let home = repository();
            // An unrelated entry whose directory is missing stays.
            let stick = home.work().parent().unwrap().join("stick");
            git(&home.work(), &["worktree", "add", "--quiet", "--detach", stick.to_str().unwrap()]);
            std::fs::remove_dir_all(&stick).unwrap();
            let mut agent = agent(&home, json!([]), &[]).await;
            let (workspace, path) = create(&mut agent, &home, "x").await;
            let before = git(&home.work(), &["rev-parse", "nuncio/x"]);
            prepare(&home, &path);
            let id = &workspace["workspaceId"];
            let named = delete(&mut agent, id, params.clone()).await;
            assert_eq!([&named["deleted"], &named["changed"]], [&json!(false), &json!(false)], "{name}: {named}");
            for (pointer, value) in expected.as_object().unwrap() {
                assert_eq!(named.pointer(pointer).unwrap_or(&Value::Null), value, "{name}: {pointer}: {named:#}");
            }
            let listed = list(&mut agent).await;
            assert_eq!(listed.len(), 1, "{name}: {listed:#?}");
            assert_eq!(listed[0]["changes"]["modified"]["count"], named["workspace"]["changes"]["modified"]["count"], "{name}");
            let mut confirmed = params.clone();
            confirmed["confirm"] = named["confirm"].clone();
            let deleted = delete(&mut agent, id, confirmed).await;
            assert_eq!(deleted["deleted"], true, "{name}: {deleted:#}");
            assert!(!path.exists(), "{name}");
            let others: Vec<PathBuf> =
                std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert_eq!(others, [path.with_file_name("repository")], "{name}");
            assert_eq!(list(&mut agent).await, Vec::<Value>::new(), "{name}");
            let mut left = branches(&home);
            left.retain(|branch| branch != "main");
            assert_eq!(left, kept, "{name}: {before}");
            if name != "directory that git does not know" {
                assert_eq!(linked(&home), [stick.to_str().unwrap()], "{name}");
            }
            // The name can be used again.
            if kept.is_empty() {
                create(&mut agent, &home, "x").await;
            }
            agent.finish().await;
        })
        .await;
}

#[tokio::test]
async fn error_names_the_files_that_cannot_be_removed() {
    needs_linux!("sandbox");
    let home = repository();
    let mut agent = agent(&home, json!([]), &[]).await;
    let (workspace, path) = create(&mut agent, &home, "x").await;
    let id = &workspace["workspaceId"];
    let trash = path.with_file_name(".deleted-x");
    std::fs::write(&trash, "not a directory").unwrap();
    let confirm = delete(&mut agent, id, json!({})).await["confirm"].clone();
    let failed = agent.request(DELETE, json!({"workspaceId": id, "confirm": confirm})).await.unwrap_err();
    assert!(failed["message"].as_str().unwrap().contains(&format!("removing {}", trash.display())), "{failed}");
    assert!(failed["data"]["hint"].as_str().unwrap().contains("delete the workspace again"), "{failed}");
    std::fs::remove_file(&trash).unwrap();
    let confirm = delete(&mut agent, id, json!({})).await["confirm"].clone();
    assert_eq!(delete(&mut agent, id, json!({"confirm": confirm})).await["deleted"], true);
    agent.finish().await;
}

#[tokio::test]
async fn deletion_is_refused_if_the_state_changed() {
    needs_linux!("sandbox");
    type Change = fn(&Home, &Path);
    let changes: [(&str, Change); 7] = [
        ("new file", |_, path| write(path, "new2")),
        ("other content of a known file", |_, path| std::fs::write(path.join("new"), "other text\n").unwrap()),
        ("ignored file", |_, path| write(path, "ignored/new")),
        ("commit", |_, path| commit(path, "work")),
        ("staged", |_, path| {
            git(path, &["add", "new"]);
        }),
        ("branch", |_, path| {
            git(path, &["checkout", "--quiet", "-b", "other"]);
        }),
        ("lock", |home, path| {
            git(&home.work(), &["worktree", "unlock", path.to_str().unwrap()]);
            git(&home.work(), &["worktree", "lock", "--reason", "mine", path.to_str().unwrap()]);
        }),
    ];
    let home = repository();
    let mut agent = agent(&home, json!([]), &[]).await;
    let (workspace, path) = create(&mut agent, &home, "x").await;
    let id = &workspace["workspaceId"];
    write(&path, "new");
    write(&path, "ignored/x");
    for (name, change) in changes {
        let named = delete(&mut agent, id, json!({})).await;
        let again = delete(&mut agent, id, json!({})).await;
        assert_eq!(named["confirm"], again["confirm"], "{name}: nothing changed: {named:#} {again:#}");
        change(&home, &path);
        let refused = delete(&mut agent, id, json!({"confirm": named["confirm"]})).await;
        assert_eq!([&refused["deleted"], &refused["changed"]], [&json!(false), &json!(true)], "{name}: {refused:#}");
        assert_ne!(refused["confirm"], named["confirm"], "{name}");
        assert!(path.join("new").exists(), "{name}");
    }
    // A token is bound to the treatment of the branch.
    let named = delete(&mut agent, id, json!({})).await;
    let refused = delete(&mut agent, id, json!({"confirm": named["confirm"], "branch": "delete"})).await;
    assert_eq!(refused["changed"], true, "{refused:#}");
    agent.finish().await;
}

#[tokio::test]
async fn sessions_and_processes_in_a_workspace_are_named() {
    needs_linux!("sandbox");
    let home = repository();
    let steps = json!([bash("true"), bash("true"), {"text": "done"}]);
    let mut agent = agent(&home, steps, &["--mode", "ask"]).await;
    agent.otherwise = Reply::Never;
    let (workspace, path) = create(&mut agent, &home, "x").await;
    let id = &workspace["workspaceId"];
    let before = delete(&mut agent, id, json!({})).await;
    let mut sleeping = Command::new("sleep").arg("600").current_dir(&path).stdin(Stdio::null()).spawn().unwrap();
    let pid = sleeping.id();
    let session = session(&mut agent, &path).await;
    let prompt = agent.prompt(&session, "go").await;
    agent.until_question().await;
    let named = delete(&mut agent, id, json!({})).await;
    let used = &named["workspace"];
    assert_eq!([&used["sessions"][0]["sessionId"], &used["sessions"][0]["status"]], [&json!(session), &json!("busy")], "{used:#}");
    assert!(used["processes"].as_array().unwrap().contains(&json!({"pid": pid, "name": "sleep"})), "{used:#}");
    let error = agent.request(DELETE, json!({"workspaceId": id, "confirm": named["confirm"]})).await.unwrap_err();
    assert_eq!(error["data"]["code"], "session_busy", "{error}");
    agent.cancel(&session, &prompt).await;
    let refused = delete(&mut agent, id, json!({"confirm": before["confirm"]})).await;
    assert_eq!(refused["changed"], true, "{refused:#}");
    sleeping.kill().unwrap();
    sleeping.wait().unwrap();
    let named = delete(&mut agent, id, json!({})).await;
    let deleted = delete(&mut agent, id, json!({"confirm": named["confirm"]})).await;
    assert_eq!(deleted["deleted"], true, "{deleted:#}");
    // The session stays. Its commands fail with the reason.
    agent.otherwise = Reply::Pick("allow_once");
    let (_, updates) = agent.turn(&session, "go").await;
    let call = tool(&updates, 0);
    assert_eq!(call["status"], "failed", "{call}");
    let reason = format!("cwd: {} is not a directory", path.display());
    assert!(call["content"].to_string().contains(&reason), "{call}");
    agent.finish().await;
}

#[tokio::test]
async fn retention_deletes_only_unused_workspaces_without_work() {
    needs_linux!("sandbox");
    let home = repository();
    let mut agent = agent(&home, json!([]), &[]).await;
    for name in ["clean", "dirty", "ignored", "fresh"] {
        let (_, path) = create(&mut agent, &home, name).await;
        match name {
            "dirty" => write(&path, "new"),
            "ignored" => write(&path, "ignored/new"),
            _ => {}
        }
    }
    agent.finish().await;
    let age = |name: &str| {
        let days_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(10 * 86_400);
        let git_dir = home.work().join(".git/worktrees").join(name);
        for file in ["HEAD", "index", "logs/HEAD"] {
            let file = std::fs::File::options().append(true).open(git_dir.join(file)).unwrap();
            file.set_modified(days_ago).unwrap();
        }
        home.sql(&format!("UPDATE workspaces SET created_ms = created_ms - 10 * 86400000 WHERE name = '{name}'"));
    };
    ["clean", "dirty", "ignored"].into_iter().for_each(age);
    let names = async || {
        let ran = home.run(&["workspaces", "list", "--json"], "").await;
        let mut names: Vec<String> = ran.lines().iter().map(|line| line["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(home.run(&["workspaces", "create", "one"], "").await.code, 0);
    assert_eq!(names().await, ["clean", "dirty", "fresh", "ignored", "one"]);
    home.config("[worktree]\nretention_days = 7\n");
    assert_eq!(home.run(&["workspaces", "create", "two"], "").await.code, 0);
    assert_eq!(names().await, ["dirty", "fresh", "one", "two"]);
}

#[tokio::test]
async fn unknown_workspace_is_not_found() {
    needs_linux!("sandbox");
    let home = repository();
    let mut agent = agent(&home, json!([]), &[]).await;
    let (workspace, _) = create(&mut agent, &home, "x").await;
    let project = workspace["workspaceId"].as_str().unwrap().split_once('.').unwrap().0.to_owned();
    for id in ["x", "", "none.x", "../../work.x", ".temp.x", &format!("{project}.other"), &format!("{project}.../x")] {
        let error = agent.request(DELETE, json!({"workspaceId": id})).await.unwrap_err();
        assert_eq!(error["data"]["code"], "not_found", "{id}: {error}");
    }
    // A relative path is resolved, as in other methods.
    agent.call(CREATE, json!({"cwd": "."})).await;
    agent.finish().await;
}
