//! Workspaces: git worktrees for sessions.

mod access;
mod apply;
mod commits;
mod create;
mod delete;
mod untrusted_repositories;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use harness::{Agent, Home};

pub const CREATE: &str = "_nuncio/workspace/create";
pub const LIST: &str = "_nuncio/workspace/list";
pub const STATUS: &str = "_nuncio/workspace/status";
pub const DELETE: &str = "_nuncio/workspace/delete";

/// Runs git in `directory` and returns its output.
pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A home whose work directory is a repository with a commit on `main`.
pub fn repository() -> Home {
    let home = Home::new();
    home.put("a", "one\n");
    home.put(".gitignore", ".env\nignored/\n");
    git(&home.work(), &["init", "--quiet", "-b", "main"]);
    for (name, value) in [("user.name", "Ann"), ("user.email", "ann@example.org")] {
        git(&home.work(), &["config", name, value]);
    }
    git(&home.work(), &["add", "."]);
    git(&home.work(), &["commit", "--quiet", "-m", "first"]);
    home
}

/// Adds a hook to the repository.
pub fn hook(home: &Home, name: &str, script: &str) {
    let path = home.put(&format!(".git/hooks/{name}"), &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Starts the agent with a scripted model.
pub async fn agent(home: &Home, steps: Value, flags: &[&str]) -> Agent {
    let model = home.script(steps);
    let mut agent = home.start(&[&["--model", &model], flags].concat()).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent
}

/// Creates a workspace. Returns it and its path.
pub async fn create(agent: &mut Agent, home: &Home, name: &str) -> (Value, PathBuf) {
    let created = agent.call(CREATE, json!({"cwd": home.work(), "name": name})).await;
    assert_eq!(created["warnings"], json!([]), "{created}");
    let path = PathBuf::from(created["workspace"]["path"].as_str().unwrap());
    (created["workspace"].clone(), path)
}

/// All workspaces.
pub async fn list(agent: &mut Agent) -> Vec<Value> {
    agent.call(LIST, json!({})).await["workspaces"].as_array().unwrap().clone()
}

/// Creates a session in a directory.
pub async fn session(agent: &mut Agent, cwd: &Path) -> String {
    let made = agent.call("session/new", json!({"cwd": cwd, "mcpServers": []})).await;
    made["sessionId"].as_str().unwrap().into()
}

/// The worktrees that git lists, apart from the main one.
pub fn linked(home: &Home) -> Vec<String> {
    let listed = git(&home.work(), &["worktree", "list", "--porcelain"]);
    listed.lines().filter_map(|line| line.strip_prefix("worktree ")).skip(1).map(str::to_owned).collect()
}

pub fn branches(home: &Home) -> Vec<String> {
    git(&home.work(), &["branch", "--format=%(refname:short)"]).lines().map(str::to_owned).collect()
}
