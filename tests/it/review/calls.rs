//! Decisions about parts of the changes of one call, before they are written.

use serde_json::{Value, json};

use harness::{Agent, Home, Reply};

/// Twenty lines, of which these are changed.
fn lines(changed: &[(usize, &str)]) -> String {
    let text =
        |number: usize| changed.iter().find(|(at, _)| *at == number).map_or(format!("line {number}"), |(_, text)| (*text).into());
    (1..=20).map(|number| text(number) + "\n").collect()
}

/// A call, and the two changes that it makes to `a.txt`.
fn calls() -> [Value; 3] {
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n line 1\n-line 2\n+TWO\n line 3\n@@\n line 17\n-line 18\n+EIGHTEEN\n line 19\n\
                 *** Add File: b.txt\n+new\n*** End Patch";
    [
        json!({"name": "write", "input": {"file_path": "a.txt", "content": lines(&[(2, "TWO"), (18, "EIGHTEEN")])}}),
        json!({"name": "apply_patch", "input": {"patch": patch}}),
        json!({"name": "edit", "input": {"file_path": "a.txt", "old_string": lines(&[]), "new_string": lines(&[(2, "TWO"), (18, "EIGHTEEN")])}}),
    ]
}

async fn start(call: &Value, result: &str) -> (Home, Agent, String) {
    let home = Home::new();
    home.put("a.txt", &lines(&[]));
    let read = json!({"tool_calls": [{"name": "read", "input": {"file_path": "a.txt"}}]});
    let steps = json!([read, {"tool_calls": [call]}, {"expect": result, "text": "done"}]);
    let (agent, session) = home.session(steps, &["--mode", "ask"]).await;
    (home, agent, session)
}

fn answer(option: &str, parts: Value) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}, "_meta": {"nuncio": parts}})
}

#[tokio::test]
async fn parts_of_a_call_are_accepted_rejected_or_replaced_before_the_write() {
    let second = json!({"hunks": [{"path": "a.txt", "hunk": 2, "accept": false}]});
    let own = json!({"edits": [{"path": "a.txt", "text": "my own\n"}]});
    let own_hunk =
        json!({"edits": [{"path": "a.txt", "hunk": 1, "text": "one\n"}], "hunks": [{"path": "a.txt", "hunk": 2, "accept": false}]});
    let none = json!({"hunks": [{"path": "a.txt", "accept": false}]});
    let unknown = json!({"hunks": [{"path": "a.txt", "hunk": 3, "accept": false}]});
    let rest: String = (6..=20).map(|number| format!("line {number}\n")).collect();
    let cases = [
        ("no decision", json!({}), lines(&[(2, "TWO"), (18, "EIGHTEEN")]), ""),
        ("second hunk", second, lines(&[(2, "TWO")]), "-EIGHTEEN"),
        ("own text", own, "my own\n".into(), "+my own"),
        ("own text of a hunk", own_hunk, format!("one\n{rest}"), "+one"),
        ("nothing", none, lines(&[]), "rejected"),
        ("unknown hunk", unknown, lines(&[]), "has no hunk 3"),
    ];
    for call in calls() {
        for (name, parts, expected, result) in &cases {
            let name = format!("{}: {name}", call["name"]);
            // Without `a.txt`, the patch still adds a file.
            let result = if *result == "rejected" && call["name"] == "apply_patch" { "-TWO" } else { result };
            let (home, mut agent, session) = start(&call, result).await;
            let mut parts = parts.clone();
            for part in parts.as_object_mut().unwrap().values_mut().flat_map(|list| list.as_array_mut().unwrap()) {
                part["path"] = json!(home.work().join("a.txt"));
            }
            agent.replies = [Reply::Result(answer("allow_once", parts))].into();
            let (stop, _) = agent.turn(&session, "go").await;
            let question = agent.frames.iter().find(|frame| frame["method"] == "session/request_permission").unwrap();
            let review = &question["params"]["_meta"]["nuncio"]["review"]["files"];
            assert_eq!((stop.as_str(), review[0]["hunks"].as_array().map(Vec::len)), ("end_turn", Some(2)), "{name}: {question}");
            assert_eq!(home.get("a.txt").unwrap(), *expected, "{name}");
            let is_denied = name.ends_with("unknown hunk");
            assert_eq!(home.work().join("b.txt").exists(), call["name"] == "apply_patch" && !is_denied, "{name}");
            let log = home.log(&session).await;
            let completed = log.iter().filter(|event| event["body"]["type"] == "tool.completed").nth(1).unwrap();
            let files = &completed["body"]["content"];
            if !is_denied && *expected != lines(&[]) {
                assert_eq!(files[0]["newText"], *expected, "{name}: the recorded change is the written one: {files}");
            }
            agent.finish().await;
        }
    }
}

#[tokio::test]
async fn file_that_changed_after_the_request_is_not_written() {
    let (home, mut agent, session) = start(&calls()[0], "stale").await;
    agent.otherwise = Reply::Never;
    let prompt = agent.prompt(&session, "go").await;
    agent.until_question().await;
    home.put("a.txt", "of another program\n");
    let listed = agent.call("_nuncio/permission/list", json!({})).await;
    let id = &listed["permissions"][0]["permissionId"];
    let hunks = json!([{"path": home.work().join("a.txt"), "hunk": 2, "accept": false}]);
    agent.call("_nuncio/permission/answer", json!({"permissionId": id, "optionId": "allow_once", "hunks": hunks})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
    assert_eq!(home.get("a.txt").unwrap(), "of another program\n");
    agent.finish().await;
}

#[tokio::test]
async fn parts_are_decided_over_rest_and_moves_are_not_offered() {
    let home = Home::new();
    home.put("a.txt", &lines(&[]));
    let moved = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: c.txt\n@@\n line 1\n-TWO\n+2\n line 3\n*** End Patch";
    let steps = json!([
        {"tool_calls": [{"name": "read", "input": {"file_path": "a.txt"}}]},
        {"tool_calls": [calls()[0]]},
        {"tool_calls": [{"name": "apply_patch", "input": {"patch": moved}}]},
        {"text": "done"},
    ]);
    let server = home.serve_script(steps, &["--mode", "ask"]).await;
    let session = server.new_session(&home).await;
    let mut events = server.follow(&session).events().await;
    server.begin(&session, "go").await;
    let edits = json!([{"path": home.work().join("a.txt"), "hunk": 2, "text": "own\n"}]);
    for (has_review, answer) in
        [(true, json!({"outcome": "allow_once", "edits": edits})), (false, json!({"outcome": "reject_once"}))]
    {
        let asked = events.until("permission.requested").await;
        let asked = &asked.last().unwrap().event["body"];
        assert_eq!(asked["review"].is_object(), has_review, "{asked}");
        let path = format!("/v1/permissions/{}", asked["permissionId"].as_str().unwrap());
        server.post(&path, &answer).expect(200).await;
    }
    events.until("turn.completed").await;
    let written = home.get("a.txt").unwrap();
    assert!(written.contains("TWO\n") && written.contains("\nown\n") && !written.contains("EIGHTEEN"), "{written}");
    drop(events);
    server.stop().await;
}

/// The user's text of a whole file, and decisions about hunks of the same file.
#[tokio::test]
async fn own_text_and_decisions_about_hunks_are_merged() {
    let proposed = [(2, "TWO"), (18, "EIGHTEEN")];
    let with = |own: (usize, &'static str)| lines(&[own, proposed[0], proposed[1]]);
    let reject = |hunk: u32| json!({"hunk": hunk, "accept": false});
    let cases = [
        // (own text, decisions, own texts of hunks, the file, words of the error)
        (with((10, "MINE")), vec![reject(2)], vec![], lines(&[(10, "MINE"), (2, "TWO")]), ""),
        (with((10, "MINE")), vec![reject(1), reject(2)], vec![], lines(&[(10, "MINE")]), ""),
        (with((2, "TWO and MINE")), vec![reject(2)], vec![], lines(&[(2, "TWO and MINE")]), ""),
        // A line of the hunk that the model did not change, and a line next to its change.
        (with((5, "MINE")), vec![reject(1)], vec![], lines(&[(5, "MINE"), (18, "EIGHTEEN")]), ""),
        (with((3, "MINE")), vec![reject(1)], vec![], lines(&[(3, "MINE"), (18, "EIGHTEEN")]), ""),
        (with((2, "TWO\nMINE")), vec![reject(1)], vec![], lines(&[(2, "line 2\nMINE"), (18, "EIGHTEEN")]), ""),
        // The user has also undone the hunk in the text.
        (lines(&[proposed[1], (10, "MINE")]), vec![reject(1)], vec![], lines(&[(10, "MINE"), proposed[1]]), ""),
        (with((10, "MINE")), vec![json!({"hunk": 1, "accept": true})], vec![], with((10, "MINE")), ""),
        (with((20, "MINE")), vec![reject(1)], vec![json!({"hunk": 2, "text": "own\n"})], String::new(), "hunk 2"),
        (
            with((10, "MINE")),
            vec![reject(1)],
            vec![json!({"hunk": 2, "text": "own"})],
            {
                let first: String =
                    (1..=14).map(|line| if line == 10 { "MINE\n".into() } else { format!("line {line}\n") }).collect();
                first + "own"
            },
            "",
        ),
        (with((2, "TWO and MINE")), vec![reject(1)], vec![], String::new(), "hunk 1 change the same lines"),
        (with((2, "MINE\nTWO and MINE")), vec![reject(2), reject(1)], vec![], String::new(), "hunk 1 change the same lines"),
        (with((2, "MINE")), vec![json!({"accept": false})], vec![], String::new(), "two decisions about the same part"),
    ];
    for (index, (own, hunks, edits, expected, refusal)) in cases.into_iter().enumerate() {
        let home = Home::new();
        home.put("a.txt", &lines(&[]));
        let read = json!({"tool_calls": [{"name": "read", "input": {"file_path": "a.txt"}}]});
        let server = home.serve_script(json!([read, {"tool_calls": [calls()[0]]}, {"text": "done"}]), &["--mode", "ask"]).await;
        let session = server.new_session(&home).await;
        let mut events = server.follow(&session).events().await;
        server.begin(&session, "go").await;
        let asked = events.until("permission.requested").await;
        let path = format!("/v1/permissions/{}", asked.last().unwrap().event["body"]["permissionId"].as_str().unwrap());
        let file = json!(home.work().join("a.txt"));
        let named = |mut part: Value| {
            part["path"] = file.clone();
            part
        };
        let edits: Vec<Value> = edits.into_iter().chain([json!({"text": own})]).map(named).collect();
        let hunks: Vec<Value> = hunks.into_iter().map(named).collect();
        let answer = json!({"outcome": "allow_once", "hunks": hunks, "edits": edits});
        if refusal.is_empty() {
            server.post(&path, &answer).expect(200).await;
        } else {
            let refused = server.post(&path, &answer).expect(400).await;
            assert!(refused.to_string().contains(refusal), "{index}: {refused}");
            assert_eq!(home.get("a.txt").unwrap(), lines(&[]), "{index}");
            // The request is still open.
            server.post(&path, &json!({"outcome": "allow_once", "edits": edits[edits.len() - 1..]})).expect(200).await;
        }
        events.until("turn.completed").await;
        assert_eq!(home.get("a.txt").unwrap(), if refusal.is_empty() { expected } else { own }, "{index}");
        drop(events);
        server.stop().await;
    }
}
