//! Status, waiting, last turn and pending tool calls of a session: the same in every process, at
//! each point of its life.

use serde_json::{Value, json};

use super::peer::{Kind, Peer};
use super::{editor, endless, home, message, says, waits};
use harness::Home;
use harness::steps::asks;

/// The processes that read one session: the owner, an editor, a server, and a WebSocket client of
/// a server.
struct Viewers {
    peers: Vec<Peer>,
}

/// The activity of a session, as a list or the view of the session reports it.
#[derive(Debug, PartialEq)]
struct ActivityView {
    status: Value,
    waiting: Value,
    last_turn: Value,
    pending: Value,
}

fn shown(view: &Value) -> ActivityView {
    ActivityView {
        status: view["status"].clone(),
        waiting: view["waiting"].clone(),
        last_turn: view["lastTurn"].clone(),
        pending: view["pendingToolCalls"].clone(),
    }
}

impl Viewers {
    async fn new(home: &Home, model: &str) -> Viewers {
        let mut peers = Vec::new();
        for kind in [Kind::Stdio, Kind::Rest, Kind::Rpc] {
            peers.push(Peer::start(kind, home, model, &[]).await);
        }
        Viewers { peers }
    }

    /// Asserts that all processes show the same, in the view and in the list. The commit of an
    /// event changes both at once, so that no process needs to wait.
    async fn check(&mut self, owner: Option<&mut Peer>, session: &str, what: &str) -> ActivityView {
        let mut all: Vec<ActivityView> = Vec::new();
        for peer in self.peers.iter_mut().chain(owner) {
            all.push(shown(&peer.view(session).await));
            let listed = peer.call("session/list", json!({})).await;
            let entry = listed["sessions"].as_array().unwrap().iter().find(|entry| entry["sessionId"] == session);
            // A session is listed from its first message on.
            assert_eq!(entry.is_some(), what != "new", "{what}: {listed}");
            let Some(entry) = entry else { continue };
            let entry = if entry["_meta"]["nuncio"].is_null() { entry } else { &entry["_meta"]["nuncio"] };
            assert_eq!(&shown(entry), all.last().unwrap(), "{what}: the list differs from the view");
        }
        let first = all.remove(0);
        assert!(all.iter().all(|one| *one == first), "{what}: {first:?}, then {all:?}");
        first
    }

    async fn finish(self) {
        for peer in self.peers {
            peer.finish().await;
        }
    }
}

fn assert_shown(shown: &ActivityView, status: &str, waiting: bool, last: Option<&str>, pending: usize, what: &str) {
    assert_eq!((&shown.status, &shown.waiting), (&json!(status), &json!(waiting)), "{what}: {shown:?}");
    assert_eq!(shown.last_turn.get("status").and_then(Value::as_str), last, "{what}: {shown:?}");
    let count = match &shown.pending {
        Value::Array(calls) => calls.len(),
        other => other.as_u64().unwrap_or(0) as usize,
    };
    assert_eq!(count, pending, "{what}: {shown:?}");
}

#[tokio::test]
async fn all_processes_show_the_same_at_each_point() {
    let home = home();
    let failing = json!({"expect": "this is not there"});
    let model = home.script(json!([asks(), says("one"), endless(), failing]));
    let mut owner = Peer::Stdio(Box::new(editor(&home, &model, &[]).await));
    let mut viewers = Viewers::new(&home, &model).await;
    let made = owner.call("session/new", json!({"cwd": home.work(), "mcpServers": []})).await;
    let session = made["sessionId"].as_str().unwrap().to_string();
    let check =
        |shown: ActivityView, status, waiting, last, pending, what| assert_shown(&shown, status, waiting, last, pending, what);

    check(viewers.check(Some(&mut owner), &session, "new").await, "idle", false, None, 0, "new");
    let first = owner.call("_nuncio/session/message", message(&session, "ask")).await["turnId"].clone();
    let open = owner.asked(&session).await;
    let shown = viewers.check(Some(&mut owner), &session, "asked").await;
    assert_eq!(shown.last_turn["turnId"], first, "the running turn is the last one: {shown:?}");
    check(shown, "busy", true, Some("running"), 1, "asked");
    owner.call("_nuncio/permission/answer", json!({"permissionId": open["permissionId"], "outcome": "allow_once"})).await;
    owner.until(&session, "idle", |view| view["status"] == "idle").await;
    let shown = viewers.check(Some(&mut owner), &session, "completed").await;
    assert_eq!((&shown.last_turn["turnId"], &shown.last_turn["stopReason"]), (&first, &json!("end_turn")), "{shown:?}");
    check(shown, "idle", false, Some("completed"), 0, "completed");

    owner.call("_nuncio/session/message", message(&session, "long")).await;
    check(viewers.check(Some(&mut owner), &session, "streaming").await, "busy", false, Some("running"), 0, "streaming");
    owner.call("session/cancel", json!({"sessionId": session})).await;
    owner.until(&session, "idle", |view| view["status"] == "idle").await;
    check(viewers.check(Some(&mut owner), &session, "cancelled").await, "idle", false, Some("cancelled"), 0, "cancelled");

    owner.call("_nuncio/session/message", message(&session, "fail")).await;
    owner.until(&session, "idle", |view| view["status"] == "idle").await;
    let shown = viewers.check(Some(&mut owner), &session, "failed").await;
    assert!(shown.last_turn["error"].to_string().contains("this is not there"), "{shown:?}");
    check(shown, "idle", false, Some("failed"), 0, "failed");

    owner.call("session/close", json!({"sessionId": session})).await;
    check(viewers.check(Some(&mut owner), &session, "closed").await, "none", false, Some("failed"), 0, "closed");
    owner.finish().await;
    check(viewers.check(None, &session, "ended").await, "none", false, Some("failed"), 0, "ended");
    viewers.finish().await;
}

/// After a kill no process claims that the turn runs or that a permission is open.
#[tokio::test]
async fn all_processes_tell_the_truth_after_a_kill() {
    for owner in [Kind::Stdio, Kind::Rest, Kind::Run] {
        for step in [asks(), waits(), endless()] {
            let home = home();
            let auto: &[&str] = if step == waits() { &["--mode", "auto"] } else { &[] };
            let mut owner = Peer::start(owner, &home, &home.script(json!([says("base"), step])), auto).await;
            let session = owner.new_session(&home).await;
            let mut viewers = Viewers::new(&home, &home.script(json!([]))).await;
            let sent = viewers.peers[1].call("_nuncio/session/message", message(&session, "go")).await;
            if step == asks() {
                viewers.peers[1].asked(&session).await;
            } else {
                viewers.peers[0].until(&session, "busy", |view| view["status"] == "busy").await;
            }
            owner.kill().await;
            // The list is right at once, and so is the list of permissions.
            for peer in &mut viewers.peers {
                let listed = peer.call("session/list", json!({})).await;
                let entry = &listed["sessions"][0];
                let entry = if entry["_meta"]["nuncio"].is_null() { entry } else { &entry["_meta"]["nuncio"] };
                assert_eq!((&entry["status"], &entry["waiting"]), (&json!("none"), &json!(false)), "{entry}");
                assert_eq!(peer.call("_nuncio/permission/list", json!({})).await, json!({"permissions": []}));
            }
            let shown = viewers.check(None, &session, "killed").await;
            assert_eq!(shown.last_turn["turnId"], sent["turnId"], "{shown:?}");
            assert_shown(&shown, "none", false, Some("interrupted"), 0, "killed");
            viewers.finish().await;
        }
    }
}

/// The permissions of the sessions of all processes are in the list of each process.
#[tokio::test]
async fn permission_list_covers_all_processes() {
    let home = Home::new();
    let model = home.script(json!([says("base"), asks(), says("after")]));
    let mut owners = Vec::new();
    let mut sessions = Vec::new();
    for kind in [Kind::Stdio, Kind::Rest, Kind::Rpc, Kind::Stdio] {
        let mut owner = Peer::start(kind, &home, &model, &[]).await;
        let session = owner.new_session(&home).await;
        owner.call("_nuncio/session/message", message(&session, "go")).await;
        owner.asked(&session).await;
        owners.push(owner);
        sessions.push(session);
    }
    sessions.sort();
    for owner in &mut owners {
        let all = owner.call("_nuncio/permission/list", json!({})).await;
        let mut listed: Vec<&str> =
            all["permissions"].as_array().unwrap().iter().map(|open| open["sessionId"].as_str().unwrap()).collect();
        listed.sort();
        assert_eq!(listed, sessions, "{all}");
        for open in all["permissions"].as_array().unwrap() {
            assert!(open["turnId"].is_string(), "{open}");
            assert_eq!(open["toolCall"]["title"], "`true`", "{open}");
            assert_eq!(open["options"].as_array().unwrap().len(), 5, "{open}");
        }
    }
    for session in &sessions {
        // Any process answers any of them.
        let open = owners[0].asked(session).await;
        let answer = json!({"permissionId": open["permissionId"], "outcome": "reject_once"});
        owners[1].call("_nuncio/permission/answer", answer).await;
        owners[2].until(session, "idle", |view| view["status"] == "idle").await;
    }
    for owner in owners {
        owner.finish().await;
    }
}
