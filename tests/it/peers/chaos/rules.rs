//! The rules that the log of a session and the answers to its clients obey.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::{ends_turn, kind};
use super::history::{Faults, RandomHistory};
use super::requests::{Origin, Reaction, Request, Wish};
use harness::session_updates;

fn text(event: &Value) -> &str {
    event["body"]["parts"][0]["text"].as_str().unwrap_or_default()
}

fn turn(event: &Value) -> Option<&str> {
    event["turnId"].as_str()
}

fn message_id(event: &Value) -> &str {
    event["body"]["messageId"].as_str().unwrap_or_default()
}

/// Returns whether the event delivers a message of a user.
fn delivers(event: &Value) -> bool {
    kind(event) == "message.completed" && event["body"]["role"] == "user"
}

/// Describes an event in one line. Skips the pieces of answers.
pub fn summary(event: &Value) -> Option<String> {
    let kind = kind(event);
    if ["message.delta", "step.started", "step.completed", "usage.updated", "tool.updated", "notice"].contains(&kind) {
        return None;
    }
    let turn = turn(event).map_or("", |turn| &turn[turn.len() - 4..]);
    let more =
        if event["body"]["role"] == "assistant" { "answer".into() } else { format!("{} {}", message_id(event), text(event)) };
    Some(format!("{} {kind} {turn} {more} {}", event["seq"], event["body"]["title"].as_str().unwrap_or_default()))
}

/// The log read in order.
#[derive(Default)]
struct LogReader<'a> {
    broken: Vec<String>,
    /// Ids of the queued messages, with their delivery.
    queue: Vec<(&'a str, &'a Value)>,
    running: Option<&'a str>,
    started: Vec<&'a str>,
    delivered: Vec<&'a str>,
}

impl<'a> LogReader<'a> {
    fn require(&mut self, holds: bool, event: &Value, rule: &str) {
        if !holds {
            self.broken.push(format!("{rule}: {event}"));
        }
    }

    fn read(&mut self, event: &'a Value) {
        let (kind, id) = (kind(event), message_id(event));
        let place = self.queue.iter().position(|(queued, _)| *queued == id);
        match (kind, turn(event)) {
            ("turn.started", Some(turn)) => {
                self.require(self.running.is_none(), event, "a turn starts while another one runs");
                self.require(!self.started.contains(&turn), event, "a turn starts twice");
                self.started.push(turn);
                self.running = Some(turn);
            }
            (_, Some(turn)) => self.require(self.running == Some(turn), event, "an event of a turn that does not run"),
            (_, None) => {}
        }
        match kind {
            "message.queued" => self.queue.push((id, &event["body"]["delivery"])),
            "message.edited" | "message.removed" => {
                self.require(place.is_some(), event, "a message that is not queued is changed");
                match place {
                    Some(place) if kind == "message.removed" => drop(self.queue.remove(place)),
                    Some(place) if event["body"]["delivery"].is_string() => self.queue[place].1 = &event["body"]["delivery"],
                    _ => {}
                }
            }
            _ => {}
        }
        if delivers(event) {
            self.require(!self.delivered.contains(&id), event, "a message is delivered twice");
            self.delivered.push(id);
            self.require(self.running.is_some(), event, "a message is delivered between turns");
            if let Some(place) = place {
                let delivery = self.queue[place].1;
                let overtakes = self.queue[..place].iter().any(|(_, earlier)| *earlier == delivery);
                self.require(!overtakes, event, "a message overtakes another one");
                self.queue.remove(place);
            }
        }
        if ends_turn(event) {
            self.running = None;
        }
    }
}

/// Returns the rules of the log that are broken.
fn broken_log(history: &RandomHistory<'_>) -> Vec<String> {
    let log = &history.log;
    let mut reader = LogReader::default();
    log.iter().for_each(|event| reader.read(event));
    if let Some(turn) = reader.running {
        reader.broken.push(format!("{turn} has no end"));
    }
    if !reader.queue.is_empty() {
        reader.broken.push(format!("messages are neither delivered nor removed: {:?}", reader.queue));
    }
    let seqs: Vec<u64> = log.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let pruned = history.requests.iter().any(|request| request.wish == Wish::Close);
    if !seqs.is_sorted_by(|one, next| if pruned { one < next } else { one + 1 == *next }) {
        reader.broken.push(format!("sequence numbers: {seqs:?}"));
    }
    for event in history.printed.iter().flatten() {
        let printed = log.binary_search_by_key(&event["seq"].as_u64(), |logged| logged["seq"].as_u64());
        match printed {
            Ok(place) if log[place] == *event => {}
            Err(_) if pruned => {}
            _ => reader.broken.push(format!("run printed an event that is not in the log: {event}")),
        }
    }
    reader.broken
}

/// Returns all rules of the log, and of the log and the requests, that are broken.
pub fn broken(history: &RandomHistory<'_>) -> Vec<String> {
    let mut broken = broken_log(history);
    let log = &history.log;
    for request in &history.requests {
        if let Some(rule) = broken_request(request, log, history.faults) {
            broken.push(format!("{rule}: {}", request.describe()));
        }
    }
    let faults = history.faults;
    let ends_work = |request: &Request| matches!(request.wish, Wish::Cancel | Wish::Close);
    // The owner cancels the prompts of a disconnected process.
    if !history.requests.iter().any(ends_work) && !faults.kills && !faults.losses && !faults.sockets {
        let cancelled = log.iter().filter(|event| kind(event) == "turn.cancelled");
        broken.extend(cancelled.map(|event| format!("no client cancelled the turn: {event}")));
    }
    if !faults.kills && !faults.losses && !faults.sockets {
        for editor in 0..2 {
            broken.extend(broken_order(&history.requests, log, editor));
        }
    }
    broken
}

/// Returns how the events of a request contradict its answer.
fn broken_request(request: &Request, log: &[Value], faults: Faults) -> Option<&'static str> {
    let count = |fits: &dyn Fn(&&Value) -> bool| log.iter().filter(fits).count();
    let events = match &request.wish {
        Wish::Prompt(text) => return broken_prompt(request, text, log),
        Wish::Begin(wanted) | Wish::Message(wanted) | Wish::Steer(wanted) => {
            return broken_message(request, wanted, log);
        }
        Wish::Edit(_, wanted) => count(&|event| kind(event) == "message.edited" && text(event) == wanted),
        Wish::Remove(id) => {
            let removed = count(&|event| kind(event) == "message.removed" && message_id(event) == id);
            return (request.accepted().is_some() && removed != 1).then_some("an accepted change is not in the log once");
        }
        // A setting is repeated if the connection to the owner ends before the answer.
        Wish::Title(title) if faults.kills || faults.sockets => {
            let is_set = log.iter().any(|event| event["body"]["title"] == title.as_str());
            return (request.accepted().is_some() && !is_set).then_some("an accepted title is not in the log");
        }
        Wish::Title(title) => count(&|event| kind(event) == "session.updated" && event["body"]["title"] == title.as_str()),
        Wish::Mode | Wish::Cancel | Wish::Close | Wish::Load => return None,
    };
    broken_count(request, events)
}

/// Compares the number of events of a request with its answer.
fn broken_count(request: &Request, events: usize) -> Option<&'static str> {
    match &request.reaction {
        Reaction::Accepted(_) if events != 1 => Some("an accepted request is not in the log once"),
        Reaction::Refused(error) if events > 0 && !leaves_open(error) => Some("a refused request is in the log"),
        Reaction::Expected(_) | Reaction::Exchange(_) => Some("a request has no answer"),
        _ if events > 1 => Some("a request is in the log several times"),
        _ => None,
    }
}

/// Returns whether the error says that the request may have had an effect.
fn leaves_open(error: &Value) -> bool {
    let error = error.to_string();
    error.contains("events show the outcome") || error.contains("may still take effect")
}

/// Checks a message, or a prompt that is answered at the start of its turn.
fn broken_message(request: &Request, wanted: &str, log: &[Value]) -> Option<&'static str> {
    let arrives = |event: &&Value| (kind(event) == "message.queued" || delivers(event)) && text(event) == wanted;
    let mut ids: Vec<&str> = log.iter().filter(arrives).map(message_id).collect();
    ids.dedup();
    if let Some(result) = request.accepted()
        && let Some(id) = result["messageId"].as_str()
    {
        let ends = log.iter().filter(|event| (delivers(event) || kind(event) == "message.removed") && message_id(event) == id);
        return (ends.count() != 1).then_some("an accepted message is neither delivered nor removed, or several times");
    }
    broken_count(request, ids.len())
}

/// Checks a prompt that is answered at the end of its turn.
fn broken_prompt(request: &Request, wanted: &str, log: &[Value]) -> Option<&'static str> {
    let delivered: Vec<&Value> = log.iter().filter(|event| delivers(event) && text(event) == wanted).collect();
    let [message] = delivered[..] else {
        return match (&request.reaction, delivered.is_empty()) {
            (_, false) => Some("a prompt ran twice"),
            (Reaction::Accepted(result), true) if result["stopReason"] != "cancelled" => Some("an answered prompt did not run"),
            _ => None,
        };
    };
    let end = log.iter().find(|event| ends_turn(event) && event["turnId"] == message["turnId"]).map(kind);
    let fits = match &request.reaction {
        Reaction::Accepted(result) if result["stopReason"] == "cancelled" => end == Some("turn.cancelled"),
        Reaction::Accepted(_) => end == Some("turn.completed"),
        Reaction::Refused(error) => leaves_open(error) || matches!(end, Some("turn.failed" | "turn.interrupted")),
        Reaction::Unknown => true,
        Reaction::Expected(_) | Reaction::Exchange(_) => false,
    };
    (!fits).then_some("the answer to a prompt is not the end of its turn")
}

/// Returns the requests of an editor that ran before an earlier request of this editor. A steered
/// or edited message may overtake others.
fn broken_order(requests: &[Request], log: &[Value], editor: usize) -> Vec<String> {
    let edited: Vec<&str> = log.iter().filter(|event| kind(event) == "message.edited").map(message_id).collect();
    let mut last = 0;
    let mut broken = Vec::new();
    for request in requests.iter().filter(|request| request.origin == Origin::Editor(editor)) {
        let (Wish::Prompt(wanted) | Wish::Message(wanted)) = &request.wish else { continue };
        let mut delivered = log.iter().filter(|event| delivers(event) && !edited.contains(&message_id(event)));
        let Some(event) = delivered.find(|event| text(event) == wanted) else { continue };
        let seq = event["seq"].as_u64().unwrap();
        if seq < last {
            broken.push(format!("ran before an earlier request: {}", request.describe()));
        }
        last = last.max(seq);
    }
    broken
}

/// Returns the messages of later turns that an editor received before the answer to its prompt.
pub fn broken_answers(requests: &[Request], log: &[Value], editor: usize, frames: &[Value]) -> Vec<String> {
    let of_editor = || requests.iter().filter(|request| request.origin == Origin::Editor(editor));
    if of_editor().any(|request| request.wish == Wish::Load) {
        return Vec::new();
    }
    let turns: HashMap<&str, usize> = log.iter().filter(|event| kind(event) == "turn.started").filter_map(turn).zip(0..).collect();
    let turn_of: HashMap<&str, usize> =
        log.iter().filter(|event| delivers(event)).filter_map(|event| Some((text(event), *turns.get(turn(event)?)?))).collect();
    let mut broken = Vec::new();
    for request in of_editor() {
        let (Wish::Prompt(wanted), Some(id)) = (&request.wish, &request.id) else { continue };
        let Some(own) = turn_of.get(wanted.as_str()) else { continue };
        let answer = frames.iter().position(|frame| frame["id"] == *id && frame.get("method").is_none());
        let before = &frames[..answer.unwrap_or(0)];
        let session = json!(log[0]["sessionId"]);
        let updates = session_updates(before, session.as_str().unwrap());
        let texts = updates.iter().filter(|update| update["sessionUpdate"] == "user_message_chunk");
        let later = texts.filter_map(|update| update["content"]["text"].as_str()).find(|text| turn_of.get(text) > Some(own));
        broken.extend(later.map(|text| format!("{text} precedes the answer to {wanted}")));
    }
    broken
}
