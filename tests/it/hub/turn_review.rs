//! The review of the changes in the turns of hosted agents.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use super::{bodies, claude_code, home_of, session};
use harness::{Home, Reply, text};

/// Changes files in all ways: `tracked`, `dirty`, `untracked` and `run.sh` get other content,
/// `run.sh` and `gone` other modes.
const CHANGES: &str = "for file in tracked dirty untracked run.sh; do echo changed > $file; done; chmod -x run.sh; rm gone; \
                       mkdir -p new/dir; echo new > new/dir/file; ln -s tracked link; mkdir -p target; echo built > target/out";

const NOT_REVIEWED: &str = "The changes were not reviewed";

fn git(home: &Home, arguments: &[&str]) -> String {
    let person = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
    let ran = Command::new("git").args(person).args(arguments).current_dir(home.work()).output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap()
}

/// A home with a repository and an agent that changes files without a permission request.
async fn home(mode: &str) -> Home {
    let home = home_of("claude-code", claude_code::CLAUDE, &[], &format!("[review]\nmode = \"{mode}\"\n")).await;
    for file in ["tracked", "dirty", "gone", "run.sh"] {
        home.put(file, "committed\n");
    }
    home.put(".gitignore", "target\n");
    std::fs::set_permissions(home.work().join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    git(&home, &["init", "-q"]);
    git(&home, &["add", "--all"]);
    git(&home, &["commit", "-q", "-m", "first"]);
    home.put("dirty", "not committed\n");
    home.put("untracked", "untracked\n");
    home
}

/// The state of the working tree: the content of each file, and the mode of `run.sh`.
fn state(home: &Home) -> Value {
    let names = ["tracked", "dirty", "gone", "untracked", "run.sh", "new/dir/file", "target/out"];
    let files = names.iter().map(|name| home.get(name).map(|text| text.trim_end().to_owned())).collect::<Vec<_>>();
    let mode = std::fs::metadata(home.work().join("run.sh")).unwrap().permissions().mode() & 0o777;
    json!([files, format!("{mode:o}"), home.work().join("new").exists()])
}

/// The titles and descriptions of the notices about the review.
async fn notices(home: &Home, session: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let notices = bodies(home, session, &["notice"]).await.into_iter().filter(|notice| notice["code"] == "review");
    notices.map(|notice| (text(&notice["title"]), text(&notice["description"]))).collect()
}

#[tokio::test]
async fn changes_of_commands_are_reviewed_and_rejected() {
    needs_linux!("sandbox");
    let before = json!([["committed", "not committed", "committed", "untracked", "committed", null, "built"], "755", false]);
    let written = json!([["changed", "changed", null, "changed", "changed", "new", "built"], "644", true]);
    let one = json!([["changed", "changed", null, "changed", "changed", null, "built"], "644", false]);
    let pick = |option: &str| Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": option}}));
    let files = |decisions: &[&str]| ["each_file"].iter().chain(decisions).map(|option| pick(option)).collect::<Vec<_>>();
    for (name, replies, expected) in [
        ("accepted", vec![pick("accept")], written),
        ("rejected", vec![pick("reject")], before),
        ("one rejected", files(&["accept", "accept", "reject", "accept_rest"]), one),
    ] {
        let home = home("request").await;
        let objects = || git(&home, &["count-objects", "-v"]);
        let index = || std::fs::read(home.work().join(".git/index")).unwrap();
        let (objects_before, index_before) = (objects(), index());
        let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
        let asked = replies.len();
        agent.replies = replies.into();
        let (stop, _) = agent.turn(&session, &format!("unasked {CHANGES}")).await;
        assert_eq!((stop.as_str(), state(&home)), ("end_turn", expected), "{name}");
        let questions = agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").count();
        assert_eq!((questions, agent.replies.len()), (asked, 0), "{name}");
        // The next prompt tells the agent what was rejected.
        let (_, updates) = agent.turn(&session, "heard").await;
        let heard = text(&updates, "agent_message_chunk");
        assert_eq!(
            heard.contains("[the user reviewed the changes") && heard.contains("new/dir/file: rejected"),
            name != "accepted"
        );
        let (_, updates) = agent.turn(&session, "heard").await;
        assert_eq!(text(&updates, "agent_message_chunk"), "[\"heard\"]", "{name}");
        agent.finish().await;
        assert_eq!((objects(), index() == index_before), (objects_before, true), "{name}: the repository is as before");
        let notices = notices(&home, &session).await;
        assert!(notices.iter().any(|(title, text)| title == "Some changes are not reviewed" && text.starts_with("link: ")));
        let silent = "changed by a command or another program, as far as the agent reports: dirty, gone, new/dir/file";
        assert!(notices.iter().any(|(_, text)| text.contains(silent)), "{name}: {notices:?}");
    }
}

#[tokio::test]
async fn change_after_the_end_of_the_agents_turn_is_a_conflict() {
    needs_linux!("sandbox");
    let home = home("request").await;
    let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
    agent.otherwise = Reply::Never;
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "later tracked"}]});
    let id = agent.send("session/prompt", prompt).await;
    agent.until("the review", |frame| frame["method"] == "session/request_permission").await;
    home.put("go", "");
    home.appears("went").await;
    let (question, _) = agent.asked.pop().unwrap();
    let reject = json!({"jsonrpc": "2.0", "id": question, "result": {"outcome": {"outcome": "selected", "optionId": "reject"}}});
    agent.raw(format!("{reject}\n").as_bytes()).await;
    agent.answer(&id).await.unwrap();
    agent.finish().await;
    assert_eq!(home.get("tracked").as_deref(), Some("changed later"));
    let notices = notices(&home, &session).await;
    assert!(notices.iter().any(|(title, text)| title == "A review has conflicts" && text.contains("another program")));
}

#[tokio::test]
async fn changes_that_git_cannot_restore_are_not_reviewed() {
    needs_linux!("sandbox");
    let repository = |home: &Home| git(home, &["config", "core.autocrlf", "input"]);
    let removed = |home: &Home| std::fs::rename(home.work().join(".git"), home.work().join("moved")).unwrap();
    let crlf = home("request").await;
    repository(&crlf);
    crlf.put("tracked", "committed\r\n");
    let none = home("request").await;
    removed(&none);
    for (home, title, text) in [
        (crlf, "Some changes are not reviewed", "tracked: not a regular file, too large, or not stored byte for byte by git"),
        (none, NOT_REVIEWED, "is not in a git repository"),
    ] {
        let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
        agent.otherwise = Reply::Error;
        let (stop, _) = agent.turn(&session, "unasked echo changed > tracked").await;
        assert_eq!((stop.as_str(), home.get("tracked").as_deref()), ("end_turn", Some("changed\n")));
        agent.finish().await;
        let notices = notices(&home, &session).await;
        assert!(notices.iter().any(|(found, why)| found == title && why.contains(text)), "{notices:?}");
        assert_eq!(bodies(&home, &session, &["permission.requested"]).await.len(), 0);
    }
}

#[tokio::test]
async fn recorded_review_has_the_changes_of_the_turn() {
    needs_linux!("sandbox");
    let home = home("auto").await;
    let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
    agent.turn(&session, "say").await;
    agent.turn(&session, "unasked echo changed > tracked").await;
    agent.finish().await;
    let calls = bodies(&home, &session, &["tool.started"]).await;
    let reviews: Vec<&Value> = calls.iter().filter(|call| call["name"] == "review").collect();
    assert_eq!(reviews.len(), 1, "{calls:?}");
    assert_eq!(reviews[0]["input"]["files"], json!([home.work().join("tracked")]));
}

/// An agent hides a change from git: a notice names the setting that changed, or the review shows
/// the file.
#[tokio::test]
async fn hidden_changes_are_shown_or_announced() {
    needs_linux!("sandbox");
    let exclude = |line: &str| format!("echo {line} >> .git/info/exclude");
    // The commands of one or two turns, and what the last one has to show.
    let hides: Vec<(Vec<String>, &str)> = vec![
        (vec![format!("{}; echo evil > evil", exclude("evil"))], ".git/info/exclude changed"),
        (vec!["echo evil > evil; echo evil >> .gitignore".into()], ".gitignore changed"),
        (vec!["mkdir d; echo '*' > d/.gitignore; echo evil > d/evil".into()], "d/.gitignore changed"),
        (vec!["echo '*' > .ignored; echo '.ignored' >> .ignored; git config core.excludesFile .ignored".into()], "git config"),
        (vec!["mkdir -p ~/.config/git; echo evil > ~/.config/git/ignore; echo evil > evil".into()], "git/ignore changed"),
        (
            vec!["git config core.sparseCheckout true; echo /dirty > .git/info/sparse-checkout; echo evil > tracked".into()],
            "sparse-checkout",
        ),
        (vec!["git update-index --skip-worktree tracked; echo evil > tracked".into()], "REVIEWED tracked"),
        (vec!["git update-index --assume-unchanged tracked; echo evil > tracked".into()], "REVIEWED tracked"),
        (vec!["git update-index --skip-worktree tracked".into(), "echo evil > tracked".into()], "REVIEWED tracked"),
        (vec!["git update-index --assume-unchanged tracked".into(), "echo evil > tracked".into()], "REVIEWED tracked"),
        (vec!["git update-index --skip-worktree gone; rm gone".into()], "REVIEWED gone"),
        (
            vec![
                "echo 'tracked filter=x' > .gitattributes; git config filter.x.clean 'echo committed'; echo evil > tracked".into(),
            ],
            ".gitattributes",
        ),
        (vec!["echo '* filter=x' > .git/info/attributes; git config filter.x.clean 'echo committed'".into()], "info/attributes"),
        (vec!["git config core.fileMode false; chmod -x run.sh".into()], "git config changed"),
        (vec!["git config submodule.x.ignore all".into()], "git config changed"),
        (vec!["mv .git moved".into()], "git repository"),
        (vec!["echo evil > tracked".into()], "REVIEWED tracked"),
        (vec!["mkdir target; echo evil > target/x".into()], ""),
    ];
    for (turns, expected) in hides {
        let home = home("auto").await;
        let (mut agent, session) = session(&home, &["--mode", "auto"]).await;
        for line in &turns {
            agent.turn(&session, &format!("unasked {line}")).await;
        }
        agent.finish().await;
        let told = notices(&home, &session).await;
        let hidden = told.iter().filter(|(title, _)| title == "The review may miss changes");
        let calls = bodies(&home, &session, &["tool.started"]).await;
        let reviewed = calls.iter().rfind(|call| call["name"] == "review").map(|call| call["input"]["files"].to_string());
        match expected.strip_prefix("REVIEWED ") {
            Some(file) => assert!(reviewed.is_some_and(|files| files.contains(&format!("/{file}\""))), "{turns:?}: {told:?}"),
            None if expected.is_empty() => assert_eq!(hidden.count(), 0, "{turns:?}: {told:?}"),
            None => assert!(told.iter().any(|(_, text)| text.contains(expected)), "{turns:?}: {told:?}"),
        }
    }
}
