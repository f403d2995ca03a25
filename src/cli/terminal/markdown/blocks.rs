//! Splits Markdown into blocks while it arrives, so that a block that cannot change any more is
//! rendered once.

/// Top-level Markdown that no later text changes: a block, or an item of a list. It can contain
/// several blocks if their border is not certain.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MarkdownBlock {
    pub source: String,
    /// A blank row precedes the block.
    pub is_apart: bool,
    /// The number of the item of an ordered list.
    pub number: Option<u64>,
}

/// The kind of the open block, by its first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Paragraph,
    Quote,
    /// HTML that ends with one of these texts, or at a blank line if there are none.
    Html {
        ends: &'static [&'static str],
    },
    /// An indented code block.
    Code,
    Fence {
        mark: char,
        length: usize,
    },
    /// An item of a list, whose content is indented by so many columns.
    Item {
        content: usize,
    },
}

/// Finds the borders of blocks in lines, in linear time.
#[derive(Debug)]
pub(super) struct BlockSplitter {
    /// The line that is not complete.
    line: String,
    /// The complete lines of the open block.
    open: String,
    kind: BlockKind,
    /// The last line of the open block is blank.
    is_blank: bool,
    is_apart: bool,
    /// Delimiter and number of the last item, if an ordered list is open.
    item: Option<(char, u64)>,
    number: Option<u64>,
    blocks: Vec<MarkdownBlock>,
}

impl BlockSplitter {
    pub(super) fn new() -> BlockSplitter {
        BlockSplitter {
            line: String::new(),
            open: String::new(),
            kind: BlockKind::Paragraph,
            is_blank: false,
            is_apart: false,
            item: None,
            number: None,
            blocks: Vec::new(),
        }
    }

    /// Adds a piece. Returns the blocks that it completes.
    pub(super) fn push(&mut self, piece: &str) -> Vec<MarkdownBlock> {
        for part in piece.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                self.end_line();
            }
        }
        std::mem::take(&mut self.blocks)
    }

    /// Ends the text. Returns the last blocks.
    pub(super) fn finish(mut self) -> Vec<MarkdownBlock> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end();
        self.blocks
    }

    /// Returns the block that is open, with the line that is not complete, in its parts.
    pub(super) fn open(&self) -> [&str; 2] {
        [&self.open, &self.line]
    }

    pub(super) fn is_apart(&self) -> bool {
        self.is_apart
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let text = line.trim_end();
        if let (BlockKind::Fence { mark, length }, false) = (self.kind, self.open.is_empty()) {
            self.open.push_str(&line);
            let closes = fence(text).is_some_and(|(closing, count, rest)| closing == mark && count >= length && rest.is_empty());
            if closes {
                self.end();
            }
            return;
        }
        if text.is_empty() {
            let waits = match self.kind {
                BlockKind::Item { .. } | BlockKind::Code => true,
                BlockKind::Html { ends } => !ends.is_empty(),
                BlockKind::Paragraph | BlockKind::Quote | BlockKind::Fence { .. } => false,
            };
            if waits && !self.open.is_empty() {
                self.open.push_str(&line);
                self.is_blank = true;
            } else {
                self.end();
                self.is_apart = true;
            }
            return;
        }
        if !self.open.is_empty() && !self.continues(text) {
            let is_blank = self.is_blank;
            self.end();
            self.is_apart = is_blank;
        }
        if self.open.is_empty() {
            self.begin(text);
        }
        self.open.push_str(&line);
        self.is_blank = false;
        let is_ended = match self.kind {
            BlockKind::Html { ends } => ends.iter().any(|end| text.to_ascii_lowercase().contains(end)),
            // A heading and a rule have one line.
            BlockKind::Paragraph => self.open.len() == line.len() && (is_heading(text) || is_rule(text)),
            _ => false,
        };
        if is_ended {
            self.end();
        }
    }

    /// Starts a block.
    fn begin(&mut self, text: &str) {
        let previous = self.item.take();
        self.number = None;
        self.kind = match text.trim_start() {
            _ if indent(text) >= 4 => BlockKind::Code,
            _ if is_rule(text) => BlockKind::Paragraph,
            trimmed if trimmed.starts_with('>') => BlockKind::Quote,
            trimmed if trimmed.starts_with('<') => BlockKind::Html { ends: html_ends(trimmed) },
            _ => match (opened_fence(text), item(text)) {
                (Some((mark, length)), _) => BlockKind::Fence { mark, length },
                (None, Some(item)) => {
                    if let Some(number) = item.number {
                        // The items after the first count on, whatever their numbers are.
                        let next =
                            previous.filter(|(mark, _)| *mark == item.mark).map_or(number, |(_, last)| last.saturating_add(1));
                        self.item = Some((item.mark, next));
                        self.number = Some(next);
                    }
                    BlockKind::Item { content: item.content }
                }
                (None, None) => BlockKind::Paragraph,
            },
        };
    }

    /// Returns whether a line that is not blank belongs to the open block, or may belong to it.
    fn continues(&self, text: &str) -> bool {
        match self.kind {
            BlockKind::Code => indent(text) >= 4,
            BlockKind::Html { .. } | BlockKind::Fence { .. } => true,
            BlockKind::Paragraph => !interrupts(text),
            BlockKind::Quote => text.trim_start().starts_with('>') || !interrupts(text),
            BlockKind::Item { content } => {
                let is_lazy = || !self.is_blank && !interrupts(text) && item(text).is_none();
                indent(text) >= content || is_lazy()
            }
        }
    }

    /// Completes the open block.
    fn end(&mut self) {
        if !self.open.is_empty() {
            let source = std::mem::take(&mut self.open);
            self.blocks.push(MarkdownBlock { source, is_apart: self.is_apart, number: self.number });
        }
        (self.kind, self.is_apart, self.is_blank) = (BlockKind::Paragraph, false, false);
    }
}

/// The marker of an item of a list.
struct ItemMarker {
    /// The bullet, or the delimiter after a number.
    mark: char,
    number: Option<u64>,
    /// Columns before the content of the item.
    content: usize,
    is_empty: bool,
}

/// Returns the columns of the spaces and tabs before a text.
fn indent(text: &str) -> usize {
    let blanks = text.chars().take_while(|character| matches!(character, ' ' | '\t'));
    blanks.fold(0, |column, character| if character == '\t' { column / 4 * 4 + 4 } else { column + 1 })
}

/// Parses the marker of an item.
fn item(text: &str) -> Option<ItemMarker> {
    let (before, trimmed) = (indent(text), text.trim_start());
    let digits = trimmed.len() - trimmed.trim_start_matches(|character: char| character.is_ascii_digit()).len();
    let mark = trimmed[digits..].chars().next()?;
    let is_marker = match digits {
        0 => matches!(mark, '-' | '*' | '+'),
        1..=9 => matches!(mark, '.' | ')'),
        _ => false,
    };
    let rest = trimmed.get(digits + 1..)?;
    if before >= 4 || !is_marker || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let blanks = if rest.trim().is_empty() { 1 } else { indent(rest) };
    let blanks = if blanks > 4 { 1 } else { blanks };
    Some(ItemMarker {
        mark,
        number: trimmed[..digits].parse().ok(),
        content: before + digits + 1 + blanks,
        is_empty: rest.trim().is_empty(),
    })
}

/// Returns the texts that end a block of HTML with this start (CommonMark, HTML blocks 1 to 5).
fn html_ends(start: &str) -> &'static [&'static str] {
    let name = start[1..].split(|character: char| !character.is_ascii_alphanumeric()).next().unwrap_or_default();
    match name.to_ascii_lowercase().as_str() {
        "pre" | "script" | "style" | "textarea" => &["</pre>", "</script>", "</style>", "</textarea>"],
        _ if start.starts_with("<!--") => &["-->"],
        _ if start.starts_with("<?") => &["?>"],
        _ if start.starts_with("<![CDATA[") => &["]]>"],
        _ => &[],
    }
}

/// Returns the mark, the length and the rest of a line that begins with a fence.
fn fence(text: &str) -> Option<(char, usize, &str)> {
    let trimmed = text.trim_start();
    let mark = trimmed.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = trimmed.trim_start_matches(mark);
    let length = trimmed.len() - rest.len();
    (indent(text) < 4 && length >= 3).then_some((mark, length, rest.trim()))
}

/// Returns the mark and the length of a fence that begins a code block.
fn opened_fence(text: &str) -> Option<(char, usize)> {
    let (mark, length, rest) = fence(text)?;
    (mark == '~' || !rest.contains('`')).then_some((mark, length))
}

/// Returns whether a line is a heading that begins with `#`.
fn is_heading(text: &str) -> bool {
    let trimmed = text.trim_start();
    let rest = trimmed.trim_start_matches('#');
    let level = trimmed.len() - rest.len();
    indent(text) < 4 && (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// Returns whether a line is a rule.
fn is_rule(text: &str) -> bool {
    let marks: String = text.chars().filter(|character| !matches!(character, ' ' | '\t')).collect();
    let is_one = |mark: char| marks.len() >= 3 && marks.chars().all(|character| character == mark);
    indent(text) < 4 && (is_one('-') || is_one('*') || is_one('_'))
}

/// Returns whether a line ends a paragraph before it. A line of `-` can underline a heading.
fn interrupts(text: &str) -> bool {
    let trimmed = text.trim();
    if indent(text) >= 4 {
        return false;
    }
    let is_underline = trimmed.chars().all(|character| character == '-');
    let is_item = || item(text).is_some_and(|item| !item.is_empty && item.number.is_none_or(|number| number == 1));
    trimmed.starts_with('>') || is_heading(text) || opened_fence(text).is_some() || (is_rule(text) && !is_underline) || is_item()
}
