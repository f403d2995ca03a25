//! The date and the state of the repository are stored with the first message.

use serde_json::json;

use super::bodies;
use harness::Home;
use harness::provider::Exchange;
use harness::provider::session;
use harness::provider::session::{connect, conversation};
use harness::wires::WIRES;

#[tokio::test]
async fn environment_is_in_first_message_and_does_not_change() {
    let wire = &WIRES[0];
    let answers = vec![Exchange::events(wire.plain), Exchange::events(wire.plain), Exchange::events(wire.plain)];
    let (home, provider, _) = session::home(wire, answers).await;
    home.put(".git/HEAD", "ref: refs/heads/first\n");
    home.put("AGENTS.md", "Always whistle.\n");
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, "one").await;
    home.put(".git/HEAD", "ref: refs/heads/second\n");
    home.put("AGENTS.md", "Never whistle.\n");
    agent.turn(&session, "two").await;
    agent.finish().await;
    home.put("AGENTS.md", "Always whistle.\n");
    let mut agent = connect(&home).await;
    agent.load(&home, &session).await;
    agent.turn(&session, "three").await;
    agent.finish().await;

    let received = provider.finish().await;
    let first = conversation(&received[0])[0].to_string();
    assert!(first.contains("Date: 20") && first.contains("branch first"), "{first}");
    for later in &received[1..] {
        assert_eq!(later.body["system"], received[0].body["system"]);
        assert!(later.text.contains("branch first") && !later.text.contains("branch second"), "{}", later.text);
        assert_eq!(later.text.matches("<environment>").count(), 1, "{}", later.text);
    }
}

#[tokio::test]
async fn state_of_repository_is_described() {
    type Prepare = fn(&Home);
    let cases: &[(&str, Prepare)] = &[
        ("not a repository", |_| {}),
        ("branch feature/x", |home| drop(home.put(".git/HEAD", "ref: refs/heads/feature/x\n"))),
        ("detached at 0123456789ab", |home| drop(home.put(".git/HEAD", "0123456789abcdef0123456789abcdef01234567\n"))),
        ("branch of-worktree", |home| {
            home.put("../main/.git/worktrees/w/HEAD", "ref: refs/heads/of-worktree\n");
            home.put(".git", "gitdir: ../main/.git/worktrees/w\n");
        }),
    ];
    for (expected, prepare) in cases {
        let home = Home::new();
        prepare(&home);
        let (agent, session) = {
            let (mut agent, session) = home.session(json!([{"text": "hi", "expect": *expected}]), &[]).await;
            agent.turn(&session, "go").await;
            (agent, session)
        };
        agent.finish().await;
        let log = home.log(&session).await;
        let user = bodies(&log, "message.completed").into_iter().find(|body| body["role"] == "user").unwrap().clone();
        assert!(user["context"][0]["text"].as_str().unwrap().contains(expected), "{user}");
        assert_eq!(user["parts"], json!([{"type": "text", "text": "go"}]));
    }
}

#[tokio::test]
async fn retry_of_first_turn_has_environment_once() {
    let home = Home::new();
    let server = home.serve_script(json!([{"text": "one"}, {"text": "two", "expect": "<environment>"}]), &[]).await;
    let session = server.new_session(&home).await;
    server.prompt(&session, "go").expect(200).await;
    let turns = server.get(&format!("/v1/sessions/{session}/turns")).expect(200).await;
    let turn = turns["turns"][0]["turnId"].as_str().unwrap().to_string();
    server.post(&format!("/v1/sessions/{session}/turns/{turn}/retry"), &json!({})).expect(202).await;
    server.follow(&session).events().await.until("turn.completed").await;
    server.stop().await;
}
