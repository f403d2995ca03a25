//! Nodes: processes with data directories of their own that share a PostgreSQL database.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde_json::{Value, json};

use harness::{Home, Server, gone, on_postgres, pause, poll};
use harness::{marked, marker};

/// A session of one node whose turn runs a command, and another node.
struct Nodes {
    first: Home,
    /// Kept for the data directory of the other node.
    _second: Home,
    other: Server,
    session: String,
    /// In the arguments of the command.
    marker: String,
}

impl Nodes {
    /// Starts two nodes and the turn of the first one, which is returned too. `None` if the store is
    /// SQLite.
    async fn start() -> Option<(Nodes, Server)> {
        if !on_postgres() {
            eprintln!("skipped: {}: an SQLite store has no nodes", module_path!());
            return None;
        }
        let (first, marker) = (Home::new(), marker());
        let second = first.another_node();
        let command = format!("trap : TERM; touch started; while :; do sleep 0.1; done; : {marker}");
        let steps = json!([{"tool_calls": [{"name": "bash", "input": {"command": command}}]}, {"text": "answered"}]);
        let owner = node(&first, &first, steps).await;
        let other = node(&second, &first, json!([{"text": "answered"}])).await;
        let session = owner.new_session(&first).await;
        // A process is a node from its first session on.
        other.new_session(&first).await;
        owner.begin(&session, "go").await;
        first.appears("started").await;
        Some((Nodes { first, _second: second, other, session, marker }, owner))
    }

    /// Ends the lease of the session's owner.
    fn end_lease(&self) {
        let owner = format!("(SELECT owner FROM sessions WHERE id = '{}')", self.session);
        self.first.sql(&format!("UPDATE nodes SET lease_until = clock_timestamp() WHERE incarnation = {owner}"));
    }

    /// Waits until the other node has ended the turn, and prompts the session there.
    async fn goes_on_elsewhere(&self) {
        self.other.follow(&self.session).events().await.until("turn.interrupted").await;
        assert_eq!(status(&self.other, &self.session).await, "none");
        self.other.prompt(&self.session, "go on").expect(200).await;
        assert_eq!(status(&self.other, &self.session).await, "idle");
    }

    /// Waits for the end of the command. A lease takes up to 20 s to end.
    async fn command_ends(&self) {
        let marker = self.marker.clone();
        let ended = tokio::task::spawn_blocking(move || {
            for pid in marked(&marker) {
                let process = pidfd_open(Pid::from_raw(pid as i32).unwrap(), PidfdFlags::empty());
                let Ok(process) = process else { continue };
                let timeout = Timespec { tv_sec: 30, tv_nsec: 0 };
                assert_eq!(event::poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)), Ok(1), "the command runs");
            }
        });
        ended.await.unwrap();
        gone(&self.marker).await;
    }

    /// Asserts that the log has each event once, and these ends of turns.
    async fn assert_turns(&self, ends: &[&str]) {
        let log = self.first.log(&self.session).await;
        let seqs: Vec<u64> = log.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert!(seqs.is_sorted_by(|one, next| one < next), "{seqs:?}");
        let types = log.iter().map(|event| event["body"]["type"].as_str().unwrap());
        let ended: Vec<&str> = types.filter(|kind| kind.starts_with("turn.") && *kind != "turn.started").collect();
        assert_eq!(ended, ends, "{log:#?}");
    }
}

/// Starts a node that may work in the work directory of `work`.
async fn node(home: &Home, work: &Home, steps: Value) -> Server {
    home.serve_script(steps, &["--mode", "auto", "--root", work.work().to_str().unwrap()]).await
}

/// The status of a session at this node.
async fn status(at: &Server, session: &str) -> String {
    let viewed = at.get(&format!("/v1/sessions/{session}")).expect(200).await;
    viewed["status"].as_str().unwrap().to_owned()
}

/// A session of another machine can be read, and is free as soon as its node has stopped.
#[tokio::test]
async fn session_of_another_node_is_shown_and_refused() {
    let Some((nodes, owner)) = Nodes::start().await else { return };
    let Nodes { other, session, .. } = &nodes;
    assert_eq!([status(&owner, session).await, status(other, session).await], ["busy", "busy"]);
    let listed = other.get("/v1/sessions").expect(200).await;
    assert_eq!((&listed["sessions"][0]["sessionId"], &listed["sessions"][0]["status"]), (&json!(session), &json!("busy")));
    let refused = other.prompt(session, "go").expect(409).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("another machine"), "{refused}");
    let mut followed = other.follow(session).events().await;
    owner.post(&format!("/v1/sessions/{session}/cancel"), &json!({})).expect(200).await;
    let events = followed.until("turn.cancelled").await;
    let ids: Vec<u64> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>(), "events are missing");
    drop(followed);
    assert_eq!([status(&owner, session).await, status(other, session).await], ["idle", "idle"]);
    owner.stop().await;
    assert_eq!(status(other, session).await, "none");
    other.prompt(session, "go").expect(200).await;
    nodes.other.stop().await;
}

/// The session of a killed node is shown, and is taken when the lease ends.
#[tokio::test]
async fn session_of_killed_node_is_taken_when_its_lease_ends() {
    let Some((nodes, owner)) = Nodes::start().await else { return };
    owner.kill().await;
    assert_eq!(status(&nodes.other, &nodes.session).await, "busy", "its lease has not ended");
    nodes.other.prompt(&nodes.session, "go").expect(409).await;
    nodes.end_lease();
    nodes.goes_on_elsewhere().await;
    nodes.assert_turns(&["turn.interrupted", "turn.completed"]).await;
    nodes.other.stop().await;
}

/// No node is shown as the owner while one of them claims the session to end the turn.
#[tokio::test]
async fn node_that_ends_the_turn_of_another_is_not_its_owner() {
    let Some((nodes, owner)) = Nodes::start().await else { return };
    // It finds out at once that the other process of its machine has ended.
    let neighbour = node(&nodes.first, &nodes.first, json!([])).await;
    let mut followed = neighbour.follow(&nodes.session).events().await;
    // The claim does not end before the trigger is removed.
    nodes.first.sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not yet'; END $$; \
         CREATE TRIGGER refuse BEFORE UPDATE OF owner ON sessions FOR EACH ROW WHEN (NEW.owner IS NULL) EXECUTE FUNCTION refuse()",
    );
    owner.kill().await;
    followed.until("turn.interrupted").await;
    let claims = "SELECT count(*) FROM sessions s JOIN nodes n ON n.incarnation = s.owner WHERE n.lease_until > clock_timestamp()";
    assert_eq!(nodes.first.sql(&format!("{claims} AND s.id = '{}'", nodes.session)), ["1"]);
    for at in [&neighbour, &nodes.other] {
        assert_eq!(status(at, &nodes.session).await, "none");
        let listed = at.get("/v1/sessions").expect(200).await;
        let entry = listed["sessions"].as_array().unwrap().iter().find(|entry| entry["sessionId"] == *nodes.session).unwrap();
        assert_eq!((&entry["status"], &entry["lastTurn"]["status"]), (&json!("none"), &json!("interrupted")), "{entry}");
    }
    nodes.first.sql("DROP TRIGGER refuse ON sessions");
    drop(followed);
    neighbour.stop().await;
    nodes.other.prompt(&nodes.session, "go on").expect(200).await;
    nodes.assert_turns(&["turn.interrupted", "turn.completed"]).await;
    nodes.other.stop().await;
}

/// A killed node that starts again takes its sessions at once, not when the lease ends.
#[tokio::test]
async fn restarted_node_takes_its_sessions_back() {
    let Some((nodes, owner)) = Nodes::start().await else { return };
    owner.kill().await;
    let again = node(&nodes.first, &nodes.first, json!([{"text": "answered"}])).await;
    assert_eq!(status(&again, &nodes.session).await, "none");
    again.prompt(&nodes.session, "go on").expect(200).await;
    nodes.assert_turns(&["turn.interrupted", "turn.completed"]).await;
    again.stop().await;
    nodes.other.stop().await;
}

/// A node that was stopped writes nothing to a session that another node has taken, and its command
/// ends. It can be used again.
#[tokio::test]
async fn stopped_node_loses_its_session() {
    let Some((nodes, owner)) = Nodes::start().await else { return };
    pause(owner.process()).await;
    nodes.end_lease();
    nodes.goes_on_elsewhere().await;
    owner.signal(Signal::CONT);
    nodes.command_ends().await;
    owner.follow(&nodes.session).events().await.until("turn.completed").await;
    let own = owner.new_session(&nodes.first).await;
    assert_eq!([status(&owner, &own).await, status(&owner, &nodes.session).await], ["idle", "idle"]);
    nodes.assert_turns(&["turn.interrupted", "turn.completed"]).await;
    owner.stop().await;
    nodes.other.stop().await;
}

/// The commands of a node that does not renew its lease end before another node can take over.
#[tokio::test]
async fn commands_of_stopped_node_end_with_the_lease() {
    let Some((nodes, owner)) = Nodes::start().await else { return };
    pause(owner.process()).await;
    nodes.command_ends().await;
    assert_eq!(status(&nodes.other, &nodes.session).await, "busy", "the lease ended before the command");
    owner.signal(Signal::CONT);
    owner.stop().await;
    nodes.other.stop().await;
}

/// A node whose lease has ended fails the turn with the reason, and joins again.
#[tokio::test]
async fn node_joins_again_after_the_end_of_its_lease() {
    let Some((nodes, owner)) = Nodes::start().await else { return };
    // It would end the turn as that of an ended node.
    nodes.other.stop().await;
    nodes.first.sql("DELETE FROM nodes");
    let failed = owner.follow(&nodes.session).events().await.until("turn.failed").await.pop().unwrap();
    assert_eq!(failed.event["body"]["code"], "store_unavailable", "{failed:?}");
    gone(&nodes.marker).await;
    owner.prompt(&nodes.session, "go on").expect(200).await;
    let log = nodes.first.log(&nodes.session).await;
    assert_eq!(log.last().unwrap()["body"]["type"], "turn.completed", "{log:#?}");
    owner.stop().await;
}

/// A node that shuts down lets others take its idle sessions while its turns end.
#[tokio::test]
async fn draining_node_hands_over_its_idle_sessions() {
    let Some((nodes, owner)) = Nodes::start().await else { return };
    let idle = owner.new_session(&nodes.first).await;
    assert_eq!(status(&nodes.other, &idle).await, "idle");
    owner.signal(Signal::TERM);
    while status(&nodes.other, &idle).await != "none" {}
    nodes.other.prompt(&idle, "go").expect(200).await;
    assert_eq!(status(&nodes.other, &nodes.session).await, "busy");
    owner.end().await;
    nodes.assert_turns(&["turn.cancelled"]).await;
    nodes.other.stop().await;
}

/// A node does not take a session whose directory it does not have.
#[tokio::test]
async fn session_needs_its_directory() {
    let Some((nodes, owner)) = Nodes::start().await else { return };
    owner.stop().await;
    let away = nodes.first.work().with_extension("away");
    std::fs::rename(nodes.first.work(), &away).unwrap();
    let refused = nodes.other.prompt(&nodes.session, "go").expect(409).await;
    let reason = format!("no running node has the directory {}", nodes.first.work().display());
    assert!(refused["error"]["message"].as_str().unwrap().contains(&reason), "{refused}");
    let view = nodes.other.get(&format!("/v1/sessions/{}", nodes.session)).expect(200).await;
    assert_eq!((&view["status"], &view["unavailable"]), (&json!("none"), &json!(reason)));
    std::fs::rename(&away, away.with_extension("")).unwrap();
    nodes.other.prompt(&nodes.session, "go").expect(200).await;
    nodes.other.stop().await;
}

/// Attachments and artifacts are in the database. Each node can read them, and a node that takes the
/// session has them on its disk.
#[tokio::test]
async fn files_of_a_session_are_at_each_node() {
    if !on_postgres() {
        return eprintln!("skipped: {}: an SQLite store has no nodes", module_path!());
    }
    let first = Home::new();
    let second = first.another_node();
    let output = json!([{"tool_calls": [{"name": "bash", "input": {"command": "seq 1 40000"}}]}, {"text": "counted"}]);
    let owner = node(&first, &first, output).await;
    let other = node(&second, &first, json!([{"text": "answered"}])).await;
    let session = owner.new_session(&first).await;
    let files = format!("/v1/sessions/{session}");
    let attach = async |at: &Server, text: &str| {
        let file = json!({"name": "note.txt", "data": STANDARD.encode(text)});
        at.post(&format!("{files}/attachments"), &file).expect(201).await
    };
    let note = attach(&other, "from the other node").await;
    assert_eq!(attach(&owner, "from the owner").await["name"], "note-2.txt");
    let link = json!({"type": "resource_link", "name": "note", "uri": note["uri"]});
    owner.post(&format!("{files}/prompt"), &json!({"prompt": [link]})).expect(200).await;
    let log = first.log(&session).await;
    let sent = log.iter().find(|event| event["body"]["type"] == "message.completed").unwrap();
    assert_eq!(sent["body"]["parts"][0]["text"], "from the other node", "{sent:#}");
    for kind in ["attachments", "artifacts"] {
        let lists = [&owner, &other].map(|at| at.get(&format!("{files}/{kind}")));
        let [own, elsewhere] = lists;
        let (own, elsewhere) = (own.expect(200).await, elsewhere.expect(200).await);
        let names = |list: &Value| -> Vec<String> {
            list[kind].as_array().unwrap().iter().map(|file| format!("{} {}", file["name"], file["size"])).collect()
        };
        assert!(!names(&own).is_empty(), "{own}");
        assert_eq!(names(&own), names(&elsewhere));
    }
    std::fs::remove_dir_all(second.data().join("artifacts")).unwrap();
    owner.kill().await;
    first.sql("UPDATE nodes SET lease_until = clock_timestamp()");
    other.prompt(&session, "go on").expect(200).await;
    let on_disk = |home: &Home| {
        let mut files: Vec<_> = std::fs::read_dir(home.data().join("artifacts").join(&session)).unwrap().flatten().collect();
        files.retain(|file| file.file_type().unwrap().is_file());
        files.iter().map(|file| (file.file_name(), std::fs::read(file.path()).unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(on_disk(&second), on_disk(&first));
    other.ask("DELETE", &files).expect(200).await;
    assert_eq!(first.sql("SELECT path FROM files"), Vec::<String>::new());
    // The node that did not run removes its copies when it opens the store again.
    let copies = ["attachments", "artifacts"].map(|kind| first.data().join(kind).join(&session));
    assert!(copies.iter().all(|copy| copy.exists()));
    let owner = node(&first, &first, json!([])).await;
    owner.get(&files).expect(404).await;
    poll("the end of the copies", || !copies.iter().any(|copy| copy.exists())).await;
    owner.stop().await;
    other.stop().await;
}
