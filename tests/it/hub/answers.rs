//! Answers to permission requests that come late, wrong or twice, or do not come: agents of all
//! kinds run nothing without a valid answer.

use std::path::Path;

use serde_json::{Value, json};

use super::native::native;
use super::turn_ends::running;
use super::{PLAYED, allowed, bodies, played, trust};
use harness::steps::bash;
use harness::{Agent, Bridge, Home, Reply};

/// The kinds, each with a word in the command line of its process.
fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLAYED.into_iter().chain([("fake", "scripted:")])
}

/// A turn of a hosted agent that waits for the answer to the command `touch made`, with two clients.
struct WaitingTurn {
    kind: &'static str,
    home: Home,
    agent: Agent,
    bridge: Bridge,
    session: String,
    /// The id of the prompt's request.
    prompt: Value,
    /// The client's request with the question.
    question: Value,
    permission: String,
}

/// Starts nuncio with both transports. The client answers no question.
async fn start(home: &Home, interactive: bool) -> (Agent, Bridge) {
    let (mut agent, bridge) = home.start_with_bridge(&["--mode", "ask"]).await;
    agent.call("initialize", json!({"protocolVersion": 1, "_meta": {"nuncio": {"interactive": interactive}}})).await;
    agent.otherwise = Reply::Never;
    (agent, bridge)
}

/// Creates a session and starts its turn. Returns the ids of the session and the prompt, and the
/// request with the question.
async fn ask(agent: &mut Agent, cwd: &Path) -> (String, Value, Value) {
    let params = json!({"cwd": cwd, "mcpServers": [], "_meta": {"nuncio": {"agent": "other"}}});
    let session = agent.call("session/new", params).await["sessionId"].as_str().unwrap().to_owned();
    let prompt = agent.prompt(&session, "run touch made").await;
    let question = agent.until_question().await;
    (session, prompt, question)
}

async fn open(bridge: &Bridge, session: &str) -> Vec<String> {
    let listed = bridge.get(&format!("/v1/permissions?sessionId={session}")).expect(200).await;
    let ids = listed["permissions"].as_array().unwrap().iter();
    ids.map(|permission| permission["permissionId"].as_str().unwrap().to_owned()).collect()
}

impl WaitingTurn {
    async fn new(kind: &'static str, settings: &str) -> WaitingTurn {
        let home = Home::new();
        let agent = match PLAYED.iter().find(|(played, _)| *played == kind) {
            Some((_, script)) => played("other", kind, script, &[]),
            // With settings of its own, so that its deadline is later.
            None => {
                let agent = native(&home, "other", json!([bash("touch made"), {"text": "done"}, {"text": "done"}]));
                format!("{agent}env = {{ NUNCIO_HOME = {:?} }}\n", home.work().with_file_name("inner"))
            }
        };
        home.config(&(allowed(&["other"]) + &agent + settings));
        trust(&home).await;
        let (mut agent, bridge) = start(&home, settings.is_empty()).await;
        let (session, prompt, question) = ask(&mut agent, &home.work()).await;
        let permission = open(&bridge, &session).await.remove(0);
        WaitingTurn { kind, home, agent, bridge, session, prompt, question, permission }
    }

    /// Answers over stdio.
    async fn reply(&mut self, kind: &str) {
        reply(&mut self.agent, &self.question, kind).await;
    }

    /// Answers over HTTP. Returns the status.
    async fn post(&self, permission: &str, answer: Value) -> u16 {
        self.bridge.post(&format!("/v1/permissions/{permission}"), &answer).send().await.status
    }

    /// Waits for the end of the turn. Returns its stop reason or the code of its error.
    async fn end(&mut self) -> String {
        let ended = self.agent.answer(&self.prompt).await;
        let end = ended.map_or_else(|error| error["data"]["code"].clone(), |result| result["stopReason"].clone());
        end.as_str().unwrap().to_owned()
    }

    /// Asserts that late answers of both clients have no effect, that the session still works, and
    /// that the log has the one resolution of the question.
    async fn was_refused(mut self, outcome: &str, by: &str) {
        let kind = self.kind;
        self.reply("allow_once").await;
        assert_eq!(self.post(&self.permission, json!({"outcome": "allow_once"})).await, 404, "{kind}");
        self.agent.otherwise = Reply::Pick("reject_once");
        let (stop, _) = self.agent.turn(&self.session, "say").await;
        assert_eq!((stop.as_str(), self.home.get("made")), ("end_turn", None), "{kind}");
        self.agent.finish().await;
        let resolved = resolutions(&self.home, &self.session, &self.permission).await;
        assert_eq!(resolved, [(outcome.to_owned(), by.to_owned())], "{kind}");
    }
}

/// Answers a question with its option of a kind.
async fn reply(agent: &mut Agent, question: &Value, kind: &str) {
    let options = question["params"]["options"].as_array().unwrap();
    let option = options.iter().find(|option| option["kind"] == kind).unwrap();
    respond(agent, &question["id"], &option["optionId"]).await;
}

async fn respond(agent: &mut Agent, id: &Value, option: &Value) {
    let result = json!({"outcome": {"outcome": "selected", "optionId": option}});
    agent.asked.retain(|(asked, _)| asked != id);
    agent.may_cross = true;
    agent.raw(format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "result": result})).as_bytes()).await;
}

/// The outcomes of a question in the log, and who decided.
async fn resolutions(home: &Home, session: &str, permission: &str) -> Vec<(String, String)> {
    let resolved = bodies(home, session, &["permission.resolved"]).await.into_iter();
    let of_question = resolved.filter(|body| body["permissionId"] == permission);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    of_question.map(|body| (text(&body["outcome"]), text(&body["by"]))).collect()
}

#[tokio::test]
async fn answer_after_a_cancel_has_no_effect() {
    for (kind, _) in kinds() {
        let mut asked = WaitingTurn::new(kind, "").await;
        asked.agent.notify("session/cancel", json!({"sessionId": asked.session})).await;
        assert_eq!(asked.end().await, "cancelled", "{kind}");
        asked.was_refused("cancelled", "cancel").await;
    }
}

#[tokio::test]
async fn answer_after_the_deadline_has_no_effect() {
    for (kind, _) in kinds() {
        let mut asked = WaitingTurn::new(kind, "[permissions]\ntimeout_s = 3\n").await;
        assert_eq!(asked.end().await, "cancelled", "{kind}");
        asked.was_refused("denied", "deadline").await;
    }
}

#[tokio::test]
async fn second_answer_has_no_effect() {
    for (kind, _) in kinds() {
        // Another client answers first.
        let mut asked = WaitingTurn::new(kind, "").await;
        assert_eq!(asked.post(&asked.permission, json!({"outcome": "reject_once"})).await, 200, "{kind}");
        asked.reply("allow_once").await;
        assert_eq!(asked.end().await, "end_turn", "{kind}");
        asked.was_refused("reject_once", "owner").await;
        // The same client answers twice.
        let mut asked = WaitingTurn::new(kind, "").await;
        asked.reply("reject_once").await;
        asked.reply("allow_once").await;
        assert_eq!(asked.end().await, "end_turn", "{kind}");
        asked.was_refused("reject_once", "client").await;
    }
}

#[tokio::test]
async fn one_of_two_concurrent_answers_counts() {
    for (kind, _) in kinds() {
        let mut asked = WaitingTurn::new(kind, "").await;
        let rejecting = asked.bridge.post(&format!("/v1/permissions/{}", asked.permission), &json!({"outcome": "reject_once"}));
        let (answer, ()) = tokio::join!(rejecting.send(), reply(&mut asked.agent, &asked.question, "allow_once"));
        assert_eq!(asked.end().await, "end_turn", "{kind}");
        asked.agent.finish().await;
        let resolved = resolutions(&asked.home, &asked.session, &asked.permission).await;
        let expected = if answer.status == 200 { ("reject_once", "owner") } else { ("allow_once", "client") };
        assert_eq!(resolved, [(expected.0.to_owned(), expected.1.to_owned())], "{kind}: {answer:?}");
        assert_eq!(asked.home.get("made").is_some(), answer.status == 404, "{kind}: {answer:?}");
    }
}

#[tokio::test]
async fn wrong_answers_are_refused() {
    for (kind, _) in kinds() {
        let mut asked = WaitingTurn::new(kind, "").await;
        let id = asked.question["id"].clone();
        // A request with another id was never sent.
        respond(&mut asked.agent, &json!(987_654), &json!("yes")).await;
        for (permission, answer, status) in [
            (asked.permission.as_str(), json!({"optionId": "no_such_option"}), 400),
            (&asked.permission, json!({"outcome": "cancelled"}), 400),
            (&asked.permission, json!({}), 400),
            ("perm_unknown", json!({"outcome": "allow_once"}), 404),
        ] {
            assert_eq!(asked.post(permission, answer.clone()).await, status, "{kind}: {permission} {answer}");
        }
        assert_eq!(open(&asked.bridge, &asked.session).await, [asked.permission.as_str()], "{kind}");
        respond(&mut asked.agent, &id, &json!("no_such_option")).await;
        assert_eq!(asked.end().await, "end_turn", "{kind}");
        asked.was_refused("denied", "client").await;
    }
}

#[tokio::test]
async fn answer_counts_only_for_its_session() {
    for (kind, _) in kinds() {
        let mut asked = WaitingTurn::new(kind, "").await;
        let directory = asked.home.put("sub/file", "").parent().unwrap().to_owned();
        let (second, prompt, question) = ask(&mut asked.agent, &directory).await;
        reply(&mut asked.agent, &question, "allow_once").await;
        assert_eq!(asked.agent.answer(&prompt).await.unwrap()["stopReason"], "end_turn", "{kind}");
        // The agent runs what a client has allowed.
        assert_eq!((asked.home.get("sub/made").is_some(), asked.home.get("made")), (true, None), "{kind}");
        assert_eq!(open(&asked.bridge, &second).await, [""; 0], "{kind}");
        assert_eq!(open(&asked.bridge, &asked.session).await, [asked.permission.as_str()], "{kind}");
        asked.reply("reject_once").await;
        assert_eq!(asked.end().await, "end_turn", "{kind}");
        asked.was_refused("reject_once", "client").await;
    }
}

#[tokio::test]
async fn question_is_denied_when_the_client_disconnects() {
    for (kind, _) in kinds() {
        let WaitingTurn { home, agent, session, permission, .. } = WaitingTurn::new(kind, "").await;
        agent.finish().await;
        assert_eq!(home.get("made"), None, "{kind}");
        assert_eq!(resolutions(&home, &session, &permission).await, [("denied".into(), "disconnect".into())], "{kind}");
    }
}

#[tokio::test]
async fn question_ends_when_the_agent_crashes() {
    for (kind, word) in kinds() {
        let mut asked = WaitingTurn::new(kind, "").await;
        let agents = running(&asked.agent.marker, word);
        assert_eq!(agents.len(), 1, "{kind}");
        rustix::process::kill_process(rustix::process::Pid::from_raw(agents[0] as i32).unwrap(), rustix::process::Signal::KILL)
            .unwrap();
        assert_eq!(asked.end().await, "agent_unavailable", "{kind}");
        asked.was_refused("cancelled", "cancel").await;
    }
}

#[tokio::test]
async fn question_ends_when_nuncio_is_killed() {
    for (kind, _) in kinds() {
        let asked = WaitingTurn::new(kind, "").await;
        asked.agent.kill().await;
        let (agent, bridge) = start(&asked.home, true).await;
        let mut asked = WaitingTurn { agent, bridge, ..asked };
        assert_eq!(asked.post(&asked.permission, json!({"outcome": "allow_once"})).await, 404, "{kind}");
        asked.agent.load(&asked.home, &asked.session).await;
        assert_eq!(bodies(&asked.home, &asked.session, &["turn.interrupted"]).await.len(), 1, "{kind}");
        asked.was_refused("cancelled", "interrupted").await;
    }
}
