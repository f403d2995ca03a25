//! Permission requests wait while a person's client is attached. Otherwise a deadline ends the turn.

use serde_json::{Value, json};

use harness::log::bodies;
use harness::steps::{bash, bash_call, calls};
use harness::{Agent, Events, Home, Reply, RunningCommand, Server, tool};

/// Settings that ask about `touch`, with this deadline in seconds.
fn deadline(seconds: u32) -> String {
    format!("[permissions]\ntimeout_s = {seconds}\nrules = [{{ pattern = \"touch *\", policy = \"ask\" }}]\n")
}

/// Waits longer than the deadline of all requests that are open now: for that of a new request.
async fn pass_deadline(home: &Home) {
    let (mut agent, session) = home.session_of_program(json!([bash("touch later")]), &[]).await;
    agent.otherwise = Reply::Never;
    assert_eq!(agent.turn(&session, "go").await.0, "cancelled");
    agent.finish().await;
}

async fn until_asked(agent: &mut Agent) -> Value {
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await
}

/// A server whose session asks for `touch made`, and a plain stream of it.
async fn asking_server(home: &Home) -> (Server, String, Events) {
    asking_server_with(home, json!([bash("touch made"), {"text": "after"}])).await
}

async fn asking_server_with(home: &Home, steps: Value) -> (Server, String, Events) {
    let server = home.serve(&["--model", &home.script(steps)]).await;
    let session = server.new_session(home).await;
    let events = server.follow(&session).events().await;
    (server, session, events)
}

async fn interactive(server: &Server, session: &str) -> Events {
    server.get(&format!("/v1/sessions/{session}/events?interactive=true")).events().await
}

/// The body of the next event of this type.
async fn body(events: &mut Events, kind: &str) -> Value {
    events.until(kind).await.pop().unwrap().event["body"].clone()
}

#[tokio::test]
async fn editor_is_waited_for() {
    let home = Home::new();
    home.config(&deadline(1));
    let (mut agent, session) = home.session(json!([bash("touch made"), {"text": "after"}]), &[]).await;
    agent.otherwise = Reply::Never;
    let prompt = agent.prompt(&session, "go").await;
    let asked = until_asked(&mut agent).await;
    pass_deadline(&home).await;
    let answer = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    agent.raw(format!("{}\n", json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer})).as_bytes()).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn");
    agent.asked.clear();
    agent.finish().await;
    assert!(home.get("made").is_some());
    let log = home.log(&session).await;
    assert_eq!(bodies(&log, "permission.requested")[0].get("deadlineMs"), None, "{log:#?}");
    assert_eq!(bodies(&log, "permission.updated"), Vec::<&Value>::new());
}

#[tokio::test]
async fn chat_and_run_on_a_terminal_are_waited_for() {
    for arguments in [&["chat", "--plain"][..], &["run", "go"]] {
        let home = Home::new();
        home.config(&deadline(1));
        let model = home.script(json!([bash("touch made"), {"text": "the end\n"}]));
        let mut terminal = home.terminal(&[arguments, &["--model", &model]].concat());
        let is_chat = arguments[0] == "chat";
        if is_chat {
            terminal.say("go\n").await;
        }
        terminal.until("Allow").await;
        pass_deadline(&home).await;
        terminal.say(if is_chat { "/1\n" } else { "y" }).await;
        terminal.until("the end").await;
        if is_chat {
            terminal.say("/quit\n").await;
        }
        assert_eq!(terminal.end().await.0, 0);
        assert!(home.get("made").is_some());
    }
}

#[tokio::test]
async fn deadline_begins_when_the_last_person_leaves_and_ends_when_one_returns() {
    let home = Home::new();
    home.config(&deadline(5));
    let (server, session, mut events) = asking_server(&home).await;
    let people = [interactive(&server, &session).await, interactive(&server, &session).await];
    server.begin(&session, "go").await;
    let asked = body(&mut events, "permission.requested").await;
    assert_eq!(asked.get("deadlineMs"), None, "{asked}");
    let id = asked["permissionId"].as_str().unwrap();
    let [first, second] = people;
    drop(first);
    pass_deadline(&home).await;
    drop(second);
    let begun = body(&mut events, "permission.updated").await;
    assert!(begun["permissionId"] == id && begun["deadlineMs"].is_u64(), "{begun}");
    let person = interactive(&server, &session).await;
    let ended = body(&mut events, "permission.updated").await;
    assert!(ended["permissionId"] == id && ended.get("deadlineMs").is_none(), "{ended}");
    let listed = server.get("/v1/permissions").expect(200).await;
    assert_eq!(listed["permissions"][0].get("deadlineMs"), None, "{listed}");
    drop(person);
    // The deadline also applies when no client is left.
    drop(events);
    let mut events = server.follow(&session).events().await;
    let ended = body(&mut events, "turn.cancelled").await;
    assert_eq!(ended["cause"], "unanswered");
    server.stop().await;
}

/// The caller of a REST prompt, a plain stream and an observer are no people.
#[tokio::test]
async fn program_is_not_waited_for() {
    let home = Home::new();
    home.config(&deadline(1));
    let steps = json!([bash("touch made"), {"expect": "got no answer", "text": "resumed"}]);
    let (server, session, mut events) = asking_server_with(&home, steps).await;
    let ended = server.prompt(&session, "go").expect(200).await;
    assert_eq!((&ended["stopReason"], &ended["_meta"]["nuncio"]["cause"]), (&json!("cancelled"), &json!("unanswered")), "{ended}");
    let asked = body(&mut events, "permission.requested").await;
    assert!(asked["deadlineMs"].is_u64(), "{asked}");
    let resolved = body(&mut events, "permission.resolved").await;
    assert_eq!((&resolved["outcome"], &resolved["by"]), (&json!("denied"), &json!("deadline")), "{resolved}");
    let result = server.get(&format!("/v1/sessions/{session}/result")).expect(200).await;
    assert_eq!(result["lastTurn"]["cause"], "unanswered", "{result}");
    let turns = server.get(&format!("/v1/sessions/{session}/turns")).expect(200).await;
    assert_eq!(turns["turns"][0]["cause"], "unanswered", "{turns}");
    // The session continues, and the model learns what happened.
    let ended = server.prompt(&session, "again").expect(200).await;
    assert_eq!(ended["stopReason"], "end_turn", "{ended}");
    server.stop().await;
    assert_eq!(home.get("made"), None);
}

#[tokio::test]
async fn calls_of_the_answer_do_not_run() {
    let home = Home::new();
    home.config(&deadline(1));
    let steps = json!([calls(&[bash_call("touch one"), bash_call("touch two"), bash_call("touch three")])]);
    let (mut agent, session) = home.session_of_program(steps, &[]).await;
    agent.otherwise = Reply::Never;
    let (stop, updates) = agent.turn(&session, "go").await;
    assert_eq!(stop, "cancelled");
    for index in 0..3 {
        let call = tool(&updates, index);
        assert!(call.to_string().contains("not run: nobody answered"), "{call}");
    }
    agent.finish().await;
    for file in ["one", "two", "three"] {
        assert_eq!(home.get(file), None, "{file}");
    }
}

#[tokio::test]
async fn run_exits_with_4_when_nobody_answers() {
    let home = Home::new();
    home.config(&deadline(1));
    let model = home.script(json!([bash("until [ -e go ]; do sleep 0.01; done"), bash("touch made")]));
    let server = home.serve(&["--model", &model]).await;
    let mut run = RunningCommand::start(&home, &["run", "--json", "--mode", "auto", "--model", &model, "go"]);
    run.end_input();
    let started = run.until("tool.started").await;
    let _answers = server.follow(started["sessionId"].as_str().unwrap()).events().await;
    home.put("go", "");
    let (code, events) = run.end_with_events().await;
    let causes: Vec<&Value> = bodies(&events, "turn.cancelled").into_iter().map(|body| &body["cause"]).collect();
    assert_eq!((code, causes.as_slice()), (4, &[&json!("unanswered")][..]), "{events:#?}");
    server.stop().await;
}

/// Waiting takes no place among the running turns, and no time of the budget.
#[tokio::test]
async fn waiting_costs_nothing() {
    let home = Home::new();
    home.config(&format!("{}[http]\nmax_turns = 1\n[budget]\nmax_wall_s = 3\n", deadline(4)));
    let (server, session, mut events) = asking_server(&home).await;
    let _person = interactive(&server, &session).await;
    server.begin(&session, "go").await;
    let asked = body(&mut events, "permission.requested").await;
    let other = json!({"cwd": home.work(), "model": home.script(json!([{"text": "at once"}]))});
    let other = server.post("/v1/sessions", &other).expect(201).await["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(server.prompt(&other, "go").expect(200).await["stopReason"], "end_turn");
    pass_deadline(&home).await;
    let id = asked["permissionId"].as_str().unwrap();
    server.post(&format!("/v1/permissions/{id}"), &json!({"outcome": "allow_once"})).expect(200).await;
    let seen = events.until("turn.completed").await;
    let budget = seen.iter().filter(|event| event.kind() == "permission.requested").count();
    assert_eq!((budget, &seen.last().unwrap().event["body"]["stopReason"]), (0, &json!("end_turn")), "{seen:#?}");
    server.stop().await;
}

/// A client of another process is a person, too.
#[tokio::test]
async fn person_of_another_process_is_waited_for() {
    let home = Home::new();
    home.config(&deadline(10));
    let (server, session, mut events) = asking_server(&home).await;
    let other = home.serve(&[]).await;
    let mut person = interactive(&other, &session).await;
    server.begin(&session, "go").await;
    let asked = body(&mut person, "permission.requested").await;
    assert_eq!(asked.get("deadlineMs"), None, "{asked}");
    // A program of that process is none.
    let _program = other.follow(&session).events().await;
    drop(person);
    let begun = body(&mut events, "permission.updated").await;
    assert!(begun["deadlineMs"].is_u64(), "{begun}");
    let id = asked["permissionId"].as_str().unwrap();
    server.post(&format!("/v1/permissions/{id}"), &json!({"outcome": "allow_once"})).expect(200).await;
    events.until("turn.completed").await;
    server.stop().await;
    other.stop().await;
}
