//! Renders a completed piece of Markdown from the events of its parser.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

use super::table::MarkdownTable;
use crate::cli::terminal::styled_text::{Colour, StyledText, TextStyle};
use crate::cli::terminal::syntax::SyntaxColours;
use crate::terminal_text::output;

/// How Markdown is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MarkdownLayout {
    /// Width of the terminal in columns.
    pub columns: usize,
    pub colour: bool,
}

/// Maximum width of a line of prose, in columns.
const PROSE_COLUMNS_MAX: usize = 100;
/// Minimum width of a line of prose in lists and quotes.
const PROSE_COLUMNS_MIN: usize = 20;

/// A block that contains others.
enum Container {
    Quote,
    /// A list, with the number of its next item if it is ordered.
    List(Option<u64>),
    /// An item; its mark stands before its first line only.
    Item {
        mark: String,
        width: usize,
        is_begun: bool,
    },
}

/// A link or an image that is being read, with its text.
struct OpenLink {
    url: String,
    text: String,
}

struct Document<'a> {
    source: &'a str,
    layout: MarkdownLayout,
    syntax: Option<&'a mut SyntaxColours>,
    /// The number of the first list.
    number: Option<u64>,
    out: String,
    containers: Vec<Container>,
    /// The number of containers whose marks need no change: items before it have begun.
    begun: usize,
    text: StyledText,
    styles: Vec<TextStyle>,
    links: Vec<OpenLink>,
    /// Language and text of the open code block.
    code: Option<(String, String)>,
    table: Option<MarkdownTable>,
}

/// Renders Markdown as complete rows. `number` is the number of the first item, if it differs from
/// that in the source.
pub(super) fn render(source: &str, number: Option<u64>, layout: MarkdownLayout, syntax: Option<&mut SyntaxColours>) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let parser = Parser::new_ext(source, options);
    let definitions = parser.reference_definitions().iter();
    let mut definitions: Vec<(usize, String)> =
        definitions.map(|(label, link)| (link.span.start, format!("[{label}]: {}", link.dest))).collect();
    definitions.sort();
    let mut document = Document {
        source,
        layout,
        syntax,
        number,
        out: String::new(),
        containers: Vec::new(),
        begun: 0,
        text: StyledText::default(),
        styles: Vec::new(),
        links: Vec::new(),
        code: None,
        table: None,
    };
    for (event, range) in parser.into_offset_iter() {
        document.event(event, range.start);
    }
    document.end_text();
    for (_, definition) in definitions {
        let mut row = StyledText::default();
        row.push(&output(&definition), TextStyle::dim());
        document.row(&row);
    }
    document.out
}

impl Document<'_> {
    fn event(&mut self, event: Event<'_>, at: usize) {
        match event {
            Event::Start(tag) => self.start(tag, at),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.add(&text, at),
            Event::InlineHtml(tag) => match is_line_break(&tag) {
                true => self.add("\n", at),
                false => self.add(&tag, at),
            },
            Event::Code(text) => {
                let style = TextStyle { colour: Some(Colour::Cyan), ..self.style() };
                let text = if self.layout.colour { text.to_string() } else { format!("`{text}`") };
                self.styled(&text, style, at);
            }
            Event::SoftBreak | Event::HardBreak => self.add("\n", at),
            Event::Rule => {
                self.begin(at);
                self.rule("───");
            }
            Event::TaskListMarker(is_done) => {
                if let Some(Container::Item { mark, is_begun: false, .. }) = self.containers.last_mut() {
                    *mark = if is_done { "☑ " } else { "☐ " }.into();
                }
            }
            Event::FootnoteReference(text) => self.add(&text, at),
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: usize) {
        let style = self.style();
        match tag {
            Tag::Emphasis => self.styles.push(TextStyle { italic: true, ..style }),
            Tag::Strong => self.styles.push(TextStyle { bold: true, ..style }),
            Tag::Strikethrough => {
                self.add(if self.layout.colour { "" } else { "~~" }, at);
                self.styles.push(TextStyle { struck: true, ..style });
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(OpenLink { url: output(&dest_url), text: String::new() });
                self.styles.push(TextStyle { underlined: true, ..style });
            }
            Tag::TableHead => {
                self.styles.push(TextStyle { bold: true, ..style });
                self.table.iter_mut().for_each(|table| table.rows.push(Vec::new()));
            }
            Tag::TableRow => self.table.iter_mut().for_each(|table| table.rows.push(Vec::new())),
            Tag::TableCell => {}
            tag => self.start_block(tag, at),
        }
    }

    fn start_block(&mut self, tag: Tag<'_>, at: usize) {
        self.end_text();
        match tag {
            Tag::Heading { level, .. } => {
                let (is_title, is_small) = (level == HeadingLevel::H1, level > HeadingLevel::H2);
                self.styles.push(TextStyle { bold: true, underlined: is_title, italic: is_small, ..TextStyle::default() });
                // Without styles, the marks show the level.
                if !self.layout.colour {
                    self.add(&format!("{} ", "#".repeat(level as usize)), at);
                }
            }
            Tag::BlockQuote(_) => self.containers.push(Container::Quote),
            Tag::CodeBlock(kind) => {
                self.begin(at);
                let language = match &kind {
                    CodeBlockKind::Fenced(info) => output(language(info)),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                let first = first.map(|first| self.number.take().unwrap_or(first));
                self.containers.push(Container::List(first));
            }
            Tag::Item => {
                let mark = match self.containers.last_mut() {
                    Some(Container::List(Some(number))) => {
                        let mark = format!("{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => "• ".into(),
                };
                self.containers.push(Container::Item { width: mark.width(), mark, is_begun: false });
            }
            Tag::Table(alignments) => {
                self.begin(at);
                self.table = Some(MarkdownTable { alignments, rows: Vec::new() });
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong => drop(self.styles.pop()),
            TagEnd::Strikethrough => {
                self.styles.pop();
                self.add(if self.layout.colour { "" } else { "~~" }, 0);
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let Some(link) = self.links.pop() else { return };
                let is_same = link.text == link.url || link.url == format!("mailto:{}", link.text);
                if !is_same && !link.url.is_empty() {
                    let between = if link.text.is_empty() { "" } else { " " };
                    self.text.push(&format!("{between}({})", link.url), TextStyle::dim());
                }
            }
            TagEnd::TableHead => drop(self.styles.pop()),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                self.table.iter_mut().filter_map(|table| table.rows.last_mut()).for_each(|row| row.push(cell.clone()));
            }
            TagEnd::TableRow => {}
            TagEnd::Heading(_) => {
                self.end_text();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) | TagEnd::List(_) => {
                self.end_text();
                self.close();
            }
            TagEnd::Item => {
                self.end_text();
                if matches!(self.containers.last(), Some(Container::Item { is_begun: false, .. })) {
                    self.row(&StyledText::default());
                }
                self.close();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::HtmlBlock => {
                let text = std::mem::take(&mut self.text);
                let lines: Vec<String> = text.paint(false).lines().map(String::from).collect();
                lines.iter().for_each(|line| self.plain_row(line));
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let rows = table.rendered(self.columns());
                    rows.iter().for_each(|row| self.row(row));
                }
            }
            _ => self.end_text(),
        }
    }

    fn style(&self) -> TextStyle {
        self.styles.last().copied().unwrap_or_default()
    }

    fn add(&mut self, text: &str, at: usize) {
        self.styled(text, self.style(), at);
    }

    /// Adds text to the open block. Entities can stand for control characters.
    fn styled(&mut self, text: &str, style: TextStyle, at: usize) {
        let text = output(text);
        if let Some((_, code)) = &mut self.code {
            return code.push_str(&text);
        }
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(&text);
        }
        if self.text.is_empty() && self.table.is_none() {
            self.begin(at);
        }
        self.text.push(&text, style);
    }

    /// Prints the blank row before a block, if its source has one.
    fn begin(&mut self, at: usize) {
        let line_start = self.source[..at].rfind('\n').unwrap_or(0);
        let before = &self.source[..line_start];
        let previous = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
        if !self.out.is_empty() && line_start > 0 && previous.trim_matches([' ', '\t', '>', '\r']).is_empty() {
            let prefix = self.prefix(false);
            self.out += prefix.trim_end();
            self.out.push('\n');
        }
    }

    /// Returns the marks before a row in lists and quotes. They use at most half of the row.
    /// With `begins`, the items that the row begins get their marks.
    fn prefix(&mut self, begins: bool) -> String {
        let (mut prefix, mut width) = (String::new(), 0);
        for container in &self.containers {
            let (text, columns) = match container {
                Container::List(_) => continue,
                Container::Quote if self.layout.colour => (TextStyle::dim().paint("│") + " ", 2),
                Container::Quote => ("│ ".into(), 2),
                Container::Item { is_begun: false, .. } if !begins => break,
                Container::Item { mark, width, is_begun } => (if *is_begun { " ".repeat(*width) } else { mark.clone() }, *width),
            };
            if width + columns > self.layout.columns / 2 {
                break;
            }
            prefix += &text;
            width += columns;
        }
        if begins {
            for container in &mut self.containers[self.begun..] {
                if let Container::Item { is_begun, .. } = container {
                    *is_begun = true;
                }
            }
            self.begun = self.containers.len();
        }
        prefix
    }

    fn close(&mut self) {
        self.containers.pop();
        self.begun = self.begun.min(self.containers.len());
    }

    /// Returns the columns that rows in the open lists and quotes have.
    fn columns(&self) -> usize {
        let mut width = 0;
        for container in &self.containers {
            width += match container {
                Container::List(_) => 0,
                Container::Quote => 2,
                Container::Item { width, .. } => *width,
            };
            if width > self.layout.columns / 2 {
                break;
            }
        }
        self.layout.columns.saturating_sub(width).max(PROSE_COLUMNS_MIN)
    }

    fn row(&mut self, row: &StyledText) {
        self.plain_row(&row.paint(self.layout.colour));
    }

    fn plain_row(&mut self, row: &str) {
        let prefix = self.prefix(true);
        self.out += if row.is_empty() { prefix.trim_end() } else { &prefix };
        self.out += row;
        self.out.push('\n');
    }

    fn rule(&mut self, rule: &str) {
        let mut row = StyledText::default();
        row.push(rule, TextStyle::dim());
        self.row(&row);
    }

    /// Ends a paragraph or a heading.
    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            let rows = text.wrapped(self.columns().min(PROSE_COLUMNS_MAX));
            rows.iter().for_each(|row| self.row(row));
        }
    }

    /// Prints a code block between two rules, which show where it starts and ends also without
    /// colours. Its lines are not wrapped.
    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        self.rule(format!("─── {language}").trim_end());
        match self.syntax.as_mut().and_then(|syntax| syntax.lines(&language, code.trim_end_matches('\n'))) {
            Some(lines) => lines.iter().for_each(|line| self.row(line)),
            None => code.lines().for_each(|line| self.plain_row(line)),
        }
        self.rule("───");
    }
}

/// Returns whether a tag of HTML is `<br>`.
fn is_line_break(tag: &str) -> bool {
    let name = tag.trim_matches(['<', '>', '/', ' ']);
    name.eq_ignore_ascii_case("br")
}

/// Returns the language of the words after a fence.
pub(super) fn language(info: &str) -> &str {
    let info = info.trim_start().trim_start_matches("{.");
    info.split([' ', '\t', ',', '{', '}']).next().unwrap_or_default().trim()
}
