//! One random history: requests of all clients to one session, and faults.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use super::group::ProcessGroup;
use super::requests::{Origin, Reaction, Request, Wish, collect, forget};
use super::rules;
use harness::{Ask, Direction, Random, RunningCommand, bounded};

/// The faults of a history. Rules that a fault weakens are checked in the other histories.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub kills: bool,
    pub losses: bool,
    pub sockets: bool,
}

/// A random history on a session of its own.
pub struct RandomHistory<'a> {
    pub group: &'a mut ProcessGroup,
    random: Random,
    pub session: String,
    /// Begins the texts of this history.
    name: String,
    texts: usize,
    pub faults: Faults,
    /// True if the history has a `run`.
    with_run: bool,
    pub run: Option<RunningCommand>,
    /// The events that each `run` has printed.
    pub printed: Vec<Vec<Value>>,
    pub requests: Vec<Request>,
    pub actions: Vec<String>,
    pub log: Vec<Value>,
}

impl Drop for RandomHistory<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let requests: Vec<String> = self.requests.iter().map(Request::describe).collect();
            let log: Vec<String> = self.log.iter().filter_map(rules::summary).collect();
            let (actions, faults) = (&self.actions, self.faults);
            eprintln!("history {}: {faults:?}\n{actions:#?}\n{requests:#?}\n{log:#?}", self.name);
        }
    }
}

/// The actions, with their weights.
const ACTIONS: [(&str, u64); 17] = [
    ("prompt", 8),
    ("rest prompt", 3),
    ("begin", 2),
    ("message", 6),
    ("steer", 4),
    ("say", 3),
    ("cancel", 4),
    ("prompt and cancel", 2),
    ("remove", 4),
    ("edit", 4),
    ("settings", 4),
    ("close and load", 3),
    ("read", 6),
    ("slow commit", 4),
    ("kill", 2),
    ("lose", 2),
    ("socket", 5),
];

impl RandomHistory<'_> {
    pub async fn start<'a>(group: &'a mut ProcessGroup, mut random: Random, name: String) -> RandomHistory<'a> {
        let home = group.home.work();
        let params = json!({"cwd": home, "mcpServers": []});
        let session = match random.below(3) {
            2 => group.server().post("/v1/sessions", &json!({"cwd": home})).expect(201).await,
            number => group.editor(number as usize).call("session/new", params).await,
        };
        let session = session["sessionId"].as_str().unwrap().to_owned();
        let (home, session_id) = (group.home.work(), session.clone());
        for number in 0..2 {
            let params = json!({"sessionId": session_id, "cwd": home, "mcpServers": []});
            group.editor(number).call("session/load", params).await;
        }
        let mut chance = |parts| random.below(parts) == 0;
        let faults = Faults { kills: chance(2), losses: chance(3), sockets: chance(2) };
        let with_run = chance(2);
        RandomHistory {
            group,
            random,
            session,
            name,
            texts: 0,
            faults,
            with_run,
            run: None,
            printed: Vec::new(),
            requests: Vec::new(),
            actions: Vec::new(),
            log: Vec::new(),
        }
    }

    /// Returns a text that no other request has.
    pub fn text(&mut self) -> String {
        self.texts += 1;
        format!("{}.{}", self.name, self.texts)
    }

    /// Does something at random.
    pub async fn act(&mut self) {
        let total: u64 = ACTIONS.iter().map(|(_, weight)| weight).sum();
        let mut point = self.random.below(total);
        let fits = |(_, weight): &&(&str, u64)| match point.checked_sub(*weight) {
            Some(rest) => {
                point = rest;
                false
            }
            None => true,
        };
        let (name, _) = ACTIONS.iter().find(fits).expect("the point is below the total");
        self.actions.push((*name).into());
        match *name {
            "prompt" | "prompt and cancel" | "message" | "steer" | "rest prompt" | "begin" | "say" => self.send_text(name).await,
            "remove" | "edit" => self.change_queue(name).await,
            "cancel" => self.cancel().await,
            "settings" => self.change_settings().await,
            "close and load" => {
                let number = self.random.below(2) as usize;
                self.ask(number, "session/close", json!({}), Wish::Close).await;
                let params = json!({"cwd": self.group.home.work(), "mcpServers": []});
                self.ask(number, "session/load", params, Wish::Load).await;
            }
            "read" => {
                let number = self.random.below(2) as usize;
                self.group.editor(number).call("session/list", json!({})).await;
                collect(&mut self.requests, number, &self.group.editor(number).frames);
                let _ = self.run.as_mut().map(RunningCommand::drain);
            }
            _ => self.fault(name).await,
        }
    }

    /// Sends a request of an editor, without waiting for its answer.
    pub async fn ask(&mut self, editor: usize, method: &str, mut params: Value, wish: Wish) {
        params["sessionId"] = json!(self.session);
        self.actions.push(format!("  editor {editor}: {wish:?}"));
        let id = self.group.editor(editor).send(method, params).await;
        self.requests.push(Request::new(Origin::Editor(editor), wish, Reaction::Expected(id)));
    }

    /// Sends a request of REST, without waiting for its answer.
    pub fn ask_rest(&mut self, request: Ask, wish: Wish) {
        self.actions.push(format!("  rest: {wish:?}"));
        let exchange = tokio::spawn(async move { request.try_send().await });
        self.requests.push(Request::new(Origin::Rest, wish, Reaction::Exchange(exchange)));
    }

    pub fn path(&self, rest: &str) -> String {
        format!("/v1/sessions/{}{rest}", self.session)
    }

    /// Sends a prompt or a message.
    async fn send_text(&mut self, action: &str) {
        let text = self.text();
        let parts = json!([{"type": "text", "text": text}]);
        let number = self.random.below(3) as usize;
        match action {
            "prompt" | "prompt and cancel" => {
                self.ask(number % 2, "session/prompt", json!({"prompt": parts}), Wish::Prompt(text)).await;
                if action != "prompt" {
                    self.cancel_of_editor(number % 2).await;
                }
            }
            "rest prompt" => self.ask_rest(self.group.server().prompt(&self.session, &text), Wish::Prompt(text)),
            "begin" => {
                let request = self.group.server().prompt(&self.session, &text).header("prefer", "respond-async");
                self.ask_rest(request, Wish::Begin(text));
            }
            "say" if self.with_run => {
                if self.run.is_none() {
                    let arguments = [&self.group.run_arguments(&self.session)[..], &["-"]].concat();
                    self.run = Some(RunningCommand::start(&self.group.home, &arguments));
                }
                let line = json!({"type": "message", "content": text});
                let said = self.run.as_mut().unwrap().try_say(line).await;
                self.actions.push(format!("  run: {text} {said:?}"));
                self.requests.push(Request::new(Origin::Run, Wish::Message(text), Reaction::Unknown));
            }
            _ => {
                let mut params = json!({"parts": parts});
                let mut wish = Wish::Message(text);
                if let ("steer", Wish::Message(text)) = (action, &wish) {
                    params["delivery"] = json!("steer");
                    wish = Wish::Steer(text.clone());
                }
                match number {
                    2 => self.ask_rest(self.group.server().post(&self.path("/messages"), &params), wish),
                    number => self.ask(number, "_nuncio/session/message", params, wish).await,
                }
            }
        }
    }

    async fn cancel_of_editor(&mut self, number: usize) {
        self.actions.push(format!("  editor {number}: Cancel"));
        let params = json!({"sessionId": self.session});
        self.group.editor(number).notify("session/cancel", params).await;
        self.requests.push(Request::new(Origin::Editor(number), Wish::Cancel, Reaction::Unknown));
    }

    async fn cancel(&mut self) {
        match self.random.below(4) {
            3 if self.run.is_some() => {
                let _ = self.run.as_mut().unwrap().try_say(json!({"type": "interrupt"})).await;
                self.requests.push(Request::new(Origin::Run, Wish::Cancel, Reaction::Unknown));
            }
            number @ 0..=1 => self.cancel_of_editor(number as usize).await,
            _ => self.ask_rest(self.group.server().post(&self.path("/cancel"), &json!({})), Wish::Cancel),
        }
    }

    /// Returns the id of one of the last messages that were queued, which may have been delivered.
    fn queued(&mut self) -> Option<String> {
        let (kind, message) = self.group.home.store().event_columns();
        let ids = self.group.home.sql(&format!(
            "SELECT {message} FROM events WHERE session = \
             (SELECT key FROM sessions WHERE id = '{}') AND {kind} = 'message.queued' \
             ORDER BY seq DESC LIMIT 4",
            self.session
        ));
        (!ids.is_empty()).then(|| ids[self.random.below(ids.len() as u64) as usize].clone())
    }

    /// Removes or edits a queued message.
    async fn change_queue(&mut self, action: &str) {
        let Some(id) = self.queued() else { return };
        let (number, text) = (self.random.below(3) as usize, self.text());
        let path = self.path(&format!("/queue/{id}"));
        let mut params = json!({"messageId": id});
        match (action, number) {
            ("remove", 2) => self.ask_rest(self.group.server().ask("DELETE", &path), Wish::Remove(id)),
            ("remove", number) => self.ask(number, "_nuncio/session/queue/remove", params, Wish::Remove(id)).await,
            (_, 2) => {
                let body = json!({"parts": [{"type": "text", "text": text}]});
                self.ask_rest(self.group.server().ask("PUT", &path).json(&body), Wish::Edit(id, text));
            }
            (_, number) => {
                params["parts"] = json!([{"type": "text", "text": text}]);
                if self.random.below(3) == 0 {
                    params["delivery"] = json!("steer");
                }
                self.ask(number, "_nuncio/session/queue/edit", params, Wish::Edit(id, text)).await;
            }
        }
    }

    async fn change_settings(&mut self) {
        let number = self.random.below(2) as usize;
        let name = ["auto", "plan"][self.random.below(2) as usize];
        let mode = json!({ "modeId": name });
        let title = self.text();
        match self.random.below(4) {
            0 => self.ask(number, "session/set_mode", mode, Wish::Mode).await,
            1 => self.ask_rest(self.group.server().ask("PUT", &self.path("/mode")).json(&mode), Wish::Mode),
            2 => self.ask(number, "session/set_title", json!({"title": title}), Wish::Title(title)).await,
            _ => self.ask(number, "_nuncio/session/configure", json!({"title": title}), Wish::Title(title)).await,
        }
    }

    /// Makes something fail, or slow.
    async fn fault(&mut self, action: &str) {
        match action {
            "slow commit" => self.slow_commit().await,
            "kill" if self.faults.kills => self.kill().await,
            "lose" if self.faults.losses => {
                let sql = format!("UPDATE sessions SET generation = generation + 1 WHERE id = '{}'", self.session);
                self.group.home.sql(&sql);
            }
            "socket" if self.faults.sockets => {
                self.group.add_proxies();
                let action = self.random.below(6);
                self.actions
                    .push(format!("  {}", ["hold", "hold answers", "cut", "release", "release", "release"][action as usize]));
                match action {
                    0 => self.group.hold(Direction::ToOwner),
                    1 => self.group.hold(Direction::ToCaller),
                    2 => self.group.cut(),
                    _ => self.group.release(),
                }
            }
            _ => drop(self.actions.pop()),
        }
    }

    /// Locks the store against commits for some time, in which the history goes on.
    async fn slow_commit(&mut self) {
        let (store, time) = (self.group.home.store(), Duration::from_millis(5 + self.random.below(60)));
        let (locked, wait) = tokio::sync::oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let _lock = store.lock();
            let _ = locked.send(());
            let (_sender, silence) = mpsc::channel::<()>();
            let _ = silence.recv_timeout(time);
        });
        bounded("the lock of the store", wait).await.unwrap();
    }

    /// Kills a process with SIGKILL. Another one replaces it; a `run` is started by its next prompt.
    async fn kill(&mut self) {
        let session = self.session.clone();
        match self.random.below(4) {
            2 => self.group.replace_server().await,
            3 => {
                if let Some(run) = self.run.take() {
                    self.printed.push(run.kill().await);
                }
            }
            number => {
                let number = number as usize;
                let frames = self.group.replace_editor(number, &session).await;
                collect(&mut self.requests, number, &frames);
                forget(&mut self.requests, number);
            }
        }
    }
}
