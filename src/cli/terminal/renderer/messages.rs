//! Renders messages: of the user, and answers and thoughts as they arrive.

use std::path::Path;
use std::time::{Duration, Instant};

use percent_encoding::percent_decode_str;

use super::{RenderedText, Style, TerminalRenderer, progress};
use crate::cli::terminal::cell::{Cell, CellBody, ShownPart};
use crate::cli::terminal::markdown::{MarkdownBlock, fence_language};
use crate::cli::terminal::styled_text::{StyledText, TextStyle};
use crate::id::MessageId;
use crate::terminal_text::{output, output_line};
use crate::transcript::AttachedText;

/// Maximum number of rows of a user message, and of the output of the user's command.
const MESSAGE_ROWS: usize = 16;
const OUTPUT_LINES: usize = 12;
/// The start of the message with which the output of a command of the user goes to the model.
pub(crate) const OWN_COMMAND: &str = "I ran this command:\n$ ";

impl TerminalRenderer {
    /// Renders the messages that were never completed, at the end of a replay.
    pub(crate) fn incomplete(&mut self) -> Vec<RenderedText> {
        let open = std::mem::take(&mut self.incomplete);
        open.iter().map(|(_, thought, text)| self.message(*thought, &format!("{}\n", output(text)))).collect()
    }

    /// Renders text of a message. The text must be escaped for its destination.
    fn message(&self, thought: bool, text: &str) -> RenderedText {
        match thought {
            false => RenderedText::Answer(text.into()),
            true => RenderedText::Progress(self.paint(Style::Dim, text)),
        }
    }

    /// Renders a user message in a replay. In a live session, it is not shown, because the user has
    /// just written it.
    pub(super) fn user_message(&mut self, text: &str, attached: &[AttachedText]) -> Vec<RenderedText> {
        let text = output(text);
        if !(self.options.replay || self.options.conversation) || (text.is_empty() && attached.is_empty()) {
            return Vec::new();
        }
        if let Some((command, output)) = text.strip_prefix(OWN_COMMAND).and_then(|text| text.split_once('\n')) {
            return vec![RenderedText::Answer(self.own_command(command, output))];
        }
        let style = TextStyle { bold: true, ..TextStyle::default() };
        let mut cell = Cell::new(StyledText::default());
        let lines = text.lines().map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n");
        cell.bodies.push(CellBody::Text { text: lines, style, part: ShownPart::First(MESSAGE_ROWS) });
        let rows: Vec<String> = attached.iter().map(|attached| self.attached_row(attached)).collect();
        if !rows.is_empty() {
            let style = TextStyle { dim: true, ..TextStyle::default() };
            cell.bodies.push(CellBody::Text { text: rows.join("\n"), style, part: ShownPart::First(MESSAGE_ROWS) });
        }
        vec![RenderedText::Answer(self.cell(cell).into_text())]
    }

    /// Names an attached text. The path of a file is shown relative to the session's directory.
    fn attached_row(&self, attached: &AttachedText) -> String {
        let path = attached.uri.strip_prefix("file://").map(|path| percent_decode_str(path).decode_utf8_lossy());
        let name = path.as_deref().map_or(Path::new(&attached.uri), Path::new);
        let slash = if attached.uri.ends_with('/') { "/" } else { "" };
        let name = output_line(&name.strip_prefix(&self.cwd).unwrap_or(name).to_string_lossy());
        format!("  @{name}{slash} · {} line{}", attached.lines, if attached.lines == 1 { "" } else { "s" })
    }

    /// Renders text of a message as it arrives, on its own lines.
    pub(super) fn message_text(&mut self, id: &MessageId, thought: bool, text: &str) -> Vec<RenderedText> {
        if self.options.replay {
            match self.incomplete.iter_mut().find(|(open, ..)| open == id) {
                Some((.., open)) => open.push_str(text),
                None => self.incomplete.push((id.clone(), thought, text.into())),
            }
            return Vec::new();
        }
        let text = match self.options.exact && !thought {
            true => text.to_string(),
            false => self.filters.entry(id.clone()).or_default().push(text),
        };
        let continues = self.writing.as_ref().is_some_and(|(open, _)| open == id);
        let mut rendered = if continues { Vec::new() } else { self.end_line() };
        self.writing = Some((id.clone(), thought));
        if thought && self.is_watched() {
            if self.thought.is_empty() {
                self.thought_began = Instant::now();
            }
            self.thought += &text;
        } else if thought || self.options.markdown.is_none() {
            rendered.push(self.message(thought, &text));
        } else {
            let blocks = self.markdown.push(&text);
            rendered.extend(self.blocks(blocks));
            self.prepare_colours();
        }
        rendered
    }

    /// Renders blocks of the answer.
    fn blocks(&mut self, blocks: Vec<MarkdownBlock>) -> Vec<RenderedText> {
        let layout = self.options.markdown.unwrap_or_default();
        self.is_prepared &= blocks.is_empty();
        let rendered = blocks.into_iter().map(|block| match layout.colour && block.has_code() {
            true => {
                let text = self.syntax.render(move |syntax| block.render(layout, syntax));
                RenderedText::Later { text, is_answer: true }
            }
            false => RenderedText::Answer(block.render(layout, None)),
        });
        rendered.filter(|piece| !matches!(piece, RenderedText::Answer(text) if text.is_empty())).collect()
    }

    /// Compiles the queries for the open block, if it is code.
    fn prepare_colours(&mut self) {
        let is_coloured = self.options.markdown.is_some_and(|layout| layout.colour);
        if let (true, false, Some(line)) = (is_coloured, self.is_prepared, self.markdown.first_line()) {
            fence_language(line).into_iter().for_each(|language| self.syntax.prepare(language));
            self.is_prepared = true;
        }
    }

    /// Ends the line or the block of the message that is being written.
    fn end_line(&mut self) -> Vec<RenderedText> {
        match self.writing.take() {
            None => Vec::new(),
            // The answer begins, and the end of the thought is reported after it.
            Some((id, true)) if self.is_watched() => {
                self.ended_thought = Some(id);
                let (text, time) = (std::mem::take(&mut self.thought), self.thought_began.elapsed());
                self.thought_end(&text, Some(time))
            }
            Some((_, true)) => vec![RenderedText::Progress("\n".into())],
            Some((_, false)) if self.options.markdown.is_none() => vec![RenderedText::Answer("\n".into())],
            Some((_, false)) => {
                let blocks = self.markdown.finish();
                self.blocks(blocks)
            }
        }
    }

    pub(super) fn message_end(
        &mut self,
        id: &MessageId,
        thought: bool,
        text: &str,
        discarded: bool,
        time: Option<Duration>,
    ) -> Vec<RenderedText> {
        if self.options.replay {
            self.incomplete.retain(|(open, ..)| open != id);
            let text = output(text);
            let shown = !discarded && !text.is_empty();
            return shown.then(|| self.message(thought, &format!("{text}\n"))).into_iter().collect();
        }
        self.filters.remove(id);
        let writing = self.writing.as_ref().is_some_and(|(open, _)| open == id);
        if thought && self.is_watched() {
            if self.ended_thought.take().as_ref() == Some(id) {
                return Vec::new();
            }
            self.writing.take_if(|(open, _)| open == id);
            self.thought.clear();
            return self.thought_end(text, time);
        }
        if discarded && self.options.markdown.is_some() {
            self.writing = None;
            let has_begun = self.markdown.discard();
            let text = "  (the answer was interrupted, and begins again)";
            return has_begun.then(|| progress(&self.paint(Style::Dim, text))).into_iter().collect();
        }
        if writing { self.end_line() } else { Vec::new() }
    }

    /// Renders a thought as a row.
    fn thought_end(&mut self, text: &str, time: Option<Duration>) -> Vec<RenderedText> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        let seconds = time.map_or(0, |time| time.as_secs());
        let time = if seconds > 0 { format!(" for {seconds} s") } else { String::new() };
        let mut cell = Cell::new(StyledText::default());
        cell.title.push(&format!("▸ thought{time}"), TextStyle::dim());
        cell.bodies.push(CellBody::Text { text: output(text), style: TextStyle::default(), part: ShownPart::Title });
        vec![self.cell(cell)]
    }

    /// Renders a command of the user and its output, which ends with how the command ended.
    pub(crate) fn own_command(&mut self, command: &str, output: &str) -> String {
        let mut cell = Cell::new(StyledText::default());
        cell.title.push(&format!("$ {command}"), TextStyle { bold: true, ..TextStyle::default() });
        let text = output.trim_end().to_owned();
        cell.bodies.push(CellBody::Text { text, style: TextStyle::default(), part: ShownPart::Last(OUTPUT_LINES) });
        self.cell(cell).into_text()
    }
}
