//! Exactly-once delivery: readers lose their connections, the server is killed repeatedly, and each
//! reader's transcript equals the log.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::sync::watch;

use harness::{Bridge, Frame, Home, Random, StreamEvent, bounded};

const KILLS: u64 = 20;
const DELTAS: usize = 50_000;
const CALLS: usize = 500;
const SESSIONS: usize = 4;
/// Half of the readers follow one session each. The other half follow all sessions.
const READERS: usize = 8;

/// Steps of many turns: three answers with tool calls, then one without. Each character of a text
/// is one delta.
fn steps() -> Value {
    let text = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. 你好 ✓ ".repeat(6);
    let read = json!({"name": "read", "input": {"file_path": "a.txt"}});
    let run = json!({"name": "bash", "input": {"command": "echo out"}});
    let calls = json!([read, read, run, read, read]);
    let step = |number: usize| match number % 4 {
        3 => json!({"text": text, "chunk_chars": 1}),
        _ => json!({"thinking": "hm, äh", "text": text, "chunk_chars": 1, "tool_calls": calls}),
    };
    (0..400).map(step).collect()
}

/// The server's current address, and whether the readers stop at the end of the log.
#[derive(Clone)]
pub struct Stage {
    pub bridge: Bridge,
    pub over: bool,
}

/// Reads events until the end of the log and reconnects at random points.
pub async fn read(path: String, mut stage: watch::Receiver<Stage>, mut random: Random) -> Vec<StreamEvent> {
    let mut seen: Vec<StreamEvent> = Vec::new();
    loop {
        let Stage { bridge, over } = stage.borrow_and_update().clone();
        let patience = random.below(600);
        let reading = async {
            let last = seen.last().map_or(0, |shown| shown.id);
            let mut ask = bridge.get(&path);
            if last > 0 {
                ask = ask.header("last-event-id", &last.to_string());
            }
            let mut events = ask.try_events().await?;
            events.last = last;
            let mut count = 0;
            while over || count < patience {
                match events.try_frame().await? {
                    Some(Frame::Event(shown)) => seen.push(shown),
                    Some(Frame::Synced(_)) if over => return Ok(true),
                    Some(Frame::Synced(_) | Frame::Status(_)) => {}
                    None => break,
                }
                count += 1;
            }
            std::io::Result::Ok(false)
        };
        let done = tokio::select! {
            done = reading => done,
            _ = stage.changed() => Ok(false),
        };
        match done {
            Ok(true) => return seen,
            Ok(false) => {}
            // The server was killed. The reader waits for the next one.
            Err(_) if !over => drop(stage.changed().await),
            Err(error) => panic!("{path}: {error}"),
        }
        if over {
            stage.mark_changed();
        }
    }
}

/// Prompts until `enough` is set or the server is gone. Closes the session at random, which prunes
/// the deltas.
async fn drive(bridge: Bridge, session: String, enough: Arc<AtomicBool>, mut random: Random) {
    while !enough.load(Ordering::Relaxed) {
        let Ok(answer) = bridge.prompt(&session, "go").try_send().await else { return };
        assert_eq!(answer.status, 200, "{answer:?}");
        if random.below(4) == 0 {
            let Ok(answer) = bridge.ask("POST", &format!("/v1/sessions/{session}/close")).try_send().await else { return };
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
}

fn seq(event: &Value) -> u64 {
    event["seq"].as_u64().unwrap()
}

/// Compares the events that a reader saw with the log of the session. Only deltas may be absent
/// from the log, and each message delta is part of its message.
pub fn assert_same(seen: &[&Value], log: &[Value]) {
    let logged: HashMap<u64, &Value> = log.iter().map(|event| (seq(event), event)).collect();
    let (kept, pruned): (Vec<&Value>, Vec<&Value>) = seen.iter().partition(|event| logged.contains_key(&seq(event)));
    assert_eq!(kept.len(), log.len(), "not all was seen");
    assert!(kept.iter().zip(log).all(|(seen, logged)| *seen == logged), "seen otherwise");
    let mut whole: HashMap<&str, String> = HashMap::new();
    for body in log.iter().map(|event| &event["body"]).filter(|body| body["type"] == "message.completed") {
        let text = body["parts"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect();
        assert_eq!(whole.insert(body["messageId"].as_str().unwrap(), text), None, "completed twice");
    }
    // Deltas of a message, or output of a running tool.
    let is_piece = |body: &Value| body["type"] == "message.delta" || (body["type"] == "tool.updated" && body["status"].is_null());
    let fact = pruned.iter().find(|event| !is_piece(&event["body"]));
    assert!(fact.is_none(), "a fact that is not in the log: {}", fact.unwrap());
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    for body in seen.iter().map(|event| &event["body"]).filter(|body| body["type"] == "message.delta") {
        let (id, offset, text) = (body["messageId"].as_str().unwrap(), body["offset"].as_u64().unwrap() as usize, &body["text"]);
        let text = text.as_str().unwrap();
        assert_eq!(whole[id].get(offset..offset + text.len()), Some(text), "no piece of its message: {body}");
        assert!(ends.insert(id, offset + text.len()).unwrap_or(0) <= offset, "a piece twice: {body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_each_event_exactly_once() {
    let home = Home::new();
    home.put("a.txt", "one\n");
    let model = home.script(steps());
    let flags = ["--model", &model, "--mode", "auto"];
    let mut random = Random::new();
    let mut server = home.serve(&flags).await;
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(server.new_session(&home).await);
    }
    let (stage, stages) = watch::channel(Stage { bridge: (*server).clone(), over: false });
    let readers: Vec<_> = (0..READERS)
        .map(|number| {
            let path = match number % 2 {
                0 => format!("/v1/sessions/{}/events", sessions[number / 2 % SESSIONS]),
                _ => "/v1/events".into(),
            };
            tokio::spawn(read(path, stages.clone(), random.another()))
        })
        .collect();

    let enough = Arc::new(AtomicBool::new(false));
    for life in 0..=KILLS {
        let drivers: Vec<_> = sessions
            .iter()
            .map(|session| tokio::spawn(drive((*server).clone(), session.clone(), enough.clone(), random.another())))
            .collect();
        let mut watcher = server.get("/v1/events?types=tool.completed,message.completed").events().await;
        let mut history = watcher.history().await;
        if life == KILLS {
            let count = |seen: &[StreamEvent]| {
                let bodies = || seen.iter().map(|shown| &shown.event["body"]);
                let texts = bodies().filter(|body| ["assistant", "thought"].iter().any(|role| body["role"] == *role));
                let said = texts.map(|body| body["parts"][0]["text"].as_str().unwrap_or("").chars().count());
                (said.sum::<usize>(), bodies().filter(|body| body["type"] == "tool.completed").count())
            };
            let (mut deltas, mut calls) = count(&history);
            while deltas < DELTAS || calls < CALLS {
                history = vec![watcher.next().await.unwrap()];
                let (more_deltas, more_calls) = count(&history);
                (deltas, calls) = (deltas + more_deltas, calls + more_calls);
            }
            eprintln!("{deltas} deltas, {calls} calls");
            enough.store(true, Ordering::Relaxed);
        } else {
            for _ in 0..random.below(40) {
                watcher.next().await.unwrap();
            }
            server.kill().await;
            server = home.serve(&flags).await;
            stage.send_replace(Stage { bridge: (*server).clone(), over: false });
        }
        for driver in drivers {
            bounded("the end of a driver", driver).await.unwrap();
        }
    }
    stage.send_modify(|stage| stage.over = true);
    let mut logs = HashMap::new();
    for session in &sessions {
        logs.insert(session.as_str(), home.log(session).await);
    }
    let interrupted = logs.values().flatten().filter(|event| event["body"]["type"] == "turn.interrupted").count();
    assert!(interrupted as u64 > KILLS, "only {interrupted} turns were interrupted");
    for (number, reader) in readers.into_iter().enumerate() {
        let seen = bounded("the end of a reader", reader).await.unwrap();
        for (index, session) in sessions.iter().enumerate() {
            let of_session: Vec<&Value> =
                seen.iter().map(|shown| &shown.event).filter(|event| event["sessionId"] == session.as_str()).collect();
            if number % 2 == 1 || number / 2 % SESSIONS == index {
                assert_same(&of_session, &logs[session.as_str()]);
            } else {
                assert!(of_session.is_empty());
            }
        }
    }
    server.stop().await;
}
