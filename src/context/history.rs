//! The conversation as models receive it: a fold over the same events that clients show, so that
//! the two cannot diverge.

mod overflow;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::conversation::{Conversation, LinkedMessage, MessageOrigin, PrunableOutput};
use super::local_command::LocalCommand;
use super::notes::{
    FAILED_CUT, INTERRUPTED, INTERRUPTED_CUT, LIMIT, LIMIT_CUT, NoteTag, REFUSED, REFUSED_CUT, cancelled, cancelled_cut, mode_note,
};
use super::open_answer::{OpenAnswer, text_of};
use super::size::message_bytes;
use super::usage_mark::UsageMark;
use super::{commands, environment, summary, system_prompt};
use crate::content::{Part, Role, StopReason};
use crate::event::{
    Body, CompactionOutcome, Event, MessageExtra, Notice, ReplacedMessage, StepEnd, ToolEnd, ToolStart, TurnFailure, UsageUpdate,
    ignored,
};
use crate::id::{Seq, ToolCallId, TurnId};
use crate::model::{Block, Cause, Message, Messages};
use crate::options::Mode;

/// The messages of the conversation so far. Only complete messages are included; deltas are
/// ignored.
#[derive(Clone, Debug, Default)]
pub struct History {
    all: Conversation,
    end: Position,
    answer: OpenAnswer,
    /// The seq of the `tool.started` of each call.
    started: HashMap<ToolCallId, Seq>,
    /// The position at the start of each turn.
    turns: HashMap<TurnId, Position>,
    /// The position at the start of the running turn.
    turn_start: Position,
    /// The number of turns so far.
    turn: u32,
    /// True if a turn runs.
    running: bool,
    /// The local command that the running turn consists of. Models do not receive its messages.
    local: Option<LocalCommand>,
    /// The mode of the session, if it is one of nuncio's.
    mode: Option<Mode>,
    tag: NoteTag,
    usage: UsageMark,
}

/// A position in the conversation.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    /// Index in `all` of the last message before the position.
    last: Option<usize>,
    /// A note to the model that precedes the text of the next user message.
    note: Option<&'static str>,
    /// The mode according to the last note about it.
    mode: Option<Mode>,
    /// True if a message before the position has the environment context, with the session's key.
    context: bool,
}

impl History {
    /// Adds an event. Events must be added in the order of the log.
    pub fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::TurnStarted { retries, .. } => self.start_turn(event.turn_id.as_ref(), retries.as_ref()),
            Body::MessageCompleted { role, parts, discarded: false, provider_state, extra, .. } => match role {
                // A client cannot write notes: in its message, a note is a text as any other.
                Role::User => self.user(parts.iter().cloned().map(Part::untagged).collect(), extra),
                Role::System => self.user(parts.iter().map(|part| self.tag.part(part)).collect(), extra),
                Role::Custom => {}
                Role::Assistant | Role::Thought if self.local.is_some() => {}
                Role::Assistant => self.add(Block::Text { text: text_of(parts), state: provider_state.clone() }),
                Role::Thought => self.add(Block::Thinking { text: text_of(parts), state: provider_state.clone() }),
            },
            Body::ToolStarted(ToolStart { tool_call_id, automatic: true, .. }) => {
                self.started.insert(tool_call_id.clone(), event.seq);
            }
            Body::ToolStarted(ToolStart { tool_call_id, name, input, input_text, provider_state, .. }) => {
                self.add(Block::ToolCall {
                    id: tool_call_id.clone(),
                    name: name.clone(),
                    input: input.clone(),
                    input_text: input_text.clone(),
                    state: provider_state.clone(),
                });
                self.started.insert(tool_call_id.clone(), event.seq);
            }
            Body::ToolCompleted(ToolEnd { tool_call_id, status, output, .. }) => {
                self.answer.finish(tool_call_id, *status, output.iter().map(|part| self.tag.part(part)).collect());
            }
            body @ Body::Notice(Notice { note: Some(note), quoted, .. }) => {
                self.add_note(note, quoted.as_deref(), body.is_context())
            }
            Body::ContextPruned { outputs, .. } => self.all.prune(outputs, &self.tag),
            Body::CompactionStarted { .. } => self.usage.compacting = true,
            Body::CompactionCompleted { outcome, summary, .. } => {
                if let (CompactionOutcome::Completed, Some(summary)) = (outcome, summary) {
                    self.replace_by_summary(summary);
                }
                self.usage.compacting = false;
            }
            Body::UsageUpdated(UsageUpdate { context_tokens, aside: false, .. }) => self.usage.set_reported(*context_tokens),
            Body::StepCompleted(StepEnd { outcome, .. }) => self.usage.end_step(*outcome, self.bytes()),
            Body::MessagesReplaced { messages } => self.replace(messages),
            Body::TurnCompleted { stop_reason: StopReason::Refusal } => self.end_turn(Some(REFUSED_CUT), Some(REFUSED)),
            Body::TurnCompleted { stop_reason: StopReason::MaxTokens } => self.end_turn(Some(LIMIT_CUT), Some(LIMIT)),
            Body::TurnCompleted { .. } => self.end_turn(None, None),
            Body::TurnFailed(TurnFailure { info, .. }) => self.turn_failed(info.as_ref()),
            Body::TurnCancelled { cause } => self.end_turn(Some(cancelled_cut(*cause)), Some(cancelled(*cause))),
            Body::TurnInterrupted {} => self.end_turn(Some(INTERRUPTED_CUT), Some(INTERRUPTED)),
            Body::SessionCreated { mode, note_key, .. } => {
                (self.mode, self.tag) = (mode.known(), NoteTag::new(note_key.as_deref()));
            }
            Body::SessionGranted { mode, .. } | Body::ModeChanged { mode } => self.mode = mode.known(),
            Body::SessionUpdated { .. }
            | Body::SessionClosed {}
            | Body::SessionDeleted {}
            | Body::MessageDelta { .. }
            | Body::MessageCompleted { discarded: true, .. }
            | Body::StepStarted { .. }
            | Body::UsageUpdated { .. }
            | Body::ToolInput { .. }
            | Body::ToolUpdated { .. }
            | Body::Notice(Notice { note: None, .. })
            | Body::RequestRepaired { .. }
            | Body::Unknown(_)
            | ignored!(Queue | Permission | Verify | Plan | Child | Agent | Hook | Budget) => {}
        }
    }

    fn turn_failed(&mut self, info: Option<&Value>) {
        match info.and_then(|info| Cause::deserialize(info).ok()) {
            Some(Cause::ContextOverflow { request_tokens, context_window }) => {
                self.leave_out_overflow(request_tokens.zip(context_window));
            }
            Some(Cause::ContentFilter) => self.end_turn(Some(REFUSED_CUT), Some(REFUSED)),
            _ => self.end_turn(Some(FAILED_CUT), None),
        }
    }

    /// Starts a turn; a retry continues from the start of the turn `retries`.
    fn start_turn(&mut self, turn: Option<&TurnId>, retries: Option<&TurnId>) {
        self.close();
        self.turn += 1;
        (self.running, self.local) = (true, None);
        if let Some(start) = retries.and_then(|turn| self.turns.get(turn)) {
            self.end = *start;
        }
        self.turn_start = self.end;
        if let Some(turn) = turn {
            self.turns.insert(turn.clone(), self.end);
        }
    }

    /// Adds a message to the model, after its context and the notes about earlier events. A local
    /// command is omitted.
    fn user(&mut self, mut parts: Vec<Part>, extra: &MessageExtra) {
        self.close();
        if self.running && self.end.last == self.turn_start.last {
            self.local = LocalCommand::from_parts(&parts);
        }
        if self.local.is_some() {
            return;
        }
        let context: Vec<Part> = extra.context.iter().map(|part| self.tag.part(part)).collect();
        let told = self.tag.told_mode(&context);
        let notes = [self.end.note.take().map(Cow::Borrowed), self.mode_note(told).map(Cow::Owned)];
        let notes: Vec<Part> = notes.into_iter().flatten().map(|note| Part::text(self.tag.text(&note))).collect();
        if let Some(text) = extra.expansion.clone().or_else(|| commands::expand_built_in(&parts)) {
            parts[0] = Part::text(text);
        }
        self.end.context |= self.tag.is_told(&context);
        // The context tells the key of the notes.
        let before = if self.tag.line().is_some() { [context, notes] } else { [notes, context] };
        self.push(Message::User([before.concat(), parts].concat()), MessageOrigin::Prompt);
    }

    /// Adds a note, and the text that it quotes, to the last message of the user, else as a message
    /// of its own. Context, which is no note, stands before what the user wrote.
    fn add_note(&mut self, note: &str, quoted: Option<&str>, is_context: bool) {
        self.close();
        let note = if is_context { note.into() } else { self.tag.text(note) };
        let added: Vec<Part> = [Some(note.as_str()), quoted].into_iter().flatten().map(Part::text).collect();
        let last = self.end.last.map(|last| self.all.linked(last).clone());
        let joined = last.as_ref().and_then(|last| match &*last.message {
            Message::User(parts) => {
                let mut parts = parts.clone();
                let starts = |part: &Part| matches!(part, Part::Text { text } if text.starts_with(environment::START));
                let after = parts.iter().position(starts).filter(|_| is_context);
                let at = after.map_or(parts.len(), |after| after + 1);
                parts.splice(at..at, added.clone());
                Some(Message::User(parts))
            }
            Message::Assistant(_) | Message::ToolResults(_) => None,
        });
        match (last, joined) {
            (Some(LinkedMessage { before, origin, turn, .. }), Some(joined)) => {
                self.end.last = Some(self.all.add(before, Arc::new(joined), origin, turn));
            }
            _ => self.push(Message::User(added), MessageOrigin::Note),
        }
    }

    /// Ends a turn and sets the note to the model: `cut` if the turn ended with an answer from the
    /// model, otherwise `uncut`.
    fn end_turn(&mut self, cut: Option<&'static str>, uncut: Option<&'static str>) {
        self.close();
        self.running = false;
        if self.local.take().is_some() {
            return;
        }
        let mut of_turn = self.all.backwards(self.end.last).take_while(|linked| linked.turn == self.turn);
        let last = of_turn.find(|linked| linked.origin != MessageOrigin::Note);
        let answered = last.is_some_and(|linked| matches!(*linked.message, Message::Assistant(_)));
        self.end.note = if answered { cut } else { uncut };
    }

    /// Returns the note for the next user message if the mode differs from the one that the model
    /// knows. `told` is the mode that the context of the message names. A conversation whose
    /// context names none, as earlier versions began it, has notes about the mode `plan` only.
    fn mode_note(&mut self, told: Option<Mode>) -> Option<String> {
        let known = told.or(self.end.mode);
        self.end.mode = known;
        let mode = self.mode.filter(|mode| known.map_or(*mode == Mode::Plan, |known| *mode != known))?;
        self.end.mode = Some(mode);
        Some(mode_note(mode, known))
    }

    /// Returns whether the conversation can continue from the start of a turn. It cannot if the
    /// messages before the turn are no longer known.
    pub(crate) fn has_start_of(&self, turn: &TurnId) -> bool {
        self.turns.contains_key(turn)
    }

    /// Returns whether no message has the facts that the first message of a conversation carries. A
    /// retry continues from the messages before the turn `retries`.
    pub(crate) fn lacks_context(&self, retries: Option<&TurnId>) -> bool {
        !retries.and_then(|turn| self.turns.get(turn)).unwrap_or(&self.end).context
    }

    /// Returns the notes to the model between its last answer and the running turn.
    pub(crate) fn notes_before_turn(&self) -> Vec<String> {
        self.all.notes_before(self.turn_start.last)
    }

    /// Returns whether a tool result of the conversation has the text of an instruction file.
    pub(crate) fn has_instructions(&self, file: &str) -> bool {
        let (note, older) = (system_prompt::announced(file), system_prompt::instructions_start(file));
        let shows = |part: &Part| self.tag.is_note(part, &note) || self.tag.is_older_note(part, &older);
        let recorded = self.all.backwards(self.end.last).flat_map(|linked| match &*linked.message {
            Message::ToolResults(results) => results.as_slice(),
            Message::User(_) | Message::Assistant(_) => &[],
        });
        self.answer.results().chain(recorded).any(|result| result.output.iter().any(shows))
    }

    /// Returns whether an earlier tool call has this id.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.started.contains_key(id)
    }

    /// Returns the seq of the `tool.started` of a call.
    pub(crate) fn call_started(&self, id: &ToolCallId) -> Option<Seq> {
        self.started.get(id).copied()
    }

    /// Returns the messages of the next request.
    pub fn messages(&self) -> Messages {
        self.all.messages(self.end.last, self.answer.clone().messages().map(Arc::new))
    }

    /// Returns whether the conversation has only messages of the user, none of which has a part
    /// that starts with `text`.
    pub(crate) fn is_unanswered_without(&self, text: &str) -> bool {
        let starts = |part: &Part| matches!(part, Part::Text { text: found } if found.starts_with(text));
        self.messages().iter().all(|message| matches!(&**message, Message::User(parts) if !parts.iter().any(starts)))
    }

    /// Returns the size of the messages of the next request, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.all.bytes(self.end.last) + self.answer.bytes()
    }

    /// Returns the provider's report about the size of the last request.
    pub(crate) fn usage(&self) -> &UsageMark {
        &self.usage
    }

    /// Returns the local command that the running turn consists of.
    pub(crate) fn local_command(&self) -> Option<&LocalCommand> {
        self.local.as_ref()
    }

    /// Returns the emphasis that the user asked for with the local command `/compact`.
    pub(crate) fn focus(&self) -> Option<&str> {
        match &self.local {
            Some(LocalCommand::Compact { focus }) => focus.as_deref(),
            Some(LocalCommand::Context) | None => None,
        }
    }

    /// Returns the tool outputs that can be pruned; see [`Conversation::prunable`].
    pub(crate) fn prunable(&self, protect: usize, protected: &dyn Fn(&str) -> bool) -> Vec<PrunableOutput> {
        self.all.prunable(self.end.last, protect, protected)
    }

    /// Returns the size of the prompts of the running turn, which follow the summary of a
    /// compaction, and the size of the last summary. A compaction replaces everything else.
    pub(crate) fn kept_bytes(&self) -> (usize, usize) {
        let bytes = |linked: &LinkedMessage| message_bytes(&linked.message);
        let prompts = self.all.backwards(self.end.last).take_while(|linked| linked.turn == self.turn && self.local.is_none());
        let prompts = prompts.filter(|linked| linked.origin == MessageOrigin::Prompt).map(bytes).sum();
        let summary = self.all.backwards(self.end.last).find(|linked| linked.origin == MessageOrigin::Summary).map_or(0, bytes);
        (prompts, summary)
    }

    /// Replaces the conversation by its summary and the prompts of the running turn.
    fn replace_by_summary(&mut self, text: &str) {
        self.close();
        let of_turn: Vec<LinkedMessage> =
            self.all.backwards(self.end.last).take_while(|linked| linked.turn == self.turn).cloned().collect();
        let worked = of_turn.iter().any(|linked| linked.origin == MessageOrigin::Work);
        let mut parts = summary::message(text, &self.tag);
        let plan = self.mode.filter(|mode| *mode == Mode::Plan);
        parts.extend(plan.map(|plan| Part::text(self.tag.text(&mode_note(plan, None)))));
        let note = self.end.note.take();
        self.end = Position { last: None, note, mode: plan, context: false };
        self.push(Message::User(parts), MessageOrigin::Summary);
        // Only the running turn can be run again, because the starts of the others are replaced.
        self.turns.retain(|_, start| start.last == self.turn_start.last);
        if !worked {
            self.turns.values_mut().for_each(|start| *start = self.end);
        }
        self.turn_start = self.end;
        let prompts = of_turn.into_iter().rev().filter(|linked| linked.origin == MessageOrigin::Prompt && self.local.is_none());
        let mut any = false;
        for linked in prompts {
            any = true;
            self.end.mode = self.told_mode(&linked.message).or(self.end.mode);
            self.end.last = Some(self.all.add(self.end.last, linked.message, linked.origin, linked.turn));
        }
        if any && worked {
            self.push(Message::User(vec![Part::text(self.tag.text(summary::CONTINUE))]), MessageOrigin::Note);
        }
    }

    /// Starts a new conversation. No earlier turn can be run again.
    fn replace(&mut self, messages: &[ReplacedMessage]) {
        self.close();
        self.end = Position::default();
        self.turns.clear();
        for ReplacedMessage { role, parts } in messages {
            match role {
                Role::Assistant => self.add(Block::Text { text: text_of(parts), state: None }),
                _ => self.user(parts.iter().cloned().map(Part::untagged).collect(), &MessageExtra::default()),
            }
        }
        self.close();
        self.turn_start = self.end;
    }

    /// Returns how the notes of the session are marked.
    pub(crate) fn tag(&self) -> &NoteTag {
        &self.tag
    }

    fn told_mode(&self, message: &Message) -> Option<Mode> {
        if let Message::User(parts) = message { self.tag.told_mode(parts) } else { None }
    }

    fn push(&mut self, message: Message, origin: MessageOrigin) {
        self.end.last = Some(self.all.add(self.end.last, Arc::new(message), origin, self.turn));
    }

    /// Adds a block to the current answer. If all tool calls of the current answer have completed,
    /// the block starts the next answer.
    fn add(&mut self, block: Block) {
        if self.answer.is_complete() {
            self.close();
        }
        self.answer.add(block);
    }

    fn close(&mut self) {
        for message in std::mem::take(&mut self.answer).messages() {
            self.push(message, MessageOrigin::Work);
        }
    }
}
