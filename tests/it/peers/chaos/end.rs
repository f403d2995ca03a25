//! The end of a random history: all requests are answered, the session works, and the processes and
//! the requests agree with its log.

use serde_json::{Value, json};

use super::history::RandomHistory;
use super::requests::{Origin, Reaction, Request, Wish, collect, receive, receive_rest};
use super::rules;

impl RandomHistory<'_> {
    /// Waits until all requests are answered, and asserts that the session accepts prompts and that
    /// its log agrees with the requests.
    pub async fn finish(mut self) {
        self.group.release();
        self.actions.push("the end".into());
        self.receive_all().await;
        for number in 0..3 {
            self.probe(number).await;
        }
        self.receive_all().await;
        let view = self.group.server().get(&self.path("")).expect(200).await;
        assert_eq!((&view["status"], &view["waiting"]), (&json!("idle"), &json!(false)), "{view}");
        let queue = self.group.server().get(&self.path("/queue")).expect(200).await;
        assert_eq!(queue["messages"], json!([]), "messages of an idle session wait");
        let history = self.group.server().follow(&self.session).events().await.history().await;
        self.log = history.into_iter().map(|shown| shown.event).collect();
        self.compare().await;
        let mut broken = rules::broken(&self);
        // A prompt whose owner was killed is answered by another process, without its barrier.
        let in_order = !self.faults.kills && !self.faults.sockets;
        for number in (0..2).filter(|_| in_order) {
            broken.extend(rules::broken_answers(&self.requests, &self.log, number, &self.group.editor(number).frames));
        }
        assert!(broken.is_empty(), "{broken:#?}");
        let (first, second) = self.group.both();
        first.frames.clear();
        second.frames.clear();
    }

    /// Waits for the end of the `run` and for all answers.
    async fn receive_all(&mut self) {
        let expected = |requests: &[Request], editor: usize| -> Vec<Value> {
            let of_editor = requests.iter().filter(|request| request.origin == Origin::Editor(editor));
            let ids = of_editor.filter_map(|request| match &request.reaction {
                Reaction::Expected(id) => Some(id.clone()),
                _ => None,
            });
            ids.collect()
        };
        let ids = [0, 1].map(|editor| expected(&self.requests, editor));
        let mut exchanges = Vec::new();
        for (number, request) in self.requests.iter_mut().enumerate() {
            if let Reaction::Exchange(_) = request.reaction
                && let Reaction::Exchange(exchange) = std::mem::replace(&mut request.reaction, Reaction::Unknown)
            {
                exchanges.push((number, exchange));
            }
        }
        let run = self.run.take();
        let end = async {
            match run {
                Some(run) => Some(run.end_with_events().await),
                None => None,
            }
        };
        let [of_first, of_second] = ids;
        let (first, second) = self.group.both();
        let (reactions, (), (), ended) =
            tokio::join!(receive_rest(exchanges), receive(first, of_first), receive(second, of_second), end);
        for (number, reaction) in reactions {
            self.requests[number].reaction = reaction;
        }
        if let Some((code, events)) = ended {
            self.actions.push(format!("run ended with {code}"));
            self.printed.push(events);
        }
        for number in 0..2 {
            self.group.editor(number).call("session/list", json!({})).await;
            collect(&mut self.requests, number, &self.group.editor(number).frames);
        }
    }

    /// Sends prompts until one completes. The model fails some prompts.
    async fn probe(&mut self, number: usize) {
        for _ in 0..10 {
            let text = self.text();
            match number {
                2 => self.ask_rest(self.group.server().prompt(&self.session, &text), Wish::Prompt(text)),
                number => {
                    let params = json!({"prompt": [{"type": "text", "text": text}]});
                    self.ask(number, "session/prompt", params, Wish::Prompt(text)).await;
                }
            }
            self.receive_all().await;
            // A cancel has no answer, and another process may have sent it late.
            let cancels = self.requests.iter().any(|request| request.wish == Wish::Cancel);
            match &self.requests.last().unwrap().reaction {
                Reaction::Accepted(result) if cancels && result["stopReason"] == "cancelled" => {}
                Reaction::Accepted(result) => return assert_eq!(result["stopReason"], "end_turn"),
                Reaction::Refused(error) => {
                    let error = error.to_string();
                    let lost = self.faults.losses && error.contains("taken over");
                    assert!(lost || error.contains("HTTP 400"), "{error}");
                }
                _ => panic!("no answer"),
            }
        }
        panic!("the model fails all prompts");
    }

    /// Asserts that the processes agree on the events.
    async fn compare(&mut self) {
        let count = self
            .group
            .home
            .sql(&format!("SELECT count(*) FROM events WHERE session = (SELECT key FROM sessions WHERE id = '{}')", self.session));
        assert_eq!(count, [self.log.len().to_string()], "events in the store");
        let home = self.group.home.work();
        let mut replays = Vec::new();
        for number in 0..2 {
            let params = json!({"sessionId": self.session, "cwd": home, "mcpServers": []});
            let agent = self.group.editor(number);
            let before = agent.frames.len();
            agent.call("session/load", params).await;
            let updates = harness::session_updates(&agent.frames[before..], &self.session);
            agent.frames.truncate(before);
            replays.push(updates);
        }
        // Updates of the last turn may precede the replay.
        let common = replays[0].len().min(replays[1].len());
        let [first, second] = [0, 1].map(|number| &replays[number][replays[number].len() - common..]);
        assert_eq!(first, second, "the editors replay different events");
    }
}
