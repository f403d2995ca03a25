//! Limits on the size of what a hosted agent sends during a turn.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::content::{Part, ToolContent};
use crate::error::{Error, Kind};
use crate::event::Body;
use crate::limits::{
    AGENT_ITEMS_MAX, AGENT_MESSAGE_BYTES_MAX, AGENT_OUTPUT_BYTES_MAX, AGENT_TURN_BYTES_MAX, MODEL_ANSWER_BYTES_MAX,
};
use crate::session::Turn;

/// The size of all events of a turn, in bytes.
#[derive(Clone, Default)]
pub(super) struct TurnBytes {
    all: Arc<AtomicUsize>,
    /// Cancelled when a limit is exceeded. The turn must end then.
    pub exceeded: CancellationToken,
}

impl TurnBytes {
    /// Counts an event, or the parts of it that can be large.
    pub(super) fn add(&self, event: &impl Serialize) {
        let size = size(event);
        if self.all.fetch_add(size, Ordering::Relaxed) + size > AGENT_TURN_BYTES_MAX {
            self.exceeded.cancel();
        }
    }
}

/// Records the events of a turn, and reports when they exceed a limit.
pub(super) struct BoundedTurn<'a> {
    pub turn: &'a Turn,
    /// Bytes of text and thoughts.
    text: usize,
    /// Bytes of the content of calls that have not ended.
    unfinished: usize,
    pub bytes: TurnBytes,
}

impl<'a> BoundedTurn<'a> {
    pub(super) fn new(turn: &'a Turn) -> BoundedTurn<'a> {
        BoundedTurn { turn, text: 0, unfinished: 0, bytes: TurnBytes::default() }
    }

    /// Returns the error with which a turn ends that exceeds a limit.
    pub(super) fn error(name: &str) -> Error {
        let (text, all) = (MODEL_ANSWER_BYTES_MAX >> 20, AGENT_TURN_BYTES_MAX >> 20);
        let message = format!("agent {name}: it sent more than {text} MiB of text, or {all} MiB in all, in one turn and was ended");
        Error::new(Kind::AgentUnavailable, message)
    }

    /// Returns the part of a text that does not exceed the limit.
    pub(super) fn fitting<'t>(&mut self, text: &'t str) -> &'t str {
        let left = MODEL_ANSWER_BYTES_MAX.saturating_sub(self.text);
        self.text += text.len();
        if text.len() > left {
            self.bytes.exceeded.cancel();
        }
        &text[..text.floor_char_boundary(left)]
    }

    /// Counts the content of a call that has not ended. Returns false if it exceeds the limit and
    /// is skipped: the call's result repeats it.
    pub(super) fn records_unfinished(&mut self, content: &impl Serialize) -> bool {
        self.unfinished += size(content);
        self.unfinished <= MODEL_ANSWER_BYTES_MAX
    }

    /// Returns whether a limit is exceeded, so that further reports are ignored.
    pub(super) fn is_exceeded(&self) -> bool {
        self.bytes.exceeded.is_cancelled()
    }

    /// Counts and records an event, and waits until it is committed.
    pub(super) async fn commit(&self, body: Body) {
        self.bytes.add(&body);
        // A log that fails ends the turn.
        let _ = self.turn.commit(body).await;
    }

    /// Counts and records an event.
    pub(super) async fn emit(&self, body: Body) {
        self.bytes.add(&body);
        self.turn.emit(body).await;
    }
}

/// Returns the size of a value as JSON.
fn size(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // If serialization fails, count the bytes before the failure.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// Shortens a call's content to the limits on the number and the size of its parts.
pub(super) fn bounded(mut content: Vec<ToolContent>) -> Vec<ToolContent> {
    content.truncate(AGENT_ITEMS_MAX);
    for part in &mut content {
        match part {
            ToolContent::Content { content: Part::Text { text } } => truncate(text, AGENT_OUTPUT_BYTES_MAX),
            ToolContent::Diff { old_text, new_text, .. } => {
                old_text.iter_mut().for_each(|text| truncate(text, AGENT_MESSAGE_BYTES_MAX));
                truncate(new_text, AGENT_MESSAGE_BYTES_MAX);
            }
            ToolContent::Content { .. } | ToolContent::Terminal { .. } => {}
        }
    }
    content
}

/// Cuts a text at a character boundary.
pub(super) fn truncate(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        let end = text.floor_char_boundary(bytes_max);
        text.truncate(end);
        text.push_str("\n[output truncated]");
    }
}
