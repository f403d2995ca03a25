//! A short view of a session's work for the program or the agent that delegated it: the running
//! tool calls, the last line of text, and the last answer. A fold over the events.

use crate::content::{Role, plain_text};
use crate::event::{Body, Event};
use crate::id::ToolCallId;
use crate::limits;

/// The view of delegated work.
#[derive(Default)]
pub(crate) struct WorkView {
    /// The running tool calls with their titles, oldest first.
    calls: Vec<(ToolCallId, String)>,
    /// The end of the message that is being received.
    text: String,
    /// The text of the last answer.
    answer: String,
    /// A model request or a tool call started after the last answer.
    new_step: bool,
    /// There are changes since the last [`WorkView::status`].
    pub changed: bool,
}

impl WorkView {
    /// Adds an event. Events must be added in the order of the log.
    pub(crate) fn on(&mut self, event: &Event) {
        match &event.body {
            Body::TurnStarted { .. } | Body::StepStarted { .. } => (self.new_step, self.text) = (true, String::new()),
            Body::MessageDelta { role: Role::Assistant | Role::Thought, text, .. } => self.add(text),
            Body::MessageCompleted { role: Role::Assistant, parts, discarded: false, .. } => {
                let text = plain_text(parts);
                match std::mem::take(&mut self.new_step) || self.answer.is_empty() {
                    true => self.answer = text,
                    false => self.answer += &format!("\n{text}"),
                }
            }
            Body::ToolStarted { tool_call_id, title, .. } => {
                self.calls.push((tool_call_id.clone(), title.clone()));
                // Hosted agents do not report their model requests.
                self.new_step = true;
            }
            Body::ToolCompleted { tool_call_id, .. } => self.calls.retain(|(id, _)| id != tool_call_id),
            _ => return,
        }
        self.changed = true;
    }

    fn add(&mut self, text: &str) {
        self.text += text;
        let mut start = self.text.len().saturating_sub(limits::SUBAGENT_LINE_BYTES_MAX);
        while !self.text.is_char_boundary(start) {
            start += 1;
        }
        self.text.drain(..start);
    }

    /// The status in at most two lines: the tool call that started last, and the last line of text.
    pub(crate) fn status(&mut self) -> String {
        self.changed = false;
        let call = self.calls.last().map(|(_, title)| title.as_str());
        let line = self.text.lines().map(str::trim).rfind(|line| !line.is_empty());
        call.into_iter().chain(line).collect::<Vec<_>>().join("\n")
    }

    /// The text of the last answer.
    pub(crate) fn into_answer(self) -> String {
        self.answer
    }
}
