//! An editor, a server and a `run` work on one session while they are killed at random, and eight
//! readers follow it: each event is seen once and in order, each turn ends, and no acknowledged
//! prompt is lost.

mod end;
mod group;
mod histories;
mod history;
mod requests;
mod rules;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{assert_complete, editor, says};
use crate::http::exactly_once::{Stage, assert_same, read};
use harness::steps::asks;
use harness::{Agent, Home, LIMIT, Random, RunningCommand, Server, bounded};

/// Full number of rounds.
const ROUNDS: u32 = 30;
const READERS: usize = 8;

fn steps() -> Value {
    let slow = json!({"text": "some words, one by one. ".repeat(4), "chunk_chars": 3, "delay_ms": 3});
    let run = json!({"text": "I look.", "tool_calls": [{"name": "list"}, {"name": "list"}]});
    let kinds = [slow.clone(), asks(), says("short"), run, slow, asks()];
    (0..1000).map(|number| kinds[number * 7 % 6].clone()).collect()
}

/// The three processes.
struct Processes {
    home: Home,
    model: String,
    session: String,
    editor: Option<Agent>,
    server: Option<Server>,
    run: Option<RunningCommand>,
    stage: watch::Sender<Stage>,
    random: Random,
    /// Number of prompts so far; each has its own text.
    prompts: usize,
    /// Texts of the prompts that were acknowledged.
    acknowledged: Vec<String>,
    /// Prompts of the current editor.
    sent: Vec<Value>,
    actions: Vec<String>,
}

async fn start_editor(home: &Home, model: &str, session: &str) -> Agent {
    let mut agent = editor(home, model, &[]).await;
    agent.load(home, session).await;
    agent
}

fn start_run(home: &Home, model: &str, session: &str) -> RunningCommand {
    RunningCommand::start(home, &["run", "--model", model, "--resume", session, "--json", "-"])
}

impl Processes {
    async fn new() -> Processes {
        let home = Home::new();
        let random = Random::new();
        let model = home.script(steps());
        let server = home.serve(&["--model", &model]).await;
        let session = server.new_session(&home).await;
        let agent = start_editor(&home, &model, &session).await;
        let run = start_run(&home, &model, &session);
        let stage = watch::Sender::new(Stage { bridge: (*server).clone(), over: false });
        Processes {
            home,
            model,
            session,
            editor: Some(agent),
            server: Some(server),
            run: Some(run),
            stage,
            random,
            prompts: 0,
            acknowledged: Vec::new(),
            sent: Vec::new(),
            actions: Vec::new(),
        }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    fn editor(&mut self) -> &mut Agent {
        self.editor.as_mut().unwrap()
    }

    fn text(&mut self) -> String {
        self.prompts += 1;
        format!("prompt {}", self.prompts)
    }

    /// A prompt by a random client.
    async fn prompt(&mut self) {
        let (text, session) = (self.text(), self.session.clone());
        let part = json!([{"type": "text", "text": text}]);
        let answer = match self.random.below(4) {
            0 => {
                let id = self.editor().prompt(&session, &text).await;
                return self.sent.push(id);
            }
            1 => return self.run.as_mut().unwrap().say(json!({"type": "message", "content": text})).await,
            2 => self.server().prompt(&session, &text).header("prefer", "respond-async").send().await,
            _ => self.server().post(&format!("/v1/sessions/{session}/messages"), &json!({"parts": part})).send().await,
        };
        if answer.status == 202 {
            self.acknowledged.push(text);
        } else {
            assert!((400..500).contains(&answer.status), "{text}: {answer:?}");
        }
    }

    /// A cancel by a random client.
    async fn cancel(&mut self) {
        let session = self.session.clone();
        match self.random.below(3) {
            0 => self.editor().notify("session/cancel", json!({"sessionId": session})).await,
            1 => self.run.as_mut().unwrap().say(json!({"type": "interrupt"})).await,
            _ => drop(self.server().post(&format!("/v1/sessions/{session}/cancel"), &json!({})).expect(200).await),
        }
    }

    /// Answers the open permission requests, by a random client. Another end of the request may be
    /// first.
    async fn answer(&mut self) {
        let open = self.server().get("/v1/permissions").expect(200).await;
        let outcome = ["allow_once", "reject_once"][self.random.below(2) as usize];
        for permission in open["permissions"].as_array().unwrap() {
            let id = permission["permissionId"].as_str().unwrap();
            if self.random.below(2) == 0 {
                let params = json!({"permissionId": id, "outcome": outcome});
                let _ = self.editor().request("_nuncio/permission/answer", params).await;
            } else {
                let answer = self.server().post(&format!("/v1/permissions/{id}"), &json!({"outcome": outcome})).send().await;
                assert!(answer.status < 500, "{answer:?}");
            }
        }
    }

    /// Kills a random process with SIGKILL and starts another one.
    async fn kill(&mut self) {
        let (home, model, session) = (&self.home, &self.model, &self.session);
        match self.random.below(3) {
            0 => {
                self.editor.take().unwrap().kill().await;
                self.sent.clear();
                self.editor = Some(start_editor(home, model, session).await);
            }
            1 => {
                self.run.take().unwrap().kill().await;
                self.run = Some(start_run(home, model, session));
            }
            _ => {
                self.server.take().unwrap().kill().await;
                let server = home.serve(&["--model", model]).await;
                self.stage.send_replace(Stage { bridge: (*server).clone(), over: false });
                self.server = Some(server);
            }
        }
    }

    /// Reads what the processes have written, so that none of them waits for its reader.
    async fn drain(&mut self) {
        self.editor().call("session/list", json!({})).await;
        assert!(self.run.as_mut().is_none_or(RunningCommand::drain), "run ended by itself");
    }

    /// Ends the input of `run`, and answers the questions of its last turns.
    async fn end_run(&mut self) {
        let mut run = self.run.take().unwrap();
        run.end_input();
        let ended = async {
            while run.drain() {
                self.drain().await;
                self.answer().await;
            }
        };
        assert!(tokio::time::timeout(LIMIT, ended).await.is_ok(), "run does not end after {:#?}", self.actions);
        run.end().await;
    }

    /// Answers questions until no turn runs and no prompt waits.
    async fn settle(&mut self) {
        let settled = async {
            loop {
                self.drain().await;
                self.answer().await;
                let view = self.server().get(&format!("/v1/sessions/{}", self.session)).expect(200).await;
                let answered =
                    self.sent.iter().all(|id| self.editor.as_ref().unwrap().frames.iter().any(|frame| frame["id"] == *id));
                if view["status"] != "busy" && answered {
                    return;
                }
            }
        };
        let settled = tokio::time::timeout(LIMIT, settled).await;
        assert!(settled.is_ok(), "a turn does not end after {:#?}", self.actions);
    }

    async fn round(&mut self) {
        let action = self.random.below(12);
        let name = match action {
            0..=4 => "prompt",
            5..=6 => "cancel",
            7..=8 => "answer",
            9..=10 => "kill",
            _ => "settle",
        };
        self.actions.push(name.into());
        match name {
            "prompt" => self.prompt().await,
            "cancel" => self.cancel().await,
            "answer" => self.answer().await,
            "kill" => self.kill().await,
            _ => self.settle().await,
        }
        self.drain().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_survives_random_prompts_cancels_answers_and_kills() {
    let rounds = harness::random_cases("rounds", ROUNDS);
    let mut processes = Processes::new().await;
    let path = format!("/v1/sessions/{}/events", processes.session);
    let readers: Vec<_> =
        (0..READERS).map(|_| tokio::spawn(read(path.clone(), processes.stage.subscribe(), processes.random.another()))).collect();
    for _ in 0..rounds {
        processes.round().await;
    }
    processes.settle().await;
    processes.end_run().await;
    // Messages that wait after a cancelled turn are delivered first in the next turn.
    let session = processes.session.clone();
    loop {
        let answer = processes.server().prompt(&session, "last").header("prefer", "respond-async").send().await;
        if answer.status == 202 {
            break;
        }
        // A prompt of the editor came first.
        assert_eq!(answer.status, 409, "{answer:?}");
        processes.settle().await;
    }
    processes.acknowledged.push("last".into());
    processes.settle().await;

    processes.stage.send_modify(|stage| stage.over = true);
    let mut seen = Vec::new();
    for reader in readers {
        seen.push(bounded("the end of a reader", reader).await.unwrap());
    }
    let Processes { home, editor, server, acknowledged, actions, .. } = processes;
    editor.unwrap().finish().await;
    server.unwrap().stop().await;
    let log = home.log(&session).await;
    assert_complete(&log);
    // The end of the processes adds no event: the session was idle.
    for reader in &seen {
        let events: Vec<&Value> = reader.iter().map(|shown| &shown.event).collect();
        assert_same(&events, &log[..log.len().min(last_seq(&events))]);
    }
    for text in &acknowledged {
        let is =
            |event: &&Value| event["body"]["type"] == "message.completed" && event["body"]["parts"][0]["text"] == text.as_str();
        assert_eq!(log.iter().filter(is).count(), 1, "{text} after {actions:#?}");
    }
    let kills = actions.iter().filter(|action| *action == "kill").count();
    eprintln!("{rounds} rounds, {kills} kills, {} events, {} acknowledged prompts", log.len(), acknowledged.len());
}

fn last_seq(events: &[&Value]) -> usize {
    events.last().map_or(0, |event| event["seq"].as_u64().unwrap() as usize)
}
