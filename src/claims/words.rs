//! Splits a sentence into words, code spans and symbols. Quotations and struck text are omitted.

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnswerToken {
    /// A word in lower case.
    LineWord(String),
    /// The text of a code span.
    Code(String),
    Number(String),
    /// A symbol that says that something passed: ✅.
    Mark,
    Symbol(char),
}

impl AnswerToken {
    /// Returns the word, or an empty string.
    pub(crate) fn word(&self) -> &str {
        match self {
            AnswerToken::LineWord(word) => word,
            AnswerToken::Code(_) | AnswerToken::Number(_) | AnswerToken::Mark | AnswerToken::Symbol(_) => "",
        }
    }

    pub(crate) fn is_symbol(&self, symbol: char) -> bool {
        *self == AnswerToken::Symbol(symbol)
    }
}

/// Opening and closing quotation marks. Straight quotes are the first.
const QUOTES: [(char, char); 7] = [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('「', '」'), ('『', '』'), ('‹', '›')];

pub(crate) fn tokens(sentence: &str) -> Vec<AnswerToken> {
    let mut reader = TokenReader { rest: sentence, tokens: Vec::new() };
    while let Some(first) = reader.rest.chars().next() {
        reader.token(first);
    }
    reader.tokens
}

struct TokenReader<'a> {
    rest: &'a str,
    tokens: Vec<AnswerToken>,
}

impl TokenReader<'_> {
    fn token(&mut self, first: char) {
        let length = first.len_utf8();
        let quoted = QUOTES.iter().find(|(open, _)| *open == first).and_then(|(open, close)| {
            let inner = self.rest.get(open.len_utf8()..)?;
            Some(open.len_utf8() + inner.find(*close)? + close.len_utf8())
        });
        if first == '`' {
            self.code();
        } else if let Some(length) = quoted {
            self.tokens.push(AnswerToken::Symbol('"'));
            self.skip(length);
        } else if let Some(struck) = self.rest.strip_prefix("~~").and_then(|rest| rest.find("~~")) {
            self.skip(struck + "~~~~".len());
        } else if self.rest.starts_with("](") {
            // The address of a link.
            self.skip(self.rest.find(')').map_or(self.rest.len(), |end| end + 1));
        } else if first.is_ascii_digit() {
            self.number();
        } else if first.is_alphanumeric() {
            self.word();
        } else {
            match first {
                '✅' | '✓' | '✔' | '☑' | '🟢' => self.tokens.push(AnswerToken::Mark),
                '*' | '_' | '[' | ']' | '\u{fe0f}' | '\u{200d}' => {}
                first if first.is_whitespace() => {}
                first => self.tokens.push(AnswerToken::Symbol(first)),
            }
            self.skip(length);
        }
    }

    fn skip(&mut self, length: usize) {
        self.rest = self.rest.get(length..).unwrap_or_default();
    }

    fn code(&mut self) {
        let content = self.rest.trim_start_matches('`');
        let (fence, _) = self.rest.split_at(self.rest.len() - content.len());
        match content.find(fence) {
            Some(end) => {
                self.tokens.push(AnswerToken::Code(content.get(..end).unwrap_or_default().trim().into()));
                self.rest = content.get(end + fence.len()..).unwrap_or_default();
            }
            None => self.rest = content,
        }
    }

    /// Reads a number. Commas and points between digits belong to it, and so does a unit.
    fn number(&mut self) {
        let mut end = 0;
        let mut characters = self.rest.char_indices().peekable();
        while let Some((place, character)) = characters.next() {
            let next_is_digit = characters.peek().is_some_and(|(_, next)| next.is_ascii_digit());
            if !character.is_alphanumeric() && character != '%' && !(matches!(character, ',' | '.') && next_is_digit) {
                break;
            }
            // A text without spaces follows the number: 测试.
            if !character.is_ascii() {
                break;
            }
            end = place + character.len_utf8();
        }
        self.tokens.push(AnswerToken::Number(self.rest.get(..end).unwrap_or_default().into()));
        self.skip(end);
    }

    /// Reads a word. Hyphens, apostrophes, points and underscores between letters belong to it.
    fn word(&mut self) {
        let mut end = 0;
        let mut characters = self.rest.char_indices().peekable();
        while let Some((place, character)) = characters.next() {
            let next_is_letter = characters.peek().is_some_and(|(_, next)| next.is_alphanumeric());
            let joins = matches!(character, '-' | '\'' | '’' | '.' | '_' | '‑') && next_is_letter;
            if !character.is_alphanumeric() && !joins {
                break;
            }
            end = place + character.len_utf8();
        }
        let word = self.rest.get(..end).unwrap_or_default();
        self.tokens.push(AnswerToken::LineWord(word.to_lowercase().replace('’', "'").replace('‑', "-")));
        self.skip(end);
    }
}
