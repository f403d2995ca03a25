//! The turns of Codex: from `turn/start` to `turn/completed`.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use super::conversation::{CodexConversation, LOGIN, refusal};
use super::update;
use crate::content::{Part, StopReason};
use crate::error::{Error, Kind, Result};
use crate::hub::events::TurnEvents;
use crate::hub::open_requests::OpenRequests;
use crate::hub::peer::{AgentMessage, Response};
use crate::hub::permission::Choice;
use crate::limits;
use crate::session::message::QueuedMessage;

/// A running turn.
#[derive(Default)]
struct RunningTurn {
    id: Option<String>,
    interrupted: bool,
    /// The last error that Codex reported.
    error: Value,
    /// `turn` of `turn/completed`.
    completed: Option<Value>,
    /// Messages of the user for this turn that Codex has not accepted yet, oldest first.
    steering: VecDeque<(QueuedMessage, oneshot::Receiver<Response>)>,
    /// Codex refused such a message.
    refuses_messages: bool,
    /// After the end, how long to wait for the answers to such messages.
    answers_until: Option<Instant>,
}

impl CodexConversation {
    /// Converts a prompt to the input of a turn. Fails if Codex does not accept a part.
    fn input(&self, parts: &[Part]) -> Result<Vec<Value>> {
        let refused = |what: &str| Error::invalid_params(format!("prompt: the agent {} does not accept {what}", self.name));
        let input = |part: &Part| match part {
            Part::Image { mime_type, data } => Ok(json!({ "type": "image", "url": format!("data:{mime_type};base64,{data}") })),
            Part::Audio { .. } => Err(refused("audio")),
            Part::Document { .. } => Err(refused("documents")),
            part => Ok(json!({ "type": "text", "text": part.as_text() })),
        };
        parts.iter().map(input).collect()
    }

    /// Starts a turn. The receiver gets the response.
    async fn begin(&self, parts: &[Part]) -> Result<oneshot::Receiver<Response>> {
        let mut params = self.state.with(|state| state.options.turn(&self.sandbox, &self.approval));
        params.insert("threadId".into(), self.thread.as_str().into());
        params.insert("input".into(), self.input(parts)?.into());
        self.peer.begin("turn/start", params.into()).await
    }

    /// Runs a turn until Codex has ended it.
    pub(super) async fn run(
        &self,
        parts: &[Part],
        events: &mut TurnEvents<'_>,
        requests: &mut OpenRequests<'_>,
    ) -> Result<StopReason> {
        let mut turn = RunningTurn::default();
        let result = self.run_turn(parts, &mut turn, events, requests).await;
        for (message, _) in turn.steering {
            events.turn().put_back(&message.message.id);
        }
        result
    }

    async fn run_turn(
        &self,
        parts: &[Part],
        turn: &mut RunningTurn,
        events: &mut TurnEvents<'_>,
        requests: &mut OpenRequests<'_>,
    ) -> Result<StopReason> {
        let cancel = events.turn().cancel.clone();
        let stderr_before = self.peer.process().stderr();
        let mut incoming = self.peer.attach();
        let mut reply = self.begin(parts).await?;
        let mut replied = false;
        let mut deadline: Option<Instant> = None;
        let completed = loop {
            // The answers to messages of the user may follow the end.
            let answered = turn.steering.is_empty() || turn.answers_until.is_some_and(|until| until <= Instant::now());
            if let Some(completed) = turn.completed.take_if(|_| answered) {
                break completed;
            }
            // The open permission requests end as cancelled, and are answered first.
            if deadline.is_some() && requests.is_empty() && !turn.interrupted {
                self.interrupt(turn).await?;
            }
            tokio::select! {
                biased;
                (id, choice) = requests.next() => self.answer(id, &choice).await,
                () = cancel.cancelled(), if deadline.is_none() => deadline = Some(Instant::now() + limits::AGENT_CANCEL),
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.peer.process().end().await;
                    return Ok(StopReason::Cancelled);
                }
                response = &mut reply, if !replied => {
                    replied = true;
                    let response = response.map_err(|_| self.peer.process().ended_error("the connection has ended".into()))?;
                    let mut response = response.map_err(|error| self.peer.refused("turn/start", &error))?;
                    turn.id = response["turn"]["id"].take().as_str().map(str::to_owned);
                }
                () = sleep_until(turn.answers_until.unwrap_or_else(Instant::now)), if turn.answers_until.is_some() => {}
                accepted = turn.accepted() => turn.deliver(accepted, events).await,
                messages = events.turn().wait_for_steered(), if turn.can_be_steered() && deadline.is_none() => {
                    self.steer(messages, turn, events).await;
                }
                Some(message) = incoming.recv() => self.receive(message, turn, requests, events).await,
                why = self.peer.process().ended() => return Err(self.peer.process().ended_error(why)),
            }
        };
        for (id, choice) in requests.end().await {
            self.answer(id, &choice).await;
        }
        // Later messages find no turn.
        incoming.close();
        while let Some(message) = incoming.recv().await {
            if let AgentMessage::Request { id, method, .. } = message {
                self.respond(id, refusal(&method)).await;
            }
        }
        if deadline.is_some() {
            return Ok(StopReason::Cancelled);
        }
        self.outcome(&completed, turn, events.active, &stderr_before).await
    }

    /// Asks Codex to end a turn, if its id is known already.
    async fn interrupt(&self, turn: &mut RunningTurn) -> Result<()> {
        let Some(id) = &turn.id else { return Ok(()) };
        let params = json!({ "threadId": self.thread, "turnId": id });
        turn.interrupted = true;
        // The end of the turn is the response that matters.
        self.peer.begin("turn/interrupt", params).await.map(drop)
    }

    /// Sends messages of the user to the running turn.
    async fn steer(&self, messages: Vec<QueuedMessage>, turn: &mut RunningTurn, events: &TurnEvents<'_>) {
        for message in messages {
            match self.input(&message.message.parts) {
                Ok(input) => {
                    let params = json!({ "threadId": self.thread, "expectedTurnId": turn.id, "input": input });
                    match self.peer.begin("turn/steer", params).await {
                        Ok(response) => turn.steering.push_back((message, response)),
                        // The process has ended, which ends the turn.
                        Err(_) => events.turn().put_back(&message.message.id),
                    }
                }
                Err(error) => events.turn().reject(message.message, error).await,
            }
        }
    }

    /// Records a notification, and starts to decide about a request.
    async fn receive(
        &self,
        incoming: AgentMessage,
        turn: &mut RunningTurn,
        requests: &mut OpenRequests<'_>,
        events: &mut TurnEvents<'_>,
    ) {
        match incoming {
            AgentMessage::Notification { method, params } => {
                // Threads of subagents have other ids.
                if params["threadId"] == self.thread.as_str() {
                    self.notified(&method, params, turn, events).await;
                }
            }
            AgentMessage::Request { id, method, params } => {
                let token = json!([method, id]);
                match update::permission_request(&method, &params, events).await {
                    Some(request) => requests.ask(&token, request),
                    None => self.respond(id, refusal(&method)).await,
                }
            }
        }
    }

    async fn notified(&self, method: &str, mut params: Value, turn: &mut RunningTurn, events: &mut TurnEvents<'_>) {
        match method {
            "turn/started" => turn.id = params["turn"]["id"].as_str().map(String::from),
            "turn/completed" => {
                turn.completed = Some(params["turn"].take());
                turn.answers_until = Some(Instant::now() + limits::AGENT_CANCEL);
            }
            "error" if params["willRetry"] == true => {
                update::notice(&format!("agent {}: trying again", self.name), &message(&params["error"]), events).await;
            }
            "error" => turn.error = params["error"].take(),
            method => {
                let mut items = self.state.with(|state| std::mem::take(&mut state.items));
                items.record(method, &params, events, &self.name).await;
                self.state.with(|state| state.items = items);
            }
        }
    }

    /// Answers a permission request.
    async fn answer(&self, token: Value, choice: &Choice) {
        let (method, id) = (token[0].as_str().unwrap_or_default(), token[1].clone());
        let response = match &choice.option_id {
            Some(option) => Ok(update::answer(method, option)),
            None => refusal(method),
        };
        self.respond(id, response).await;
    }

    async fn respond(&self, id: Value, response: Response) {
        // Fails if the process has ended, which ends the turn.
        let _ = self.peer.respond(id, response).await;
    }

    /// Returns how a turn ended that nuncio did not cancel.
    async fn outcome(&self, completed: &Value, turn: &RunningTurn, active: bool, stderr_before: &str) -> Result<StopReason> {
        let failed = |why: String| Error::new(Kind::ModelError, format!("agent {}: {why}", self.name));
        match completed["status"].as_str() {
            Some("completed") if active => Ok(StopReason::EndTurn),
            Some("completed") => Err(self.peer.process().unanswered(stderr_before).await),
            // nuncio sent no cancel: the user refused a call.
            Some("interrupted") => Ok(StopReason::Refusal),
            Some("failed") => {
                let error = if completed["error"].is_null() { &turn.error } else { &completed["error"] };
                let failed = failed(message(error));
                let info = &error["codexErrorInfo"];
                let status = info.as_object().and_then(|info| info.values().find_map(|detail| detail["httpStatusCode"].as_u64()));
                Err(match info == "unauthorized" || status == Some(401) {
                    true => Error { kind: Kind::Unauthenticated, ..failed }.hint(LOGIN),
                    false => failed,
                })
            }
            other => Err(failed(format!("unknown status of a turn: {}", other.unwrap_or("(none)")))),
        }
    }
}

impl RunningTurn {
    fn can_be_steered(&self) -> bool {
        self.id.is_some() && self.completed.is_none() && !self.refuses_messages
    }

    /// Waits until Codex has answered to the oldest message of the user. Returns whether Codex
    /// accepted the message. Cancel-safe.
    async fn accepted(&mut self) -> bool {
        match self.steering.front_mut() {
            Some((_, response)) => matches!(response.await, Ok(Ok(_))),
            None => std::future::pending().await,
        }
    }

    /// Records the oldest message of the user. One that was not accepted stays in the queue.
    async fn deliver(&mut self, accepted: bool, events: &mut TurnEvents<'_>) {
        let Some((message, _)) = self.steering.pop_front() else { return };
        if accepted {
            events.end_text().await;
            events.turn().emit(message.message.completed()).await;
        } else {
            self.refuses_messages = true;
            events.turn().put_back(&message.message.id);
        }
    }
}

/// Returns the message of an error of Codex, with its details. The message may be a JSON response
/// of the model provider; then its inner message is used.
fn message(error: &Value) -> String {
    let message = error["message"].as_str().unwrap_or("an error without a message");
    let response = serde_json::from_str::<Value>(message).unwrap_or_default();
    let message = response["error"]["message"].as_str().unwrap_or(message);
    match error["additionalDetails"].as_str().filter(|details| !message.contains(*details)) {
        Some(details) => format!("{message}: {details}"),
        None => message.into(),
    }
}
