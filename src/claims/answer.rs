//! Splits an answer (Markdown) into the sentences in which it speaks for itself: without quotes,
//! code blocks, and lists of steps or expectations for the reader.

use crate::claims::languages::{announces_contents, announces_steps, is_expectation_header};

/// Returns the sentences, headings and table rows of the answer. A list item that is not done
/// (`[ ]`) is omitted.
pub(crate) fn sentences(answer: &str) -> Vec<String> {
    let mut reader = AnswerReader::default();
    for line in answer.lines() {
        reader.line(line);
    }
    reader.end_block();
    reader.sentences
}

/// A list item, heading or paragraph that spans lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Block {
    #[default]
    Paragraph,
    /// A list item, with the columns of its indentation.
    Item(usize),
}

#[derive(Default)]
struct AnswerReader {
    sentences: Vec<String>,
    text: String,
    block: Block,
    /// The fence of the code block around the current line.
    fence: Option<String>,
    in_comment: bool,
    /// Set after a list item, until a paragraph follows: indented lines belong to the item.
    in_list: bool,
    /// Set in a section whose heading announces steps.
    skips_section: bool,
    /// Set after the introduction of a draft, until its first block.
    introduces_draft: bool,
    /// Set in a list whose introduction announces steps: the indentation of a list item that
    /// introduces it.
    skips_list: Option<Option<usize>>,
    /// Set in a table, to whether its header announces expectations.
    skips_table: Option<bool>,
}

impl AnswerReader {
    fn line(&mut self, line: &str) {
        let text = line.trim();
        if self.skips_fenced(text) || self.skips_comment(text) {
            return;
        }
        if !is_row(text) {
            self.skips_table = None;
        }
        // An indented code block.
        let is_code = line.starts_with("    ") || line.starts_with('\t');
        if is_code && self.text.is_empty() && !self.in_list && item(text).is_none() {
            return;
        }
        if text.is_empty() || text.starts_with('<') || is_rule(text) {
            return self.end_block();
        }
        if text.starts_with('>') {
            self.end_block();
        } else if let Some(heading) = text.strip_prefix('#') {
            self.end_block();
            let heading = heading.trim_start_matches('#').trim();
            // A heading right after the introduction of a draft is part of it.
            self.skips_section = announces_steps(heading) || std::mem::take(&mut self.introduces_draft);
            self.skips_list = None;
            self.add(heading);
        } else if is_row(text) {
            self.end_block();
            self.row(text);
        } else if let Some(item) = item(text) {
            self.end_block();
            self.block = Block::Item(line.len() - line.trim_start().len());
            // `[ ]`: a task that is not done.
            self.text = if item.starts_with("[ ]") { String::new() } else { item.into() };
        } else {
            if starts_with_mark(text) {
                self.end_block();
            }
            if !self.text.is_empty() {
                self.text.push(' ');
            }
            self.text.push_str(text);
        }
    }

    /// Returns whether the line belongs to a fenced code block.
    fn skips_fenced(&mut self, text: &str) -> bool {
        let content = item(text).unwrap_or(text);
        let character = content.chars().next().filter(|first| matches!(first, '`' | '~'));
        let fence: String = content.chars().take_while(|one| Some(*one) == character).collect();
        match &self.fence {
            Some(open) => {
                if fence.starts_with(open.as_str()) && content.len() == fence.len() {
                    self.fence = None;
                }
                true
            }
            None => {
                let opens = fence.len() >= 3 && !(fence.starts_with('`') && content.trim_start_matches('`').contains('`'));
                if opens {
                    self.end_block();
                    self.fence = Some(fence);
                }
                opens
            }
        }
    }

    fn skips_comment(&mut self, text: &str) -> bool {
        let inside = self.in_comment || text.starts_with("<!--");
        self.in_comment = inside && !text.contains("-->");
        inside
    }

    fn row(&mut self, text: &str) {
        let cells: Vec<&str> = text.trim_matches('|').split('|').map(str::trim).collect();
        match self.skips_table {
            None if is_expectation_header(&cells) => self.skips_table = Some(true),
            Some(true) => {}
            _ if cells.iter().all(|cell| cell.chars().all(|character| "-: ".contains(character))) => {}
            _ => {
                self.skips_table = Some(false);
                self.add(&cells.join(" | "));
            }
        }
    }

    /// Ends a paragraph or list item.
    fn end_block(&mut self) {
        let text = std::mem::take(&mut self.text);
        let block = std::mem::take(&mut self.block);
        let text = text.trim();
        if block == Block::Paragraph && is_bold(text) {
            self.skips_section = announces_steps(text);
            self.skips_list = None;
            return self.add(text);
        }
        let skipped = match (self.skips_list, block) {
            (Some(None), Block::Item(_)) => true,
            (Some(Some(parent)), Block::Item(indent)) => indent > parent,
            (_, Block::Paragraph) => text.is_empty(),
            (None, Block::Item(_)) => false,
        };
        self.introduces_draft &= text.is_empty();
        if skipped || text.is_empty() {
            return;
        }
        self.in_list = block != Block::Paragraph;
        let indent = match block {
            Block::Paragraph => None,
            Block::Item(indent) => Some(indent),
        };
        let mut sentences = split(text);
        let ends_with_colon = |sentence: &mut String| sentence.trim_end_matches(['*', '_', ' ']).ends_with([':', '：']);
        let introduction = sentences.pop_if(ends_with_colon);
        let introduction = introduction.as_deref().unwrap_or_default();
        self.skips_list = announces_steps(introduction).then_some(indent);
        if self.skips_section {
            return;
        }
        // A draft ends with the next heading, if it has no fences.
        self.skips_section = announces_contents(introduction);
        self.introduces_draft = self.skips_section;
        if self.skips_list.is_none() {
            sentences.extend((!introduction.is_empty()).then(|| introduction.to_owned()));
        }
        self.sentences.extend(sentences);
    }

    fn add(&mut self, text: &str) {
        if !self.skips_section {
            self.sentences.extend(split(text));
        }
    }
}

/// Returns the text of a list item without its marker.
fn item(text: &str) -> Option<&str> {
    let number = text.trim_start_matches(|character: char| character.is_ascii_digit());
    let rest = if number.len() < text.len() {
        number.strip_prefix(['.', ')'])?
    } else {
        text.strip_prefix(['-', '*', '+', '•', '–', '·'])?
    };
    rest.starts_with([' ', '\t']).then(|| rest.trim_start())
}

fn is_row(text: &str) -> bool {
    text.starts_with('|') && text.matches('|').count() > 1
}

fn is_rule(text: &str) -> bool {
    text.len() >= 3 && ["-", "*", "_", "="].iter().any(|mark| text.replace(mark, "").trim().is_empty())
}

/// Returns whether the whole paragraph is bold, as headings often are.
fn is_bold(text: &str) -> bool {
    let inner = text.strip_prefix("**").and_then(|text| text.strip_suffix("**").or_else(|| text.strip_suffix("**:")));
    inner.is_some_and(|inner| !inner.contains("**"))
}

/// Returns whether the line starts with a symbol, as items of lists without markers do.
fn starts_with_mark(text: &str) -> bool {
    text.starts_with(|first: char| {
        matches!(first, '✅' | '✓' | '✔' | '☑' | '❌' | '✗' | '✘' | '⚠' | '🟢' | '🔴' | '🟡' | '➜' | '→')
    })
}

/// Splits a text at the ends of sentences outside code spans.
fn split(text: &str) -> Vec<String> {
    let characters: Vec<(usize, char)> = text.char_indices().collect();
    let mut sentences = Vec::new();
    let (mut start, mut in_code) = (0, false);
    for (index, (place, character)) in characters.iter().enumerate() {
        in_code ^= *character == '`';
        let next = characters.get(index + 1).map(|(_, next)| *next);
        let ends = match character {
            '。' | '！' | '？' => true,
            '.' | '!' | '?' => {
                let closing = characters.iter().skip(index + 1).map(|(_, next)| *next).find(|next| !"*_)]\"'”»".contains(*next));
                next.is_none()
                    || (closing.is_none_or(char::is_whitespace) && !is_abbreviation(text.get(start..*place).unwrap_or_default()))
            }
            _ => false,
        };
        if ends && !in_code {
            let end = place + character.len_utf8();
            sentences.extend(text.get(start..end).map(str::to_owned));
            start = end;
        }
    }
    sentences.extend(text.get(start..).map(str::to_owned));
    sentences.retain(|sentence| sentence.chars().any(char::is_alphanumeric));
    sentences.iter().map(|sentence| sentence.trim().to_owned()).collect()
}

/// Returns whether the text ends with an abbreviation, whose point does not end a sentence.
fn is_abbreviation(text: &str) -> bool {
    let word = text.rsplit([' ', '(']).next().unwrap_or_default().to_lowercase();
    matches!(
        word.as_str(),
        "e.g" | "i.e" | "z.b" | "d.h" | "etc" | "vs" | "bzw" | "ca" | "approx" | "p.ej" | "p. ex" | "т.е" | "т.д"
    )
}
