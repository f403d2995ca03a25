//! Generates the events of sessions, as the agent writes them.

use harness::provider::Protocol;
use nuncio::content::ProviderState;
use nuncio::event::Event;
use serde_json::{Value, json};

use harness::Random;

/// A PNG image of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg==";

/// The provider state of a block with this text, or of the call with this id.
pub fn state(protocol: Protocol, text: &str) -> Option<ProviderState> {
    let value = match protocol {
        Protocol::Anthropic | Protocol::Bedrock => json!({"signature": format!("signed-{text}")}),
        Protocol::Gemini => json!({"thoughtSignature": format!("signed-{text}")}),
        Protocol::OpenaiChat => json!({"provider": "test", "field": "reasoning_content", "mark": format!("signed-{text}")}),
        Protocol::OpenaiResponses if text.starts_with("thought") => {
            json!({"type": "reasoning", "id": format!("rs_{text}"), "summary": [], "encrypted_content": "x"})
        }
        Protocol::OpenaiResponses => json!({"phase": format!("signed-{text}")}),
        Protocol::Ollama => json!({}),
    };
    Some(ProviderState { protocol: protocol.as_str().into(), value, model: None })
}

struct Generator {
    random: Random,
    protocol: Protocol,
    events: Vec<Event>,
    turn: Option<String>,
    /// The number of the last name that was given.
    number: u64,
    /// The calls that have completed in earlier turns: only their outputs are pruned.
    completed: Vec<String>,
    /// The calls of the running turn that have completed.
    recent: Vec<String>,
    /// The number of events at the last compaction.
    compacted: usize,
}

/// The events of a session.
pub fn events(seed: u64, protocol: Protocol) -> Vec<Event> {
    let mut session = Generator {
        random: Random::from_seed(seed),
        protocol,
        events: Vec::new(),
        turn: None,
        number: 0,
        completed: Vec::new(),
        recent: Vec::new(),
        compacted: 0,
    };
    session.add(json!({"type": "session.created", "cwd": "/w", "mode": "default"}));
    // The last turn, if it can be retried, and the number of events before it.
    let mut ended: Option<(String, usize)> = None;
    for _ in 0..session.random.below(12) + 1 {
        session.between();
        let retried = ended.take().filter(|(_, before)| *before >= session.compacted && session.chance(2));
        ended = session.turn(retried.map(|(turn, _)| turn));
    }
    session.events
}

impl Generator {
    fn add(&mut self, body: Value) {
        let seq = self.events.len() + 1;
        let mut event = json!({"sessionId": "sess_1", "seq": seq, "atMs": seq, "body": body});
        if let Some(turn) = &self.turn {
            event["turnId"] = json!(turn);
        }
        self.events.push(serde_json::from_value(event.clone()).unwrap_or_else(|error| panic!("{error}: {event}")));
    }

    /// True once in `of` times.
    fn chance(&mut self, of: u64) -> bool {
        self.random.below(of) == 0
    }

    fn name(&mut self, kind: &str) -> String {
        self.number += 1;
        format!("{kind}-{}", self.number)
    }

    fn state(&mut self, text: &str) -> Value {
        if self.chance(4) { Value::Null } else { json!(state(self.protocol, text)) }
    }

    fn message(&mut self, role: &str, text: &str, more: Value) {
        let id = self.name("msg");
        let mut body =
            json!({"type": "message.completed", "messageId": id, "role": role, "parts": [{"type": "text", "text": text}]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.add(body);
    }

    fn user(&mut self) {
        let text = match self.random.below(12) {
            0 => "/review this".into(),
            1 => "/context of what?".into(),
            _ => self.name("please"),
        };
        let mut more = json!({});
        if self.chance(4) {
            more["context"] = json!([{"type": "text", "text": "date: today"}]);
        }
        if self.chance(8) {
            more["expansion"] = json!("the text of a command");
        }
        let role = if self.chance(20) { "system" } else { "user" };
        self.message(role, &text, more);
    }

    fn note(&mut self) {
        let text = self.name("note");
        self.add(json!({"type": "notice", "severity": "info", "title": "Note", "note": text}));
    }

    fn compact(&mut self) {
        self.add(json!({"type": "compaction.started", "reason": "threshold", "contextTokens": 9000}));
        let outcome = ["completed", "completed", "failed", "cancelled", "interrupted"][self.random.below(5) as usize];
        let mut body = json!({"type": "compaction.completed", "outcome": outcome});
        if outcome == "completed" {
            body["summary"] = json!(self.name("summary"));
            self.compacted = self.events.len();
        }
        self.add(body);
    }

    fn prune(&mut self) {
        let count = self.completed.len() as u64;
        let mut outputs = Vec::new();
        for _ in 0..count.min(3) {
            let place = self.random.below(count) as usize;
            let mut output = json!({"toolCallId": self.completed[place], "chars": 10});
            if self.chance(2) {
                output["artifact"] = json!("/artifacts/1");
            }
            outputs.push(output);
        }
        if !outputs.is_empty() {
            self.add(json!({"type": "context.pruned", "outputs": outputs, "tokens": 10}));
        }
    }

    /// The events that are possible before a model request.
    fn before_request(&mut self) {
        for _ in 0..self.random.below(3) {
            match self.random.below(8) {
                0 => self.compact(),
                1 | 2 => self.prune(),
                3 => self.note(),
                4 => self.mode(),
                5 => self.automatic(),
                _ => self.user(),
            }
        }
    }

    fn mode(&mut self) {
        let mode = ["default", "plan", "auto", "a_new_mode"][self.random.below(4) as usize];
        self.add(json!({"type": "mode.changed", "mode": mode}));
    }

    /// The events that are possible between turns.
    fn between(&mut self) {
        self.turn = None;
        for _ in 0..self.random.below(3) {
            match self.random.below(6) {
                0 => self.mode(),
                1 => self.note(),
                2 => self.message("custom", "for clients", json!({"customType": "x", "details": {"a": 1}})),
                3 => self.prune(),
                4 => self.compact(),
                _ => self.add(json!({"type": "session.updated"})),
            }
        }
    }

    /// A tool call that the model did not request.
    fn automatic(&mut self) {
        let id = self.name("call");
        self.start(&id, json!({"automatic": true}));
        self.complete(&id);
    }

    fn start(&mut self, id: &str, more: Value) {
        let mut body =
            json!({"type": "tool.started", "toolCallId": id, "name": "read", "title": "Read", "kind": "read", "input": {"id": id}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.add(body);
    }

    fn complete(&mut self, id: &str) {
        let status = if self.chance(5) { "failed" } else { "completed" };
        let output = match self.random.below(6) {
            0 => json!([]),
            1 => json!([{"type": "text", "text": ""}]),
            2 => json!([{"type": "text", "text": "one"}, {"type": "image", "mimeType": "image/png", "data": PIXEL}]),
            _ => json!([{"type": "text", "text": format!("output of {id} {}", "x".repeat(self.random.below(400) as usize))}]),
        };
        self.add(json!({"type": "tool.completed", "toolCallId": id, "status": status, "output": output}));
    }

    /// A message of an answer. Returns whether it is text.
    fn block(&mut self) -> bool {
        let thought = self.chance(2);
        let (role, kind) = if thought { ("thought", "thought") } else { ("assistant", "text") };
        let mut text = self.name(kind);
        let item = thought && self.protocol == Protocol::OpenaiResponses;
        let state = if self.chance(6) && !item {
            // A message without text is kept if it has a state.
            text.clear();
            json!(state(self.protocol, ""))
        } else {
            self.state(&text)
        };
        self.message(role, &text, if state.is_null() { json!({}) } else { json!({"providerState": state}) });
        !thought
    }

    /// A turn. Returns its id and the number of events before it, if it can be retried.
    fn turn(&mut self, retries: Option<String>) -> Option<(String, usize)> {
        let before = self.events.len();
        let id = self.name("turn");
        self.turn = Some(id.clone());
        self.add(match retries {
            Some(retries) => json!({"type": "turn.started", "retries": retries}),
            None => json!({"type": "turn.started"}),
        });
        if self.chance(6) {
            self.note();
        }
        if self.chance(10) {
            self.local();
            return None;
        }
        self.completed.append(&mut self.recent);
        self.user();
        for step in 1.. {
            self.before_request();
            if self.chance(12) {
                return self.cut(id, before);
            }
            self.add(json!({"type": "step.started", "step": step, "model": "test/m"}));
            if self.chance(8) {
                self.message("assistant", "discarded", json!({"discarded": true}));
            }
            let mut text = false;
            for _ in 0..self.random.below(4) {
                text |= self.block();
            }
            if self.chance(10) {
                return self.cut(id, before);
            }
            let calls = self.random.below(4) as usize;
            let outcome = if calls > 0 { "tool_calls" } else { "end_turn" };
            if !self.calls(calls, outcome) {
                return self.cut(id, before);
            }
            if calls == 0 {
                // The turn goes on with a message of the user or a note, or ends.
                match self.random.below(4) {
                    0 if text => self.user(),
                    1 if text => self.note(),
                    _ => {
                        let reason =
                            ["end_turn", "end_turn", "max_tokens", "refusal", "max_turn_requests"][self.random.below(5) as usize];
                        self.add(json!({"type": "turn.completed", "stopReason": reason}));
                        return None;
                    }
                }
            }
        }
        None
    }

    /// The calls of an answer. Returns false if the turn ends before all calls have completed.
    fn calls(&mut self, count: usize, outcome: &str) -> bool {
        let mut open = Vec::new();
        for _ in 0..count {
            let id = self.name("call");
            let state = self.state(&id);
            self.start(&id, if state.is_null() { json!({}) } else { json!({"providerState": state}) });
            open.push(id);
        }
        self.add(json!({"type": "step.completed", "step": 1, "model": "test/m", "outcome": outcome}));
        while !open.is_empty() {
            if self.chance(25) {
                return false;
            }
            let place = self.random.below(open.len() as u64) as usize;
            let id = open.swap_remove(place);
            self.complete(&id);
            self.recent.push(id);
        }
        true
    }

    /// A turn that consists of a command that nuncio runs itself.
    fn local(&mut self) {
        let text = ["/compact", "/compact the tests", "/context"][self.random.below(3) as usize];
        self.message("user", text, json!({}));
        if text != "/context" {
            self.compact();
        }
        self.message("assistant", "done", json!({}));
        let cancelled = self.chance(3);
        self.add(match cancelled {
            true => json!({"type": "turn.cancelled"}),
            false => json!({"type": "turn.completed", "stopReason": "end_turn"}),
        });
    }

    /// The end of a turn that did not complete.
    fn cut(&mut self, id: String, before: usize) -> Option<(String, usize)> {
        let failed = |info: Value| json!({"type": "turn.failed", "code": "model_error", "message": "no", "info": info});
        let window = [1000, 100_000][self.random.below(2) as usize];
        let overflow = json!({"cause": "context_overflow", "requestTokens": 900, "contextWindow": window});
        let body = match self.random.below(7) {
            0 => json!({"type": "turn.cancelled"}),
            1 => json!({"type": "turn.interrupted"}),
            2 => failed(json!({"cause": "overloaded"})),
            3 => failed(json!({"cause": "content_filter"})),
            4 => failed(json!({"cause": "context_overflow"})),
            5 => failed(overflow),
            _ => json!({"type": "turn.failed", "code": "internal", "message": "no"}),
        };
        self.add(body);
        Some((id, before))
    }
}
