//! The processes of hosted agents: listed with their ports, recorded in the log, and ended by
//! clients.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::turn_ends::{running, until_running};
use super::{AGENT, PLAYED, allowed, bodies, home, home_of, hosted, opencode, played, session, trust};
use harness::{Agent, CommandResult, Home, Reply, Server, gone, pause, text};

const LIFE: &[&str] = &["agent.started", "agent.ended"];

/// The processes of the agent `other` in the list of agents.
async fn listed(agent: &mut Agent) -> Vec<Value> {
    let listed = agent.call("_nuncio/agent/list", json!({})).await;
    let other = listed["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "other").unwrap();
    other["processes"].as_array().unwrap().clone()
}

/// Runs `nuncio agents stop` with these arguments in another process.
async fn stop(home: &Home, arguments: &[&str]) -> CommandResult {
    home.run(&[&["agents", "stop"], arguments].concat(), "").await
}

fn line(home: &Home, process: &Value) -> String {
    format!("ended other, process {} in {}\n", process["pid"], home.work().display())
}

const NOTHING: &str = "no process of an agent was running\n";

#[tokio::test]
async fn list_has_the_processes_of_each_kind() {
    for (kind, script) in PLAYED {
        let home = home_of(kind, script, &[], "").await;
        let (mut agent, session) = session(&home, &[]).await;
        assert_eq!(listed(&mut agent).await, Vec::<Value>::new(), "{kind}");
        agent.turn(&session, "say").await;
        let processes = listed(&mut agent).await;
        let [process] = &processes[..] else { panic!("{kind}: {processes:?}") };
        assert!(running(&agent.marker, script).contains(&(process["pid"].as_u64().unwrap() as u32)), "{kind}: {process}");
        assert_eq!((&process["cwd"], &process["sessions"]), (&json!(home.work()), &json!(1)), "{kind}");
        assert!(process["startedAt"].as_str().unwrap().ends_with('Z'), "{kind}: {process}");
        assert_eq!(process["port"].is_u64(), kind == "opencode", "{kind}: {process}");
        agent.finish().await;
        let log = bodies(&home, &session, LIFE).await;
        let [started, ended] = &log[..] else { panic!("{kind}: {log:?}") };
        for field in ["agent", "pid", "version", "port"] {
            // Claude Code reports its version in its first turn.
            let expected = if (kind, field) == ("claude-code", "version") { &Value::Null } else { &process[field] };
            assert_eq!(&started[field], expected, "{kind}: {field}");
        }
        let server = home.serve(&[]).await;
        let listed = server.get("/v1/agents").expect(200).await;
        assert_eq!(listed["agents"][1].get("version"), process.get("version"), "{kind}: {listed}");
        server.stop().await;
        assert_eq!((&ended["pid"], &ended["reason"]), (&process["pid"], &json!("stopped")), "{kind}: {ended}");
    }
}

/// Another process lists what this one has started, and knows the version after the end.
#[tokio::test]
async fn server_lists_the_processes_of_other_nuncio_processes() {
    let home = opencode::home(&[], "scope = \"workspace\"\n").await;
    let (mut agent, first) = session(&home, &[]).await;
    let second = hosted(&mut agent, &home, "other").await;
    let server = home.serve(&[]).await;
    let other = async |server: &Server| server.get("/v1/agents").expect(200).await["agents"][1].take();
    let before = other(&server).await;
    assert_eq!((before.get("version"), &before["processes"]), (None, &json!([])));
    assert_eq!(before["command"], json!(["python3", opencode::SERVER]));
    agent.turn(&first, "say").await;
    agent.turn(&second, "say").await;
    let shown = other(&server).await;
    assert_eq!((&shown["version"], &shown["processes"]), (&json!("9.9.9"), &json!(listed(&mut agent).await)));
    let process = &shown["processes"][0];
    assert_eq!(
        (&process["sessions"], process["port"].is_u64(), shown["processes"].as_array().unwrap().len()),
        (&json!(2), true, 1)
    );

    // The session that is closed first no longer uses the server.
    agent.call("session/close", json!({"sessionId": first})).await;
    assert_eq!(listed(&mut agent).await[0]["sessions"], 1);
    agent.finish().await;
    assert_eq!(other(&server).await["version"], "9.9.9");
    server.stop().await;
    let (first, second) = (bodies(&home, &first, LIFE).await, bodies(&home, &second, LIFE).await);
    assert_eq!((first[0].get("shared"), &second[0]["shared"]), (None, &json!(true)), "{first:?} {second:?}");
    assert_eq!((&first[1]["reason"], &second[1]["reason"]), (&json!("released"), &json!("stopped")), "{first:?} {second:?}");
    assert_eq!((&first[1]["pid"], &second[1]["pid"]), (&process["pid"], &process["pid"]));
}

#[tokio::test]
async fn killed_agent_has_an_end_with_its_exit_code() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.turn(&session, "say").await;
    let kill = |process: &Value| {
        kill_process(Pid::from_raw(process["pid"].as_i64().unwrap() as i32).unwrap(), Signal::KILL).unwrap();
    };
    let server = home.serve(&[]).await;
    let mut events = server.follow(&session).events().await;
    let updated = async || {
        let view = server.get(&format!("/v1/sessions/{session}")).expect(200).await["updatedAt"].take();
        (view, server.get("/v1/sessions").expect(200).await["sessions"][0]["updatedAt"].take())
    };
    let before = updated().await;
    let idle = listed(&mut agent).await.remove(0);
    kill(&idle);
    let ended = events.until("agent.ended").await.pop().unwrap().event["body"].take();
    let error = "its process ended with exit code 137";
    let expected = |pid: &Value| json!({"type": "agent.ended", "agent": "other", "pid": pid, "reason": "exited", "exitCode": 137, "error": error});
    assert_eq!(ended, expected(&idle["pid"]));
    assert_eq!(listed(&mut agent).await, Vec::<Value>::new());
    // Lists are ordered by the last work, not by the end of an idle agent.
    assert_eq!(updated().await, before);
    let id = agent.prompt(&session, "wait").await;
    agent.until_update("tool_call").await;
    let busy = listed(&mut agent).await.remove(0);
    kill(&busy);
    let failed = agent.answer(&id).await.unwrap_err();
    assert_eq!(failed["message"], format!("agent other: {error}"));
    assert_eq!(events.until("agent.ended").await.pop().unwrap().event["body"], expected(&busy["pid"]));
    agent.finish().await;
    server.stop().await;
}

/// A nuncio that is killed records nothing.
#[tokio::test]
async fn next_owner_records_the_end_of_a_killed_process() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.turn(&session, "say").await;
    agent.kill().await;
    let mut agent = home.start(&[]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    agent.load(&home, &session).await;
    agent.turn(&session, "say").await;
    agent.finish().await;
    let log = bodies(&home, &session, LIFE).await;
    let told: Vec<&Value> = log.iter().map(|body| body.get("reason").unwrap_or(&body["type"])).collect();
    assert_eq!(told, ["agent.started", "interrupted", "agent.started", "stopped"], "{log:?}");
}

#[tokio::test]
async fn stop_cancels_a_running_turn_and_the_next_prompt_resumes() {
    for (kind, script) in PLAYED {
        let home = home_of(kind, script, &[], "").await;
        let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
        let id = agent.prompt(&session, "wait").await;
        agent.until_update("tool_call").await;
        let process = listed(&mut agent).await.remove(0);
        let stopped = stop(&home, &[]).await;
        assert_eq!((stopped.code, stopped.stdout), (0, line(&home, &process)), "{kind}");
        assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled", "{kind}");
        assert_eq!(running(&agent.marker, script), Vec::<u32>::new(), "{kind}");
        assert_eq!(listed(&mut agent).await, Vec::<Value>::new(), "{kind}");
        let again = stop(&home, &["other"]).await;
        assert_eq!((again.code, again.stdout.as_str()), (0, NOTHING), "{kind}");

        let (reason, updates) = agent.turn(&session, "say").await;
        assert_eq!((reason.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "Hello, world"), "{kind}");
        assert_ne!(listed(&mut agent).await[0]["pid"], process["pid"], "{kind}");
        agent.finish().await;
        let log = bodies(&home, &session, &["turn.cancelled", "turn.failed", "agent.started", "agent.ended"]).await;
        let told: Vec<&Value> = log.iter().map(|body| body.get("reason").unwrap_or(&body["type"])).collect();
        assert_eq!(told, ["agent.started", "turn.cancelled", "stopped", "agent.started", "stopped"], "{kind}: {log:?}");
        assert_eq!(log[1].get("cause"), None, "{kind}");
    }
}

#[tokio::test]
async fn stop_closes_an_open_permission_request() {
    let home = home(&[]).await;
    let (mut agent, session) = session(&home, &["--mode", "ask"]).await;
    agent.otherwise = Reply::Never;
    let id = agent.prompt(&session, "run touch made").await;
    agent.until_question().await;
    let stopped = stop(&home, &[]).await;
    assert!(stopped.code == 0 && stopped.stdout.starts_with("ended other"), "{stopped:?}");
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    agent.otherwise = Reply::Error;
    assert_eq!(agent.reply(&session, "history").await, "loaded foreign-1 / history");
    agent.finish().await;
    let resolved = bodies(&home, &session, &["permission.resolved"]).await;
    assert_eq!(resolved[0]["outcome"], "cancelled");
    assert_eq!(home.get("made"), None);
}

/// The agent ignores the cancel, the end of its input and SIGTERM; its command left its group.
#[tokio::test]
async fn stop_kills_a_process_that_does_not_end_by_itself() {
    let home = home(&["deaf"]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let id = agent.prompt(&session, "fork").await;
    agent.until_update("agent_message_chunk").await;
    until_running(&agent.marker, "sleep 600", 1).await;
    let process = listed(&mut agent).await.remove(0);
    assert_eq!(stop(&home, &[]).await.stdout, line(&home, &process));
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    assert_eq!((running(&agent.marker, AGENT), running(&agent.marker, "sleep 600")), (vec![], vec![]));
    agent.finish().await;
    let ended = bodies(&home, &session, &["agent.ended"]).await;
    assert_eq!((&ended[0]["reason"], &ended[0]["exitCode"]), (&json!("stopped"), &json!(137)), "{ended:?}");
}

#[tokio::test]
async fn stop_ends_an_agent_that_is_starting() {
    let home = home(&["unready", "deaf"]).await;
    let (mut agent, session) = session(&home, &[]).await;
    let id = agent.prompt(&session, "x").await;
    home.appears("unready").await;
    let process = listed(&mut agent).await.remove(0);
    assert_eq!(stop(&home, &[]).await.stdout, line(&home, &process));
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    assert_eq!(running(&agent.marker, AGENT), Vec::<u32>::new());
    agent.finish().await;
    assert_eq!(bodies(&home, &session, LIFE).await, Vec::<Value>::new());
}

/// All sessions of a shared server are cancelled before it ends.
#[tokio::test]
async fn stop_ends_a_shared_server_once() {
    let home = opencode::home(&[], "scope = \"workspace\"\n").await;
    let (mut agent, first) = session(&home, &[]).await;
    let second = hosted(&mut agent, &home, "other").await;
    agent.turn(&second, "say").await;
    let id = agent.prompt(&first, "wait").await;
    agent.until_update("tool_call").await;
    let process = listed(&mut agent).await.remove(0);
    assert_eq!(stop(&home, &[]).await.stdout, line(&home, &process));
    assert_eq!(agent.answer(&id).await.unwrap()["stopReason"], "cancelled");
    for session in [&first, &second] {
        assert_eq!(agent.reply(session, "say").await, "Hello, world");
    }
    agent.finish().await;
    for session in [&first, &second] {
        let log = bodies(&home, session, LIFE).await;
        assert_eq!((&log[1]["reason"], &log[1]["pid"]), (&json!("stopped"), &process["pid"]), "{log:?}");
    }
}

/// A name and a directory select processes, also of several nuncio processes.
#[tokio::test]
async fn stop_selects_by_name_and_directory() {
    let home = Home::new();
    home.config(&(allowed(&["other", "more"]) + &played("other", "acp", AGENT, &[]) + &played("more", "acp", AGENT, &[])));
    trust(&home).await;
    let elsewhere = home.work().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, home.work().join("link")).unwrap();
    let (mut agent, other) = session(&home, &[]).await;
    let server = home.serve(&[]).await;
    let new = json!({"cwd": elsewhere, "agent": "more"});
    let made = server.post("/v1/sessions", &new).expect(201).await["sessionId"].clone();
    let more = made.as_str().unwrap();
    agent.turn(&other, "say").await;
    server.prompt(more, "say").expect(200).await;
    let names = async |server: &Server| {
        let listed = server.get("/v1/agents").expect(200).await;
        let running = |agent: &&Value| agent["processes"].as_array().is_some_and(|running| !running.is_empty());
        let names =
            listed["agents"].as_array().unwrap().iter().filter(running).map(|agent| agent["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    assert_eq!(names(&server).await, ["more", "other"]);

    let unknown = stop(&home, &["nope"]).await;
    assert_eq!((unknown.code, unknown.stdout.as_str()), (2, ""), "{unknown:?}");
    assert!(unknown.stderr.contains("nope is unknown") && unknown.stderr.contains("more, other"), "{unknown:?}");
    let missing = stop(&home, &["--cwd", "missing"]).await;
    assert_eq!((missing.code, missing.stdout.as_str()), (2, ""), "{missing:?}");
    let refused = server.post("/v1/agents/stop", &json!({"agent": "nope"})).send().await;
    assert_eq!(refused.error(), (400, "invalid_params".into()));
    let child = server.post("/v1/agents/stop", &json!({"agent": "other", "cwd": elsewhere})).expect(200).await;
    assert_eq!(child, json!({"stopped": []}));
    assert_eq!(stop(&home, &["--cwd", "elsewhere", "other"]).await.stdout, NOTHING);
    assert_eq!(names(&server).await, ["more", "other"]);

    let ended = stop(&home, &["--cwd", "link"]).await;
    assert!(ended.stdout.starts_with("ended more") && ended.stdout.ends_with("/elsewhere\n"), "{ended:?}");
    assert_eq!(names(&server).await, ["other"]);
    let process = listed(&mut agent).await.remove(0);
    let stopped = server.post("/v1/agents/stop", &json!({})).expect(200).await;
    assert_eq!(stopped, json!({"stopped": [process]}));
    assert_eq!(names(&server).await, Vec::<String>::new());
    assert_eq!(server.prompt(more, "history").expect(200).await["stopReason"], "end_turn");
    agent.finish().await;
    server.stop().await;
}

#[tokio::test]
async fn limited_tokens_cannot_end_processes() {
    let home = home(&[]).await;
    let server = home.serve(&[]).await;
    let made = server.post("/v1/sessions", &json!({"cwd": home.work(), "agent": "other"})).expect(201).await;
    server.prompt(made["sessionId"].as_str().unwrap(), "say").expect(200).await;
    let work = home.work();
    let roots = ["--root", work.to_str().unwrap()];
    for (name, flags) in [("watcher", &["--role", "observer"]), ("narrow", &roots)] {
        let token = home.run(&[&["token", "new", name], &flags[..]].concat(), "").await;
        let limited = server.with_token(token.stdout.trim());
        assert_eq!(limited.post("/v1/agents/stop", &json!({})).send().await.error(), (403, "forbidden".into()), "{name}");
        let listed = limited.get("/v1/agents").expect(200).await;
        assert_eq!(listed["agents"][1]["processes"].as_array().unwrap().len(), 1, "{name}: {listed}");
    }
    let elsewhere = home.run(&["token", "new", "elsewhere", "--root", "/usr"], "").await;
    let listed = server.with_token(elsewhere.stdout.trim()).get("/v1/agents").expect(200).await;
    assert_eq!(listed["agents"][1]["processes"], json!([]));
    server.stop().await;
}

#[tokio::test]
async fn stop_reports_a_nuncio_that_does_not_respond() {
    let home = home(&[]).await;
    let server = home.serve(&[]).await;
    server.new_session(&home).await;
    let (mut agent, session) = session(&home, &[]).await;
    agent.turn(&session, "say").await;
    pause(server.process()).await;
    let ran = stop(&home, &[]).await;
    server.signal(Signal::CONT);
    assert!(ran.code == 1 && ran.stdout.starts_with("ended other"), "{ran:?}");
    assert!(ran.stderr.contains(&format!("nuncio process {}: ", server.pid)) && ran.stderr.contains("respond"), "{ran:?}");
    agent.finish().await;
    server.stop().await;
}

/// Processes of another data directory are not ended.
#[tokio::test]
async fn stop_in_a_new_home_ends_nothing() {
    let home = Home::new();
    let ran = stop(&home, &[]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, NOTHING), "{ran:?}");
    let other = super::home(&[]).await;
    let (mut agent, session) = session(&other, &[]).await;
    agent.turn(&session, "say").await;
    assert_eq!(stop(&home, &[]).await.stdout, NOTHING);
    let marker = agent.marker.clone();
    agent.finish().await;
    gone(&marker).await;
}
