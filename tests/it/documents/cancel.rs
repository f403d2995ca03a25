//! The end of a call, or of nuncio, ends the process that reads its document.

use serde_json::json;

use super::hostile_pages::slow;
use super::{PAGE, fetch, home};
use harness::{bounded, gone, marked, poll};

/// Returns the process that reads a document: a child of the helper of this nuncio, which is
/// `nuncio`.
fn reader(marker: &str, nuncio: u32) -> Option<u32> {
    let parent = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<u32>().ok()
    };
    marked(marker).into_iter().find(|pid| parent(*pid).is_some_and(|helper| parent(helper) == Some(nuncio)))
}

#[tokio::test]
async fn cancel_ends_the_reader() {
    let (home, site) = home().await;
    site.page("/slow", PAGE, slow());
    let steps = json!([fetch(&site, "/slow"), {"text": "after"}]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let id = agent.prompt(&session, "go").await;
    poll("a reader", || reader(&agent.marker, agent.pid).is_some()).await;
    agent.notify("session/cancel", json!({"sessionId": session})).await;
    let answer = bounded("the answer", agent.answer(&id)).await.unwrap();
    assert_eq!(answer["stopReason"], "cancelled");
    poll("the end of the reader", || reader(&agent.marker, agent.pid).is_none()).await;
    agent.finish().await;
}

#[tokio::test]
async fn end_of_nuncio_ends_the_reader() {
    let (home, site) = home().await;
    site.page("/slow", PAGE, slow());
    let (mut agent, session) = home.session(json!([fetch(&site, "/slow")]), &["--mode", "auto"]).await;
    agent.prompt(&session, "go").await;
    poll("a reader", || reader(&agent.marker, agent.pid).is_some()).await;
    let marker = agent.marker.clone();
    agent.kill().await;
    gone(&marker).await;
}

/// A helper that dies takes its readers along, and the next document has a new one.
#[tokio::test]
async fn end_of_the_helper_is_an_error_of_the_call() {
    needs_linux!("signal at the end of a parent");
    let (home, site) = home().await;
    site.page("/slow", PAGE, slow());
    site.page("/next", PAGE, "<p>next page");
    let steps = json!([fetch(&site, "/slow"), {"text": "after"}, fetch(&site, "/next"), {"text": "after"}]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    let id = agent.prompt(&session, "go").await;
    poll("a reader", || reader(&agent.marker, agent.pid).is_some()).await;
    let left = reader(&agent.marker, agent.pid).unwrap();
    let helper = marked(&agent.marker).into_iter().find(|pid| *pid != agent.pid && *pid != left).unwrap();
    let helper = rustix::process::Pid::from_raw(helper as i32).unwrap();
    rustix::process::kill_process(helper, rustix::process::Signal::KILL).unwrap();
    agent.answer(&id).await.unwrap();
    let updates = agent.updates(&session);
    let call = harness::tool(&updates, 0);
    assert!(call["status"] == "failed" && call["content"].to_string().contains("its reader did not report"), "{call}");
    let (status, text) = super::result(&mut agent, &session).await;
    assert!(status == "completed" && text.contains("next page"), "{status} {text}");
    agent.finish().await;
}
