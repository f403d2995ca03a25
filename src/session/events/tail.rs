//! The newest events of a session, in memory for its followers.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::content::{Part, ToolContent};
use crate::event::{Body, Event, PermissionRequest, QueuedMessage, ToolEnd, ToolStart, ToolUpdate, ignored};
use crate::id::Seq;

/// Maximum number of recent events per session that are kept in memory for the session's followers.
const TAIL_EVENTS_MAX: usize = 512;
/// Maximum total size of the text in the recent events of a session, in bytes.
const TAIL_BYTES_MAX: usize = 256 << 10;

/// The newest events, oldest first: at most [`TAIL_EVENTS_MAX`] with about
/// [`TAIL_BYTES_MAX`] of text.
#[derive(Default)]
pub(in crate::session) struct Tail {
    /// Events with their approximate sizes.
    events: VecDeque<(usize, Arc<Event>)>,
    bytes: usize,
}

impl Tail {
    /// Adds the newest event.
    pub(crate) fn push(&mut self, event: Event) {
        let bytes = approximate_bytes(&event.body);
        self.bytes += bytes;
        self.events.push_back((bytes, Arc::new(event)));
        while self.events.len() > TAIL_EVENTS_MAX || self.bytes > TAIL_BYTES_MAX {
            let Some((bytes, _)) = self.events.pop_front() else { break };
            self.bytes -= bytes;
        }
    }

    /// Returns up to `limit` events after `after`, or `None` if the first of them is no longer in
    /// memory.
    pub(crate) fn after(&self, after: Seq, limit: usize) -> Option<Vec<Arc<Event>>> {
        let first = self.events.front()?.1.seq;
        if after + 1 < first {
            return None;
        }
        let skip = self.events.partition_point(|(_, event)| event.seq <= after);
        Some(self.events.iter().skip(skip).take(limit).map(|(_, event)| event.clone()).collect())
    }
}

/// Estimates the size of an event: the size of its texts plus a constant.
fn approximate_bytes(body: &Body) -> usize {
    let part = |part: &Part| match part {
        Part::Text { text } | Part::Note { text } | Part::Resource { text, .. } => text.len(),
        Part::Image { data, .. } | Part::Audio { data, .. } => data.len(),
        Part::Document { data, text, .. } => data.len() + text.as_ref().map_or(0, String::len),
        Part::ResourceLink { .. } => 0,
    };
    let content = |content: &ToolContent| match content {
        ToolContent::Content { content } => part(content),
        ToolContent::Diff { old_text, new_text, .. } => old_text.as_ref().map_or(0, String::len) + new_text.len(),
        ToolContent::Terminal { output, .. } => output.len(),
    };
    200 + match body {
        Body::MessageDelta { text, .. } => text.len(),
        Body::MessageCompleted { parts, .. } | Body::MessageQueued(QueuedMessage { parts, .. }) => parts.iter().map(part).sum(),
        Body::ToolUpdated(ToolUpdate { content: Some(list), .. })
        | Body::PermissionRequested(PermissionRequest { content: list, .. }) => list.iter().map(content).sum(),
        Body::ToolCompleted(ToolEnd { output, content: list, .. }) => {
            output.iter().map(part).sum::<usize>() + list.iter().map(content).sum::<usize>()
        }
        Body::ToolStarted(ToolStart { input, input_text, .. }) => {
            input_text.as_ref().map_or(0, String::len)
                + input.as_object().map_or(0, |map| map.values().map(|value| value.as_str().map_or(20, str::len)).sum())
        }
        Body::MessageEdited { parts, .. } => parts.iter().flatten().map(part).sum(),
        Body::HookCompleted { changed: Some(changed), .. } => {
            changed.input.as_object().map_or(0, |map| map.values().map(|value| value.as_str().map_or(20, str::len)).sum())
        }
        Body::ToolInput { .. }
        | Body::ToolUpdated(ToolUpdate { content: None, .. })
        | Body::MessageRemoved { .. }
        | Body::PermissionUpdated { .. }
        | Body::PermissionForgotten { .. }
        | Body::PermissionResolved { .. }
        | Body::HookCompleted { changed: None, .. }
        | Body::Unknown(_) => 0,
        ignored!(Session | Turn | Step | Replacement | Verify | Plan | Usage | Pruning | Compaction) => 0,
        ignored!(Child | Agent | Budget | Mode | Notice) => 0,
    }
}
