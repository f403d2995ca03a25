//! Each hostile page is the text of its call, or an error that says why there is none. The session
//! and its neighbours go on.

use serde_json::{Value, json};

use super::hostile_pages::{Outcome, SLOW, WORD, large, nested};
use super::{PAGE, fetch, home, result};

/// Fetches each page in a turn of its own.
async fn check(cases: Vec<(String, String, Outcome)>) {
    let (home, site) = home().await;
    let mut steps: Vec<Value> = Vec::new();
    for (index, (_, page, _)) in cases.iter().enumerate() {
        let path = format!("/{index}");
        site.page(&path, PAGE, page);
        steps.extend([fetch(&site, &path), json!({"text": "read"})]);
    }
    let (mut agent, session) = home.session(json!(steps), &["--mode", "auto"]).await;
    let neighbour = agent.new_session(&home).await;
    let mut wrong = Vec::new();
    for (name, _, outcome) in &cases {
        let (status, text) = result(&mut agent, &session).await;
        let failed = |reasons: &[&str]| {
            status == "failed" && text.contains(" could not be read: ") && reasons.iter().any(|reason| text.contains(reason))
        };
        let read = status == "completed" && text.contains(WORD);
        let holds = match outcome {
            Outcome::Text => read || failed(&[SLOW]),
            Outcome::Error(reasons) => failed(reasons) || failed(&[SLOW]),
        };
        if !holds {
            wrong.push(format!("{name}: {status} {}", &text[..text.floor_char_boundary(300)]));
        }
        agent.call("_nuncio/session/messages", json!({"sessionId": neighbour})).await;
    }
    assert_eq!(wrong, Vec::<String>::new());
    agent.finish().await;
}

#[tokio::test]
async fn deep_pages_end_only_their_call() {
    check(nested()).await;
}

#[tokio::test]
async fn pages_that_take_too_much_end_only_their_call() {
    check(large()).await;
}
