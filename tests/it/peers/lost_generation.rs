//! Calls to a session whose owner lost its generation, as if another process had taken the session.

use serde_json::{Value, json};

use super::{assert_complete, editor, endless, kind, message};
use harness::{Agent, Home};

/// Makes the store refuse the events of the session's owner.
fn lose(home: &Home, session: &str) {
    let lost = home.sql(&format!("UPDATE sessions SET generation = generation + 1 WHERE id = '{session}' RETURNING id"));
    assert_eq!(lost, [session]);
}

/// A session of an editor with a queued message that starts no turn, another editor that has loaded
/// it, and the id of the message. The owner's next append is lost.
async fn lost_session() -> (Home, Agent, Agent, String, Value) {
    let home = Home::new();
    let model = home.script(json!([endless()]));
    let mut owner = editor(&home, &model, &[]).await;
    let session = owner.new_session(&home).await;
    let mut other = editor(&home, &model, &[]).await;
    other.load(&home, &session).await;
    let turn = owner.prompt(&session, "go").await;
    owner.until_update("agent_message_chunk").await;
    let mut queued = owner.call("_nuncio/session/message", message(&session, "queued")).await;
    owner.notify("session/cancel", json!({"sessionId": session})).await;
    assert_eq!(owner.answer(&turn).await.unwrap()["stopReason"], "cancelled");
    lose(&home, &session);
    (home, owner, other, session, queued["messageId"].take())
}

#[tokio::test]
async fn changes_of_an_idle_session_are_made_after_its_generation_is_lost() {
    let methods = [
        ("_nuncio/session/queue/edit", json!({"delivery": "steer"}), "message.edited"),
        ("_nuncio/session/queue/remove", json!({}), "message.removed"),
        ("_nuncio/session/message", json!({"parts": [{"type": "text", "text": "note"}], "autoRun": false}), "message.completed"),
    ];
    for (method, params, recorded) in methods {
        for forwarded in [true, false] {
            let (home, mut owner, mut other, session, queued) = lost_session().await;
            let mut params = params.clone();
            params["sessionId"] = json!(session);
            if method.contains("queue") {
                params["messageId"] = queued;
            }
            let caller = if forwarded { &mut other } else { &mut owner };
            let answer = caller.request(method, params).await;
            assert!(answer.is_ok(), "{method}, forwarded: {forwarded}: {answer:?}");
            other.finish().await;
            owner.finish().await;
            let log = home.log(&session).await;
            assert_complete(&log);
            let outside = log.iter().filter(|event| kind(event) == recorded && event.get("turnId").is_none());
            assert_eq!(outside.count(), 1, "{method}, forwarded: {forwarded}");
        }
    }
}

/// A prompt of REST is answered when its turn has ended in the log.
#[tokio::test]
async fn turn_ends_in_the_log_after_its_generation_is_lost() {
    for forwarded in [true, false] {
        let home = Home::new();
        let model = home.script(json!([endless()]));
        let mut owner = editor(&home, &model, &[]).await;
        let server = home.serve(&["--model", &model]).await;
        let session = if forwarded { owner.new_session(&home).await } else { server.new_session(&home).await };
        owner.load(&home, &session).await;
        let request = server.prompt(&session, "go");
        let answer = tokio::spawn(async move { request.send().await });
        owner.until_update("agent_message_chunk").await;
        lose(&home, &session);
        let answer = answer.await.unwrap();
        assert_eq!(answer.status, 409, "forwarded: {forwarded}: {answer:?}");
        assert!(answer.body.contains("taken over"), "forwarded: {forwarded}: {answer:?}");
        owner.finish().await;
        server.stop().await;
        assert_complete(&home.log(&session).await);
    }
}
