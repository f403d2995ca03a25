//! Many documents at once: few are read at the same time, and nothing of them stays.

use serde_json::{Value, json};

use super::hostile_pages::{SLOW, WORD, bomb, nested};
use super::{PAGE, home};
use harness::steps::{call, calls};
use harness::tool;

/// Returns the descriptors of a process.
fn descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

#[tokio::test]
async fn many_pages_at_once_are_read() {
    let (home, site) = home().await;
    let mut pages: Vec<String> = nested().into_iter().take(8).map(|(_, page, _)| page).collect();
    pages.extend((0..10).map(|number| format!("<h1>Page {number}</h1><p>{WORD}")));
    pages.extend([bomb(), bomb()]);
    let requests: Vec<Value> = pages
        .iter()
        .enumerate()
        .map(|(number, page)| {
            site.page(&format!("/{number}"), PAGE, page);
            call("fetch", json!({"url": site.url(&format!("/{number}"))}))
        })
        .collect();
    let steps = json!([calls(&requests[8..9]), {"text": "one"}, calls(&requests), {"text": "all"}]);
    let (mut agent, session) = home.session(steps, &["--mode", "auto"]).await;
    agent.turn(&session, "go").await;
    let before = descriptors(agent.pid);
    let (_, updates) = agent.turn(&session, "go").await;
    for number in 0..pages.len() {
        let call = tool(&updates, number);
        let content = call["content"].to_string();
        match number {
            0..8 => assert!(content.contains(WORD) || content.contains("could not be read"), "{number}: {call}"),
            8..18 => assert!(call["status"] == "completed" && content.contains(WORD), "{number}: {call}"),
            _ => assert!(content.contains("ran out of memory") || content.contains(SLOW), "{number}: {call}"),
        }
    }
    assert!(descriptors(agent.pid) <= before, "{before} {}", descriptors(agent.pid));
    agent.finish().await;
}
