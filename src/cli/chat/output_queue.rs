//! Rendered output that is not printed yet, in its order. Parts of it may still get their colours.

use std::collections::VecDeque;

use crate::cli::terminal::renderer::RenderedText;
use crate::cli::terminal::syntax::LaterText;

/// Output in order. The last line may not be complete.
#[derive(Default)]
pub(crate) struct OutputQueue {
    ready: String,
    /// Texts that are being rendered, each with the output after it.
    later: VecDeque<(LaterText, String)>,
}

impl OutputQueue {
    /// Adds a piece of output.
    pub(crate) fn push(&mut self, piece: RenderedText) {
        match piece {
            RenderedText::Later { text, .. } => self.later.push_back((text, String::new())),
            piece => *self.last() += &piece.into_text(),
        }
    }

    /// Inserts lines before the line that is being written.
    pub(crate) fn insert(&mut self, lines: &str) {
        let last = self.last();
        let complete = last.rfind('\n').map_or(0, |end| end + 1);
        last.insert_str(complete, lines);
    }

    /// Inserts lines before all output.
    pub(crate) fn insert_first(&mut self, lines: &str) {
        self.ready.insert_str(0, lines);
    }

    /// Returns the line that is being written.
    pub(crate) fn partial_line(&self) -> &str {
        let last = self.later.back().map_or(&self.ready, |(_, after)| after);
        &last[last.rfind('\n').map_or(0, |end| end + 1)..]
    }

    /// Removes and returns the complete lines that are rendered.
    pub(crate) fn take_complete(&mut self) -> String {
        while let Some(text) = self.later.front().and_then(|(later, _)| later.ready()) {
            self.settle(&text);
        }
        let complete = self.ready.rfind('\n').map_or(0, |end| end + 1);
        self.ready.drain(..complete).collect()
    }

    /// Removes and returns all output, with a line break at its end. Waits for colours.
    pub(crate) fn take(&mut self) -> String {
        while let Some((later, _)) = self.later.front() {
            let text = later.wait();
            self.settle(&text);
        }
        let rest = std::mem::take(&mut self.ready);
        if rest.is_empty() || rest.ends_with('\n') { rest } else { rest + "\n" }
    }

    fn settle(&mut self, text: &str) {
        if let Some((_, after)) = self.later.pop_front() {
            self.ready += text;
            self.ready += &after;
        }
    }

    fn last(&mut self) -> &mut String {
        self.later.back_mut().map_or(&mut self.ready, |(_, after)| after)
    }
}
