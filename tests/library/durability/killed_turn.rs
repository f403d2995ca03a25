//! Kills during a turn that uses an MCP server, hooks, a subagent, a permission request and checks.

use std::collections::BTreeMap;
use std::time::Duration;

use nuncio::internal::context::history::History;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use crate::history::wrong;
use harness::log::assert_gap_free;
use harness::log::bodies;
use harness::marked;
use harness::steps::call;
use harness::steps::{bash, calls, says, task};
use harness::subagents::{children, define};
use harness::{Agent, Home, Random, Reply, bounded, text};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp/server.py");

/// The kills are split into tests that run in parallel.
const KILLS: u64 = 50;
const TESTS: u64 = 5;
/// Checks run only where nuncio can confine them.
const RUNS_CHECKS: bool = !harness::POSIX;

fn write(text: &str) -> Value {
    calls(&[call("write", json!({"file_path": "a.txt", "content": text}))])
}

/// A home whose turns use all parts. The hooks and the MCP server write a line to a named pipe each
/// time they are used.
struct World {
    home: Home,
    /// Open all the time, because opening a pipe without a reader blocks.
    pipe: pipe::Receiver,
    /// The model of the turn, and the model after a restart.
    model: String,
    next: String,
}

impl World {
    async fn new() -> World {
        let home = Home::new();
        home.put("a.txt", "");
        let pipe = home.work().with_file_name("progress");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let path = pipe.display();
        let hook = |event: &str| {
            format!("[[hooks]]\nevent = \"tool.execute.{event}\"\ncommand = [\"sh\", \"-c\", \"echo {event} > {path}\"]\n")
        };
        let server = json!(["python3", SERVER, format!("log={path}")]);
        home.config(&format!(
            "[verify]\nauto = {RUNS_CHECKS}\ncommands = [\"sleep 0.03; grep hang a.txt && sleep 600; ! grep bad a.txt\"]\n\
             [[permissions.rules]]\npattern = \"touch *\"\npolicy = \"ask\"\n\
             [mcp.docs]\ncommand = {server}\n{}{}",
            hook("before"),
            hook("after"),
        ));
        assert_eq!(home.run(&["trust", "."], "").await.code, 0);
        let worker = json!([
            calls(&[call("mcp__docs__echo", json!({"text": "of the worker"})), bash("touch made")["tool_calls"][0].clone()]),
            {"text": "The worker has finished.", "chunk_chars": 6, "delay_ms": 1},
        ]);
        define(&home, "worker", "", worker);
        let steps = json!([
            {"thinking": "A plan.", "text": "Some text, é after é.", "chunk_chars": 5, "delay_ms": 1, "tool_calls": [
                call("mcp__docs__progress", json!({})),
                task("worker", "work"),
                bash("echo out; sleep 0.05")["tool_calls"][0],
            ]},
            write("bad\n"),
            says("The worker has finished.", "done"),
            write("good\n"),
            {"text": "fixed"},
        ]);
        let next = json!([calls(&[call("mcp__docs__echo", json!({"text": "of the next"}))]), says("of the next", "went on")]);
        let (model, next) = (home.script(steps), home.script(next));
        let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(&pipe).unwrap();
        World { home, pipe, model, next }
    }

    async fn start(&self, model: &str) -> Agent {
        let mut agent = self.home.start(&["--model", model, "--mode", "auto"]).await;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        agent
    }

    /// Runs the turn until it has made `target` steps of progress (received frames and lines of the
    /// pipe), or to its end. Returns the progress.
    async fn run(&mut self, agent: &mut Agent, session: &str, target: u64) -> u64 {
        agent.otherwise = Reply::Never;
        self.home.put("a.txt", "");
        let prompt = agent.prompt(session, "go").await;
        let (mut progress, mut lines) = (0, [0; 4096]);
        while progress < target {
            tokio::select! {
                frame = agent.frame() => {
                    let frame = frame.expect("the agent runs");
                    progress += 1;
                    if frame["id"] == prompt && frame.get("method").is_none() {
                        break;
                    }
                }
                read = self.pipe.read(&mut lines) => {
                    progress += lines[..read.unwrap()].iter().filter(|byte| **byte == b'\n').count() as u64;
                }
            }
            if progress < target {
                answer(agent).await;
            }
        }
        progress
    }
}

/// Allows what the agent asks.
async fn answer(agent: &mut Agent) {
    for (id, _) in std::mem::take(&mut agent.asked) {
        let result = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
        agent.raw(format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result})).as_bytes()).await;
    }
}

/// Asserts that nothing in the log is open, and that models get a well-formed history.
fn assert_closed(log: &[Value]) {
    let ids = |kind: &str, field: &str| -> Vec<String> {
        let mut ids: Vec<String> = bodies(log, kind).iter().map(|body| body[field].to_string()).collect();
        ids.retain(|id| id != "null");
        ids.sort();
        ids
    };
    let pairs = [
        ("tool.started", "tool.completed", "toolCallId"),
        ("permission.requested", "permission.resolved", "permissionId"),
        ("child.started", "child.completed", "childSessionId"),
        ("step.started", "step.completed", "step"),
        ("verify.started", "verify.completed", "toolCallId"),
    ];
    for (start, end, field) in pairs {
        assert_eq!(ids(start, field), ids(end, field), "{start} and {end}: {log:#?}");
    }
    let ended = ["turn.completed", "turn.interrupted"].iter().map(|kind| bodies(log, kind).len()).sum::<usize>();
    assert_eq!(bodies(log, "turn.started").len(), ended, "{log:#?}");
    let mut history = History::default();
    log.iter().for_each(|event| history.apply(&serde_json::from_value(event.clone()).unwrap()));
    assert_eq!(wrong(&history.messages(), |_| false), None, "{log:#?}");
}

/// The parts that were open at the end of a log.
fn open(log: &[Value]) -> Vec<String> {
    let count = |kind: &str| bodies(log, kind).len();
    let mut open = Vec::new();
    for (part, start, end) in [
        ("permission", "permission.requested", "permission.resolved"),
        ("subagent", "child.started", "child.completed"),
        ("model request", "step.started", "step.completed"),
        ("check", "verify.started", "verify.completed"),
    ] {
        let resolved = bodies(log, end).iter().filter(|body| part != "permission" || body["permissionId"].is_string()).count();
        if count(start) > resolved {
            open.push(part.to_owned());
        }
    }
    let completed: Vec<_> = bodies(log, "tool.completed").iter().map(|body| body["toolCallId"].clone()).collect();
    let tools = bodies(log, "tool.started").into_iter().filter(|body| !completed.contains(&body["toolCallId"]));
    open.extend(tools.map(|body| body["name"].as_str().unwrap().to_owned()));
    if count("turn.started") > count("turn.completed") && open.is_empty() {
        open.push("turn".into());
    }
    open
}

/// Kills an agent after `target` steps of progress, and continues the session in a new process.
/// Counts the open parts and the processes at the kill.
async fn kill(world: &mut World, target: u64, killed: &mut BTreeMap<String, usize>) {
    let mut agent = world.start(&world.model).await;
    let session = agent.new_session(&world.home).await;
    bounded("the turn", world.run(&mut agent, &session, target)).await;
    let processes = marked(&agent.marker).len();
    *killed.entry(format!("{processes} processes")).or_default() += 1;
    agent.kill().await;
    for part in continued(world, &session).await {
        *killed.entry(part).or_default() += 1;
    }
}

/// Continues the session of a killed agent in a new process. Returns the parts that were open.
async fn continued(world: &World, session: &str) -> Vec<String> {
    let home = &world.home;
    let before = home.log(session).await;
    assert_gap_free(&before);
    let mut agent = world.start(&world.next).await;
    agent.load(home, session).await;
    let (stop, updates) = agent.turn(session, "go on").await;
    assert_eq!((stop.as_str(), text(&updates, "agent_message_chunk").as_str()), ("end_turn", "went on"));
    let children = children(&mut agent, session).await;
    for child in &children {
        let view = agent.call("_nuncio/session/get", json!({"sessionId": child})).await;
        assert_eq!((&view["status"], &view["pendingToolCalls"]), (&json!("none"), &json!([])), "{view}");
    }
    agent.finish().await;
    let after = home.log(session).await;
    assert_eq!(after[..before.len()], before, "what was written has changed");
    assert_gap_free(&after);
    assert_closed(&after);
    for child in &children {
        let log = home.log(child).await;
        assert_closed(&log);
        // The session of a subagent is closed after its turn, which removes all deltas of its messages.
        let is_pruned = !bodies(&log, "turn.completed").is_empty() && bodies(&log, "message.delta").is_empty();
        if !is_pruned {
            assert_gap_free(&log);
        }
    }
    open(&before)
}

/// Each kind of work that a kill can leave open, with steps of a model in which the work hangs.
#[tokio::test]
async fn session_survives_a_kill_during_each_kind_of_work() {
    let world = World::new().await;
    for (part, steps) in [
        ("model request", json!([{"text": "never sent", "delay_ms": 600_000}])),
        ("permission", json!([bash("touch made")])),
        ("bash", json!([bash("sleep 600")])),
        ("mcp__docs__hang", json!([calls(&[call("mcp__docs__hang", json!({}))])])),
        ("subagent", json!([calls(&[task("worker", "work")])])),
        ("check", json!([write("hang\n"), {"text": "done"}])),
    ] {
        if part == "check" && !RUNS_CHECKS {
            continue;
        }
        let mut agent = world.start(&world.home.script(steps)).await;
        agent.otherwise = Reply::Never;
        let session = agent.new_session(&world.home).await;
        agent.prompt(&session, "go").await;
        bounded(part, async {
            while !open(&world.home.log(&session).await).iter().any(|open| open == part) {
                let _ = tokio::time::timeout(Duration::from_millis(5), agent.frame()).await;
            }
        })
        .await;
        agent.kill().await;
        let open = continued(&world, &session).await;
        assert!(open.iter().any(|open| open == part), "{part}: {open:?}");
    }
}

/// Runs the turn to its end, then kills it at the moments of one test: evenly distributed, each
/// moved by a random number.
async fn kills(test: u64) {
    let mut world = World::new().await;
    let mut agent = world.start(&world.model).await;
    let session = agent.new_session(&world.home).await;
    let progress = bounded("the turn", world.run(&mut agent, &session, u64::MAX)).await;
    agent.finish().await;
    let log = world.home.log(&session).await;
    let passed: Vec<_> = bodies(&log, "verify.completed").iter().map(|body| body["passed"].clone()).collect();
    let expected: &[bool] = if RUNS_CHECKS { &[false, true] } else { &[] };
    assert_eq!(passed, expected, "{log:#?}");
    for kind in ["permission.requested", "child.completed", "hook.completed"] {
        assert!(!bodies(&log, kind).is_empty(), "{kind}: {log:#?}");
    }
    let failed: Vec<_> = bodies(&log, "tool.completed").into_iter().filter(|body| body["status"] == "failed").collect();
    assert!(failed.is_empty(), "{failed:#?}");

    let mut random = Random::new();
    let mut killed = BTreeMap::new();
    for number in (test..KILLS).step_by(TESTS as usize) {
        let target = number * progress / KILLS + random.below(progress / KILLS + 1);
        kill(&mut world, target, &mut killed).await;
    }
    eprintln!("{progress} steps; open at the kills: {killed:?}");
    // The long parts of the turn, which a tenth of the moments cannot miss.
    for part in ["bash", "task", "subagent", "mcp__docs__progress"] {
        assert!(killed.contains_key(part), "{part}: {killed:?}");
    }
}

#[tokio::test]
async fn session_with_all_parts_survives_kills_1() {
    kills(0).await;
}

#[tokio::test]
async fn session_with_all_parts_survives_kills_2() {
    kills(1).await;
}

#[tokio::test]
async fn session_with_all_parts_survives_kills_3() {
    kills(2).await;
}

#[tokio::test]
async fn session_with_all_parts_survives_kills_4() {
    kills(3).await;
}

#[tokio::test]
async fn session_with_all_parts_survives_kills_5() {
    kills(4).await;
}
