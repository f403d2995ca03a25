//! Permission requests across processes: any client can answer, the first answer counts, and the
//! other clients receive the outcome.

use serde_json::{Value, json};

use super::peer::{Kind, Peer};
use super::{assert_complete, editor, says};
use harness::steps::asks;
use harness::{Agent, Bridge, Events, Home, Reply, Server};

const ASKED: &str = "session/request_permission";

fn steps(count: usize) -> Value {
    (0..count).flat_map(|number| [asks(), says(&format!("said {number}"))]).collect()
}

/// Waits for a permission request to an editor, and returns the id of the request.
async fn question(agent: &mut Agent) -> Value {
    agent.until("a question", |frame| frame["method"] == ASKED).await["id"].clone()
}

/// The only open permission request, from the list of all processes.
async fn listed(bridge: &Bridge, session: &str) -> Value {
    let all = bridge.get("/v1/permissions").expect(200).await;
    let open = all["permissions"].as_array().unwrap();
    assert!(open.len() == 1 && open[0]["sessionId"] == session, "{all}");
    open[0].clone()
}

fn answer(bridge: &Bridge, permission: &Value, outcome: &str) -> harness::Ask {
    let id = permission["permissionId"].as_str().unwrap();
    bridge.post(&format!("/v1/permissions/{id}"), &json!({"outcome": outcome, "reason": "because"}))
}

fn resolved(log: &[Value]) -> Vec<&Value> {
    log.iter().map(|event| &event["body"]).filter(|body| body["type"] == "permission.resolved").collect()
}

/// Reads until the request to the editor is withdrawn.
async fn withdrawn(agent: &mut Agent, id: &Value) {
    let is = |frame: &Value| frame["method"] == "$/cancel_request" && frame["params"]["requestId"] == *id;
    if !agent.frames.iter().any(is) {
        agent.until("the withdrawal", is).await;
    }
    assert_eq!(agent.asked, []);
}

/// Answers the permission request `id` of the agent with `reject_once`.
async fn reject(agent: &mut Agent, id: &Value) {
    let result = json!({"outcome": {"outcome": "selected", "optionId": "reject_once"}});
    let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
    agent.raw(format!("{response}\n").as_bytes()).await;
}

/// An editor with a session, and a server in another process.
async fn editor_and_server(count: usize) -> (Home, Agent, String, Server) {
    let home = Home::new();
    let model = home.script(steps(count));
    let mut agent = editor(&home, &model, &[]).await;
    let session = agent.new_session(&home).await;
    let server = home.serve(&["--model", &model]).await;
    (home, agent, session, server)
}

#[tokio::test]
async fn server_answers_the_question_of_an_editors_session() {
    let (home, mut agent, session, server) = editor_and_server(1).await;
    let running = agent.prompt(&session, "go").await;
    let id = question(&mut agent).await;
    let open = listed(&server, &session).await;
    assert_eq!((&open["toolCall"]["title"], &open["toolCall"]["input"]["command"]), (&json!("`true`"), &json!("true")), "{open}");
    // A wrong answer leaves the request open.
    assert_eq!(answer(&server, &open, "maybe").send().await.error(), (400, "invalid_params".into()));
    answer(&server, &open, "allow_once").expect(200).await;
    assert_eq!(agent.answer(&running).await.unwrap()["stopReason"], "end_turn");
    withdrawn(&mut agent, &id).await;
    assert_eq!(server.get("/v1/permissions").expect(200).await, json!({"permissions": []}));
    // The editor answers too late; the answer has no effect.
    reject(&mut agent, &id).await;
    let log = home.log(&session).await;
    let resolved = resolved(&log);
    assert_eq!(
        (resolved.len(), &resolved[0]["outcome"], &resolved[0]["by"]),
        (1, &json!("allow_once"), &json!("owner")),
        "{resolved:?}"
    );
    assert_eq!(resolved[0]["reason"], "because");
    agent.finish().await;
    server.stop().await;
}

#[tokio::test]
async fn late_answer_of_the_server_names_the_outcome() {
    let (home, mut agent, session, server) = editor_and_server(1).await;
    let running = agent.prompt(&session, "go").await;
    question(&mut agent).await;
    let open = listed(&server, &session).await;
    let (id, _) = agent.asked.remove(0);
    reject(&mut agent, &id).await;
    assert_eq!(agent.answer(&running).await.unwrap()["stopReason"], "end_turn");
    let late = answer(&server, &open, "allow_once").send().await;
    assert!((400..500).contains(&late.status), "{late:?}");
    assert!(late.body.contains("reject_once"), "{late:?}");
    assert_eq!(resolved(&home.log(&session).await)[0]["by"], "client");
    agent.finish().await;
    server.stop().await;
}

/// The other direction: the question of a server's session goes to an editor that loaded the
/// session.
#[tokio::test]
async fn editor_answers_the_question_of_a_servers_session() {
    let home = Home::new();
    let model = home.script(steps(2));
    let server = home.serve(&["--model", &model]).await;
    let session = server.new_session(&home).await;
    let mut agent = editor(&home, &model, &[]).await;
    agent.load(&home, &session).await;
    agent.replies.push_back(Reply::Pick("allow_once"));
    let mut events = server.follow(&session).events().await;
    server.begin(&session, "go").await;
    question(&mut agent).await;
    let shown = events.until("permission.resolved").await;
    let body = &shown.last().unwrap().event["body"];
    assert_eq!((&body["outcome"], &body["by"]), (&json!("allow_once"), &json!("client")), "{body}");
    events.until("turn.completed").await;
    // The server answers first: the request to the editor is withdrawn.
    server.begin(&session, "go").await;
    let id = question(&mut agent).await;
    let open = listed(&server, &session).await;
    answer(&server, &open, "reject_once").expect(200).await;
    events.until("turn.completed").await;
    withdrawn(&mut agent, &id).await;
    drop(events);
    agent.finish().await;
    server.stop().await;
    let log = home.log(&session).await;
    assert_eq!(
        resolved(&log).iter().map(|body| body["outcome"].as_str().unwrap()).collect::<Vec<_>>(),
        ["allow_once", "reject_once"]
    );
    assert_complete(&log);
}

/// Only clients that can answer count: the question of a session that is followed from another
/// process stays open, and is denied when that client leaves.
#[tokio::test]
async fn question_stays_open_while_a_client_of_another_process_attends() {
    let home = Home::new();
    home.config("[permissions]\ntimeout_s = 5\n");
    let model = home.script(json!([says("base"), asks(), says("after"), asks(), says("after")]));
    for attendee in [Kind::Stdio, Kind::Rest, Kind::Rpc] {
        println!("{attendee:?}");
        let mut run = Peer::start(Kind::Run, &home, &model, &[]).await;
        let session = run.new_session(&home).await;
        let Peer::Run(run) = &mut run else { unreachable!() };
        let mut other = Peer::start(attendee, &home, &model, &[]).await;
        other.attend(&home, &session).await;
        run.say(json!({"type": "message", "content": "go"})).await;
        let open = other.asked(&session).await;
        let params = json!({"permissionId": open["permissionId"], "outcome": "allow_once"});
        other.call("_nuncio/permission/answer", params).await;
        assert_eq!(run.until("permission.resolved").await["body"]["outcome"], "allow_once", "{attendee:?}");
        run.until("turn.completed").await;
        // The attending process ends during a question. If a person may have used it, the deadline
        // begins.
        run.say(json!({"type": "message", "content": "go"})).await;
        other.asked(&session).await;
        other.kill().await;
        let (by, end) = match attendee {
            Kind::Stdio => {
                assert!(run.until("permission.updated").await["body"]["deadlineMs"].is_u64());
                ("deadline", "turn.cancelled")
            }
            _ => ("disconnect", "turn.completed"),
        };
        let body = run.until("permission.resolved").await["body"].clone();
        assert_eq!((&body["outcome"], &body["by"]), (&json!("denied"), &json!(by)), "{attendee:?}: {body}");
        run.until(end).await;
    }
}

/// Clients of three processes answer at the same time: one answer counts, and each client learns
/// which.
#[tokio::test]
async fn one_of_simultaneous_answers_of_three_processes_counts() {
    const ROUNDS: usize = 15;
    let (home, mut agent, session, server) = editor_and_server(ROUNDS).await;
    let other = home.serve(&[]).await;
    let mut streams = [server.follow(&session).events().await, other.follow(&session).events().await];
    agent.otherwise = Reply::Pick("allow_once");
    let mut wins = [0; 3];
    for _ in 0..ROUNDS {
        let running = agent.prompt(&session, "go").await;
        let post = async |bridge: &Bridge, events: &mut Events| {
            let asked = events.until("permission.requested").await;
            answer(bridge, &asked.last().unwrap().event["body"], "reject_once").send().await
        };
        let [one, two] = &mut streams;
        let (ended, one, two) = tokio::join!(agent.answer(&running), post(&server, one), post(&other, two));
        assert_eq!(ended.unwrap()["stopReason"], "end_turn");
        let mut outcomes = Vec::new();
        for events in &mut streams {
            let shown = events.until("turn.completed").await;
            let resolved = shown.iter().filter(|shown| shown.kind() == "permission.resolved");
            outcomes.extend(resolved.map(|shown| shown.event["body"]["outcome"].as_str().unwrap().to_string()));
        }
        assert_eq!(outcomes.len(), 2, "{outcomes:?}");
        assert_eq!(outcomes[0], outcomes[1]);
        let accepted: Vec<usize> =
            [&one, &two].iter().enumerate().filter(|(_, one)| one.status == 200).map(|(place, _)| place + 1).collect();
        let winner = if outcomes[0] == "reject_once" { accepted.clone() } else { vec![0] };
        assert!(winner.len() == 1 && accepted.len() == usize::from(winner[0] > 0), "{outcomes:?}: {one:?} {two:?}");
        for lost in [&one, &two].into_iter().filter(|answer| answer.status != 200) {
            assert!((400..500).contains(&lost.status) && lost.body.contains(&outcomes[0]), "{lost:?}");
        }
        wins[winner[0]] += 1;
        assert_eq!(agent.asked, []);
    }
    println!("{wins:?}");
    drop(streams);
    agent.finish().await;
    server.stop().await;
    other.stop().await;
    let log = home.log(&session).await;
    assert_eq!(resolved(&log).len(), ROUNDS);
    assert_complete(&log);
}
