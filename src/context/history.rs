//! The conversation as models see it: a fold over events, so that what the model knows and what the user saw cannot drift apart.

use std::collections::HashSet;
use std::sync::Arc;

use super::commands;
use crate::content::{Part, Role, StopReason, ToolStatus};
use crate::event::{Body, Event};
use crate::id::ToolCallId;
use crate::model::{Block, Message, ToolResult};

/// Messages so far. Only whole messages count: a delta changes nothing.
#[derive(Clone, Debug, Default)]
pub struct History {
    messages: Vec<Arc<Message>>,
    /// The model's answer that is being put together, and the results of its calls, in their order.
    answer: Vec<Block>,
    calls: Vec<Call>,
    call_ids: HashSet<ToolCallId>,
    /// Where the running turn began: a refused turn is forgotten from there.
    turn_start: usize,
}

#[derive(Clone, Debug)]
struct Call {
    id: ToolCallId,
    name: String,
    result: Option<ToolResult>,
}

impl History {
    pub fn on(&mut self, event: &Event) {
        match &event.body {
            Body::TurnStarted { .. } => {
                self.close();
                self.turn_start = self.messages.len();
            }
            Body::MessageCompleted { role, parts, discarded: false, provider_state, .. } => match role {
                Role::User | Role::System => {
                    self.close();
                    self.messages.push(Arc::new(Message::User(commands::expand(parts))));
                }
                Role::Assistant => self.add(Block::Text { text: text_of(parts), state: provider_state.clone() }),
                Role::Thought => self.add(Block::Thinking { text: text_of(parts), state: provider_state.clone() }),
            },
            Body::ToolStarted { tool_call_id, name, input, provider_state, .. } => {
                self.add(Block::ToolCall {
                    id: tool_call_id.clone(),
                    name: name.clone(),
                    input: input.clone(),
                    state: provider_state.clone(),
                });
                self.call_ids.insert(tool_call_id.clone());
                self.calls.push(Call { id: tool_call_id.clone(), name: name.clone(), result: None });
            }
            Body::ToolCompleted { tool_call_id, status, output, .. } => self.finish(tool_call_id, *status, output),
            Body::TurnCompleted { stop_reason: StopReason::Refusal } => {
                self.close();
                self.messages.truncate(self.turn_start);
            }
            body if body.ends_turn() => self.close(),
            _ => {}
        }
    }

    /// Whether a call of that id was made before.
    pub fn has_call(&self, id: &str) -> bool {
        self.call_ids.contains(id)
    }

    /// What the next request says.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        let mut whole = History {
            messages: self.messages.clone(),
            answer: self.answer.clone(),
            calls: self.calls.clone(),
            ..History::default()
        };
        whole.close();
        whole.messages
    }

    /// A block after finished calls belongs to the next answer.
    fn add(&mut self, block: Block) {
        if !self.calls.is_empty() && self.calls.iter().all(|call| call.result.is_some()) {
            self.close();
        }
        self.answer.push(block);
    }

    fn finish(&mut self, id: &ToolCallId, status: ToolStatus, output: &[Part]) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) {
            let failed = status == ToolStatus::Failed;
            call.result = Some(ToolResult { id: id.clone(), name: call.name.clone(), output: output.to_vec(), failed });
        }
    }

    fn close(&mut self) {
        // Reasoning that nothing followed: providers refuse to take it back.
        while let Some(Block::Thinking { .. }) = self.answer.last() {
            self.answer.pop();
        }
        if !self.answer.is_empty() {
            self.messages.push(Arc::new(Message::Assistant(std::mem::take(&mut self.answer))));
        }
        if !self.calls.is_empty() {
            let results = std::mem::take(&mut self.calls).into_iter().map(|call| {
                call.result.unwrap_or_else(|| ToolResult {
                    id: call.id,
                    name: call.name,
                    output: vec![Part::text("no result: the turn ended first")],
                    failed: true,
                })
            });
            self.messages.push(Arc::new(Message::ToolResults(results.collect())));
        }
    }
}

fn text_of(parts: &[Part]) -> String {
    match parts {
        [Part::Text { text }] => text.clone(),
        parts => crate::content::plain_text(parts),
    }
}
