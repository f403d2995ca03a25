//! A short view of a session's work for the program or the agent that delegated it: the running
//! tool calls, the last line of text, and the last answer. A fold over the events.

use serde::Deserialize;
use serde_json::Value;

use crate::content::{REVIEW, ReviewDetails, Role, WorkProblems, plain_text};
use crate::event::{Body, Event, ToolEnd, ToolStart};
use crate::id::ToolCallId;

/// Maximum size of a subagent's text that is shown while it runs, in bytes.
const SUBAGENT_LINE_BYTES_MAX: usize = 500;

/// The view of delegated work.
#[derive(Default)]
pub(crate) struct WorkView {
    /// The running tool calls with their titles, oldest first.
    calls: Vec<(ToolCallId, String)>,
    /// The end of the message that is being received.
    text: String,
    /// The text of the last answer.
    answer: String,
    /// True if a model request or a tool call started after the last answer.
    new_step: bool,
    unresolved: WorkProblems,
    /// The call that runs the project's checks, and its output.
    check: Option<(ToolCallId, String)>,
    /// True if there are changes since the last [`WorkView::status`].
    pub changed: bool,
}

impl WorkView {
    /// Adds an event. Events must be added in the order of the log.
    pub(crate) fn apply(&mut self, event: &Event) {
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
            Body::ToolStarted(ToolStart { tool_call_id, title, .. }) => {
                self.calls.push((tool_call_id.clone(), title.clone()));
                // Hosted agents do not report their model requests.
                self.new_step = true;
            }
            Body::ToolCompleted(ToolEnd { tool_call_id, tool, output, details, .. }) => {
                self.calls.retain(|(id, _)| id != tool_call_id);
                if tool.as_ref().is_some_and(|tool| tool.name == REVIEW) && has_rejections(details.as_ref()) {
                    self.unresolved.rejected.push(plain_text(output));
                }
                if let Some((_, text)) = self.check.as_mut().filter(|(id, _)| id == tool_call_id) {
                    *text = plain_text(output);
                }
            }
            Body::VerifyStarted { tool_call_id, .. } => self.check = Some((tool_call_id.clone(), String::new())),
            Body::VerifyCompleted { round: 1.., passed, error, .. } => {
                let output = self.check.take().map(|(_, output)| output).unwrap_or_default();
                let output = error.as_ref().map_or(output, |error| format!("they could not be run: {error}"));
                self.unresolved.failing_checks = (!passed).then_some(output);
            }
            Body::ChildCompleted { end, .. } => {
                if let Some(below) = &end.unresolved {
                    self.unresolved.add(below);
                }
            }
            _ => return,
        }
        self.changed = true;
    }

    fn add(&mut self, text: &str) {
        self.text += text;
        let mut start = self.text.len().saturating_sub(SUBAGENT_LINE_BYTES_MAX);
        while !self.text.is_char_boundary(start) {
            start += 1;
        }
        self.text.drain(..start);
    }

    /// Returns the status in at most two lines: the running tool call that started last, and the
    /// last line of text. Resets [`WorkView::changed`].
    pub(crate) fn status(&mut self) -> String {
        self.changed = false;
        let call = self.calls.last().map(|(_, title)| title.as_str());
        let line = self.text.lines().map(str::trim).rfind(|line| !line.is_empty());
        call.into_iter().chain(line).collect::<Vec<_>>().join("\n")
    }

    /// Returns the text of the last answer.
    pub(crate) fn into_answer(self) -> String {
        self.answer
    }

    /// Returns the text of the last answer, and the unresolved problems of the work, if any.
    pub(crate) fn into_result(self) -> (String, Option<WorkProblems>) {
        (self.answer, Some(self.unresolved).filter(|unresolved| *unresolved != WorkProblems::default()))
    }
}

/// Returns whether the user did not accept a file of a review, from the details of its call.
fn has_rejections(details: Option<&Value>) -> bool {
    details.and_then(|details| ReviewDetails::deserialize(details).ok()).is_some_and(|details| details.has_rejections())
}
