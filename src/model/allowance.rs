//! Limits on one answer: maximum numbers of bytes, blocks and tool calls. An answer that exceeds a
//! limit is truncated and ends with the stop reason `MaxTokens`.

use super::answer::Chunk;
use crate::content::ProviderState;
use crate::limits::MODEL_ANSWER_BYTES_MAX;

/// Maximum number of tool calls in one model answer.
const MODEL_ANSWER_CALLS_MAX: usize = 256;
/// Maximum number of text and thinking blocks in one model answer.
const MODEL_ANSWER_BLOCKS_MAX: usize = 1024;
/// Maximum number of bytes received for one model answer, including protocol overhead.
const MODEL_STREAM_BYTES_MAX: usize = 512 << 20;

/// Size of an answer or of a part of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AnswerSize {
    pub bytes: usize,
    pub calls: usize,
    pub blocks: usize,
}

impl AnswerSize {
    pub(crate) fn is_empty(self) -> bool {
        self.bytes == 0 && self.calls == 0 && self.blocks == 0
    }
}

/// Counts the bytes, blocks and tool calls of an answer, to enforce the limits.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    received: usize,
    taken: AnswerSize,
    /// True if the open block is thinking; `None` if no block is open.
    open: Option<bool>,
}

impl Allowance {
    /// Counts bytes received from the network. Returns a description of the limit if it is
    /// exceeded.
    pub(crate) fn receive(&mut self, bytes: usize) -> Option<String> {
        self.received += bytes;
        (self.received > MODEL_STREAM_BYTES_MAX).then(|| format!("{} MiB of data", MODEL_STREAM_BYTES_MAX >> 20))
    }

    /// Counts a chunk, and truncates its text at the limit. Returns a description of the limit that
    /// is exceeded, if any.
    pub(crate) fn take(&mut self, chunk: &mut Chunk) -> Option<String> {
        let thinking = matches!(chunk, Chunk::Thinking(_));
        match chunk {
            Chunk::Text(text) | Chunk::Thinking(text) => {
                self.block(Some(thinking));
                let left = MODEL_ANSWER_BYTES_MAX.saturating_sub(self.taken.bytes);
                self.taken.bytes += text.len();
                text.truncate(text.floor_char_boundary(left));
            }
            Chunk::BlockEnd { thinking, state } => {
                self.block(Some(*thinking));
                self.open = None;
                self.taken.bytes += size(state);
            }
            Chunk::ToolCall { id, name, input, state } => {
                self.open = None;
                self.taken.calls += 1;
                self.taken.bytes += id.len() + name.len() + input.len() + size(state);
            }
            Chunk::Usage(_)
            | Chunk::UsageSoFar(_)
            | Chunk::CallInput { .. }
            | Chunk::Retry { .. }
            | Chunk::Notice { .. }
            | Chunk::Refused { .. }
            | Chunk::Truncated { .. }
            | Chunk::Stop(_) => return None,
        }
        self.exceeded(AnswerSize::default())
    }

    /// Returns a description of the limit that is exceeded, if any. `pending` is the size of the
    /// parts that the reader has not emitted yet.
    pub(crate) fn exceeded(&self, pending: AnswerSize) -> Option<String> {
        if self.taken.bytes + pending.bytes > MODEL_ANSWER_BYTES_MAX {
            return Some(format!("{} MiB", MODEL_ANSWER_BYTES_MAX >> 20));
        }
        if self.taken.calls + pending.calls > MODEL_ANSWER_CALLS_MAX {
            return Some(format!("{MODEL_ANSWER_CALLS_MAX} tool calls"));
        }
        let blocks = self.taken.blocks + pending.blocks;
        (blocks > MODEL_ANSWER_BLOCKS_MAX).then(|| format!("{MODEL_ANSWER_BLOCKS_MAX} blocks of text and thinking"))
    }

    fn block(&mut self, kind: Option<bool>) {
        if self.open != kind {
            self.open = kind;
            self.taken.blocks += 1;
        }
    }
}

fn size(state: &Option<ProviderState>) -> usize {
    state.as_ref().map_or(0, |state| state.value.to_string().len())
}
