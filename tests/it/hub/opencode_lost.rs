//! Sessions that a server of OpenCode no longer has.

use serde_json::json;

use super::opencode::home;
use super::{bodies, session};

#[tokio::test]
async fn session_that_the_server_lost_is_not_begun_anew() {
    let home = home(&["forgets"], "").await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.failure(&session, "crash").await;
    let lost = agent.failure(&session, "say").await;
    assert_eq!(
        (&lost["data"]["code"], &lost["data"]["hint"]),
        (&json!("agent_session_lost"), &json!("create a new session")),
        "{lost}"
    );
    assert!(lost["message"].as_str().unwrap().contains("the session cannot be resumed"), "{lost}");
    agent.finish().await;
}

/// A session that another client deletes while the server runs is lost for every later prompt, and
/// stays readable.
#[tokio::test]
async fn session_that_was_deleted_in_the_server_is_lost() {
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &[]).await;
    assert_eq!(agent.turn(&session, "delete it").await.0, "end_turn");
    for prompt in ["say", "say again", "run touch made"] {
        let lost = agent.failure(&session, prompt).await;
        assert_eq!(
            (&lost["data"]["code"], &lost["data"]["hint"]),
            (&json!("agent_session_lost"), &json!("create a new session")),
            "{lost}"
        );
    }
    let view = agent.call("_nuncio/session/get", json!({"sessionId": session})).await;
    assert_eq!(view["status"], "idle", "{view}");
    agent.finish().await;
    assert!(bodies(&home, &session, &["message.completed"]).await.iter().any(|body| body.to_string().contains("deleted")));
}
