//! Renders Markdown for a terminal while it arrives: headings, emphasis, code, lists, quotes and
//! tables. A line that is not special is passed on word by word.

use unicode_width::UnicodeWidthStr;

use super::word_wrap::WordWrap;

const RESET: &str = "\x1b[0m";
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const CODE: &str = "\x1b[36m";

/// Maximum number of characters that are held until the kind of their line is known. Table rows may
/// be longer.
const HELD_MAX: usize = 24;

/// Renders one message. The text must have no control sequences.
#[derive(Debug)]
pub(crate) struct MarkdownStream {
    /// Width of the terminal in columns.
    columns: usize,
    wrap: WordWrap,
    state: State,
    /// The start of the line, as long as the kind of the line is not known.
    held: String,
    /// The rows of the table so far.
    rows: Vec<String>,
    /// The mark that ends the code block.
    fence: Option<String>,
    bold: bool,
    code: bool,
    /// The number of `*` or of backticks that wait for the next character.
    stars: usize,
    ticks: usize,
    /// The output so far ends with a line break.
    at_line_start: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The kind of the line is not known.
    Start,
    /// A line that is rendered when it is complete: a fence, a rule or a table row.
    Whole,
    /// Text with emphasis and code.
    Text,
    /// A line of a code block.
    Code,
}

impl MarkdownStream {
    pub(crate) fn new(columns: usize) -> MarkdownStream {
        MarkdownStream {
            columns,
            wrap: WordWrap::new(columns),
            state: State::Start,
            held: String::new(),
            rows: Vec::new(),
            fence: None,
            bold: false,
            code: false,
            stars: 0,
            ticks: 0,
            at_line_start: false,
        }
    }

    /// Sets the width of the terminal, for the next lines.
    pub(crate) fn resize(&mut self, columns: usize) {
        if columns != self.columns {
            self.columns = columns;
            self.wrap.resize(columns);
        }
    }

    /// Renders the next piece.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut out = String::new();
        for character in piece.chars() {
            match (self.state, character) {
                (State::Start | State::Whole, '\n') => self.end_held(&mut out),
                (State::Text, '\n') => self.end_text(&mut out),
                (State::Code, '\n') => {
                    out += RESET;
                    out.push('\n');
                    self.state = State::Start;
                }
                (State::Start, _) => {
                    self.held.push(character);
                    self.decide(&mut out);
                }
                (State::Whole, _) => self.held.push(character),
                (State::Text, _) => self.text(character, &mut out),
                (State::Code, _) => out.push(character),
            }
        }
        if !out.is_empty() {
            self.at_line_start = out.ends_with('\n');
        }
        out
    }

    /// Renders what is held, at the end of the message, and ends the line.
    pub(crate) fn finish(&mut self) -> String {
        let mut out = String::new();
        if !self.held.is_empty() {
            self.end_held(&mut out);
        }
        self.end_table(&mut out);
        let mut rest = String::new();
        self.end_marks(None, &mut rest);
        if self.bold || self.code {
            rest += RESET;
        }
        self.wrap.push(&rest, true, &mut out);
        self.wrap.end(&mut out);
        if self.state == State::Code {
            out += RESET;
        }
        let is_ended = if out.is_empty() { self.at_line_start } else { out.ends_with('\n') };
        *self = MarkdownStream::new(self.columns);
        if is_ended { out } else { out + "\n" }
    }

    /// Decides about the kind of the line, if its start says it.
    fn decide(&mut self, out: &mut String) {
        let line = self.held.trim_start_matches(' ');
        if let Some(fence) = &self.fence {
            if line.is_empty() || fence.starts_with(line) || line.starts_with(fence.as_str()) {
                return;
            }
            let held = std::mem::take(&mut self.held);
            out.push_str(CODE);
            out.push_str(&held);
            self.state = State::Code;
            return;
        }
        if line.starts_with('|') || line.starts_with("```") || line.starts_with("~~~") {
            self.state = State::Whole;
            return;
        }
        if !self.rows.is_empty() && !line.is_empty() {
            self.end_table(out);
        }
        let line = self.held.trim_start_matches(' ');
        let indent = &self.held[..self.held.len() - line.len()];
        let hashes = line.len() - line.trim_start_matches('#').len();
        let marker = ["- ", "* ", "+ "].iter().any(|marker| line.starts_with(marker));
        let prefix = match line {
            _ if (1..=6).contains(&hashes) && line[hashes..].starts_with(' ') => {
                self.bold = true;
                BOLD.to_owned()
            }
            _ if marker => format!("{indent}• "),
            _ if line.starts_with("> ") => format!("{DIM}│{RESET} "),
            _ if undecided(line) && self.held.len() < HELD_MAX => return,
            _ => {
                self.state = State::Text;
                let held = std::mem::take(&mut self.held);
                held.chars().for_each(|character| self.text(character, out));
                return;
            }
        };
        let is_entry = !prefix.starts_with(BOLD);
        self.wrap.begin(if is_entry { indent.width() + 2 } else { 0 });
        *out += &prefix;
        self.held.clear();
        self.state = State::Text;
    }

    fn text(&mut self, character: char, out: &mut String) {
        let mut styled = String::new();
        self.styled(character, &mut styled);
        self.wrap.push(&styled, self.code, out);
    }

    /// Applies the marks of emphasis and code.
    fn styled(&mut self, character: char, out: &mut String) {
        match character {
            '`' => {
                self.end_stars(Some(character), out);
                self.ticks += 1;
                return;
            }
            '*' if !self.code && self.ticks == 0 => {
                self.stars += 1;
                return;
            }
            _ => {}
        }
        self.end_marks(Some(character), out);
        out.push(character);
    }

    /// Applies the marks before the next character of the line.
    fn end_marks(&mut self, next: Option<char>, out: &mut String) {
        if std::mem::take(&mut self.ticks) > 0 {
            self.code = !self.code;
            self.style(out);
        }
        self.end_stars(next, out);
    }

    fn end_stars(&mut self, next: Option<char>, out: &mut String) {
        let opens = next.is_some_and(|next| !next.is_whitespace());
        match std::mem::take(&mut self.stars) {
            0 => {}
            2 | 3 if self.bold || opens => {
                self.bold = !self.bold;
                self.style(out);
            }
            count => out.push_str(&"*".repeat(count)),
        }
    }

    fn style(&self, out: &mut String) {
        *out += RESET;
        *out += if self.bold { BOLD } else { "" };
        *out += if self.code { CODE } else { "" };
    }

    fn end_text(&mut self, out: &mut String) {
        let mut rest = String::new();
        self.end_marks(None, &mut rest);
        if std::mem::take(&mut self.bold) | std::mem::take(&mut self.code) {
            rest += RESET;
        }
        self.wrap.push(&rest, true, out);
        self.wrap.end(out);
        out.push('\n');
        self.state = State::Start;
    }

    /// Renders a line that was held.
    fn end_held(&mut self, out: &mut String) {
        let held = std::mem::take(&mut self.held);
        let line = held.trim();
        self.state = State::Start;
        if let Some(fence) = &self.fence {
            if line.starts_with(fence.as_str()) && line.trim_matches(['`', '~']).is_empty() {
                self.fence = None;
                return;
            }
            *out += &format!("{CODE}{held}{RESET}\n");
            return;
        }
        if line.starts_with('|') {
            self.rows.push(line.to_owned());
            return;
        }
        self.end_table(out);
        let mark = line.chars().next().filter(|mark| ['`', '~'].contains(mark));
        let marks = mark.map_or(0, |mark| line.len() - line.trim_start_matches(mark).len());
        if marks >= 3 {
            // The code itself begins on the next line.
            self.fence = Some(line[..marks].to_owned());
            return;
        }
        if line.len() >= 3 && ["-", "*", "_"].iter().any(|mark| line.replace(mark, "").trim().is_empty()) {
            *out += &format!("{DIM}───{RESET}\n");
            return;
        }
        held.chars().for_each(|character| self.text(character, out));
        self.end_text(out);
    }

    /// Renders the rows of a table with aligned columns. A table that is wider than the terminal
    /// stays as it is.
    fn end_table(&mut self, out: &mut String) {
        let rows = std::mem::take(&mut self.rows);
        let cells = |row: &String| -> Vec<String> {
            row.trim_matches('|').split('|').map(|cell| cell.trim().replace("**", "").replace('`', "")).collect()
        };
        let table: Vec<Vec<String>> = rows.iter().map(cells).collect();
        let is_rule = |row: &[String]| row.iter().all(|cell| !cell.is_empty() && cell.chars().all(|mark| "-: ".contains(mark)));
        let columns = table.iter().map(Vec::len).max().unwrap_or(0);
        let width =
            |at: usize| table.iter().filter(|row| !is_rule(row)).filter_map(|row| row.get(at)).map(|cell| cell.width()).max();
        let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
        if widths.iter().map(|width| width + 3).sum::<usize>() > self.columns + 3 {
            rows.iter().for_each(|row| *out += &format!("{row}\n"));
            return;
        }
        let has_head = table.get(1).is_some_and(|row| is_rule(row));
        for (number, row) in table.iter().enumerate() {
            if is_rule(row) {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                *out += &format!("{DIM}{}{RESET}\n", rules.join("─┼─"));
                continue;
            }
            let padded = |(at, width): (usize, &usize)| {
                let cell = row.get(at).map(String::as_str).unwrap_or_default();
                format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width())))
            };
            let line = widths.iter().enumerate().map(padded).collect::<Vec<_>>().join(" │ ");
            let head = number == 0 && has_head;
            *out += &if head { format!("{BOLD}{}{RESET}\n", line.trim_end()) } else { format!("{}\n", line.trim_end()) };
        }
    }
}

/// Returns whether more characters may make a line special.
fn undecided(line: &str) -> bool {
    let only = |marks: &str| line.chars().all(|character| marks.contains(character));
    line.is_empty() || only("#") || only("`") || only("~") || only("-* ") || only("_") || line == "+" || line == ">"
}
