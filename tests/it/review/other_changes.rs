//! Changes by other programs and by hooks during a turn.

use serde_json::json;

use super::*;
use crate::window::{calls, home as home_with_provider, says};
use harness::Reply;
use harness::steps::{bash, replace};

const OWN: &str = "the user's own work\n";

/// The user changes `a.txt` after the model's first edit of it. Each case has the calls that follow
/// and the content of `a.txt` after the rejection.
#[tokio::test]
async fn rejection_keeps_edits_of_the_user_during_the_turn() {
    let write = |path: &str, content: &str| ("write", json!({"file_path": path, "content": content}));
    let cases = [
        ("another file", vec![write("b.txt", "b\n")], OWN),
        ("a command", vec![("bash", json!({"command": "true"}))], OWN),
        ("a command for the file", vec![("bash", json!({"command": "echo x > a.txt"}))], "x\n"),
        ("the same file", vec![("read", json!({"file_path": "a.txt"})), write("a.txt", "again\n")], "again\n"),
    ];
    for (name, following, expected) in cases {
        let (home, provider) = home_with_provider(200_000, "[review]\nmode = \"request\"\n").await;
        let path = home.put("a.txt", "before\n");
        let first = [("read", json!({"file_path": "a.txt"})), write("a.txt", "changed\n")];
        let all: Vec<_> = first.into_iter().chain(following).collect();
        let mut step = 0;
        provider.respond(move |received| {
            if step == 2 {
                std::fs::write(&path, OWN).unwrap();
            }
            step += 1;
            match all.get(step - 1) {
                Some((tool, input)) => calls(received, &format!("call-{step}"), tool, input.clone()),
                None => says(received, "done"),
            }
        });
        let mut agent = home.start(&["--mode", "auto"]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let session = agent.new_session(&home).await;
        agent.otherwise = Reply::Pick("reject_once");
        agent.turn(&session, "go").await;
        agent.finish().await;
        provider.finish().await;
        assert_eq!((home.get("a.txt").as_deref(), home.get("b.txt")), (Some(expected), None), "{name}");
        let log = home.log(&session).await;
        let files = &review(&log)["details"]["files"];
        assert_eq!(files[0]["conflict"], true, "{name}: {files}");
    }
}

/// The changes of a hook after an edit, for example of a formatter, belong to the turn.
#[tokio::test]
async fn rejection_includes_changes_by_hooks() {
    let last = [json!({"text": "done"})];
    for following in [vec![], vec![write("b.txt", "b\n")], vec![bash("true")]] {
        let home = home("request");
        let hook = "[[hooks]]\nevent = \"tool.execute.after\"\nmatch = \"write\"\n\
                    command = [\"sh\", \"-c\", \"date +%N >> a.txt\"]\n";
        home.config(&format!("{}{hook}", home.config_text()));
        let steps: Vec<Value> = [replace("a.txt", "changed\n")].into_iter().chain(following).chain(last.clone()).collect();
        let (mut agent, session) = home.session(json!(steps), &["--mode", "auto"]).await;
        agent.otherwise = Reply::Pick("reject_once");
        agent.turn(&session, "go").await;
        agent.finish().await;
        assert_eq!(home.get("a.txt"), Some(lines(&[])), "{steps:?}");
        let log = home.log(&session).await;
        assert_eq!(review(&log)["details"]["files"][0]["conflict"], false, "{log:#?}");
    }
}
