//! Sessions in two worktrees of one repository commit at the same time.

use serde_json::{Value, json};

use super::{agent, create, git, repository, session};
use harness::steps::bash;
use harness::{Home, bounded};

const COMMITS: usize = 12;

/// Two sessions commit concurrently. Returns the home and the exit codes.
async fn commit_concurrently(flags: &[&str]) -> Home {
    let home = repository();
    let command = format!(
        "for i in $(seq {COMMITS}); do echo $i > file-$i && git add file-$i && git commit -q -m \"commit $i\" || exit 9; done; git stash list"
    );
    let mut agent = agent(&home, json!([bash(&command), {"text": "done"}]), flags).await;
    let mut prompts = Vec::new();
    for name in ["one", "two"] {
        let (_, path) = create(&mut agent, &home, name).await;
        let id = session(&mut agent, &path).await;
        prompts.push((id, path));
    }
    let mut requests = Vec::new();
    for (id, _) in &prompts {
        requests.push(agent.prompt(id, "commit").await);
    }
    for request in &requests {
        assert_eq!(agent.answer(request).await.unwrap()["stopReason"], "end_turn");
    }
    let frames = agent.frames.clone();
    for (id, path) in &prompts {
        let of_session = frames.iter().filter(|frame| frame["params"]["sessionId"] == **id);
        let ended = of_session.map(|frame| &frame["params"]["update"]).find(|update| update["status"] == "completed").unwrap();
        assert!(ended.to_string().contains("exit code: 0"), "{}: {ended}", path.display());
        let log = git(path, &["log", "--format=%s", "main..HEAD"]);
        assert_eq!(log.lines().count(), COMMITS, "{log}");
        assert_eq!(git(path, &["status", "--porcelain"]), "");
    }
    agent.finish().await;
    git(&home.work(), &["fsck", "--strict"]);
    assert_eq!(git(&home.work(), &["status", "--porcelain"]), "");
    assert_eq!(git(&home.work(), &["log", "--format=%s", "main"]), "first\n");
    home
}

#[tokio::test]
async fn two_sessions_commit_in_two_worktrees_with_permission() {
    needs_linux!("sandbox");
    commit_concurrently(&["--mode", "ask"]).await;
}

#[tokio::test]
async fn two_sessions_commit_in_two_worktrees_in_the_sandbox() {
    needs_linux!("sandbox");
    commit_concurrently(&["--mode", "auto"]).await;
}

/// The sandbox of a session in a worktree allows commits, branches and stashes, and neither hooks
/// nor settings of the repository, nor another worktree.
#[tokio::test]
async fn sandbox_in_a_worktree_denies_hooks_and_settings() {
    needs_linux!("sandbox");
    let home = repository();
    let mut agent = agent(&home, json!([]), &[]).await;
    let (_, path) = create(&mut agent, &home, "one").await;
    let (_, other) = create(&mut agent, &home, "two").await;
    agent.finish().await;
    let git_dir = home.work().join(".git");
    let allowed = [
        "echo x >> a && git commit -qam x",
        "git branch other && git commit -q --amend -m y && git rebase -q main",
        "echo y >> a && git stash -q && git stash pop -q && git checkout -q a",
        "git checkout -q -b third && git commit -q --allow-empty -m z && git checkout -q nuncio/one && git merge -q --no-ff third",
        "git commit -q --allow-empty -m z && git reset -q --hard HEAD~1 && git cherry-pick -x --allow-empty third && git tag v1",
    ];
    let common = git_dir.display();
    let denied = [
        format!("echo x > {common}/hooks/pre-commit"),
        format!("mkdir {common}/new"),
        format!("echo x >> {common}/config"),
        "git config core.fsmonitor true".into(),
        "git branch -D other".into(),
        format!("echo x > {common}/HEAD"),
        format!("echo x >> {}/a", home.work().display()),
        format!("echo x >> {}/a", other.display()),
        format!("echo x > {common}/worktrees/two/HEAD"),
        format!("rm -r {common}/worktrees/two"),
        format!("ln -s {common}/hooks linked && echo x > linked/pre-commit"),
    ];
    let cwd = path.to_str().unwrap();
    let run = async |line: &str| {
        let input = json!({"command": line}).to_string();
        let ran = bounded(line, home.run(&["tool", "bash", "--mode", "auto", "--cwd", cwd, &input], "")).await;
        let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        let code = answer["details"]["exitCode"].as_i64().unwrap_or_else(|| panic!("{answer}"));
        (code, answer["output"].as_str().unwrap().to_owned())
    };
    for line in allowed {
        let (code, output) = run(line).await;
        assert_eq!(code, 0, "{line}: {output}");
    }
    let is_denied = async |line: &str| {
        let (code, output) = run(line).await;
        assert!(code != 0 && output.contains("Permission denied"), "{line}: {code} {output}");
    };
    for line in &denied {
        is_denied(line).await;
    }
    assert!(!git_dir.join("hooks/pre-commit").exists());
    // A worktree that refers to the git directory of another one gets no access to it.
    let reference = path.join(".git");
    let before = std::fs::read(&reference).unwrap();
    std::fs::write(&reference, format!("gitdir: {common}/worktrees/two\n")).unwrap();
    is_denied(&format!("echo x > {common}/worktrees/two/x")).await;
    is_denied(&format!("echo x > {common}/refs/x")).await;
    std::fs::write(&reference, before).unwrap();
}
