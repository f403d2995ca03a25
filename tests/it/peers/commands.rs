//! The commands of `nuncio run` and `nuncio sessions` on a session that another process owns.

use serde_json::{Value, json};

use super::peer::{Kind, Peer};
use super::{assert_complete, endless, home, kind, kinds, message, prompt, release, says, waits};
use harness::steps::asks;
use harness::{CommandResult, Home, RunningCommand};

const OWNERS: [Kind; 3] = [Kind::Stdio, Kind::Rest, Kind::Run];

/// Flags that apply to the process of the command, which therefore takes an idle session.
const TAKES: &[&str] = &["--sandbox", "off"];

/// A session of a process, and a model for the commands that take the session.
async fn owned(owner: Kind, steps: Value, flags: &[&str]) -> (Home, Peer, String) {
    let home = home();
    let mut owner = Peer::start(owner, &home, &home.script(steps), flags).await;
    let session = owner.new_session(&home).await;
    let model = home.script(json!([says("from run"), endless()]));
    home.config(&format!("model = \"{model}\"\n"));
    (home, owner, session)
}

async fn run(home: &Home, session: &str, flags: &[&str]) -> CommandResult {
    home.run(&[&["run", "--resume", session, "go"], flags].concat(), "").await
}

fn check(ran: &CommandResult, code: i32, stdout: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (code, stdout), "{ran:#?}");
}

/// The owner runs the prompts of the command, with its own model and settings.
#[tokio::test]
async fn run_resumes_and_continues_a_session_of_another_process() {
    for owner in OWNERS {
        let steps = json!([says("base"), says("one"), says("two"), says("three")]);
        let (home, owner, session) = owned(owner, steps, &[]).await;
        check(&run(&home, &session, &[]).await, 0, "one\n");
        check(&home.run(&["run", "--continue", "go"], "").await, 0, "two\n");
        let ran = run(&home, &session, &["--json"]).await;
        assert_eq!(ran.code, 0, "{ran:?}");
        let events = ran.lines();
        let kinds = kinds(&events);
        assert_eq!((kinds.first(), kinds.last()), (Some(&"turn.started"), Some(&"turn.completed")), "{kinds:?}");
        owner.finish().await;
        let log = home.log(&session).await;
        assert_eq!(log[log.len() - events.len()..], events, "what is printed is what is kept");
        assert_complete(&log);
    }
}

/// A `run` with flags of its process takes the session, and gives it back when it ends: the first
/// owner prompts it again at once.
#[tokio::test]
async fn run_with_flags_of_its_process_takes_an_idle_session() {
    for owner in [Kind::Stdio, Kind::Rest, Kind::Rpc] {
        let (home, mut owner, session) = owned(owner, json!([says("base"), says("again"), says("again")]), &[]).await;
        for _ in 0..2 {
            check(&run(&home, &session, TAKES).await, 0, "from run\n");
            assert_eq!(owner.call("session/prompt", prompt(&session, "back")).await["stopReason"], "end_turn");
        }
        owner.finish().await;
        let log = home.log(&session).await;
        let said = log.iter().filter(|event| event["body"]["role"] == "assistant" && kind(event) == "message.completed");
        let said: Vec<&str> = said.map(|event| event["body"]["parts"][0]["text"].as_str().unwrap()).collect();
        assert_eq!(said, ["base", "from run", "again", "from run", "again"]);
        assert_complete(&log);
    }
}

/// SIGINT to `run` cancels its turn, and leaves the session usable.
#[tokio::test]
async fn interrupted_run_cancels_its_turn() {
    for owner in OWNERS {
        for (flags, after) in [(&[][..], "after\n"), (TAKES, "from run\n")] {
            let steps = json!([says("base"), says("one"), endless(), says("after")]);
            let (home, owner, session) = owned(owner, steps, &[]).await;
            let arguments = [&["run", "--resume", &session, "--json", "-p", "go", "-p", "long"], flags].concat();
            let mut command = RunningCommand::start(&home, &arguments);
            command.end_input();
            command.until("turn.completed").await;
            command.until("message.delta").await;
            interrupt(&command);
            command.until("turn.cancelled").await;
            assert_eq!(command.end().await, 130);
            check(&run(&home, &session, flags).await, 0, after);
            owner.finish().await;
            assert_complete(&home.log(&session).await);
        }
    }
}

fn interrupt(command: &RunningCommand) {
    use rustix::process::{Pid, Signal, kill_process};
    kill_process(Pid::from_raw(command.pid as i32).unwrap(), Signal::INT).unwrap();
}

/// A session whose turn runs stays with its owner: the prompt of `run` waits for the turn. Flags
/// that apply only to the process of `run` make it an error.
#[tokio::test]
async fn run_does_not_take_a_busy_session() {
    for owner in OWNERS {
        let steps = json!([says("base"), waits(), says("after"), says("waited")]);
        let (home, owner, session) = owned(owner, steps, &["--mode", "auto"]).await;
        let mut server = Peer::start(Kind::Rest, &home, &home.script(json!([])), &[]).await;
        let begun = server.call("_nuncio/session/message", message(&session, "go")).await;
        server.until(&session, "running", |_| home.get("started").is_some()).await;
        let refused = run(&home, &session, TAKES).await;
        assert!(refused.code == 1 && refused.stderr.contains("in use in another process"), "{refused:?}");
        let mut command = RunningCommand::start(&home, &["run", "--resume", &session, "--json", "from the command"]);
        command.end_input();
        release(&home).await;
        while command.until("turn.completed").await["turnId"] == begun["turnId"] {}
        assert_eq!(command.end().await, 0);
        server.finish().await;
        owner.finish().await;
        let log = home.log(&session).await;
        assert_complete(&log);
        let ends: Vec<&str> = log.iter().filter(|event| super::ends_turn(event)).map(super::kind).collect();
        assert_eq!(ends, ["turn.completed"; 3]);
    }
}

#[tokio::test]
async fn show_follow_prints_the_events_of_another_process() {
    for owner in OWNERS {
        let (home, owner, session) = owned(owner, json!([says("base"), says("one")]), &[]).await;
        let mut follow = RunningCommand::start(&home, &["sessions", "show", "--follow", "--json", &session]);
        follow.until("turn.completed").await;
        check(&run(&home, &session, &[]).await, 0, "one\n");
        follow.until("turn.completed").await;
        assert_eq!(follow.events, home.log(&session).await);
        interrupt(&follow);
        follow.end().await;
        owner.finish().await;
    }
}

#[tokio::test]
async fn sessions_cancel_ends_the_turn_of_another_process() {
    for owner in OWNERS {
        let (home, owner, session) = owned(owner, json!([says("base"), waits(), says("after")]), &["--mode", "auto"]).await;
        let mut server = Peer::start(Kind::Rest, &home, &home.script(json!([])), &[]).await;
        server.call("_nuncio/session/message", message(&session, "go")).await;
        server.until(&session, "busy", |view| view["status"] == "busy").await;
        let ran = home.run(&["sessions", "cancel", &session], "").await;
        assert_eq!(ran.code, 0, "{ran:?}");
        let view = server.until(&session, "idle", |view| view["status"] == "idle").await;
        assert_eq!(view["lastTurn"]["status"], "cancelled", "{view}");
        // A cancel of an idle session has no effect, as in the API.
        assert_eq!(home.run(&["sessions", "cancel", &session], "").await.code, 0);
        server.finish().await;
        owner.finish().await;
        assert_complete(&home.log(&session).await);
    }
    let home = Home::new();
    let ran = home.run(&["sessions", "cancel", "sess_none"], "").await;
    assert!(ran.code == 2 && ran.stderr.contains("sess_none"), "{ran:?}");
}

#[tokio::test]
async fn sessions_answer_resolves_the_question_of_another_process() {
    for owner in OWNERS {
        let steps = json!([says("base"), asks(), says("allowed"), asks(), says("rejected")]);
        let (home, owner, session) = owned(owner, steps, &[]).await;
        let mut server = Peer::start(Kind::Rest, &home, &home.script(json!([])), &[]).await;
        server.attend(&home, &session).await;
        for option in ["allow_once", "reject_once"] {
            let ran = home.run(&["sessions", "answer", &session, option], "").await;
            assert!(ran.code != 0, "nothing is asked: {ran:?}");
            server.call("_nuncio/session/message", message(&session, "go")).await;
            server.asked(&session).await;
            let ran = home.run(&["sessions", "answer", &session, "nonsense"], "").await;
            assert!(ran.code == 2 && ran.stderr.contains("allow_once"), "the offered options are named: {ran:?}");
            let ran = home.run(&["sessions", "answer", &session, option], "").await;
            assert_eq!(ran.code, 0, "{ran:?}");
            server.until(&session, "idle", |view| view["status"] == "idle").await;
        }
        server.finish().await;
        owner.finish().await;
        let log = home.log(&session).await;
        let resolved = log.iter().map(|event| &event["body"]).filter(|body| body["type"] == "permission.resolved");
        let outcomes: Vec<(&str, &str)> =
            resolved.map(|body| (body["outcome"].as_str().unwrap(), body["by"].as_str().unwrap())).collect();
        assert_eq!(outcomes, [("allow_once", "terminal"), ("reject_once", "terminal")]);
        assert_complete(&log);
    }
}

/// A command that ends does not close the session of the owner or its turn.
#[tokio::test]
async fn commands_leave_the_session_to_its_owner() {
    for owner in OWNERS {
        let (home, owner, session) = owned(owner, json!([says("base"), waits(), says("after")]), &["--mode", "auto"]).await;
        let mut server = Peer::start(Kind::Rest, &home, &home.script(json!([says("taken over")])), &[]).await;
        server.call("_nuncio/session/message", message(&session, "go")).await;
        for arguments in [&["sessions", "list"][..], &["sessions", "show", &session], &["sessions", "export", &session]] {
            assert_eq!(home.run(arguments, "").await.code, 0, "{arguments:?}");
        }
        release(&home).await;
        server.until(&session, "idle", |view| view["status"] == "idle").await;
        server.finish().await;
        owner.finish().await;
        let log = home.log(&session).await;
        assert!(log.iter().any(|event| event["body"]["parts"][0]["text"] == "after"), "{log:#?}");
        assert_complete(&log);
    }
}

/// The prompts of two commands wait for the turn of a `run`, longer than a search for an owner may
/// take. When it ends, one of them takes the session, and the other waits again.
#[tokio::test]
async fn prompts_that_wait_in_a_run_are_not_lost_when_it_ends() {
    let home = home();
    let steps = json!([waits(), {"text": "first", "chunk_chars": 1000, "delay_ms": 2500}]);
    let mut first = RunningCommand::start(&home, &["run", "--model", &home.script(steps), "--mode", "auto", "--json", "go"]);
    first.end_input();
    let session = first.until("turn.started").await["sessionId"].as_str().unwrap().to_owned();
    let model = home.script(json!([{"text": "next", "chunk_chars": 1000, "delay_ms": 2500}]));
    home.config(&format!("model = \"{model}\"\n"));
    let waiting = ["second", "third"].map(|text| RunningCommand::start(&home, &["run", "--resume", &session, "--json", text]));
    release(&home).await;
    assert_eq!(first.end().await, 0);
    for mut command in waiting {
        command.end_input();
        assert_eq!(command.end().await, 0);
    }
    let log = home.log(&session).await;
    assert_complete(&log);
    let ends: Vec<&str> = log.iter().filter(|event| super::ends_turn(event)).map(super::kind).collect();
    assert_eq!(ends, ["turn.completed"; 3]);
}
