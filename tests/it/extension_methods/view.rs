//! The view of a session, and its messages in pages.

use serde_json::{Value, json};

use super::{fill, refused};
use harness::{Agent, Home, Reply, on_postgres};

/// Returns all messages, read in pages of `limit`, and the length of each page.
async fn pages(agent: &mut Agent, session: &str, limit: usize) -> (Vec<Value>, Vec<usize>) {
    let (mut messages, mut sizes, mut cursor) = (Vec::new(), Vec::new(), Value::Null);
    loop {
        let params = json!({"sessionId": session, "cursor": cursor, "limit": limit});
        let page = agent.call("_nuncio/session/messages", params).await;
        sizes.push(page["messages"].as_array().unwrap().len());
        messages.extend(page["messages"].as_array().unwrap().clone());
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            return (messages, sizes);
        }
    }
}

#[tokio::test]
async fn session_view_reports_status() {
    let home = Home::new();
    let steps = json!([
        {"text": "planned", "tool_calls": [{"name": "plan", "input": {"entries": [{"content": "look"}]}}]},
        {"tool_calls": [{"name": "bash", "input": {"command": "true"}}]},
        {"text": "done"},
    ]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.otherwise = Reply::Never;
    let made = agent.view(&session).await;
    let shown = |view: &Value| (view["status"].clone(), view["waiting"].clone(), view.get("turnId").is_some());
    assert_eq!(shown(&made), (json!("idle"), json!(false), false), "{made}");
    assert_eq!((&made["sessionId"], &made["cwd"]), (&json!(session), &json!(home.work())));
    assert_eq!((&made["mode"], &made["modes"]["currentModeId"]), (&json!("ask"), &json!("ask")));
    assert_eq!((&made["head"], &made["plan"], &made["additionalDirectories"]), (&json!(1), &json!([]), &json!([])));
    assert!(made["createdAt"].as_str().unwrap().ends_with('Z') && made["createdAt"] == made["updatedAt"], "{made}");

    let id = agent.prompt(&session, "plan it").await;
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
    let asking = agent.view(&session).await;
    assert_eq!(shown(&asking), (json!("busy"), json!(true), true), "{asking}");
    assert_eq!((&asking["title"], &asking["plan"][0]["content"]), (&json!("plan it"), &json!("look")));
    assert_eq!(asking["createdAt"], made["createdAt"]);
    let listed = agent.call("session/list", json!({})).await;
    let activity = &listed["sessions"][0]["_meta"]["nuncio"];
    assert_eq!((&activity["status"], &activity["waiting"]), (&json!("busy"), &json!(true)), "{activity}");
    assert_eq!(activity["lastTurn"], json!({"turnId": asking["turnId"], "status": "running"}));
    assert_eq!(activity["pendingToolCalls"], asking["pendingToolCalls"]);
    assert_eq!(asking["pendingToolCalls"][0]["status"], "pending", "{asking}");
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&id).await.unwrap();
    assert_eq!(shown(&agent.view(&session).await), (json!("idle"), json!(false), false));

    agent.call("session/close", json!({"sessionId": session})).await;
    let listed = agent.call("session/list", json!({})).await;
    let last_turn = json!({"turnId": asking["turnId"], "status": "cancelled"});
    assert_eq!(activity["ownerPid"], agent.pid);
    let expected = json!({
        "status": "none", "waiting": false, "lastTurn": last_turn, "turns": 1, "modelUsed": asking["model"], "pendingToolCalls": [],
    });
    assert_eq!(listed["sessions"][0]["_meta"]["nuncio"], expected);
    let closed = agent.view(&session).await;
    assert_eq!(shown(&closed), (json!("none"), json!(false), false), "{closed}");
    assert_eq!((&closed["createdAt"], &closed["plan"]), (&made["createdAt"], &asking["plan"]));
    refused(
        &mut agent,
        &[
            ("_nuncio/session/get", json!({}), -32602, "sessionId"),
            ("_nuncio/session/get", json!({"sessionId": "x"}), -32002, "x"),
            ("_nuncio/session/get", json!({"sessionId": session, "stray": 1}), -32602, "stray"),
            ("_nuncio/session/messages", json!({"sessionId": "x"}), -32002, "x"),
            ("_nuncio/session/messages", json!({"sessionId": session, "cursor": "x"}), -32602, "cursor"),
            ("_nuncio/session/messages", json!({"sessionId": session, "cursor": -1}), -32602, "cursor"),
            ("_nuncio/session/messages", json!({"sessionId": session, "limit": 0}), -32602, "limit"),
            ("_nuncio/session/messages", json!({"sessionId": session, "limit": 201}), -32602, "limit"),
            ("_nuncio/session/messages", json!({"sessionId": session, "limit": "x"}), -32602, "limit"),
        ],
    )
    .await;
    agent.finish().await;
}

#[tokio::test]
async fn session_view_has_model_system_prompt_tools_and_open_message() {
    let home = Home::new();
    home.put("AGENTS.md", "Use tabs.\n");
    let (mut agent, session) = home.session(json!([{"text": "x".repeat(400), "chunk_chars": 1, "delay_ms": 50}]), &[]).await;
    let made = agent.view(&session).await;
    assert!(made["model"].as_str().unwrap().starts_with("scripted:"), "{made}");
    assert!(made["systemPrompt"].as_str().unwrap().contains("Use tabs."), "{made}");
    assert!(made["tools"].as_array().unwrap().contains(&json!("read")) && made.get("openMessage").is_none(), "{made}");
    agent.call("_nuncio/session/configure", json!({"sessionId": session, "tools": ["read"], "systemPrompt": "Be brief."})).await;
    let changed = agent.view(&session).await;
    assert_eq!(changed["tools"], json!(["read"]));
    assert!(changed["systemPrompt"].as_str().unwrap().starts_with("Be brief."), "{changed}");

    let id = agent.prompt(&session, "write").await;
    agent.until_update("agent_message_chunk").await;
    let open = agent.view(&session).await["openMessage"].clone();
    assert_eq!(open["role"], "assistant", "{open}");
    assert!(open["messageId"].is_string() && open["text"].as_str().unwrap().starts_with('x'), "{open}");
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    agent.answer(&id).await.unwrap();
    assert!(agent.view(&session).await.get("openMessage").is_none());
    // Settings that cannot be read do not hide the session.
    home.put(".nuncio/config.toml", "model = 7\n");
    agent.call("session/close", json!({"sessionId": session})).await;
    assert_eq!(agent.view(&session).await["tools"], json!([]));
    agent.finish().await;
}

#[tokio::test]
async fn messages_are_paged() {
    let home = Home::new();
    let steps = json!([
        {"thinking": "hm", "text": "one", "tool_calls": [{"name": "list"}]},
        {"text": "two"},
        {"text": "three"},
    ]);
    let (mut agent, session) = home.session(steps, &[]).await;
    agent.turn(&session, "first").await;
    agent.turn(&session, "second").await;
    let (all, sizes) = pages(&mut agent, &session, 50).await;
    assert_eq!(sizes, [7]);
    let said = |message: &Value| {
        let text = message.get("name").unwrap_or(&message["parts"][0]["text"]);
        format!("{} {}", message["role"].as_str().unwrap(), text.as_str().unwrap())
    };
    assert_eq!(
        all.iter().map(said).collect::<Vec<_>>(),
        ["user first", "thought hm", "assistant one", "tool list", "assistant two", "user second", "assistant three"]
    );
    assert_eq!(all[0]["turnId"], all[4]["turnId"]);
    assert_ne!(all[0]["turnId"], all[5]["turnId"]);
    for (limit, expected) in [(1, vec![1; 7]), (2, vec![2, 2, 2, 1]), (4, vec![4, 3]), (7, vec![7]), (200, vec![7])] {
        assert_eq!(pages(&mut agent, &session, limit).await, (all.clone(), expected), "{limit}");
    }
    agent.finish().await;
    // Another process reads the same pages from the store.
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    assert_eq!(pages(&mut agent, &session, 4).await, (all, vec![4, 3]));
    agent.finish().await;
}

/// Facts have their own index, so that the cost of a page does not depend on the length of the log.
#[tokio::test]
async fn page_of_long_session_uses_index() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    agent.call("session/close", json!({"sessionId": session})).await;
    fill(&home, 100_000, 500);
    agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
    let page = agent.call("_nuncio/session/messages", json!({"sessionId": session, "cursor": "50000", "limit": 100})).await;
    let messages = page["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[99]["messageId"], &page["nextCursor"]), (100, &json!("msg_99500"), &json!("99502")));
    // PostgreSQL's plan depends on its statistics.
    if !on_postgres() {
        let page = "SELECT body FROM events WHERE session = 1 AND seq > 5 AND delta = 0 ORDER BY seq LIMIT 9";
        let plan = home.sql(&format!("EXPLAIN QUERY PLAN {page}"));
        assert!(plan[0].ends_with("|SEARCH events USING INDEX facts (session=? AND seq>?)"), "{plan:?}");
    }
    agent.finish().await;
}

/// The index is created in a store of an older version. Messages beyond the size limit of a
/// response are in the next page.
#[tokio::test]
async fn older_store_is_migrated_and_large_pages_are_split() {
    let home = Home::new();
    let (mut agent, session) = home.session(json!([]), &[]).await;
    let heavy = "x".repeat(3 << 20);
    for _ in 0..12 {
        let parts = json!([{"type": "text", "text": heavy}]);
        agent.call("_nuncio/session/message", json!({"sessionId": session, "parts": parts, "autoRun": false})).await;
    }
    agent.finish().await;
    // Only SQLite has had other tables.
    if !on_postgres() {
        home.sql(
            "DROP TABLE workspaces; DROP INDEX facts; ALTER TABLE events DROP COLUMN message_id; ALTER TABLE events DROP COLUMN event_type; ALTER TABLE events DROP COLUMN call; DROP TABLE answers; DROP INDEX sessions_waiting; DROP INDEX sessions_children; ALTER TABLE sessions DROP COLUMN parent; ALTER TABLE sessions DROP COLUMN turn; \
             ALTER TABLE sessions DROP COLUMN waiting; ALTER TABLE sessions DROP COLUMN summary; ALTER TABLE sessions DROP COLUMN archived; \
             PRAGMA user_version = 1",
        );
    }
    let mut agent = home.start(&["--model", &home.script(json!([]))]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let (messages, sizes) = pages(&mut agent, &session, 50).await;
    assert_eq!((messages.len(), sizes), (12, vec![8, 4]));
    agent.finish().await;
}
