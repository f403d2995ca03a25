//! Answers to reviews, over ACP and REST.

use serde_json::{Value, json};

use super::*;
use harness::{Bridge, Reply, bounded, notices};

/// A reply with an option, and decisions about parts.
fn pick(option: &str, parts: Value) -> Reply {
    let mut answer = json!({"outcome": {"outcome": "selected", "optionId": option}});
    if !parts.is_null() {
        answer["_meta"] = json!({ "nuncio": parts });
    }
    Reply::Result(answer)
}

type State = (Option<String>, Option<u32>, Option<String>, bool);

#[tokio::test]
async fn decisions_over_acp_determine_the_files() {
    let home = home("request");
    let path = |name: &str| home.work().join(name);
    let (a, n) = (path("a.txt"), path("new/dir/n.txt"));
    let with_a = |change: &[(usize, &str)]| (Some(lines(change)), None, Some("new\n".into()), true);
    let third = [(3, "THREE")];
    let own = lines(&[(3, "THREE"), (22, "mine"), (23, ""), (24, ""), (25, ""), (26, ""), (27, ""), (28, "")])
        .replace("\n\n\n\n\n\n\n", "\n");
    let plain = |options: &[&str]| options.iter().map(|option| pick(option, Value::Null)).collect::<Vec<_>>();
    let cases: Vec<(&str, Vec<Reply>, State, &str)> = vec![
        ("accept", plain(&["accept"]), as_written(), ""),
        ("reject", plain(&["reject"]), as_before(), "a.txt: rejected; the file has its former content again"),
        (
            "files",
            plain(&["each_file", "accept", "reject", "reject"]),
            (as_written().0, Some(0o754), None, false),
            "gone.sh: rejected",
        ),
        ("hunks", plain(&["each_hunk", "accept", "reject", "accept", "accept"]), with_a(&third), "+line 25"),
        (
            "hunks of a file",
            plain(&["each_file", "each_hunk", "accept", "reject_rest"]),
            (Some(lines(&third)), Some(0o754), None, false),
            "n.txt: rejected",
        ),
        ("rest", plain(&["each_file", "reject", "accept_rest"]), with_a(&[]), "a.txt: rejected"),
        (
            "named hunk",
            vec![pick("accept", json!({"hunks": [{"path": a, "hunk": 2, "accept": false}]}))],
            with_a(&third),
            "a.txt: partly",
        ),
        (
            "all but one hunk",
            vec![pick("reject", json!({"hunks": [{"path": a, "hunk": 1, "accept": true}]}))],
            (Some(lines(&third)), Some(0o754), None, false),
            "a.txt: partly",
        ),
        (
            "own text for a hunk",
            vec![pick("accept", json!({"edits": [{"path": a, "hunk": 2, "text": "mine"}]}))],
            (Some(own), None, Some("new\n".into()), true),
            "+mine",
        ),
        (
            "own text for a file",
            vec![pick("accept", json!({"edits": [{"path": n, "text": "my own\n"}]}))],
            (as_written().0, None, Some("my own\n".into()), true),
            "+my own",
        ),
        ("unknown hunk", vec![pick("reject", json!({"hunks": [{"path": a, "hunk": 3, "accept": true}]}))], as_written(), ""),
        ("dismissed", vec![Reply::Result(json!({"outcome": {"outcome": "cancelled"}}))], as_written(), ""),
        ("error", vec![Reply::Error], as_written(), ""),
        ("error after a file", vec![pick("each_file", Value::Null), pick("reject", Value::Null), Reply::Error], as_written(), ""),
        ("error after a hunk", vec![pick("each_hunk", Value::Null), pick("reject", Value::Null), Reply::Error], as_written(), ""),
    ];
    drop(home);
    for (name, replies, expected, note) in cases {
        check(name, replies, expected, note).await;
    }
}

/// Runs a turn, answers its review, and asserts the files, the events, and that the next turn's
/// request contains `note`.
async fn check(name: &str, replies: Vec<Reply>, expected: State, note: &str) {
    let home = home("request");
    // The cases name paths of another home.
    let moved = |reply: Reply| match reply {
        Reply::Result(mut answer) => {
            for list in ["hunks", "edits"] {
                let parts = answer.pointer_mut(&format!("/_meta/nuncio/{list}")).and_then(Value::as_array_mut);
                for part in parts.into_iter().flatten() {
                    let path = part["path"].as_str().unwrap();
                    part["path"] = json!(home.work().join(path.split_once("/work/").unwrap().1));
                }
            }
            Reply::Result(answer)
        }
        reply => reply,
    };
    let mut steps = steps();
    steps.push(json!({"expect": note, "text": "known"}));
    let model = home.script(json!(steps));
    let mut agent = home.start(&["--model", &model, "--mode", "auto"]).await;
    let capabilities = json!({"protocolVersion": 1, "clientCapabilities": {"session": {"notices": {}}}});
    agent.call("initialize", capabilities).await;
    let session = agent.new_session(&home).await;
    let asked = replies.len();
    agent.replies = replies.into_iter().map(moved).collect();
    let (stop, updates) = agent.turn(&session, "go").await;
    assert_eq!((stop.as_str(), state(&home)), ("end_turn", expected.clone()), "{name}");
    let questions: Vec<Value> =
        agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").cloned().collect();
    assert_eq!(questions.len(), asked, "{name}: {questions:#?}");
    let first = &questions[0]["params"];
    let shown: Vec<&str> =
        first["toolCall"]["content"].as_array().unwrap().iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert_eq!(shown, ["diff", "diff", "diff"], "{name}: {first}");
    assert_eq!(first["_meta"]["nuncio"]["review"]["files"][0]["hunks"].as_array().unwrap().len(), 2, "{name}: {first}");
    let told = notices(&updates);
    let expected_notices = match (note, expected == as_written()) {
        ("", true) if name == "accept" => vec![],
        ("", _) => vec!["The changes were not reviewed"],
        _ => vec!["Changes were rejected or edited"],
    };
    assert_eq!(told, expected_notices, "{name}");
    agent.turn(&session, "and?").await;
    agent.finish().await;
    let log = home.log(&session).await;
    assert_eq!(bodies(&log, "permission.requested").len(), bodies(&log, "permission.resolved").len(), "{name}");
    let recorded = review(&log);
    if told == ["The changes were not reviewed"] {
        let content = recorded["content"].as_array().unwrap();
        let diffs: Vec<_> = content.iter().filter(|one| one["type"] == "diff").map(|one| one["newText"].as_str()).collect();
        assert_eq!((diffs.len(), diffs[0]), (3, as_written().0.as_deref()), "{name}: all changes remain");
    }
}

/// Waits for the open permission request.
async fn open_request(bridge: &Bridge) -> Value {
    bounded("the review", async {
        loop {
            let listed = bridge.get("/v1/permissions").expect(200).await;
            if let Some(request) = listed["permissions"].as_array().unwrap().first() {
                return request.clone();
            }
        }
    })
    .await
}

#[tokio::test]
async fn review_is_answered_over_rest_and_keeps_what_others_changed() {
    let home = home("request");
    let server = home.serve_script(json!(steps()), &["--mode", "auto"]).await;
    let session = server.new_session(&home).await;
    // A follower makes the server's client able to answer.
    let mut events = server.follow(&session).events().await;
    server.begin(&session, "go").await;
    let request = open_request(&server).await;
    assert_eq!(request["toolCall"]["name"], "review", "{request}");
    assert_eq!(request["review"]["files"].as_array().unwrap().len(), 3, "{request}");
    let hunk = &request["review"]["files"][0]["hunks"][1];
    assert_eq!(*hunk, json!({"hunk": 2, "oldStart": 22, "oldLines": 7, "newStart": 22, "newLines": 7}));
    let path = format!("/v1/permissions/{}", request["permissionId"].as_str().unwrap());
    let a = home.work().join("a.txt");
    for (wrong, field) in [
        (json!({"optionId": "accept", "hunks": [{"path": "/none", "accept": true}]}), "hunks"),
        (json!({"optionId": "accept", "hunks": [{"path": a, "hunk": 9, "accept": true}]}), "hunk 9"),
        (json!({"optionId": "accept", "edits": [{"path": a, "text": ""}, {"path": a, "hunk": 1, "text": ""}]}), "edits"),
        (json!({"optionId": "maybe"}), "optionId"),
    ] {
        let refused = server.post(&path, &wrong).expect(400).await;
        assert!(refused["error"]["message"].as_str().unwrap().contains(field), "{refused}");
    }
    home.put("a.txt", "the user's own work\n");
    server.post(&path, &json!({"optionId": "reject"})).expect(200).await;
    let seen: Vec<Value> = events.until("turn.completed").await.into_iter().map(|shown| shown.event).collect();
    assert_eq!(state(&home), (Some("the user's own work\n".into()), Some(0o754), None, false));
    let review = review(&seen);
    assert_eq!((&review["status"], &review["details"]["files"][0]["conflict"]), (&json!("failed"), &json!(true)), "{review}");
    let notice = bodies(&seen, "notice");
    assert!(notice[0]["description"].as_str().unwrap().contains("a.txt: rejected, but not changed: it was changed by another"));
    drop(events);
    server.stop().await;
}
