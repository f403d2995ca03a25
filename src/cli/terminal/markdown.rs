//! Renders Markdown for a terminal while it arrives, block by block. Control characters, also those
//! of entities, have no effect.

mod blocks;
mod document;
mod table;

use super::syntax::{CODE_BYTES_MAX, SyntaxColours, has_colours};
use blocks::BlockSplitter;
pub(crate) use blocks::MarkdownBlock;
pub(crate) use document::MarkdownLayout;

/// Maximum size of an open block that is rendered for a preview, in bytes. Of a larger one, the end
/// is shown as it is.
const PREVIEW_BYTES_MAX: usize = 16 << 10;
const PREVIEW_END: usize = 2 << 10;
/// Maximum length of the end of a line, in bytes.
const LAST_LINE_BYTES_MAX: usize = 400;

impl MarkdownBlock {
    /// Renders the block as complete rows, with colours of code if `syntax` has those.
    pub(crate) fn render(&self, layout: MarkdownLayout, syntax: Option<&mut SyntaxColours>) -> String {
        let rows = document::render(&self.source, self.number, layout, syntax);
        if self.is_apart && !rows.is_empty() { format!("\n{rows}") } else { rows }
    }

    /// Returns whether the block has code whose syntax has colours.
    pub(crate) fn has_code(&self) -> bool {
        let is_fence = |line: &str| fence_language(line).is_some_and(has_colours);
        self.source.len() <= CODE_BYTES_MAX && self.source.lines().any(is_fence)
    }
}

/// Returns the language of a line that begins a code block.
pub(crate) fn fence_language(line: &str) -> Option<&str> {
    let line = line.trim_start_matches([' ', '>', '-', '*', '\t']);
    let rest = line.strip_prefix("```").or_else(|| line.strip_prefix("~~~"))?;
    Some(document::language(rest.trim_start_matches(['`', '~'])))
}

/// Splits one message into blocks. The text must have no control sequences.
#[derive(Debug)]
pub(crate) struct MarkdownStream {
    splitter: BlockSplitter,
    /// A block was completed.
    has_begun: bool,
}

impl MarkdownStream {
    pub(crate) fn new() -> MarkdownStream {
        MarkdownStream { splitter: BlockSplitter::new(), has_begun: false }
    }

    /// Adds a piece. Returns the blocks that it completes.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<MarkdownBlock> {
        let blocks = self.splitter.push(piece);
        self.begun(blocks)
    }

    /// Ends the message. Returns its last blocks.
    pub(crate) fn finish(&mut self) -> Vec<MarkdownBlock> {
        let splitter = std::mem::replace(&mut self.splitter, BlockSplitter::new());
        let blocks = self.begun(splitter.finish());
        self.has_begun = false;
        blocks
    }

    /// Forgets the message, which is written again. Returns whether blocks of it were completed.
    pub(crate) fn discard(&mut self) -> bool {
        std::mem::replace(self, MarkdownStream::new()).has_begun
    }

    fn begun(&mut self, mut blocks: Vec<MarkdownBlock>) -> Vec<MarkdownBlock> {
        if let (Some(first), false) = (blocks.first_mut(), self.has_begun) {
            first.is_apart = false;
            self.has_begun = true;
        }
        blocks
    }

    /// Returns the first line of the open block, unless it is incomplete.
    pub(crate) fn first_line(&self) -> Option<&str> {
        self.splitter.open()[0].lines().next()
    }

    /// Returns the end of the text so far, at most a line.
    pub(crate) fn last_line(&self) -> &str {
        let [complete, line] = self.splitter.open();
        let text = if line.is_empty() { complete.trim_end() } else { line };
        let start = text.ceil_char_boundary(text.len().saturating_sub(LAST_LINE_BYTES_MAX));
        text[start..].rsplit('\n').next().unwrap_or_default()
    }

    /// Renders the block that is not complete, to be shown until it is.
    pub(crate) fn preview(&self, layout: MarkdownLayout) -> String {
        let [complete, line] = self.splitter.open();
        if complete.len() + line.len() > PREVIEW_BYTES_MAX {
            let shown = format!("{}{line}", &complete[complete.ceil_char_boundary(complete.len().saturating_sub(PREVIEW_END))..]);
            return shown[shown.ceil_char_boundary(shown.len().saturating_sub(PREVIEW_END))..].into();
        }
        let is_apart = self.has_begun && self.splitter.is_apart();
        MarkdownBlock { source: format!("{complete}{line}"), is_apart, number: None }.render(layout, None)
    }
}
