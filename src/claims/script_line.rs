//! Splits a shell command line into simple commands and the operators between them. The splitter
//! stops at what it does not understand: the rest of the line is unknown.

/// A word of a command, without quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LineWord {
    pub(crate) text: String,
    /// Set if the shell replaces a part of the word, for example a variable.
    pub(crate) expands: bool,
    /// Set if a part of the word was in quotes.
    pub(crate) quoted: bool,
}

/// The operator between two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    And,
    Or,
    /// `;` or a line break.
    Then,
    Pipe,
    Background,
}

/// A simple command and the operators around it. `None` is the start or the end of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineCommand {
    pub(crate) words: Vec<LineWord>,
    pub(crate) before: Option<Operator>,
    pub(crate) after: Option<Operator>,
}

/// The commands of a line. Parentheses are dropped.
#[derive(Debug, Default)]
pub(crate) struct ScriptLine {
    pub(crate) commands: Vec<LineCommand>,
    /// Set if the line has parentheses.
    pub(crate) grouped: bool,
    /// False if a part of the line was not understood.
    pub(crate) complete: bool,
}

impl ScriptLine {
    /// Splits `line`.
    pub(crate) fn new(line: &str) -> ScriptLine {
        let mut splitter = Splitter { rest: line, ..Splitter::default() };
        let complete = splitter.split().is_some();
        splitter.end_command(None);
        ScriptLine { commands: splitter.commands, grouped: splitter.grouped, complete }
    }
}

/// The state of splitting. The methods return `None` where the line is not understood.
#[derive(Default)]
struct Splitter<'a> {
    rest: &'a str,
    commands: Vec<LineCommand>,
    words: Vec<LineWord>,
    before: Option<Operator>,
    grouped: bool,
    /// Set after `)`, where only an operator or a redirection may follow.
    closed: bool,
    depth: usize,
    /// Delimiters of here-documents that start on the next line, and whether they are quoted.
    here_documents: Vec<(String, bool)>,
}

impl Splitter<'_> {
    fn split(&mut self) -> Option<()> {
        while let Some(first) = self.rest.chars().next() {
            match first {
                ' ' | '\t' | '\r' => self.skip(1),
                '\\' if self.take("\\\n") => {}
                '#' => self.skip(self.rest.find('\n').unwrap_or(self.rest.len())),
                '\n' => {
                    self.skip(1);
                    self.skip_here_documents()?;
                    self.operator(Operator::Then)?;
                }
                '<' | '>' => self.redirect()?,
                '&' if self.rest.starts_with("&>") => self.redirect()?,
                '&' if self.take("&&") => self.operator(Operator::And)?,
                '|' if self.take("||") => self.operator(Operator::Or)?,
                '|' if self.take("|&") || self.take("|") => self.operator(Operator::Pipe)?,
                ';' if self.rest.starts_with(";;") => return None,
                ';' if self.take(";") => self.operator(Operator::Then)?,
                '&' if self.take("&") => self.operator(Operator::Background)?,
                '(' if !self.words.is_empty() || self.closed => return None,
                '(' => {
                    self.skip(1);
                    self.grouped = true;
                    self.depth += 1;
                }
                ')' => {
                    self.depth = self.depth.checked_sub(1)?;
                    self.skip(1);
                    self.closed = true;
                }
                _ => self.add_word()?,
            }
        }
        (self.depth == 0 && self.here_documents.is_empty()).then_some(())
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }

    fn take(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn add_word(&mut self) -> Option<()> {
        let word = self.word()?;
        let is_number = !word.text.is_empty() && word.text.chars().all(|character| character.is_ascii_digit());
        if is_number && !word.quoted && self.rest.starts_with(['<', '>']) {
            return self.redirect();
        }
        if self.closed {
            return None;
        }
        self.words.push(word);
        Some(())
    }

    /// Ends a command at an operator. A line break ends nothing after an operator or a blank line.
    fn operator(&mut self, operator: Operator) -> Option<()> {
        if self.words.is_empty() && !self.closed {
            return (operator == Operator::Then).then_some(());
        }
        self.end_command(Some(operator));
        Some(())
    }

    fn end_command(&mut self, after: Option<Operator>) {
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.commands.push(LineCommand { words, before: self.before, after });
        } else if let Some(last) = self.commands.last_mut() {
            // The operator after `; )` belongs to the last command. At the end of the line, nothing
            // follows the last `;`.
            let ends = after.is_none() && last.after == Some(Operator::Then);
            last.after = if ends { None } else { after.or(last.after) };
        }
        self.before = after;
        self.closed = false;
    }

    fn redirect(&mut self) -> Option<()> {
        let is_here_document = !self.rest.starts_with("<<<") && (self.take("<<-") || self.take("<<"));
        let length = self.rest.find(|character| !"<>&|".contains(character)).unwrap_or(self.rest.len());
        self.skip(if is_here_document { 0 } else { length });
        if self.rest.starts_with('(') {
            return None;
        }
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        let target = self.word()?;
        if is_here_document {
            self.here_documents.push((target.text, target.quoted));
        }
        Some(())
    }

    fn skip_here_documents(&mut self) -> Option<()> {
        for (delimiter, quoted) in std::mem::take(&mut self.here_documents) {
            loop {
                if self.rest.is_empty() {
                    return None;
                }
                let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.rest = rest;
                if line.trim_start_matches('\t') == delimiter {
                    break;
                }
                if !quoted && (line.contains("$(") || line.contains('`')) {
                    return None;
                }
            }
        }
        Some(())
    }

    /// Reads a word. It is empty at the end of the line.
    fn word(&mut self) -> Option<LineWord> {
        let mut word = LineWord::default();
        while let Some(first) = self.rest.chars().next() {
            match first {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\'' => {
                    let (inner, rest) = self.rest.get(1..)?.split_once('\'')?;
                    word.text.push_str(inner);
                    word.quoted = true;
                    self.rest = rest;
                }
                '"' => self.double_quoted(&mut word)?,
                '\\' if self.take("\\\n") => {}
                '\\' => {
                    self.skip(1);
                    word.quoted = true;
                    self.literal(&mut word)?;
                }
                '$' => self.expansion(&mut word)?,
                '`' => return None,
                _ => self.literal(&mut word)?,
            }
        }
        Some(word)
    }

    fn literal(&mut self, word: &mut LineWord) -> Option<()> {
        let first = self.rest.chars().next()?;
        word.text.push(first);
        self.skip(first.len_utf8());
        Some(())
    }

    fn double_quoted(&mut self, word: &mut LineWord) -> Option<()> {
        self.skip(1);
        word.quoted = true;
        loop {
            match self.rest.chars().next()? {
                '"' => {
                    self.skip(1);
                    return Some(());
                }
                '\\' => {
                    self.skip(1);
                    if !self.rest.starts_with(['"', '\\', '$', '`', '\n']) {
                        word.text.push('\\');
                    }
                    self.literal(word)?;
                }
                '$' => self.expansion(word)?,
                '`' => return None,
                _ => self.literal(word)?,
            }
        }
    }

    /// Reads the start of a variable. Command substitutions are not understood.
    fn expansion(&mut self, word: &mut LineWord) -> Option<()> {
        if self.rest.starts_with("$(") {
            return None;
        }
        word.expands = true;
        let Some(inner) = self.rest.strip_prefix("${") else { return self.literal(word) };
        let name = inner.split_once('}').map(|(name, _)| name).filter(|name| !name.contains(['$', '`', '"', '\'']))?;
        word.text.push_str("${}");
        self.skip("${}".len() + name.len());
        Some(())
    }
}
