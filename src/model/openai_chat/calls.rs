//! Assembles the tool calls of an answer from their pieces, which servers send in many forms.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use crate::id::ToolCallId;
use crate::model::wire::Chunk;

/// The calls of one answer, in the order in which they began.
#[derive(Default)]
pub(super) struct Calls(Vec<PartialCall<'static>>);

/// A call, or a piece of it. Absent texts are empty.
#[derive(Default)]
pub(super) struct PartialCall<'a> {
    pub index: Option<usize>,
    pub id: String,
    pub name: String,
    pub arguments: Cow<'a, str>,
}

impl Calls {
    /// Appends a piece to the tool call that the piece belongs to. Ignores a repeated call.
    pub(super) fn add(&mut self, piece: PartialCall<'_>) {
        if self.0.iter().any(|call| call.is_repeated_by(&piece)) {
            return;
        }
        let at = self.call_of(&piece).unwrap_or_else(|| {
            self.0.push(PartialCall { index: piece.index.or(Some(self.0.len())), ..PartialCall::default() });
            self.0.len() - 1
        });
        let call = &mut self.0[at];
        if call.id.is_empty() {
            call.id = piece.id;
        }
        if call.name.is_empty() {
            call.name = piece.name;
        }
        call.arguments.to_mut().push_str(&piece.arguments);
    }

    /// Adds a call that the model wrote as text.
    pub(super) fn add_written(&mut self, name: String, arguments: String) {
        self.0.push(PartialCall { index: Some(self.0.len()), id: String::new(), name, arguments: arguments.into() });
    }

    /// Returns the call that a piece continues; `None` if it begins a new one. Servers omit the
    /// index or use one index for all calls, and send the id in the first piece only, an empty one
    /// later, or a new one with each piece. A known id means its call. A name begins a call, unless
    /// it repeats that of a call without id whose arguments are incomplete. Other pieces continue
    /// the call of their index, else the last one.
    fn call_of(&self, piece: &PartialCall<'_>) -> Option<usize> {
        let PartialCall { index, id, name, arguments } = piece;
        let at_index = index.and_then(|_| self.0.iter().rposition(|call| call.index == *index));
        let known = self.0.iter().rposition(|call| !id.is_empty() && call.id == *id);
        let likely = at_index.or_else(|| self.0.len().checked_sub(1));
        let continues = |at: usize| {
            let call = &self.0[at];
            call.name.is_empty() || call.name == *name && serde_json::from_str::<IgnoredAny>(&call.arguments).is_err()
        };
        match known {
            // Some servers give all calls one id.
            Some(at) if name.is_empty() || continues(at) => Some(at),
            _ if !name.is_empty() => likely.filter(|at| id.is_empty() && continues(*at) && (index.is_none() || at_index.is_some())),
            // The first piece of a call whose name follows.
            None if !id.is_empty() && arguments.is_empty() && at_index.is_none() => None,
            _ => likely,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn last(&self) -> Option<&PartialCall<'static>> {
        self.0.last()
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len()).sum()
    }

    /// Removes the calls, in the order of their indexes.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Chunk> {
        let mut calls = std::mem::take(&mut self.0);
        calls.sort_by_key(|call| call.index);
        calls.into_iter().map(|call| Chunk::ToolCall {
            id: if call.id.is_empty() { ToolCallId::new().to_string() } else { call.id },
            name: call.name,
            input: if call.arguments.trim().is_empty() { "{}".to_owned() } else { call.arguments.into_owned() },
            state: None,
        })
    }
}

impl PartialCall<'_> {
    /// Returns whether a piece is the whole call again, which some servers send at the end.
    fn is_repeated_by(&self, piece: &PartialCall<'_>) -> bool {
        let is_same = !piece.id.is_empty() && self.id == piece.id && self.name == piece.name;
        let is_whole = !piece.arguments.is_empty() && self.arguments == piece.arguments;
        is_same && is_whole && (piece.index.is_none() || piece.index == self.index)
    }
}
