//! One session with many clients: an editor on standard input and output, and HTTP clients of the
//! same process.

use serde_json::{Value, json};

use harness::{Agent, Bridge, Events, Home, Reply, StreamEvent, text};

/// An editor that does not answer permission requests by default, the HTTP API of the same process,
/// a session, and the streams of a controller and an observer.
struct SharedSession {
    home: Home,
    agent: Agent,
    bridge: Bridge,
    observer: Bridge,
    session: String,
    streams: [Events; 2],
}

impl SharedSession {
    async fn new(steps: Value, flags: &[&str]) -> SharedSession {
        let home = Home::new();
        let model = home.script(steps);
        let (mut agent, bridge) = home.start_with_bridge(&[&["--model", &model], flags].concat()).await;
        agent.otherwise = Reply::Never;
        agent.call("initialize", json!({"protocolVersion": 1})).await;
        let session = agent.new_session(&home).await;
        let made = home.run(&["token", "new", "watcher", "--role", "observer"], "").await;
        let observer = bridge.with_token(made.stdout.trim());
        let streams = [bridge.follow(&session).events().await, observer.follow(&session).events().await];
        SharedSession { home, agent, bridge, observer, session, streams }
    }

    /// Events of both streams up to an event of type `kind`. Both streams show the same events, but
    /// for an option of the owner.
    async fn until(&mut self, kind: &str) -> Vec<StreamEvent> {
        let [one, other] = &mut self.streams;
        let shown = one.until(kind).await;
        let expected: Vec<StreamEvent> = shown.iter().cloned().map(without_owner_option).collect();
        assert_eq!(other.until(kind).await, expected);
        shown
    }

    /// Waits for a permission request to the editor and returns the id of the request.
    async fn permission_requested(&mut self) -> String {
        self.agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
        self.until("permission.requested").await.last().unwrap().event["body"]["permissionId"].as_str().unwrap().into()
    }

    async fn finish(self) -> Vec<Value> {
        self.agent.finish().await;
        for mut events in self.streams {
            events.rest().await;
        }
        self.home.log(&self.session).await
    }
}

/// What a client without the owner's token sees of an event: not the option that changes settings.
fn without_owner_option(mut shown: StreamEvent) -> StreamEvent {
    if let Some(options) = shown.event["body"].get_mut("options").and_then(Value::as_array_mut) {
        options.retain(|option| option["optionId"] != "allow_project");
    }
    shown
}

/// Steps that request permission, each for a different command.
fn permission_steps(count: usize) -> Value {
    let call = |number: usize| json!({"name": "bash", "input": {"command": format!("echo {number}")}});
    (0..count).flat_map(|number| [json!({"tool_calls": [call(number)]}), json!({"text": format!("said {number}")})]).collect()
}

fn resolved(shown: &[StreamEvent]) -> &Value {
    let resolved: Vec<&StreamEvent> = shown.iter().filter(|shown| shown.kind() == "permission.resolved").collect();
    assert_eq!(resolved.len(), 1, "{shown:#?}");
    &resolved[0].event["body"]
}

#[tokio::test]
async fn every_client_sees_each_event_once() {
    let say = |text: &str| json!({"text": text, "chunk_chars": 1, "delay_ms": 1});
    let mut shared = SharedSession::new(json!([say("abcdefghij"), say("klmnopqrst"), say("uvwxyz")]), &[]).await;
    let session = shared.session.clone();
    // The editor prompts, then an HTTP client, then an HTTP client that disconnects.
    assert_eq!(shared.agent.turn(&session, "a").await.0, "end_turn");
    let mut seen = shared.until("turn.completed").await;
    shared.bridge.prompt(&session, "b").expect(200).await;
    seen.extend(shared.until("turn.completed").await);
    let connection = shared.bridge.prompt(&session, "c").open().await;
    seen.extend(shared.until("turn.started").await);
    drop(connection);
    seen.extend(shared.until("turn.completed").await);
    while !text(&shared.agent.updates(&session), "agent_message_chunk").ends_with("uvwxyz") {
        shared.agent.until_update("agent_message_chunk").await;
    }
    let updates = shared.agent.updates(&session);
    assert_eq!(text(&updates, "agent_message_chunk"), "abcdefghijklmnopqrstuvwxyz");
    assert!(text(&updates, "user_message_chunk").ends_with("bc"), "{updates:?}");
    let log = shared.finish().await;
    assert_eq!(seen.iter().map(|shown| shown.event.clone()).collect::<Vec<_>>(), log);
}

#[tokio::test]
async fn http_client_answers_permission_first() {
    let mut shared = SharedSession::new(permission_steps(1), &[]).await;
    let session = shared.session.clone();
    let prompt = shared.agent.prompt(&session, "go").await;
    let id = shared.permission_requested().await;
    let answer = |bridge: &Bridge, body: Value| bridge.post(&format!("/v1/permissions/{id}"), &body);
    let listed = shared.observer.get(&format!("/v1/permissions?sessionId={session}")).expect(200).await;
    assert_eq!(listed["permissions"][0]["permissionId"], id.as_str());
    assert_eq!(shared.bridge.get(&format!("/v1/sessions/{session}")).expect(200).await["waiting"], true);
    // An answer from an observer and invalid answers leave the request open.
    let yes = json!({"outcome": "allow_once"});
    assert_eq!(answer(&shared.observer, yes.clone()).send().await.error(), (403, "forbidden".into()));
    for wrong in [json!({}), json!({"optionId": "nothing"}), json!({"outcome": "maybe"}), json!({"optionId": 7})] {
        assert_eq!(answer(&shared.bridge, wrong).send().await.error(), (400, "invalid_params".into()));
    }
    answer(&shared.bridge, json!({"outcome": "allow_once", "reason": "looks fine"})).expect(200).await;
    let shown = shared.until("turn.completed").await;
    let body = resolved(&shown);
    assert_eq!((&body["by"], &body["outcome"], &body["reason"]), (&json!("owner"), &json!("allow_once"), &json!("looks fine")));
    // The request to the editor is withdrawn. A second answer is an error.
    shared.agent.answer(&prompt).await.unwrap();
    assert_eq!(shared.agent.asked, []);
    assert_eq!(answer(&shared.bridge, yes).send().await.error(), (404, "not_found".into()));
    shared.finish().await;
}

#[tokio::test]
async fn editor_answers_permission_first() {
    let mut shared = SharedSession::new(permission_steps(1), &[]).await;
    let session = shared.session.clone();
    shared.agent.replies.push_back(Reply::Pick("reject_once"));
    let prompt = shared.agent.prompt(&session, "go").await;
    let id = shared.permission_requested().await;
    let shown = shared.until("turn.completed").await;
    let body = resolved(&shown);
    assert_eq!((&body["by"], &body["outcome"]), (&json!("client"), &json!("reject_once")));
    let late = shared.bridge.post(&format!("/v1/permissions/{id}"), &json!({"outcome": "allow_once"})).send().await;
    assert_eq!(late.error(), (404, "not_found".into()));
    assert_eq!(shared.bridge.get("/v1/permissions").expect(200).await, json!({"permissions": []}));
    shared.agent.answer(&prompt).await.unwrap();
    shared.finish().await;
}

/// Both clients answer at the same time: one answer counts, and each client learns which.
#[tokio::test]
async fn one_of_two_simultaneous_answers_counts() {
    const ROUNDS: usize = 20;
    let mut shared = SharedSession::new(permission_steps(ROUNDS), &[]).await;
    let session = shared.session.clone();
    shared.agent.may_cross = true;
    let mut wins = [0, 0];
    for _ in 0..ROUNDS {
        shared.agent.otherwise = Reply::Pick("allow_once");
        let prompt = shared.agent.prompt(&session, "go").await;
        let (bridge, [stream, other]) = (shared.bridge.clone(), &mut shared.streams);
        let post = async {
            let asked = stream.until("permission.requested").await;
            let id = asked.last().unwrap().event["body"]["permissionId"].as_str().unwrap().to_string();
            let answer = bridge.post(&format!("/v1/permissions/{id}"), &json!({"outcome": "reject_once"})).send().await;
            (id, answer)
        };
        let (ended, (id, answer)) = tokio::join!(shared.agent.answer(&prompt), post);
        assert_eq!(ended.unwrap()["stopReason"], "end_turn");
        stream.until("turn.completed").await;
        let shown = other.until("turn.completed").await;
        let body = resolved(&shown);
        assert_eq!(body["permissionId"], id.as_str());
        let (by, outcome) = match answer.status {
            200 => ("owner", "reject_once"),
            _ => ("client", "allow_once"),
        };
        assert!(answer.status == 200 || answer.error() == (404, "not_found".into()), "{answer:?}");
        assert_eq!((body["by"].as_str(), body["outcome"].as_str()), (Some(by), Some(outcome)), "{answer:?}");
        wins[usize::from(answer.status == 200)] += 1;
        assert_eq!(shared.agent.asked, []);
    }
    println!("{wins:?}");
    let log = shared.finish().await;
    for kind in ["permission.requested", "permission.resolved"] {
        assert_eq!(log.iter().filter(|event| event["body"]["type"] == kind).count(), ROUNDS);
    }
}

/// Permission requests of a turn that an HTTP client started go to that client and to the editor.
#[tokio::test]
async fn http_client_answers_permission_of_its_own_prompt() {
    let mut shared = SharedSession::new(permission_steps(2), &[]).await;
    let session = shared.session.clone();
    for (number, form) in ["respond-async", "wait=1"].into_iter().enumerate() {
        let mut waiting = shared.bridge.prompt(&session, "go").header("prefer", form).open().await;
        let id = shared.permission_requested().await;
        shared.bridge.post(&format!("/v1/permissions/{id}"), &json!({"outcome": "allow_once"})).expect(200).await;
        let shown = shared.until("turn.completed").await;
        assert_eq!(resolved(&shown)["by"], "owner");
        assert_eq!(waiting.answer("POST").await.status, if number == 0 { 202 } else { 200 });
        shared.agent.until("the withdrawal", |frame| frame["method"] == "$/cancel_request").await;
    }
    shared.finish().await;
}
