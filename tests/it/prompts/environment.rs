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

/// The first message of `nuncio run` as the model gets it.
async fn first_message(prepare: impl Fn(&Home), flags: &[&str]) -> String {
    let wire = &WIRES[0];
    let (home, provider, _) = session::home(wire, vec![Exchange::events(wire.plain)]).await;
    prepare(&home);
    let ran = home.run(&[&["run", "the request"], flags].concat(), "").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    let received = provider.finish().await;
    conversation(&received[0])[0].to_string()
}

/// The mode and the sandbox of the commands are known before the first call.
#[tokio::test]
async fn first_message_names_the_mode_and_the_sandbox() {
    type Case = (&'static [&'static str], &'static str, &'static [&'static str], &'static [&'static str]);
    let cases: [Case; 6] = [
        (&[], "", &["Mode: ask. Changes and commands need the user's permission."], &["Commands write"]),
        (&["--mode", "accept-edits"], "", &["Mode: accept-edits. Changes of files in the directory need no"], &["Commands write"]),
        (&["--mode", "plan"], "", &["Mode: plan. You have read-only access"], &["Commands write", "mode: plan"]),
        (&["--auto"], "[sandbox]\nmode = \"off\"\n", &["Mode: auto. "], &["Commands write"]),
        (
            &["--auto"],
            "[sandbox]\nmode = \"workspace-write\"\n",
            &["Mode: auto. ", "Commands write only below /", ", $TMPDIR, without network."],
            &[],
        ),
        (&["--auto"], "[sandbox]\nmode = \"read-only\"\nnetwork = true\n", &["Commands write only below $TMPDIR."], &["network"]),
    ];
    for (flags, settings, expected, missing) in cases {
        let first = first_message(|home| home.config(&format!("{}{settings}", home.config_text())), flags).await;
        let (context, _) = first.split_once("the request").unwrap();
        for text in expected {
            assert!(context.contains(text), "{flags:?} {settings}: {text} in {context}");
        }
        for text in missing {
            assert!(!context.contains(text), "{flags:?} {settings}: {text} in {context}");
        }
    }
}

/// What describes the directory stands before what the user wrote, also outside of repositories.
#[tokio::test]
async fn description_of_the_directory_precedes_the_request() {
    for is_repository in [false, true] {
        let prepare = |home: &Home| {
            home.put("lib/parser.py", "def parse(text):\n    return text\n");
            if is_repository {
                home.put(".git/HEAD", "ref: refs/heads/main\n");
            }
        };
        let first = first_message(prepare, &[]).await;
        let places = ["<environment>", "</environment>", "<repository>", "lib/", "</repository>", "the request"];
        let found: Vec<usize> =
            places.iter().map(|place| first.find(place).unwrap_or_else(|| panic!("{place} in {first}"))).collect();
        assert!(found.is_sorted(), "{found:?} in {first}");
        assert_eq!(first.contains("Files by language:"), is_repository, "{first}");
    }
}

/// Only a session without a client that can answer is without one.
#[tokio::test]
async fn model_knows_whether_anybody_can_answer() {
    assert!(first_message(|_| {}, &[]).await.contains("No one can answer: decide"));
    let wire = &WIRES[0];
    let (home, provider, _) = session::home(wire, vec![Exchange::events(wire.plain), Exchange::events(wire.plain)]).await;
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    agent.turn(&session, "one").await;
    agent.finish().await;
    // The session goes on without a client.
    home.run(&["run", "--resume", &session, "two"], "").await;
    let received = provider.finish().await;
    let told = |at: usize| received[at].text.matches("No one can answer").count();
    assert_eq!([told(0), told(1)], [0, 1]);
}

/// A change of the mode is in the next message, and the messages before it are the same.
#[tokio::test]
async fn changed_mode_is_in_the_next_message() {
    let wire = &WIRES[0];
    let (home, provider, _) = session::home(wire, Vec::new()).await;
    provider.respond(|_| Exchange::events(wire.plain));
    let mut agent = connect(&home).await;
    let session = agent.new_session(&home).await;
    let changes = [
        ("ask", ""),
        ("auto", ">mode: auto. "),
        ("auto", ""),
        ("plan", ">mode: plan. "),
        ("ask", "no longer plan"),
        ("auto", ">mode: auto. "),
    ];
    for (mode, _) in changes {
        agent.call("session/set_mode", json!({"sessionId": session, "modeId": mode})).await;
        agent.turn(&session, "go").await;
    }
    agent.finish().await;
    let received = provider.finish().await;
    for (at, (mode, note)) in changes.iter().enumerate() {
        let messages = conversation(&received[at]);
        let last = messages.last().unwrap().to_string();
        let is_told = last.contains(">mode: ") || last.contains("no longer plan");
        assert_eq!((is_told, last.contains(note)), (!note.is_empty(), true), "{at} {mode}: {last}");
    }
}
