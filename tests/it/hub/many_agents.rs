//! Many hosted agents of all kinds at once: starts, crashes, cancels and kills leave nothing behind.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::native::native;
use super::{PLAYED, allowed, bodies, hosted, played, trust};
use harness::marked;
use harness::steps::bash;
use harness::{Agent, Home, Reply, bounded, on_postgres, poll, text};

/// Turns of a session between two comparisons. The last word of [`FAILING`] is then "say".
const TURNS: usize = 7;

/// The prompts of a session, in this order; the last is followed by the first.
const WORDS: &[&str] = &["say", "crash", "wait", "error", "fork"];
/// The script of a hosted nuncio starts again after a crash, and when its session was closed.
const FAILING: &[&str] = &["say", "error", "crash"];
const SLEEPING: &[&str] = &["fork", "wait"];

/// Kills the hosted nuncio that runs the command.
const CRASH: &str = "pid=$PPID
while ! tr '\\0' '\\n' < /proc/$pid/cmdline | grep -qx acp; do pid=$(sed -n 's/^PPid:\\t//p' /proc/$pid/status); done
kill -9 $pid; sleep 600";

/// A session with its turns.
struct Worker {
    session: String,
    words: &'static [&'static str],
    /// The first turn, which selects the first word.
    first: usize,
    turn: usize,
    /// The number of turns until the next comparison.
    left: usize,
    /// The id of the running prompt.
    prompt: Option<Value>,
}

impl Worker {
    fn word(&self) -> &'static str {
        self.words[self.turn % self.words.len()]
    }

    /// Starts a turn. `wait` is cancelled at once, often while the agent starts.
    async fn begin(&mut self, agent: &mut Agent) {
        self.prompt = Some(agent.prompt(&self.session, self.word()).await);
        if self.word() == "wait" {
            self.cancel(agent).await;
        }
    }

    async fn cancel(&self, agent: &mut Agent) {
        agent.notify("session/cancel", json!({"sessionId": self.session})).await;
    }

    /// Checks how the turn ended.
    fn end(&mut self, response: &Value) {
        let word = self.word();
        let (pointer, expected) = match word {
            "say" => ("/result/stopReason", "end_turn"),
            "wait" | "fork" => ("/result/stopReason", "cancelled"),
            "error" => ("/error/data/code", "model_error"),
            _ => ("/error/data/code", "agent_unavailable"),
        };
        assert_eq!(response.pointer(pointer), Some(&json!(expected)), "{word} in turn {}: {response}", self.turn);
        self.turn += 1;
        self.left -= 1;
        self.prompt = None;
    }
}

/// Runs [`TURNS`] turns in each session, all sessions at once, and closes the sessions.
async fn work(agent: &mut Agent, workers: &mut [Worker]) {
    for worker in workers.iter_mut() {
        worker.turn = worker.first;
        worker.left = TURNS;
        worker.begin(agent).await;
    }
    while workers.iter().any(|worker| worker.prompt.is_some()) {
        let frame = bounded("a frame", agent.frame()).await.expect("nuncio runs");
        let (of, update) = (&frame["params"]["sessionId"], &frame["params"]["update"]);
        for worker in workers.iter_mut() {
            if frame.get("method").is_none() && worker.prompt.as_ref() == Some(&frame["id"]) {
                worker.end(&frame);
                if worker.left > 0 {
                    worker.begin(agent).await;
                }
            } else if *of == *worker.session && update["status"] == "in_progress" && worker.word() == "fork" {
                worker.cancel(agent).await;
            }
        }
    }
    for worker in workers.iter() {
        agent.call("session/close", json!({"sessionId": worker.session})).await;
    }
}

/// The paths of all files and directories below `directory`.
fn files(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        found.insert(entry.path().display().to_string());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files(&entry.path()));
        }
    }
    found
}

/// The files of a test's home in two lists: those that stay, and those that a hosted nuncio that was
/// killed leaves until its next start: sockets, temporary directories and files of SQLite.
fn kept_and_stale(home: &Home) -> (BTreeSet<String>, BTreeSet<String>) {
    let stale = |path: &String| path.contains("/temp-") || [".sock", "-wal", "-shm"].iter().any(|end| path.ends_with(end));
    // Each request after an empty answer is recorded.
    let is_record = |path: &String| path.contains("/requests/");
    files(home.data().parent().unwrap()).into_iter().filter(|path| !is_record(path)).partition(|path| !stale(path))
}

/// The descriptors of a process: paths, `socket:[…]`, `pipe:[…]`.
fn descriptors(pid: u32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(std::fs::read_link(entry.path()).ok()?.display().to_string())).collect()
}

/// The descriptors of nuncio in order, without the numbers of sockets and pipes, and without the
/// store's connections, whose number varies: the files of SQLite, or sockets.
fn kinds(pid: u32) -> Vec<String> {
    let mut kinds = descriptors(pid);
    kinds.retain(|name| !(name.contains("/nuncio.db") || on_postgres() && name.starts_with("socket:")));
    for name in &mut kinds {
        let end = name.find(":[").unwrap_or(name.len());
        name.truncate(end);
    }
    kinds.sort();
    kinds
}

/// The number of TCP ports on which processes with `marker` listen.
fn ports(marker: &str) -> usize {
    let open: BTreeSet<String> = marked(marker).into_iter().flat_map(descriptors).collect();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let listening = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).filter(|fields| fields[3] == "0A");
    listening.filter(|fields| open.contains(&format!("socket:[{}]", fields[9]))).count()
}

/// A home with agents of all kinds. Their names are the kinds, and `failing` and `sleeping` for the
/// kind `fake`.
async fn all_kinds() -> Home {
    let home = Home::new();
    let crash = home.put("crash.sh", CRASH);
    let failing = json!([{"text": "Hello"}, {"error": {"status": 400}}, bash(&format!("sh {}", crash.display()))]);
    let sleeping: Vec<Value> = (0..TURNS).map(|_| bash("setsid sleep 600 & sleep 600")).collect();
    let mut names: Vec<&str> = PLAYED.iter().map(|(kind, _)| *kind).collect();
    names.extend(["failing", "sleeping"]);
    let played: String = PLAYED.iter().map(|(kind, script)| played(kind, kind, script, &[])).collect();
    let own = native(&home, "failing", failing) + &native(&home, "sleeping", json!(sleeping));
    home.config(&(allowed(&names) + &played + &own));
    trust(&home).await;
    home
}

#[tokio::test]
async fn two_hundred_turns_with_crashes_and_cancels_leave_nothing() {
    let home = all_kinds().await;
    let mut agent = home.start(&["--mode", "ask"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let mut workers = Vec::new();
    let played = PLAYED.iter().map(|(kind, _)| (*kind, WORDS, 3));
    for (name, words, count) in played.chain([("failing", FAILING, 2), ("sleeping", SLEEPING, 2)]) {
        for number in 0..count {
            let session = hosted(&mut agent, &home, name).await;
            let first = if name == "failing" { 0 } else { number };
            workers.push(Worker { session, words, first, turn: 0, left: 0, prompt: None });
        }
    }
    let (marker, pid) = (agent.marker.clone(), agent.pid);
    // nuncio and its fork server stay.
    let closed = || marked(&marker).len() <= 2 && ports(&marker) == 0;
    work(&mut agent, &mut workers).await;
    poll("the end of all agents", closed).await;
    let ((before, stale), open) = (kept_and_stale(&home), kinds(pid));
    work(&mut agent, &mut workers).await;
    poll("the end of all agents", closed).await;
    poll("closed descriptors", || kinds(pid).len() <= open.len()).await;
    assert_eq!(kinds(pid), open);
    let (after, left) = kept_and_stale(&home);
    assert_eq!(after, before);
    // Their number does not grow with the number of turns.
    let most = 2 * workers.iter().filter(|worker| worker.words != WORDS).count();
    assert!(left.len() <= stale.len() + most, "{left:?} {stale:?}");
    agent.finish().await;
}

#[tokio::test]
async fn kill_with_busy_agents_of_all_kinds_leaves_nothing_and_sessions_resume() {
    let home = all_kinds().await;
    let mut agent = home.start(&["--mode", "ask"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    let mut sessions = Vec::new();
    let busy = PLAYED.iter().map(|(kind, _)| (*kind, "fork")).chain([("acp", "run touch made"), ("sleeping", "fork")]);
    for (name, words) in busy {
        agent.otherwise = if words == "fork" { Reply::Pick("allow_once") } else { Reply::Never };
        let session = hosted(&mut agent, &home, name).await;
        agent.prompt(&session, words).await;
        let is_call = |frame: &Value| {
            let asked = frame["method"] == "session/request_permission" && words != "fork";
            let started = frame["params"]["update"]["status"] == "in_progress";
            frame["params"]["sessionId"] == session.as_str() && (asked || started)
        };
        agent.until("a call", is_call).await;
        sessions.push((session, name));
    }
    let marker = agent.marker.clone();
    assert_eq!(ports(&marker), 1);
    poll("the processes of the calls", || marked(&marker).len() >= 2 + 2 * sessions.len()).await;
    agent.kill().await;
    assert_eq!(home.get("made"), None);
    let mut agent = home.start(&["--mode", "ask"]).await;
    agent.call("initialize", json!({"protocolVersion": 1})).await;
    for (session, name) in &sessions {
        agent.load(&home, session).await;
        if *name == "sleeping" {
            // The script of the model starts again, in the same session of the hosted nuncio.
            let id = agent.prompt(session, "again").await;
            agent.until("a call", |frame| frame["params"]["update"]["status"] == "in_progress").await;
            agent.cancel(session, &id).await;
            continue;
        }
        let (_, updates) = agent.turn(session, "history").await;
        let said = text(&updates, "agent_message_chunk");
        let expected = match *name {
            "acp" => "loaded foreign-1",
            "claude-code" => "resumed ",
            "codex" => "thread/resume {\"threadId\": \"thread-1\"",
            _ => "fork / history",
        };
        assert!(said.starts_with(expected), "{name}: {said}");
    }
    agent.finish().await;
    for (session, name) in &sessions {
        assert_eq!(bodies(&home, session, &["turn.interrupted"]).await.len(), 1, "{name}");
        let updated = bodies(&home, session, &["session.updated"]).await;
        let ids: BTreeSet<&str> = updated.iter().filter_map(|body| body["agentSession"].as_str()).collect();
        assert_eq!(ids.len(), 1, "{name}: {updated:?}");
    }
}
