//! The messages of a session as a tree: each message is linked to the message before it, because a
//! retried turn continues from an earlier message.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::notes::NoteTag;
use super::size::{message_bytes, result_bytes};
use crate::content::{Part, plain_text};
use crate::event::PrunedOutput;
use crate::id::ToolCallId;
use crate::model::{Message, Messages, ToolResult};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageOrigin {
    /// A client.
    Prompt,
    /// A note of nuncio to the model.
    Note,
    /// The model or its tool calls.
    Work,
    /// A compaction. Nothing precedes the message.
    Summary,
}

/// A message and its place in the tree.
#[derive(Clone, Debug)]
pub(super) struct LinkedMessage {
    pub before: Option<usize>,
    pub message: Arc<Message>,
    pub origin: MessageOrigin,
    /// The number of the message's turn.
    pub turn: u32,
    /// The total size of this message and the messages before it.
    bytes: usize,
}

/// The output of a completed tool call that later requests can leave out.
#[derive(Clone, Debug)]
pub(crate) struct PrunableOutput {
    pub tool_call_id: ToolCallId,
    pub bytes: usize,
    message: Arc<Message>,
}

impl PrunableOutput {
    pub(crate) fn text(&self) -> String {
        let Message::ToolResults(results) = &*self.message else { return String::new() };
        let result = results.iter().find(|result| result.id == self.tool_call_id);
        result.map(|result| plain_text(&result.output)).unwrap_or_default()
    }
}

/// The number of turns whose tool outputs are never pruned.
const NEWEST_TURNS: usize = 2;
/// An output that is not larger than this is not pruned: the text in its place needs as much.
const OUTPUT_BYTES_MIN: usize = 200;

/// The tree of messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversation {
    all: Vec<LinkedMessage>,
    pruned: HashSet<ToolCallId>,
    /// The messages up to the one that was added last.
    newest: Messages,
}

impl Conversation {
    /// Adds a message after the message with the index `before`. Returns its index.
    pub(super) fn add(&mut self, before: Option<usize>, message: Arc<Message>, origin: MessageOrigin, turn: u32) -> usize {
        let bytes = self.bytes(before) + message_bytes(&message);
        let last = self.all.len().checked_sub(1);
        match self.all.last() {
            _ if before == last => {}
            Some(replaced) if before == replaced.before => drop(Arc::make_mut(&mut self.newest).pop()),
            _ => self.newest = self.listed(before),
        }
        Arc::make_mut(&mut self.newest).push(message.clone());
        self.all.push(LinkedMessage { before, message, origin, turn, bytes });
        self.all.len() - 1
    }

    pub(super) fn linked(&self, index: usize) -> &LinkedMessage {
        &self.all[index]
    }

    /// Returns the total size of the messages up to `last`.
    pub(super) fn bytes(&self, last: Option<usize>) -> usize {
        last.map_or(0, |last| self.all[last].bytes)
    }

    /// Returns the messages up to `last`, newest first.
    pub(super) fn backwards(&self, last: Option<usize>) -> impl Iterator<Item = &LinkedMessage> {
        self.indexes(last).map(|index| &self.all[index])
    }

    fn indexes(&self, last: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(last, |last| self.all[*last].before)
    }

    /// Returns the texts of the notes to the model that end at `last`, oldest first.
    pub(super) fn notes_before(&self, last: Option<usize>) -> Vec<String> {
        let notes = self.backwards(last).take_while(|linked| linked.origin == MessageOrigin::Note);
        let text = |note: &LinkedMessage| match &*note.message {
            Message::User(parts) => plain_text(parts),
            Message::Assistant(_) | Message::ToolResults(_) => String::new(),
        };
        let mut notes: Vec<String> = notes.map(text).collect();
        notes.reverse();
        notes
    }

    /// Returns the messages up to `last`, oldest first, and `open`.
    pub(super) fn messages(&self, last: Option<usize>, open: impl Iterator<Item = Arc<Message>>) -> Messages {
        let is_newest = last == self.all.len().checked_sub(1);
        // Short lists are always checked, long ones each time their length doubles.
        let is_checked = |messages: usize| messages < 16 || messages.is_power_of_two();
        debug_assert!(!is_newest || !is_checked(self.newest.len()) || self.newest == self.listed(last));
        let mut messages = if is_newest { self.newest.clone() } else { self.listed(last) };
        let open: Vec<Arc<Message>> = open.collect();
        if !open.is_empty() {
            Arc::make_mut(&mut messages).extend(open);
        }
        messages
    }

    /// Lists the messages up to `last`, oldest first.
    fn listed(&self, last: Option<usize>) -> Messages {
        let mut messages: Vec<Arc<Message>> = self.backwards(last).map(|linked| linked.message.clone()).collect();
        messages.reverse();
        Arc::new(messages)
    }

    /// Returns the tool outputs that can be pruned, newest first. Keeps the outputs of the newest
    /// turns, the newest `protect` bytes of the others, and outputs of tools that `protected`
    /// returns true for.
    pub(super) fn prunable(&self, last: Option<usize>, protect: usize, protected: &dyn Fn(&str) -> bool) -> Vec<PrunableOutput> {
        let (mut turns, mut kept, mut found) = (Vec::new(), 0, Vec::new());
        for linked in self.backwards(last) {
            if turns.last() != Some(&linked.turn) {
                turns.push(linked.turn);
            }
            let Message::ToolResults(results) = &*linked.message else { continue };
            if turns.len() <= NEWEST_TURNS {
                continue;
            }
            for result in results.iter().rev().filter(|result| !self.pruned.contains(&result.id) && !protected(&result.name)) {
                let bytes = result_bytes(result);
                kept += bytes;
                if kept > protect && bytes > OUTPUT_BYTES_MIN {
                    found.push(PrunableOutput { tool_call_id: result.id.clone(), bytes, message: linked.message.clone() });
                }
            }
        }
        found
    }

    /// Replaces tool outputs by texts that say where the outputs are.
    pub(super) fn prune(&mut self, outputs: &[PrunedOutput], tag: &NoteTag) {
        let texts: HashMap<_, _> = outputs.iter().map(|output| (&output.tool_call_id, tag.text(&pruned_note(output)))).collect();
        let mut changed = false;
        for index in 0..self.all.len() {
            let LinkedMessage { before, message, .. } = &self.all[index];
            let before = *before;
            if let Message::ToolResults(results) = &**message
                && results.iter().any(|result| texts.contains_key(&result.id))
            {
                let replaced = results.iter().map(|result| match texts.get(&result.id) {
                    Some(text) => ToolResult { output: vec![Part::text(text)], ..result.clone() },
                    None => result.clone(),
                });
                self.all[index].message = Arc::new(Message::ToolResults(replaced.collect()));
                changed = true;
            }
            if changed {
                self.all[index].bytes = self.bytes(before) + message_bytes(&self.all[index].message);
            }
        }
        if changed {
            self.newest = self.listed(self.all.len().checked_sub(1));
        }
        self.pruned.extend(texts.keys().map(|id| (*id).clone()));
    }
}

/// Returns the note that replaces a pruned output.
fn pruned_note(output: &PrunedOutput) -> String {
    match &output.artifact {
        Some(path) => format!("output pruned: {} chars; artifact {}", output.chars, path.display()),
        None => format!("output pruned: {} chars", output.chars),
    }
}
