//! A model's answer: built from stream chunks, whose text is emitted as it arrives.

use super::repetition::{RepeatedText, repeated_text};
use crate::content::{Part, ProviderState, Role, StepOutcome, StopReason, plain_text};
use crate::event::{Body, MessageExtra};
use crate::id::{MessageId, ToolCallId};
use crate::runtime::calls::execute::ToolUse;
use crate::session::Turn;

/// Number of bytes between two searches for repeated text in an answer.
const REPEATED_TEXT_STEP_BYTES: usize = 2 << 10;

/// A part of an answer. Messages were already streamed as deltas; their `message.completed` events
/// are recorded once the answer is complete.
pub(crate) enum AnswerPart {
    Message(Box<Body>),
    Call(ToolUse),
}

/// Returns the text of a message of the model. `None` if the message is a thought.
fn answer_text(message: &Body) -> Option<String> {
    match message {
        Body::MessageCompleted { role: Role::Assistant, parts, .. } => Some(plain_text(parts)),
        _ => None,
    }
}

/// A complete answer: its parts in order, and why the model stopped.
pub(crate) struct ModelAnswer {
    pub parts: Vec<AnswerPart>,
    pub stop: StopReason,
    /// The repeated text, if the answer was truncated because of it.
    pub repeated: Option<RepeatedText>,
}

impl ModelAnswer {
    /// Creates the answer to a cancelled request.
    pub(in crate::agent) fn cancelled() -> ModelAnswer {
        ModelAnswer { parts: Vec::new(), stop: StopReason::Cancelled, repeated: None }
    }

    /// Returns whether a complete answer has neither text nor calls.
    pub(crate) fn is_empty(&self) -> bool {
        let has_content = |part: &AnswerPart| match part {
            AnswerPart::Call(_) => true,
            AnswerPart::Message(message) => answer_text(message).is_some_and(|text| !text.trim().is_empty()),
        };
        self.stop == StopReason::EndTurn && !self.parts.iter().any(has_content)
    }

    pub(in crate::agent) fn text(&self) -> String {
        let text = |part: &AnswerPart| match part {
            AnswerPart::Message(message) => answer_text(message),
            AnswerPart::Call(_) => None,
        };
        self.parts.iter().filter_map(text).collect()
    }

    /// Returns how the request ended. The calls of a truncated answer do not count, because they
    /// are not run.
    pub(crate) fn outcome(&self) -> StepOutcome {
        let calls = self.parts.iter().any(|part| matches!(part, AnswerPart::Call(_)));
        match self.stop {
            StopReason::EndTurn if calls => StepOutcome::ToolCalls,
            // Models do not return `MaxTurnRequests`.
            StopReason::EndTurn | StopReason::MaxTurnRequests => StepOutcome::EndTurn,
            StopReason::MaxTokens => StepOutcome::MaxTokens,
            StopReason::Refusal => StepOutcome::Refusal,
            StopReason::Cancelled => StepOutcome::Cancelled,
        }
    }
}

/// Builds an answer from stream chunks and emits its deltas.
pub(in crate::agent) struct AnswerBuilder<'a> {
    turn: &'a Turn,
    open: Option<Open>,
    pub(in crate::agent) parts: Vec<AnswerPart>,
    /// True if nothing is emitted.
    silent: bool,
}

/// The message that is being received.
struct Open {
    id: MessageId,
    role: Role,
    text: String,
    /// Length of the text at the last search for repetitions.
    searched: usize,
}

impl Open {
    fn new(role: Role) -> Open {
        Open { id: MessageId::new(), role, text: String::new(), searched: 0 }
    }
}

impl<'a> AnswerBuilder<'a> {
    /// Builds an answer of `turn`. If `silent`, nothing is emitted.
    pub(in crate::agent) fn new(turn: &'a Turn, silent: bool) -> AnswerBuilder<'a> {
        AnswerBuilder { turn, open: None, parts: Vec::new(), silent }
    }

    /// Continues an answer that consists of these parts so far.
    pub(in crate::agent) fn with_parts(turn: &'a Turn, parts: Vec<AnswerPart>) -> AnswerBuilder<'a> {
        AnswerBuilder { turn, open: None, parts, silent: false }
    }

    pub(in crate::agent) async fn add(&mut self, role: Role, text: String) {
        if text.is_empty() {
            return;
        }
        self.close_other(role);
        let open = self.open.get_or_insert_with(|| Open::new(role));
        let delta = Body::MessageDelta { message_id: open.id.clone(), role, offset: open.text.len() as u64, text: text.clone() };
        open.text.push_str(&text);
        self.emit(delta).await;
    }

    /// Searches the message that is being received for repetitions. If there are any, truncates and
    /// ends the message.
    pub(in crate::agent) fn cut_repeated_text(&mut self) -> Option<RepeatedText> {
        let open = self.open.as_mut().filter(|open| open.text.len() >= open.searched + REPEATED_TEXT_STEP_BYTES)?;
        open.searched = open.text.len();
        let repeated = repeated_text(&open.text)?;
        open.text.truncate(repeated.kept);
        self.close(None);
        Some(repeated)
    }

    /// Ends the message with this role. A message without text is kept if it has provider state,
    /// because later requests must contain that state.
    pub(in crate::agent) fn end(&mut self, role: Role, state: Option<ProviderState>) {
        self.close_other(role);
        if self.open.is_none() && state.is_some() {
            self.open = Some(Open::new(role));
        }
        self.close(state);
    }

    /// Reports a tool call whose input is being received, if the log's queue has room.
    pub(in crate::agent) fn writing(&self, name: String, bytes: u64, path: Option<String>) {
        if !self.silent {
            self.turn.log.try_emit(Some(self.turn.id.clone()), Body::ToolInput { name, bytes, path });
        }
    }

    /// Adds a tool call. `given` is its id in the answer.
    pub(in crate::agent) fn call(&mut self, given: &str, name: String, input: String, state: Option<ProviderState>) {
        self.close(None);
        let taken = self.parts.iter().any(|part| matches!(part, AnswerPart::Call(call) if call.id.as_str() == given));
        let id = if taken { ToolCallId::new() } else { call_id(self.turn, given) };
        self.parts.push(AnswerPart::Call(ToolUse { id, name, input, state }));
    }

    fn close_other(&mut self, role: Role) {
        if self.open.as_ref().is_some_and(|open| open.role != role) {
            self.close(None);
        }
    }

    /// Ends the message that is being received.
    pub(in crate::agent) fn close(&mut self, provider_state: Option<ProviderState>) {
        if let Some(Open { id, role, mut text, .. }) = self.open.take() {
            // The event stays in memory, and the text grew with up to twice its capacity.
            text.shrink_to_fit();
            let parts = vec![Part::text(text)];
            let message = Box::new(Body::MessageCompleted {
                message_id: id,
                role,
                parts,
                discarded: false,
                provider_state,
                extra: MessageExtra::default(),
            });
            self.parts.push(AnswerPart::Message(message));
        }
    }

    /// Records the messages of an interrupted answer and drops its calls.
    pub(in crate::agent) async fn keep(&mut self) {
        self.close(None);
        for part in std::mem::take(&mut self.parts) {
            if let AnswerPart::Message(body) = part {
                self.emit(*body).await;
            }
        }
    }

    /// Records the messages shown so far as discarded, because the request is sent again.
    pub(in crate::agent) async fn discard(&mut self) {
        self.close(None);
        for part in &mut self.parts {
            if let AnswerPart::Message(message) = part
                && let Body::MessageCompleted { discarded, provider_state, .. } = &mut **message
            {
                (*discarded, *provider_state) = (true, None);
            }
        }
        self.keep().await;
    }

    async fn emit(&self, body: Body) {
        if !self.silent {
            self.turn.emit(body).await;
        }
    }
}

/// Returns a call id that is unique in the session: `given`, unless it is empty or already used.
fn call_id(turn: &Turn, given: &str) -> ToolCallId {
    let taken = given.is_empty() || turn.log.state(|state| state.history.has_call(given));
    if taken { ToolCallId::new() } else { given.into() }
}
