//! Permission requests of OpenCode's subagents, whose sessions are below that of the turn.

use super::opencode::{home, terminal_client, turns};
use super::session;
use harness::Reply;

#[tokio::test]
async fn subagents_of_the_session_ask_for_permission() {
    let home = home(&[], "scope = \"workspace\"\n").await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    // How nuncio learns of the subagent's session, and the number of questions.
    for (how, asked) in
        [("created", 1), ("resumed", 1), ("nested", 1), ("updated", 1), ("task", 1), ("unseen", 1), ("resumed", 1), ("stranger", 0)]
    {
        let before = agent.questions();
        agent.replies = [Reply::Pick("allow_once")].into_iter().collect();
        agent.otherwise = Reply::Error;
        let file = format!("{how}-{before}");
        assert_eq!(agent.reply(&session, &format!("subagent {how} touch {file}")).await, "done", "{how}");
        assert_eq!((agent.questions() - before, home.get(&file).is_some()), (asked, asked == 1), "{how}");
    }
    agent.finish().await;
}

#[tokio::test]
async fn subagents_of_a_turn_of_another_client_ask_for_permission() {
    let home = home(&[], "").await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.turn(&session, "say it").await;
    for (how, count) in [("created", 2), ("resumed", 3), ("nested", 4)] {
        agent.replies = [Reply::Pick("allow_once")].into_iter().collect();
        terminal_client(&home, &session, &format!("subagent {how} touch {how}")).await;
        turns(&mut agent, &session, count).await;
        assert!(home.get(how).is_some(), "{how}");
    }
    agent.finish().await;
}
