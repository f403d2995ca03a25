//! Sessions, turns and stores.

use nuncio::content::StopReason;
use nuncio::{Agent, Kind, Mode, Store};
use serde_json::json;

use super::{builder, events, temporary, types};
use harness::{Home, UNCONFINED, bounded, gone};

#[tokio::test]
async fn turn_is_a_stream_of_its_events() {
    let home = Home::new();
    let agent = builder(&home, json!([{"text": "first"}, {"text": "second"}])).build().await.unwrap();
    assert_eq!(temporary(&home).len(), 1);
    let session = agent.session().await.unwrap();
    let (mut one, mut two) = (session.prompt("one").await.unwrap(), session.prompt("two").await.unwrap());
    // The second prompt waits; its stream has only its own events.
    for (turn, text) in [(&mut two, "second"), (&mut one, "first")] {
        let all = events(turn).await.unwrap();
        let id = all[0].turn_id.clone();
        assert!(id.is_some() && all.iter().all(|event| event.turn_id == id));
        assert_eq!(all.iter().filter_map(|event| event.text()).collect::<String>(), text);
        let names = types(&all);
        assert_eq!((names[0].as_str(), names.last().unwrap().as_str()), ("turn.started", "turn.completed"));
        assert_eq!((turn.stop(), turn.usage().total() > 0), (Some(StopReason::EndTurn), true));
        assert!(turn.next().await.is_none());
    }
    drop((one, two, session));
    agent.close().await.unwrap();
    assert!(temporary(&home).is_empty());
}

#[tokio::test]
async fn cancelled_and_failed_turns_end_the_stream() {
    let home = Home::new();
    let slow = json!({"text": "word ".repeat(10_000), "chunk_chars": 5, "delay_ms": 20});
    let agent = builder(&home, json!([slow, {"text": "never", "error": {"status": 400, "times": 9}}])).build().await.unwrap();
    let session = agent.session().await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    let mut waiting = session.prompt("later").await.unwrap();
    while bounded("text", turn.next()).await.unwrap().unwrap().text().is_none() {}
    waiting.cancel();
    assert!(events(&mut waiting).await.unwrap().is_empty());
    assert_eq!(waiting.stop(), Some(StopReason::Cancelled));
    turn.cancel();
    assert_eq!(types(&events(&mut turn).await.unwrap()).last().unwrap(), "turn.cancelled");
    assert_eq!(turn.stop(), Some(StopReason::Cancelled));

    let mut failing = session.prompt("more").await.unwrap();
    let mut last = None;
    let error = loop {
        match bounded("the failure", failing.next()).await.unwrap() {
            Ok(event) => last = Some(event),
            Err(error) => break error,
        }
    };
    assert_eq!(types(&[last.unwrap()]), ["turn.failed"]);
    assert_eq!((error.kind, failing.stop()), (Kind::ModelError, None));
    assert!(failing.next().await.is_none());
    agent.close().await.unwrap();
}

#[tokio::test]
async fn session_continues_after_its_turn_and_its_agent_are_dropped() {
    let home = Home::new();
    let store = Store::Directory(home.data().join("own"));
    let steps = json!([{"text": "first"}]);
    let agent = builder(&home, steps).store(store.clone()).build().await.unwrap();
    let session = agent.session().await.unwrap();
    drop(session.prompt("one").await.unwrap());
    let mut all = session.events(0).await.unwrap();
    let mut names = Vec::new();
    while names.last().is_none_or(|name| name != "turn.completed") {
        names.extend(types(&[bounded("events", all.next()).await.unwrap()]));
    }
    let id = session.id().clone();
    drop((all, session));
    agent.close().await.unwrap();

    let agent = builder(&home, json!([{"text": "second", "expect": "first"}])).store(store).build().await.unwrap();
    assert_eq!(agent.resume(&"sess_none".into()).await.err().unwrap().kind, Kind::NotFound);
    let session = agent.resume(&id).await.unwrap();
    assert_eq!(session.prompt("two").await.unwrap().finish().await.unwrap(), "second");
    session.set_mode(Mode::Plan).await.unwrap();
    session.delete().await.unwrap();
    assert_eq!(agent.resume(&id).await.err().unwrap().kind, Kind::NotFound);
    agent.close().await.unwrap();
}

/// An agent that is closed while a command runs ends the command and its own processes.
#[tokio::test]
async fn closed_agent_leaves_no_process() {
    let home = Home::new();
    let command = "touch pid; sleep 600";
    let agent = builder(&home, json!([harness::steps::bash(command)])).settings(UNCONFINED).mode(Mode::Auto).build().await.unwrap();
    let turn = agent.session().await.unwrap().prompt("go").await.unwrap();
    home.appears("pid").await;
    drop(turn);
    bounded("the end", agent.close()).await.unwrap();
    gone(home.data().to_str().unwrap()).await;
}

#[tokio::test]
async fn invalid_settings_are_clear_errors() {
    let home = Home::new();
    let build = |settings: &str| builder(&home, json!([])).settings(settings).build();
    for (settings, fault) in [("modle = \"a/b\"", "modle"), ("model = [", "line 1")] {
        let error = build(settings).await.err().unwrap();
        assert!(error.message.starts_with("reading config given by the program: ") && error.message.contains(fault), "{error}");
    }
    let missing = Agent::builder(home.work().join("none")).helper(harness::program()).build().await;
    assert_eq!(missing.err().unwrap().kind, Kind::InvalidParams);
    let user = builder(&home, json!([])).store(Store::User).build().await;
    assert_eq!(user.err().unwrap().message, "the home directory is unknown");
    assert!(temporary(&home).is_empty());
}
