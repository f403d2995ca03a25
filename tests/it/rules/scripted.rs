//! Requests to scripted models are judged by the rules of the providers.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use harness::Home;
use harness::rules::recognize;
use serde_json::{Value, json};

#[tokio::test]
async fn requests_to_scripted_models_are_written_in_each_dialect() {
    if std::env::var_os("NUNCIO_TEST_BINARY").is_some() {
        eprintln!("skipped: a released program does not write its requests");
        return;
    }
    let home = Home::new();
    let (mut agent, session) = home.session(json!([{"tool_calls": [{"name": "list"}]}, {"text": "so it is"}]), &[]).await;
    agent.turn(&session, "what is here").await;
    agent.finish().await;
    let requests: Vec<Value> = home.requests().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let dialects: BTreeSet<&str> = requests
        .iter()
        .map(|request| recognize(request["path"].as_str().unwrap(), &request["body"]).expect("a dialect").0.as_str())
        .collect();
    assert_eq!(dialects.len(), 6, "{dialects:?}");
    let has_result = |request: &&Value| request.to_string().contains("what is here") && request.to_string().contains("list");
    assert_eq!(requests.iter().filter(has_result).count(), requests.len());
}

#[test]
fn refused_request_to_a_scripted_model_fails_its_test() {
    let body = json!({"model": "claude-sonnet-5", "max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "text", "text": " "}]}]});
    let line = format!("{}\n", json!({"provider": "anthropic", "path": "/v1/messages", "body": body}));
    for (lax, refused) in [(&[][..], true), (&[17], false)] {
        let home = Home::new();
        let file = home.variables().into_iter().find(|(name, _)| *name == "NUNCIO_TEST_REQUESTS").expect("a file").1;
        std::fs::write(file, &line).unwrap();
        home.lax(lax, "the text is blank");
        let ended = catch_unwind(AssertUnwindSafe(|| drop(home)));
        let words = ended.err().map(|panic| panic.downcast_ref::<String>().expect("a message").clone());
        assert_eq!(words.as_ref().is_some_and(|words| words.contains("rule 17, messages.0.content.0")), refused, "{words:?}");
    }
}
