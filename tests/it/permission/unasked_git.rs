//! Git changes the history, or discards changes, only if the user asked for it.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use harness::steps::{bash_call, call, calls, task};
use harness::{CommandResult, Home, Reply, tool};

const DENIED: &str = "the user did not ask to commit. Leave the changes in the working tree";

fn git(directory: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let ran = Command::new("git").arg("-C").arg(directory).args(identity).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

/// A home whose working directory is a repository with one commit and a changed file.
fn repository() -> Home {
    let home = Home::new();
    home.config("");
    home.put("a.txt", "one\n");
    for arguments in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-qm", "first"]] {
        git(&home.work(), arguments);
    }
    for (name, value) in [("user.name", "a"), ("user.email", "a@b")] {
        git(&home.work(), &["config", name, value]);
    }
    home.put("a.txt", "two\n");
    home
}

fn commits(home: &Home) -> usize {
    git(&home.work(), &["log", "--format=%s"]).lines().count()
}

fn commit() -> Value {
    bash_call("git commit -qam second")
}

/// Runs a prompt in mode auto with a model that makes this call. Returns the run and the result.
async fn run(home: &Home, prompt: &str, made: Value, flags: &[&str]) -> (CommandResult, String) {
    let model = home.script(json!([calls(&[made]), {"text": "done"}]));
    let ran = home.run(&[&["run", "--json", "--mode", "auto", "--model", &model, prompt], flags].concat(), "").await;
    let lines = ran.lines();
    let result = lines.iter().find(|line| line["body"]["type"] == "tool.completed").unwrap_or_else(|| panic!("{ran:?}"));
    let result = result["body"]["output"][0]["text"].as_str().unwrap_or_default().to_owned();
    (ran, result)
}

/// A prompt, a call, and whether it runs.
fn cases() -> Vec<(&'static str, Value, bool)> {
    vec![
        ("Fix the bug.", commit(), false),
        ("Fix the bug. Do not commit.", commit(), false),
        ("Which commit broke it?", commit(), false),
        ("Fix the bug.", call("git_commit", json!({"message": "second", "paths": ["a.txt"]})), false),
        ("Fix the bug.", bash_call("true && git commit -qam second"), false),
        ("Fix the bug.", call("git_commit", json!({"message": "Support --dry-run", "paths": ["a.txt"]})), false),
        ("Fix the bug.", call("git_branch", json!({"action": "create", "name": "new"})), false),
        ("Fix the bug and commit.", bash_call("git checkout -q -b new"), false),
        ("Fix the bug.", bash_call("git reset -q --hard"), false),
        ("Fix the bug.", bash_call("git stash"), false),
        ("Commit it.", bash_call("git push origin main"), false),
        ("Fix the bug and commit.", commit(), true),
        ("Fix the bug.", bash_call("git status --short"), true),
        ("Fix the bug.", bash_call("git branch --list"), true),
        ("Create a branch new.", bash_call("git checkout -q -b new"), true),
        ("Stash my changes.", bash_call("git stash"), true),
        ("修复并提交。", commit(), true),
    ]
}

#[tokio::test]
async fn git_does_only_what_the_prompt_asks_for() {
    for (prompt, made, runs) in cases() {
        let home = repository();
        let (ran, result) = run(&home, prompt, made.clone(), &[]).await;
        let case = format!("{prompt} {made}: {result}");
        assert_eq!(result.contains("the user did not ask to"), !runs, "{case}");
        assert_eq!(home.get("a.txt").unwrap() == "two\n", !runs || !prompt.starts_with("Stash"), "{case}");
        // The work is done, and only the commit is not.
        assert_eq!(ran.code, 0, "{case}");
        assert_eq!(git(&home.work(), &["branch", "--list", "new"]).is_empty(), !prompt.starts_with("Create"), "{case}");
        assert_eq!(commits(&home), 1 + usize::from(runs && made == commit()), "{case}");
    }
}

#[tokio::test]
async fn flag_rule_or_own_instructions_allow_commits() {
    let rule = "[permissions]\nrules = [{ tool = \"bash\", pattern = \"git commit *\", policy = \"allow\" }]\n";
    let other = "[permissions]\nrules = [{ tool = \"bash\", pattern = \"true\", policy = \"allow\" }]\n";
    // The settings, the user's instructions, those of the project, the flags, and the commits.
    let cases: &[(&str, &str, &str, &[&str], usize)] = &[
        ("", "", "", &["--allow-commit"], 2),
        ("", "Never commit unless I ask.\n", "", &["--allow-commit"], 2),
        (rule, "", "", &[], 2),
        (other, "", "", &[], 1),
        ("", "Commit after each step.\n", "", &[], 2),
        ("", "Only commit when asked.\n", "", &[], 1),
        ("", "", "Commit after each step.\n", &[], 1),
    ];
    for (settings, own, project, flags, expected) in cases {
        let home = repository();
        home.config(settings);
        std::fs::write(home.data().join("AGENTS.md"), own).unwrap();
        home.put("AGENTS.md", project);
        let (_, result) = run(&home, "Fix the bug.", bash_call("true && git commit -qam second"), flags).await;
        assert_eq!(commits(&home), *expected, "{settings} {own} {project} {flags:?}: {result}");
    }
}

#[tokio::test]
async fn last_line_of_a_run_names_the_flag() {
    let home = repository();
    let model = home.script(json!([calls(&[commit()]), {"text": "done"}]));
    let ran = home.run(&["run", "--mode", "auto", "--model", &model, "Fix the bug."], "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.stdout, "done\n");
    assert!(ran.stderr.lines().last().unwrap().contains("--allow-commit"), "{ran:?}");
}

/// The answer of a client decides, and the request says why it is made.
#[tokio::test]
async fn client_is_asked_about_a_commit_that_no_message_asks_for() {
    for (reply, expected) in [("allow_once", 2), ("reject_once", 1)] {
        let home = repository();
        let steps = json!([calls(&[commit()]), {"text": "done"}, calls(&[bash_call("git commit -q --allow-empty -m third")]), {"text": "done"}]);
        let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
        agent.otherwise = Reply::Pick(reply);
        let (_, updates) = agent.turn(&session, "Fix the bug.").await;
        let asked: Vec<&Value> = agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").collect();
        assert_eq!(asked.len(), 1);
        assert!(asked[0]["params"]["toolCall"]["content"].to_string().contains("No message asks to commit."), "{asked:?}");
        assert_eq!(tool(&updates, 0)["status"], if expected == 2 { "completed" } else { "failed" });
        assert_eq!(commits(&home), expected);
        // A later message asks for it.
        agent.turn(&session, "Now commit.").await;
        assert_eq!(agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").count(), 1);
        assert_eq!(commits(&home), expected + 1);
        agent.finish().await;
    }
}

/// A prompt that a model wrote is no word of the user.
#[tokio::test]
async fn subagent_commits_only_if_the_user_asked() {
    for (prompt, expected) in [("Fix the bug.", 1), ("Fix the bug and commit.", 2)] {
        let home = repository();
        let delegate = calls(&[task("general", "Commit the change.")]);
        let model = home.script(json!([delegate, calls(&[commit()]), {"text": "done"}, {"text": "all done"}]));
        let ran = home.run(&["run", "--json", "--mode", "auto", "--model", &model, prompt], "").await;
        assert_eq!(commits(&home), expected, "{prompt}: {ran:?}");
        assert_eq!(ran.stdout.contains(DENIED), expected == 1, "{prompt}: {ran:?}");
    }
}

/// The words hold over a restart and a compaction.
#[tokio::test]
async fn words_of_an_earlier_run_count() {
    let home = repository();
    let model = home.script(json!([{"text": "ok"}]));
    home.run(&["run", "--model", &model, "Fix the bug and commit later."], "").await;
    let model = home.script(json!([calls(&[commit()]), {"text": "done"}]));
    home.run(&["run", "--continue", "--mode", "auto", "--model", &model, "Go on."], "").await;
    assert_eq!(commits(&home), 2);
}

/// The words in a file are not of the user who imports it.
#[tokio::test]
async fn words_of_an_imported_session_do_not_count() {
    let home = repository();
    let model = home.script(json!([{"text": "ok"}]));
    home.run(&["run", "--model", &model, "Fix the bug and commit later."], "").await;
    let id = home.run(&["sessions", "list", "--json"], "").await.lines()[0]["sessionId"].as_str().unwrap().to_string();
    let exported = home.run(&["sessions", "export", &id], "").await.stdout;
    let imported = home.run(&["sessions", "import", "-"], &exported).await.stdout;
    for (session, expected) in [(imported.trim(), 1), (id.as_str(), 2)] {
        let model = home.script(json!([calls(&[commit()]), {"text": "done"}]));
        let ran = home.run(&["run", "--resume", session, "--mode", "auto", "--model", &model, "Go on."], "").await;
        assert_eq!(commits(&home), expected, "{ran:?}");
    }
}
