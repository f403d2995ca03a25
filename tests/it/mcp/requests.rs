//! Requests of MCP servers during a call: forms for the user, and requests to the model.

use serde_json::{Value, json};

use super::{setting, text};
use harness::log::bodies;
use harness::steps::calls_one;
use harness::steps::{says, task};
use harness::subagents::define;
use harness::{Agent, Home, Reply, notices, tool};

fn home(more: &str) -> Home {
    let home = Home::new();
    home.config(&format!("{}{more}", setting("docs", &["asks"])));
    home
}

/// A call that shows a form with these fields.
fn ask(properties: Value, required: Value) -> Value {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    calls_one("mcp__docs__ask", json!({"message": "What now?", "schema": schema}))
}

fn sure() -> Value {
    ask(json!({"sure": {"type": "boolean", "description": "Are you?"}}), json!(["sure"]))
}

/// The answer to a form of a finished call, or the error.
fn answer(call: &Value) -> Value {
    serde_json::from_str(&text(call)).unwrap_or_else(|_| panic!("{call}"))
}

/// Starts an agent whose client has these capabilities, and creates a session in mode auto.
async fn session(home: &Home, steps: Value, capabilities: Value) -> (Agent, String) {
    let model = home.script(steps);
    let mut agent = home.start(&["--model", &model, "--mode", "auto"]).await;
    agent.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await;
    let session = agent.new_session(home).await;
    (agent, session)
}

#[tokio::test]
async fn forms_with_one_choice_become_permission_requests() {
    let colour = json!({"colour": {"type": "string", "enum": ["red", "green"]}, "note": {"type": "string"}});
    let cases = [
        (ask(json!({}), json!([])), "accept", json!({"action": "accept", "content": {}})),
        (ask(json!({}), json!([])), "decline", json!({"action": "decline"})),
        (sure(), "yes", json!({"action": "accept", "content": {"sure": true}})),
        (sure(), "no", json!({"action": "accept", "content": {"sure": false}})),
        (ask(colour.clone(), json!(["colour"])), "value_2", json!({"action": "accept", "content": {"colour": "green"}})),
        (ask(colour, json!(["colour"])), "missing", json!({"action": "decline"})),
    ];
    let home = home("");
    let steps: Vec<Value> = cases.iter().map(|(step, ..)| step.clone()).collect();
    let (mut agent, id) = session(&home, json!(steps), json!({})).await;
    for (_, option, _) in &cases {
        agent.replies.push_back(Reply::Result(json!({"outcome": {"outcome": "selected", "optionId": option}})));
    }
    let (_, updates) = agent.turn(&id, "go").await;
    for (index, (_, option, expected)) in cases.iter().enumerate() {
        assert_eq!(answer(&tool(&updates, index)), *expected, "{option}");
    }
    let asked = agent.frames.iter().find(|frame| frame["method"] == "session/request_permission").unwrap();
    assert_eq!(asked["params"]["toolCall"]["title"], "docs asks: What now?", "{asked}");
    agent.finish().await;
    let log = home.log(&id).await;
    assert_eq!(bodies(&log, "permission.requested").len(), bodies(&log, "permission.resolved").len(), "{log:#?}");
}

#[tokio::test]
async fn client_with_forms_shows_any_form() {
    let home = home("");
    let fields = json!({"name": {"type": "string", "minLength": 1}, "age": {"type": "integer"}});
    let step = ask(fields.clone(), json!(["name"]));
    let capabilities = json!({"elicitation": {"form": {}}});
    let (mut agent, id) = session(&home, json!([step.clone(), step.clone(), step.clone(), step]), capabilities).await;
    let accepted = json!({"action": "accept", "content": {"name": "Ada", "age": 36}});
    for result in [accepted.clone(), json!({"action": "decline"}), json!({"action": "cancel"})] {
        agent.forms.push_back(result);
    }
    let prompt = agent.prompt(&id, "go").await;
    let form = agent.until("a form", |frame| frame["method"] == "elicitation/create").await["params"].clone();
    assert_eq!((&form["mode"], &form["sessionId"], &form["message"]), (&json!("form"), &json!(id), &json!("docs: What now?")));
    assert_eq!(form["requestedSchema"]["properties"], fields, "{form}");
    let shown = |frame: &Value| frame["method"] == "elicitation/create";
    for _ in 0..3 {
        agent.until("a form", shown).await;
    }
    // The last form has no answer; the cancelled turn withdraws it.
    agent.notify("session/cancel", json!({"sessionId": id})).await;
    agent.may_cross = true;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "cancelled");
    let updates = agent.updates(&id);
    assert_eq!(form["toolCallId"], tool(&updates, 0)["toolCallId"]);
    let answers: Vec<Value> = (0..3).map(|index| answer(&tool(&updates, index))).collect();
    assert_eq!(answers, [accepted, json!({"action": "decline"}), json!({"action": "cancel"})]);
    assert_eq!(tool(&updates, 3)["status"], "failed");
    agent.finish().await;
}

#[tokio::test]
async fn page_is_opened_by_clients_that_support_it() {
    let page = |url: &str| calls_one("mcp__docs__ask", json!({"message": "Sign in.", "url": url}));
    let (url, accept) = ("https://login.example/?code=1", json!({"action": "accept"}));
    let steps = json!([page(url), page(url), page("file:///etc/passwd"), {"text": "end"}]);
    let home = home("");
    let (mut agent, id) = session(&home, steps.clone(), json!({"elicitation": {"url": {}}})).await;
    agent.forms.extend([accept.clone(), json!({"action": "decline"})]);
    let (_, updates) = agent.turn(&id, "go").await;
    let shown: Vec<&Value> = agent.frames.iter().filter(|frame| frame["method"] == "elicitation/create").collect();
    assert_eq!(shown.len(), 2, "{shown:#?}");
    let params = json!({
        "mode": "url", "sessionId": id, "toolCallId": tool(&updates, 0)["toolCallId"], "elicitationId": "login-1", "url": url,
        "message": "docs: Sign in.",
    });
    assert_eq!(shown[0]["params"], params);
    let answers: Vec<Value> = (0..3).map(|index| answer(&tool(&updates, index))).collect();
    assert_eq!(answers, [accept.clone(), json!({"action": "decline"}), json!({"action": "decline"})]);
    agent.finish().await;
    // Other clients show the address in a permission request.
    let (mut agent, id) = session(&home, steps, json!({"elicitation": {"form": {}}})).await;
    agent.replies.extend([Reply::Pick("allow_once"), Reply::Pick("reject_once")]);
    let (_, updates) = agent.turn(&id, "go").await;
    let asked = agent.frames.iter().find(|frame| frame["method"] == "session/request_permission").unwrap();
    assert!(asked["params"]["toolCall"]["content"].to_string().contains(url), "{asked}");
    let answers: Vec<Value> = (0..3).map(|index| answer(&tool(&updates, index))).collect();
    assert_eq!(answers, [accept, json!({"action": "decline"}), json!({"action": "decline"})]);
    agent.finish().await;
}

#[tokio::test]
async fn forms_that_no_client_can_answer_are_declined() {
    let several = ask(json!({"a": {"type": "string"}, "b": {"type": "number"}}), json!(["a", "b"]));
    let home = home("");
    let steps = json!([several, {"text": "end"}]);
    let (mut agent, id) = session(&home, steps, json!({"session": {"notices": {}}})).await;
    let (_, updates) = agent.turn(&id, "go").await;
    assert_eq!(answer(&tool(&updates, 0)), json!({"action": "decline"}));
    assert_eq!(notices(&updates), ["docs asks: What now?"]);
    agent.finish().await;
    // Without a client.
    let model = home.script(json!([sure()]));
    let ran = home.run(&["run", "--json", "--mode", "auto", "--model", &model, "go"], "").await;
    let lines = ran.lines();
    let output = bodies(&lines, "tool.completed")[0]["output"][0]["text"].clone();
    assert_eq!((ran.code, output), (0, json!(r#"{"action": "decline"}"#)), "{lines:#?}");
}

/// While a question is open, the call does not time out; the question has its own deadline.
#[tokio::test]
async fn question_without_an_answer_ends_at_the_deadline() {
    let home = home("timeout_s = 3\n[permissions]\ntimeout_s = 5\n");
    let (mut agent, id) = home.session_of_program(json!([sure()]), &["--mode", "auto"]).await;
    agent.otherwise = Reply::Never;
    assert_eq!(agent.turn(&id, "go").await.0, "cancelled");
    assert!(agent.asked.is_empty(), "the question is withdrawn");
    agent.finish().await;
}

#[tokio::test]
async fn cancelled_turn_withdraws_the_question() {
    let home = home("");
    let (mut agent, id) = session(&home, json!([sure()]), json!({})).await;
    agent.otherwise = Reply::Never;
    let prompt = agent.prompt(&id, "go").await;
    agent.until("a question", |frame| frame["method"] == "session/request_permission").await;
    agent.notify("session/cancel", json!({"sessionId": id})).await;
    assert_eq!(agent.answer(&prompt).await.unwrap()["stopReason"], "cancelled");
    assert!(agent.asked.is_empty(), "the question is withdrawn");
    agent.finish().await;
    let log = home.log(&id).await;
    assert_eq!(bodies(&log, "permission.resolved")[0]["outcome"], "cancelled", "{log:#?}");
}

#[tokio::test]
async fn terminal_shows_the_values_of_a_form() {
    let home = home("");
    let colour = json!({"colour": {"type": "string", "enum": ["red", "green"]}});
    let model = home.script(json!([ask(colour, json!(["colour"])), says("green", "It is green.")]));
    let mut terminal = home.terminal(&["run", "--mode", "auto", "--model", &model, "go"]);
    terminal.until("[1] red  [2] green  [n]o: ").await;
    terminal.say("y").await;
    terminal.until_times("[n]o: ", 2).await;
    terminal.say("2").await;
    let (code, shown) = terminal.end().await;
    assert!(code == 0 && shown.contains("It is green."), "{shown}");
}

#[tokio::test]
async fn form_of_a_subagent_is_shown_by_the_parent() {
    let home = home("");
    define(&home, "worker", "", json!([sure(), says("accept", "it was accepted")]));
    let steps = json!([{"tool_calls": [task("worker", "work")]}, says("it was accepted", "ok")]);
    let (mut agent, id) = session(&home, steps, json!({})).await;
    assert_eq!(agent.turn(&id, "go").await.0, "end_turn");
    let asked = agent.frames.iter().find(|frame| frame["method"] == "session/request_permission").unwrap();
    assert_eq!(asked["params"]["toolCall"]["title"], "worker: docs asks: What now?", "{asked}");
    agent.finish().await;
}

fn sample(messages: Value, more: Value) -> Value {
    let mut input = json!({ "messages": messages });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    calls_one("mcp__docs__sample", input)
}

fn question() -> Value {
    sample(json!([["user", "How many?"]]), json!({}))
}

#[tokio::test]
async fn sampling_is_off_by_default() {
    let home = home("");
    let (mut agent, id) = session(&home, json!([calls_one("mcp__docs__client", json!({})), question()]), json!({})).await;
    let (_, updates) = agent.turn(&id, "go").await;
    let capabilities = answer(&tool(&updates, 0));
    assert!(capabilities["sampling"].is_null() && capabilities["elicitation"]["form"].is_object(), "{capabilities}");
    assert_eq!(answer(&tool(&updates, 1))["code"], -32601);
    agent.finish().await;
}

#[tokio::test]
async fn sampling_runs_on_the_model_of_the_session() {
    let home = home("sampling = true\n");
    let messages = json!([["user", "How many?"], ["assistant", "Of what?"], ["user", "Of all."]]);
    let steps = json!([
        calls_one("mcp__docs__client", json!({})),
        sample(messages, json!({})),
        {"expect": "You sample.\nHow many?\nOf what?\nOf all.", "text": "Forty-two."},
        sample(json!([["user", "Tell me all."]]), json!({"maxTokens": 2})),
        {"text": "It is a very long story."},
        sample(json!([["user", "x".repeat(300_000)]]), json!({})),
        sample(json!([["assistant", "I begin."]]), json!({})),
        says("Forty-two.", "end"),
    ]);
    let (mut agent, id) = session(&home, steps, json!({})).await;
    let (_, updates) = agent.turn(&id, "go").await;
    assert!(answer(&tool(&updates, 0))["sampling"].is_object());
    let reply = answer(&tool(&updates, 1));
    assert_eq!((&reply["role"], &reply["stopReason"]), (&json!("assistant"), &json!("endTurn")), "{reply}");
    assert_eq!(reply["content"]["text"], "Forty-two.", "{reply}");
    assert!(reply["model"].as_str().unwrap().starts_with("scripted:"), "{reply}");
    let reply = answer(&tool(&updates, 2));
    assert_eq!((&reply["content"]["text"], &reply["stopReason"]), (&json!("It is a "), &json!("maxTokens")), "{reply}");
    assert!(text(&tool(&updates, 3)).contains("the messages have 300011 bytes"), "{}", tool(&updates, 3));
    assert!(text(&tool(&updates, 4)).contains("must be messages of the user"), "{}", tool(&updates, 4));
    agent.finish().await;
    let log = home.log(&id).await;
    // One for each answer of a step, and one for the complete answer to the server.
    assert_eq!(bodies(&log, "usage.updated").len(), bodies(&log, "step.started").len() + 1, "{log:#?}");
}

#[tokio::test]
async fn rules_and_the_user_decide_about_sampling() {
    let rule = "sampling = true\n[[permissions.rules]]\ntool = \"mcp__docs__sampling\"\npolicy = ";
    let cases =
        [("deny", "", "denied by a rule"), ("ask", "reject_once", "denied by the user"), ("ask", "allow_once", "Forty-two.")];
    for (policy, reply, expected) in cases {
        let home = home(&format!("{rule}\"{policy}\"\n"));
        let (mut agent, id) = session(&home, json!([question(), {"text": "Forty-two."}]), json!({})).await;
        agent.otherwise = Reply::Pick(reply);
        let (_, updates) = agent.turn(&id, "go").await;
        assert!(text(&tool(&updates, 0)).contains(expected), "{policy} {reply}: {}", tool(&updates, 0));
        let asked: Vec<&Value> = agent.frames.iter().filter(|frame| frame["method"] == "session/request_permission").collect();
        assert_eq!(asked.len(), usize::from(policy == "ask"));
        assert!(asked.iter().all(|asked| asked["params"].to_string().contains("How many?")), "{asked:?}");
        agent.finish().await;
    }
}

/// Hooks change the messages of a request, or block it.
#[tokio::test]
async fn hooks_run_before_sampling() {
    let text = |text: &str| json!({"messages": [{"role": "user", "parts": [{"type": "text", "text": text}]}]});
    let cases = [
        (format!("echo '{}'", text("How many XXXX?")), json!({"expect": "How many XXXX?", "text": "Forty-two."}), "Forty-two."),
        ("echo a secret >&2; exit 2".to_owned(), json!({"text": "the end"}), "a secret"),
    ];
    for (action, next, expected) in cases {
        // Only the request of the server consists of one message with this text.
        let script = format!(r#"case "$(cat)" in *'"messages":[{{'*'"How many?"}}]}}]'*) {action};; esac"#);
        let hook = "[[hooks]]\nevent = \"prompt.messages.transform\"\non_failure = \"closed\"\n";
        let home = home(&format!("sampling = true\n{hook}command = [\"sh\", \"-c\", {}]\n", json!(script)));
        let (mut agent, id) = session(&home, json!([question(), next]), json!({})).await;
        let (_, updates) = agent.turn(&id, "go").await;
        assert!(super::text(&tool(&updates, 0)).contains(expected), "{expected}: {}", tool(&updates, 0));
        agent.finish().await;
    }
}

#[tokio::test]
async fn budget_limits_sampling() {
    for (reply, expected) in [("reject_once", "the budget is used up"), ("allow_once", "Forty-two.")] {
        let home = home("sampling = true\n[budget]\nmax_requests = 1\n");
        let (mut agent, id) = session(&home, json!([question(), {"text": "Forty-two."}, {"text": "end"}]), json!({})).await;
        agent.otherwise = Reply::Pick(reply);
        let (_, updates) = agent.turn(&id, "go").await;
        assert!(text(&tool(&updates, 0)).contains(expected), "{reply}: {}", tool(&updates, 0));
        agent.finish().await;
    }
}
