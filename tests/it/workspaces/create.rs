//! Creating worktrees: names, branches, trust, failures and interruptions.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{CREATE, STATUS, agent, branches, create, git, hook, linked, list, repository};
use harness::{Home, poll};

#[tokio::test]
async fn new_worktree_has_a_branch_and_is_outside_the_repository() {
    needs_linux!("sandbox");
    let home = repository();
    let mut agent = agent(&home, json!([]), &[]).await;
    let created = agent.call(CREATE, json!({"cwd": home.work()})).await["workspace"].clone();
    let path = PathBuf::from(created["path"].as_str().unwrap());
    assert!(path.starts_with(std::fs::canonicalize(home.data()).unwrap().join("worktrees")), "{created}");
    let expected = json!({"name": "w1", "branch": "nuncio/w1", "base": "main", "state": "ready", "unmergedCommits": 0});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(created[name], *value, "{name}: {created}");
    }
    assert_eq!(std::fs::read_to_string(path.join("a")).unwrap(), "one\n");
    assert_eq!(git(&home.work(), &["status", "--porcelain"]), "");
    // From a subdirectory of a worktree, the new one belongs to the repository and starts at the
    // commit of that worktree.
    git(&path, &["commit", "--quiet", "--allow-empty", "-m", "second"]);
    std::fs::create_dir(path.join("sub")).unwrap();
    let second = agent.call(CREATE, json!({"cwd": path.join("sub")})).await["workspace"].clone();
    let fields = json!([second["repository"], second["name"], second["base"]]);
    assert_eq!(fields, json!([home.work(), "w2", "nuncio/w1"]));
    assert_eq!(git(&home.work(), &["log", "-1", "--format=%s", "nuncio/w2"]), "second\n");
    let status = agent.call(STATUS, json!({"workspaceId": created["workspaceId"]})).await;
    assert_eq!([&status["unmergedCommits"], &status["head"]], [&json!(1), &second["head"]], "{status}");
    agent.finish().await;
    // After a restart, and without its rows, each is found again.
    home.sql("DELETE FROM workspaces; DELETE FROM events; DELETE FROM sessions");
    let ran = home.run(&["workspaces", "list", "--json"], "").await;
    let mut names: Vec<Value> = ran.lines().into_iter().map(|workspace| workspace["name"].clone()).collect();
    names.sort_by_key(Value::to_string);
    assert_eq!(names, ["w1", "w2"], "{ran:?}");
}

#[tokio::test]
async fn invalid_requests_leave_nothing() {
    needs_linux!("sandbox");
    let home = repository();
    git(&home.work(), &["branch", "used"]);
    git(&home.work(), &["branch", "nuncio/taken"]);
    let mut agent = agent(&home, json!([]), &[]).await;
    let (workspace, _) = create(&mut agent, &home, "exists").await;
    let project = workspace["workspaceId"].as_str().unwrap().split_once('.').unwrap().0.to_owned();
    let foreign = home.put(&format!("../home/worktrees/{project}/foreign/file"), "kept\n");
    let before = (branches(&home), linked(&home));
    // An invalid .git ends the search, also if the temporary directory is in a repository.
    let plain = home.work().with_file_name("plain");
    std::fs::create_dir_all(plain.join(".git")).unwrap();
    let cases = [
        (json!({"cwd": plain}), "not in a git repository"),
        (json!({"name": "../x"}), "invalid"),
        (json!({"name": ".x"}), "invalid"),
        (json!({"name": ""}), "invalid"),
        (json!({"name": "exists"}), "exists"),
        (json!({"name": "foreign"}), "exists"),
        (json!({"name": "taken"}), "branch nuncio/taken exists"),
        (json!({"branch": "a..b"}), "not a valid name"),
        (json!({"branch": "-d"}), "not a valid name"),
        (json!({"branch": "main"}), "main"),
        (json!({"branch": "used", "base": "main"}), "used exists"),
        (json!({"base": "nowhere"}), "not a commit"),
        (json!({"base": "--all"}), "not a commit"),
        (json!({"color": "red"}), "color"),
    ];
    for (mut params, expected) in cases {
        if params.get("cwd").is_none() {
            params["cwd"] = json!(home.work());
        }
        let error = agent.request(CREATE, params.clone()).await.unwrap_err();
        assert!(error["message"].as_str().unwrap().contains(expected), "{params}: {error}");
        assert_eq!((branches(&home), linked(&home)), before, "{params}");
    }
    let listed = list(&mut agent).await;
    let mut names: Vec<&str> = listed.iter().map(|workspace| workspace["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["exists", "foreign"], "{listed:#?}");
    assert_eq!(std::fs::read_to_string(foreign).unwrap(), "kept\n");
    // An existing branch that no worktree uses is checked out, and stays after the deletion.
    let created = agent.call(CREATE, json!({"cwd": home.work(), "branch": "used"})).await["workspace"].clone();
    assert_eq!([&created["branch"], &created["name"]], [&json!("used"), &json!("w1")]);
    agent.finish().await;
    let ran = home.run(&["workspaces", "delete", "w1", "--force"], "").await;
    assert_eq!((ran.code, branches(&home)), (0, before.0), "{ran:?}");
}

#[tokio::test]
async fn concurrent_creations_get_different_worktrees() {
    needs_linux!("sandbox");
    let home = repository();
    let mut agent = agent(&home, json!([]), &[]).await;
    let mut requests = Vec::new();
    for _ in 0..6 {
        requests.push(agent.send(CREATE, json!({"cwd": home.work()})).await);
    }
    let mut paths = Vec::new();
    for request in &requests {
        paths.push(agent.answer(request).await.unwrap()["workspace"]["path"].as_str().unwrap().to_owned());
    }
    agent.finish().await;
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 6);
    let mut known = linked(&home);
    known.sort();
    assert_eq!(known, paths);
}

/// Git checks that `.git/commondir` exists before it opens the file, and the end of a sandboxed
/// command removes that file.
#[tokio::test]
async fn git_runs_again_if_a_placeholder_was_removed_meanwhile() {
    needs_linux!("sandbox");
    let home = repository();
    let script = "#!/bin/sh\n\
                  mkdir .git/once 2>/dev/null || PATH=/usr/bin:/bin exec git \"$@\"\n\
                  echo \"fatal: failed to read $PWD/.git/commondir: No such file or directory\" >&2\nexit 128\n";
    let program = home.put("../bin/git", script);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    home.env("PATH", &format!("{}:/usr/bin:/bin", program.parent().unwrap().canonicalize().unwrap().display()));
    let mut agent = agent(&home, json!([]), &[]).await;
    let (workspace, path) = create(&mut agent, &home, "first").await;
    assert_eq!(workspace["branch"], "nuncio/first");
    assert!(path.join("a").exists());
    agent.finish().await;
}

#[tokio::test]
async fn repository_without_commits_gets_a_worktree() {
    needs_linux!("sandbox");
    let home = Home::new();
    git(&home.work(), &["init", "--quiet", "-b", "main"]);
    let mut agent = agent(&home, json!([]), &[]).await;
    let (workspace, path) = create(&mut agent, &home, "first").await;
    assert_eq!(workspace["branch"], "nuncio/first");
    std::fs::write(path.join("a"), "a\n").unwrap();
    git(&path, &["add", "."]);
    git(&path, &["commit", "--quiet", "-m", "first"]);
    agent.finish().await;
    // Its commits are on no other branch.
    let ran = home.run(&["workspaces", "delete", "first", "--force"], "").await;
    assert_eq!((ran.code, branches(&home)), (0, vec!["nuncio/first".into()]), "{ran:?}");
}

/// Hooks, copied files and setup commands need trust. The trust of a repository holds in its
/// worktrees while their settings are the same.
#[tokio::test]
async fn programs_of_the_repository_run_only_if_it_is_trusted() {
    needs_linux!("sandbox");
    let home = repository();
    hook(&home, "post-checkout", "echo hook > hooked");
    home.put(".nuncio/config.toml", "model = \"scripted:from-the-project\"\n");
    home.put(".env", "SECRET=1\n");
    git(&home.work(), &["add", "."]);
    git(&home.work(), &["commit", "--quiet", "-m", "settings"]);
    home.config(
        "[worktree]\ncopy = [\".env\", \"a\", \"../work/a\", \"missing\"]\n\
         setup = [\"cat .env > ready; test -n \\\"$NUNCIO_WORKSPACE\\\"\", \"seq 2000; echo broken; exit 3\", \"touch never\"]\n",
    );
    let create = async |name: &str| {
        let ran = home.run(&["workspaces", "create", name, "--json"], "").await;
        assert_eq!(ran.code, 0, "{ran:?}");
        let created = ran.lines().remove(0);
        (PathBuf::from(created["workspace"]["path"].as_str().unwrap()), created["warnings"].clone())
    };
    let ignored = async |path: &PathBuf| {
        let checked = home.run(&["config", "check", "--cwd", path.to_str().unwrap()], "").await;
        assert_eq!(checked.code, 0, "{checked:?}");
        checked.stdout.contains("not used: model")
    };
    let (path, warnings) = create("before").await;
    assert!(warnings[0].as_str().unwrap().contains("is not trusted"), "{warnings}");
    assert!(!["hooked", ".env", "ready"].iter().any(|name| path.join(name).exists()));
    assert!(ignored(&path).await);
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    let (path, warnings) = create("after").await;
    let warnings: Vec<&str> = warnings.as_array().unwrap().iter().map(|warning| warning.as_str().unwrap()).collect();
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    for (warning, expected) in
        warnings.iter().zip(["a: not copied: git tracks it", "without `..`", "is not a file", "2000\nbroken"])
    {
        assert!(warning.contains(expected), "{warning}");
    }
    let text = |name: &str| std::fs::read_to_string(path.join(name)).ok();
    assert_eq!([text("hooked"), text("ready"), text("never")], [Some("hook\n".into()), Some("SECRET=1\n".into()), None]);
    assert!(!ignored(&path).await);
    std::fs::write(path.join(".nuncio/config.toml"), "model = \"scripted:other\"\n").unwrap();
    assert!(ignored(&path).await);
}

#[tokio::test]
async fn hook_that_fails_after_the_creation_is_a_warning() {
    needs_linux!("sandbox");
    let home = repository();
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    git(&home.work(), &["branch", "used"]);
    for (code, name, flags) in [(1, "new", &[][..]), (127, "old", &["--branch", "used"])] {
        hook(&home, "post-checkout", &format!("echo 'npm: not found' >&2; exit {code}"));
        let ran = home.run(&[&["workspaces", "create", name, "--json"], flags].concat(), "").await;
        assert_eq!(ran.code, 0, "{ran:?}");
        let created = ran.lines().remove(0);
        let expected = format!("hook post-checkout: exit code {code}: npm: not found (it runs confined: ");
        let warning = created["warnings"][0].as_str().unwrap();
        assert!(created["workspace"]["state"] == "ready" && warning.starts_with(&expected), "{created}");
    }
    assert_eq!(branches(&home), ["main", "nuncio/new", "used"]);
    assert_eq!(linked(&home).len(), 2);
    home.env("PATH", "/nowhere");
    let ran = home.run(&["workspaces", "create", "third"], "").await;
    assert!(ran.stderr.contains("git is not installed"), "{ran:?}");
}

/// Settings of an untrusted repository run nothing.
#[tokio::test]
async fn settings_of_the_project_need_trust() {
    needs_linux!("sandbox");
    let home = repository();
    home.put(".nuncio/config.toml", "[worktree]\nsetup = [\"touch ran\"]\n");
    let created = async |name: &str| {
        let ran = home.run(&["workspaces", "create", name], "").await;
        assert_eq!(ran.code, 0, "{ran:?}");
        PathBuf::from(ran.stdout.trim_end())
    };
    assert!(!created("before").await.join("ran").exists());
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    assert!(created("after").await.join("ran").exists());
}

#[tokio::test]
async fn interrupted_creation_is_listed_and_can_be_deleted() {
    needs_linux!("sandbox");
    let home = repository();
    hook(&home, "post-checkout", "echo x > started; sleep 600");
    assert_eq!(home.run(&["trust", "."], "").await.code, 0);
    let mut agent = agent(&home, json!([]), &[]).await;
    agent.send(CREATE, json!({"cwd": home.work(), "name": "half"})).await;
    let projects = home.data().join("worktrees");
    let has_started = || {
        let mut projects = std::fs::read_dir(&projects).into_iter().flatten().flatten();
        projects.any(|project| project.path().join("half/started").exists())
    };
    poll("the hook starts", has_started).await;
    agent.kill().await;
    let half = home.run(&["workspaces", "list", "--json"], "").await.lines().remove(0);
    assert_eq!([&half["name"], &half["state"]], [&json!("half"), &json!("creating")], "{half}");
    let ran = home.run(&["workspaces", "delete", "half", "--force"], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!((linked(&home), branches(&home)), (Vec::new(), vec!["main".to_owned()]));
    assert_eq!(home.run(&["workspaces", "list"], "").await.stdout, "");
}
