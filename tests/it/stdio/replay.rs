//! Replay of sessions: `session/load` replays the whole session, `session/resume` replays no
//! messages. Listing and deletion of sessions.

use serde_json::{Value, json};

use harness::{Home, kinds, session_updates, text, tool};

/// A turn with a thought, messages, a plan and tool calls, and the answer of a second turn.
fn steps() -> Value {
    json!([
        {"thinking": "I think so.", "text": "First I look.", "tool_calls": [
            {"name": "plan", "input": {"entries": [{"content": "look", "status": "completed"}, {"content": "mend"}]}},
            {"name": "read", "input": {"file_path": "a.txt"}},
            {"name": "read", "input": {"file_path": "missing.txt"}},
        ]},
        {"text": "Then I mend.", "tool_calls": [
            {"name": "edit", "input": {"file_path": "a.txt", "old_string": "one", "new_string": "two"}},
            {"name": "bash", "input": {"command": "echo out; exit 3"}},
        ]},
        {"text": "All done."},
        {"text": "Second answer."},
    ])
}

#[tokio::test]
async fn load_replays_everything_before_its_answer() {
    let home = Home::new();
    let file = home.put("a.txt", "one\n");
    let (mut agent, session) = home.session(steps(), &["--mode", "auto"]).await;
    let (stop, live) = agent.turn(&session, "Mend a.txt\nplease").await;
    assert_eq!(stop, "end_turn");
    agent.turn(&session, "And again").await;
    agent.finish().await;

    let mut agent = home.start(&["--model", &home.script(steps())]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let replayed = agent.load(&home, &session).await;
    let user = replayed.iter().filter(|update| update["sessionUpdate"] == "user_message_chunk").count();
    assert_eq!((user, text(&replayed, "user_message_chunk").as_str()), (2, "Mend a.txt\npleaseAnd again"));
    assert_eq!(text(&replayed, "agent_thought_chunk"), "I think so.");
    assert_eq!(text(&replayed, "agent_message_chunk"), "First I look.Then I mend.All done.Second answer.");
    let plan = replayed.iter().find(|update| update["sessionUpdate"] == "plan").expect("a plan");
    assert_eq!(plan["entries"][0], json!({"content": "look", "priority": "medium", "status": "completed"}));
    let titles = ["Update the plan", "Read a.txt", "Read missing.txt", "Edit a.txt", "`echo out; exit 3`"];
    let looks =
        [("think", "completed"), ("read", "completed"), ("read", "failed"), ("edit", "completed"), ("execute", "completed")];
    for (index, (title, (kind, status))) in titles.iter().zip(looks).enumerate() {
        let call = tool(&replayed, index);
        assert_eq!(
            (call["title"].as_str(), call["kind"].as_str(), call["status"].as_str()),
            (Some(*title), Some(kind), Some(status)),
            "{call}"
        );
        let seen = tool(&live, index);
        for key in ["toolCallId", "locations", "content", "rawInput", "rawOutput"] {
            assert_eq!(call[key], seen[key], "{title}: {key}");
        }
    }
    assert_eq!(tool(&replayed, 1)["locations"][0]["path"], json!(file));
    let diff = &tool(&replayed, 3)["content"][0];
    assert_eq!(diff, &json!({"type": "diff", "path": file, "oldText": "one\n", "newText": "two\n"}));
    assert!(tool(&replayed, 4)["content"].to_string().contains("out"), "{}", tool(&replayed, 4));
    assert!(kinds(&replayed).contains(&"session_info_update"), "{:?}", kinds(&replayed));
    // After the answer, no update of the past follows.
    let after = agent.frames.len();
    let (_, updates) = agent.turn(&session, "go on").await;
    assert_eq!(session_updates(&agent.frames[after..], &session).len(), updates.len());
    assert_eq!(text(&updates, "user_message_chunk"), "");
    assert_eq!(text(&updates, "agent_message_chunk"), "First I look.Then I mend.All done.");
    agent.finish().await;
}

#[tokio::test]
async fn every_chunk_has_its_message_id() {
    let home = Home::new();
    let steps = json!([
        {"thinking": "in pieces", "text": "in pieces too", "chunk_chars": 1, "delay_ms": 20, "tool_calls": [{"name": "list"}]},
        {"text": "in pieces again", "chunk_chars": 1, "delay_ms": 20},
    ]);
    let (mut agent, session) = home.session(steps, &[]).await;
    let (_, live) = agent.turn(&session, "go").await;
    let replayed = agent.load(&home, &session).await;
    // Kind and message id of each chunk; adjacent equal pairs are merged. The replay has the live
    // messages, in whole chunks, after the user's message.
    let messages = |updates: &[Value]| {
        let chunks = updates.iter().filter(|update| update["sessionUpdate"].as_str().unwrap().ends_with("_chunk"));
        let mut ids: Vec<(String, String)> =
            chunks.map(|chunk| (chunk["sessionUpdate"].to_string(), chunk["messageId"].as_str().unwrap().to_string())).collect();
        let count = ids.len();
        ids.dedup();
        (ids, count)
    };
    let ((live, pieces), (replayed, whole)) = (messages(&live), messages(&replayed));
    assert_eq!((live.len(), replayed.len(), whole), (3, 4, 4), "{live:?} {replayed:?}");
    assert_eq!(live, replayed[1..]);
    assert!(pieces > 10, "{pieces} pieces");
    agent.finish().await;
}

#[tokio::test]
async fn resume_replays_no_messages_and_prompt_opens_closed_session() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "first"}, {"expect": "first", "text": "second"}]), &[]).await;
    agent.turn(&session, "one").await;
    agent.finish().await;

    let mut agent = home.start(&["--model", &home.script(json!([{"expect": "first", "text": "second"}]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let before = agent.frames.len();
    let resumed = agent.call("session/resume", json!({"sessionId": session, "cwd": home.work()})).await;
    assert_eq!(resumed["modes"]["currentModeId"], "ask");
    agent.call("session/list", json!({})).await;
    assert_eq!(kinds(&session_updates(&agent.frames[before..], &session)), ["available_commands_update"]);
    let (_, updates) = agent.turn(&session, "two").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "second");
    agent.finish().await;

    // The session is neither loaded nor resumed.
    let mut agent = home.start(&["--model", &home.script(json!([{"expect": "second", "text": "third"}]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let (_, updates) = agent.turn(&session, "three").await;
    assert_eq!((text(&updates, "user_message_chunk").as_str(), text(&updates, "agent_message_chunk").as_str()), ("", "third"));
    let replayed = agent.load(&home, &session).await;
    assert_eq!(text(&replayed, "agent_message_chunk"), "firstsecondthird");
    agent.finish().await;
}

#[tokio::test]
async fn running_turn_is_replayed_and_continues() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"text": "abcdefgh", "chunk_chars": 2, "delay_ms": 150}]), &[]).await;
    let id = agent.prompt(&session, "go").await;
    agent.until_update("agent_message_chunk").await;
    let before = agent.frames.len();
    let replayed = agent.load(&home, &session).await;
    assert_eq!(text(&replayed, "user_message_chunk"), "go");
    agent.answer(&id).await.unwrap();
    // Before the replay, which starts with the prompt, more of the running turn may be shown.
    let shown = session_updates(&agent.frames[before..], &session);
    let replay = shown.iter().position(|update| update["sessionUpdate"] == "user_message_chunk").unwrap();
    assert_eq!(text(&shown[replay..], "agent_message_chunk"), "abcdefgh");
    agent.finish().await;
}

#[tokio::test]
async fn sessions_are_listed_in_pages() {
    let home = Home::new();
    let (mut agent, first) = home.session(json!([]), &[]).await;
    let elsewhere = home.put("../elsewhere/x", "").parent().unwrap().to_path_buf();
    let mut made = vec![first];
    for number in 1..120 {
        let cwd = if number % 10 == 0 { elsewhere.clone() } else { home.work() };
        let session = agent.call("session/new", json!({"cwd": cwd})).await["sessionId"].as_str().unwrap().to_string();
        made.push(session);
    }
    agent.turn(&made[5].clone(), "a title").await;
    let last = made.remove(5);
    made.push(last);
    for (cwd, pages) in [(None, vec![50, 50, 20]), (Some(elsewhere.clone()), vec![11]), (Some("/no/such".into()), vec![0])] {
        let mut listed = Vec::new();
        let mut sizes = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let page =
                agent.call("session/list", json!({"cwd": cwd, "cursor": cursor, "_meta": {"nuncio": {"empty": true}}})).await;
            sizes.push(page["sessions"].as_array().unwrap().len());
            listed.extend(page["sessions"].as_array().unwrap().clone());
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(sizes, pages, "{cwd:?}");
        let ids: Vec<&str> = listed.iter().map(|session| session["sessionId"].as_str().unwrap()).collect();
        match &cwd {
            None => {
                assert_eq!(ids, made.iter().rev().map(String::as_str).collect::<Vec<_>>());
                assert_eq!(listed[0]["title"], "a title");
            }
            Some(cwd) => assert!(listed.iter().all(|session| session["cwd"] == json!(cwd)), "{listed:?}"),
        }
    }
    agent.finish().await;
}

#[tokio::test]
async fn deleted_session_is_not_found() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    let other = agent.new_session(&home).await;
    agent.turn(&session, "go").await;
    for id in [session.as_str(), session.as_str(), "sess_never", ""] {
        assert_eq!(agent.call("session/delete", json!({"sessionId": id})).await, json!({}), "{id:?}");
    }
    let listed = agent.call("session/list", json!({"_meta": {"nuncio": {"empty": true}}})).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(listed["sessions"][0]["sessionId"], json!(other));
    let id = agent.prompt(&session, "go").await;
    assert_eq!(agent.answer(&id).await.unwrap_err()["code"], -32002);
    assert_eq!(home.run(&["sessions", "show", &session], "").await.code, 2);
    // Deletion of a session ends its running turn.
    let model = home.script(json!([{"text": "slow", "delay_ms": 60_000}]));
    agent.call("session/set_config_option", json!({"sessionId": other, "configId": "model", "value": model})).await;
    let running = agent.prompt(&other, "go").await;
    agent.until_update("session_info_update").await;
    agent.call("session/delete", json!({"sessionId": other})).await;
    assert_eq!(agent.answer(&running).await.unwrap()["stopReason"], "cancelled");
    agent.finish().await;
}
