//! The model's last answer, whose tool calls may still run.

use super::size::{block_bytes, result_bytes};
use crate::content::{Part, ToolStatus, plain_text};
use crate::id::ToolCallId;
use crate::model::{Block, Message, ToolResult};

/// The blocks of an answer, and its tool calls with their results, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenAnswer {
    blocks: Vec<Block>,
    calls: Vec<AnnouncedCall>,
}

#[derive(Clone, Debug)]
struct AnnouncedCall {
    id: ToolCallId,
    name: String,
    result: Option<ToolResult>,
}

impl OpenAnswer {
    pub(super) fn add(&mut self, block: Block) {
        if let Block::ToolCall { id, name, .. } = &block {
            self.calls.push(AnnouncedCall { id: id.clone(), name: name.clone(), result: None });
        }
        self.blocks.push(block);
    }

    pub(super) fn finish(&mut self, id: &ToolCallId, status: ToolStatus, output: Vec<Part>) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) {
            let failed = status == ToolStatus::Failed;
            call.result = Some(ToolResult { id: id.clone(), name: call.name.clone(), output, failed });
        }
    }

    /// Returns whether the answer has calls, and all have completed.
    pub(super) fn is_complete(&self) -> bool {
        !self.calls.is_empty() && self.calls.iter().all(|call| call.result.is_some())
    }

    /// Returns the results of the calls that have completed.
    pub(super) fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.calls.iter().filter_map(|call| call.result.as_ref())
    }

    /// Returns the size of the answer and the results, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.blocks.iter().map(block_bytes).chain(self.results().map(result_bytes)).sum()
    }

    /// Converts the answer to messages. Adds a result to a call that has not completed, which
    /// reports that.
    pub(super) fn messages(mut self) -> impl Iterator<Item = Message> {
        // Providers reject an answer that ends with thinking.
        while let Some(Block::Thinking { .. }) = self.blocks.last() {
            self.blocks.pop();
        }
        // Nor do they accept an answer without content, which a failed request can leave.
        let is_empty = |block: &Block| match block {
            Block::Thinking { .. } => true,
            Block::Text { text, .. } => text.is_empty(),
            Block::ToolCall { .. } => false,
        };
        if self.blocks.iter().all(is_empty) {
            self.blocks.clear();
        }
        let mut results: Vec<ToolResult> = self
            .calls
            .into_iter()
            .map(|call| {
                call.result.unwrap_or_else(|| ToolResult {
                    id: call.id,
                    name: call.name,
                    output: vec![Part::text("no result: the turn ended before the call completed")],
                    failed: true,
                })
            })
            .collect();
        // The messages are kept as long as the session is open.
        self.blocks.shrink_to_fit();
        results.shrink_to_fit();
        let answer = (!self.blocks.is_empty()).then_some(Message::Assistant(self.blocks));
        answer.into_iter().chain((!results.is_empty()).then_some(Message::ToolResults(results)))
    }
}

/// Returns the text of a message of the model.
pub(super) fn text_of(parts: &[Part]) -> String {
    match parts {
        [Part::Text { text }] => text.clone(),
        parts => plain_text(parts),
    }
}
