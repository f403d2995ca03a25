//! How turns of hosted agents end: failures, crashes, cancels, and what is left after them.

use serde_json::{Value, json};

use super::{AGENT, bodies, home, hosted, session, setting, trust};
use harness::{Home, gone, poll, text, tool};

/// Runs a prompt whose turn fails. Returns the error's code, message and hint.
async fn failure(flags: &[&str], prompt: &str) -> (String, String, String) {
    let home = home(flags).await;
    let (mut agent, session) = session(&home, &[]).await;
    let failed = agent.failure(&session, prompt).await;
    agent.finish().await;
    let error = bodies(&home, &session, &["turn.failed"]).await.remove(0);
    assert_eq!(error["code"], failed["data"]["code"]);
    let field = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    (field("code"), field("message"), field("hint"))
}

async fn check(flags: &[&str], prompt: &str, code: &str, message: &str, hint: &str) {
    let (found_code, found, found_hint) = failure(flags, prompt).await;
    assert_eq!((found_code.as_str(), found.as_str()), (code, message), "{flags:?} {prompt}");
    assert!(found_hint.contains(hint), "{found_hint}");
}

#[tokio::test]
async fn failures_have_a_cause() {
    let unavailable = "agent_unavailable";
    check(
        &["broken"],
        "say",
        unavailable,
        "agent other: its process ended with exit code 1: config: approval_policy is no longer supported",
        "",
    )
    .await;
    check(&["old"], "say", unavailable, "agent other: it speaks version 0 of ACP, nuncio speaks version 1", "").await;
    check(&["login"], "say", "unauthenticated", "agent other: session/new: Authentication required", "API key").await;
    let login = "agent other: session/prompt: Authentication required: You are not logged in. Run: other login";
    check(&[], "login", "unauthenticated", login, "API key").await;
    check(&[], "error", "model_error", "agent other: session/prompt: Internal error: quota exceeded", "").await;
    check(&[], "crash", unavailable, "agent other: its process ended with exit code 3: out of memory", "").await;
}

#[tokio::test]
async fn end_without_an_answer_is_a_failure() {
    check(&[], "silent", "model_error", "agent other: the model said 400", "").await;
}

#[tokio::test]
async fn program_that_does_not_exist_is_named() {
    let home = Home::new();
    home.config("[agents]\nallowed = [\"other\"]\n[agents.other]\nkind = \"acp\"\ncommand = [\"no-such-program\"]\n");
    trust(&home).await;
    let (mut agent, session) = session(&home, &[]).await;
    let failed = agent.failure(&session, "x").await;
    let message =
        "agent other: its process ended with exit code 127: nuncio: no-such-program: No such file or directory (os error 2)";
    assert_eq!((&failed["data"]["code"], &failed["message"]), (&json!("agent_unavailable"), &json!(message)));
    agent.finish().await;
}

#[tokio::test]
async fn session_continues_after_a_crash() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.failure(&session, "crash").await;
    let (stop, updates) = agent.turn(&session, "history").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "loaded foreign-1 / history"));
    agent.finish().await;
}

#[tokio::test]
async fn lost_session_is_not_replaced() {
    for (flags, why) in [(["forgets"], "agent other: session/load: Resource not found"), (["no-load"], "it cannot load sessions")] {
        let home = home(&flags).await;
        let (mut agent, session) = session(&home, &[]).await;
        agent.turn(&session, "say").await;
        agent.failure(&session, "crash").await;
        let lost = agent.failure(&session, "say").await;
        assert_eq!(lost["data"]["hint"], "create a new session");
        assert!(lost["message"].as_str().unwrap().contains(&format!("the session cannot be resumed: {why}")), "{lost}");
        agent.finish().await;
    }
}

/// The processes with `marker` in their environment and `word` in their command line.
pub fn running(marker: &str, word: &str) -> Vec<u32> {
    let line = |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let processes = harness::marked(marker).into_iter();
    processes.filter(|pid| String::from_utf8_lossy(&line(pid)).replace('\0', " ").contains(word)).collect()
}

/// Waits until this number of processes runs.
pub async fn until_running(marker: &str, word: &str, count: usize) {
    poll("the processes", || running(marker, word).len() == count).await;
}

/// Cancels the turn of `prompt` after `word` of its text, or after its tool call. Returns the tool
/// call of the turn.
async fn cancelled(flags: &[&str], prompt: &str, update: &str) -> Value {
    let home = home(flags).await;
    let (mut agent, session) = session(&home, &[]).await;
    let id = agent.prompt(&session, prompt).await;
    agent.until_update(update).await;
    agent.cancel(&session, &id).await;
    let call = tool(&agent.updates(&session), 0);
    let (stop, updates) = agent.turn(&session, "say").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "Hello, world"));
    agent.finish().await;
    call
}

#[tokio::test]
async fn cancelled_turn_ends_and_the_next_one_works() {
    assert_eq!(cancelled(&[], "wait", "tool_call").await["status"], "failed");
}

#[tokio::test]
async fn agent_that_ignores_a_cancel_is_ended() {
    let home = home(&["deaf"]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let id = agent.prompt(&session, "hang").await;
    agent.until_update("agent_message_chunk").await;
    agent.cancel(&session, &id).await;
    // The agent was started again.
    let (_, updates) = agent.turn(&session, "history").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "loaded foreign-1 / history");
    agent.finish().await;
}

/// The turn takes longer to end than nuncio waits for turns at the end of its input.
#[tokio::test]
async fn agent_that_ignores_the_end_of_its_session_is_ended_before_nuncio_exits() {
    let home = home(&["deaf"]).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.prompt(&session, "hang").await;
    agent.until_update("agent_message_chunk").await;
    agent.finish().await;
}

#[tokio::test]
async fn processes_of_a_cancelled_turn_are_ended() {
    // An agent may answer to the cancel with an error.
    for flags in [&[][..], &["errs"]] {
        let home = home(flags).await;
        let (mut agent, session) = session(&home, &[]).await;
        let id = agent.prompt(&session, "fork").await;
        agent.until_update("agent_message_chunk").await;
        until_running(&agent.marker, "sleep 600", 1).await;
        agent.cancel(&session, &id).await;
        until_running(&agent.marker, "sleep 600", 0).await;
        let (_, updates) = agent.turn(&session, "history").await;
        assert_eq!(text(&updates, "agent_message_chunk"), "loaded foreign-1 / history");
        agent.finish().await;
    }
}

#[tokio::test]
async fn agent_that_cannot_load_sessions_is_not_ended_after_a_cancel() {
    cancelled(&["no-load"], "fork", "agent_message_chunk").await;
}

#[tokio::test]
async fn start_that_takes_long_can_be_cancelled() {
    let home = home(&["unready", "deaf"]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let id = agent.prompt(&session, "x").await;
    // The agent has received the first request, and never answers.
    home.appears("unready").await;
    assert_eq!(running(&agent.marker, AGENT).len(), 1);
    agent.cancel(&session, &id).await;
    until_running(&agent.marker, AGENT, 0).await;
    agent.finish().await;
}

#[tokio::test]
async fn no_process_survives_the_session() {
    let home = home(&["deaf"]).await;
    let (mut agent, first) = session(&home, &[]).await;
    let second = hosted(&mut agent, &home, "other").await;
    let id = agent.prompt(&first, "fork").await;
    agent.until_update("agent_message_chunk").await;
    agent.cancel(&first, &id).await;
    agent.prompt(&second, "fork").await;
    agent.until_update("agent_message_chunk").await;
    let marker = agent.marker.clone();
    agent.kill().await;
    gone(&marker).await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.load(&home, &second).await;
    agent.finish().await;
    let interrupted = bodies(&home, &second, &["turn.interrupted"]).await;
    assert_eq!(interrupted.len(), 1);
}

#[tokio::test]
async fn idle_agent_is_ended_and_resumed() {
    let home = Home::new();
    home.config(&(setting("other", &[]) + "idle_ttl_s = 0\n"));
    trust(&home).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.turn(&session, "say").await;
    // The process ends at once, or the next turn comes first.
    until_running(&agent.marker, AGENT, 0).await;
    let (_, updates) = agent.turn(&session, "history").await;
    assert_eq!(text(&updates, "agent_message_chunk"), "loaded foreign-1 / history");
    agent.finish().await;
}
