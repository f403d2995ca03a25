//! Words after quote removal, as in bash (bash(1), QUOTING). Text that is determined only when the
//! shell runs is treated as unknown.

use std::iter::Peekable;
use std::ops::Range;
use std::str::CharIndices;

use super::pattern::{Text, known};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub text: Text,
    /// The word as written in the source, with quotes.
    pub raw: String,
}

impl Word {
    /// Creates a word whose text is determined only when the shell runs.
    pub(crate) fn unknown() -> Word {
        Word { text: vec![None], raw: String::new() }
    }

    /// Creates a word without quotes and expansions.
    pub(crate) fn literal(text: &str) -> Word {
        Word { text: known(text), raw: text.into() }
    }

    /// Returns the text, or `None` if a part is unknown.
    pub(crate) fn value(&self) -> Option<String> {
        self.text.iter().copied().collect()
    }

    /// Returns the known text before the first unknown part.
    pub(crate) fn known_prefix(&self) -> String {
        self.text.iter().map_while(|character| *character).collect()
    }

    /// Returns whether the word starts with unknown text and so may be an option, for example a
    /// file name that a wildcard matches.
    pub(crate) fn may_be_option(&self) -> bool {
        self.text.first() == Some(&None) && !self.raw.starts_with('~')
    }

    /// Returns whether the word may be an option that starts with `option`: abbreviated, combined
    /// with other letters, or partly unknown.
    pub(crate) fn may_be(&self, option: &str) -> bool {
        let known_prefix = self.known_prefix();
        let name = known_prefix.split('=').next().unwrap_or_default();
        let unknown = self.value().is_none();
        let abbreviated = option.starts_with("--") && name.len() > 2 && option.starts_with(name);
        let ends_early = unknown && !known_prefix.is_empty() && option.starts_with(&known_prefix);
        let among_letters = match (option.as_bytes(), known_prefix.strip_prefix('-')) {
            ([b'-', letter], Some(letters)) => {
                letters.chars().take_while(char::is_ascii_alphanumeric).any(|one| one == char::from(*letter))
            }
            _ => false,
        };
        known_prefix.starts_with(option) || abbreviated || ends_early || among_letters || self.may_be_option()
    }

    /// Returns the word with unknown text in place of every `part`, because another program
    /// replaces `part`.
    pub(crate) fn without(&self, part: &str) -> Word {
        let part = known(part);
        let (mut text, mut rest) = (Text::new(), self.text.as_slice());
        while let Some((first, after)) = rest.split_first() {
            match rest.strip_prefix(part.as_slice()) {
                Some(after) => {
                    text.push(None);
                    rest = after;
                }
                None => {
                    text.push(*first);
                    rest = after;
                }
            }
        }
        Word { text, raw: self.raw.clone() }
    }

    /// Parses the word at `range` in `source`. `holes` are the ranges that the shell replaces. The
    /// returned flag is false if bash does not parse a single word there.
    pub(crate) fn read(source: &str, range: Range<usize>, holes: &[Range<usize>]) -> (Word, bool) {
        let raw = &source[range.clone()];
        let holes = holes.iter().map(|hole| hole.start - range.start..hole.end - range.start).collect();
        let mut reading = WordReader { text: Text::new(), characters: raw.char_indices().peekable(), holes, braces: false };
        let whole = reading.unquoted().is_some();
        let text = if reading.braces { vec![None] } else { reading.text };
        (Word { text, raw: raw.into() }, whole)
    }
}

struct WordReader<'a> {
    text: Text,
    characters: Peekable<CharIndices<'a>>,
    holes: Vec<Range<usize>>,
    /// True if the word may expand to several words: `{a,b}`.
    braces: bool,
}

impl WordReader<'_> {
    fn push(&mut self, character: char) {
        self.text.push(Some(character));
    }

    /// Skips the hole at `place`. Returns false if no hole starts there.
    fn skip_hole(&mut self, place: usize) -> bool {
        let Some(hole) = self.holes.iter().find(|hole| hole.start == place).cloned() else { return false };
        self.text.push(None);
        while self.characters.next_if(|(place, _)| *place < hole.end).is_some() {}
        true
    }

    /// Parses unquoted text. Returns `None` if bash would not parse a single word.
    fn unquoted(&mut self) -> Option<()> {
        let mut first = true;
        while let Some((place, character)) = self.characters.peek().copied() {
            if self.skip_hole(place) {
                first = false;
                continue;
            }
            self.characters.next();
            match character {
                '\\' => {
                    let (_, escaped) = self.characters.next()?;
                    self.push(escaped);
                    if escaped == '\n' {
                        return None;
                    }
                }
                '\'' => loop {
                    match self.characters.next()? {
                        (_, '\'') => break,
                        (_, character) => self.push(character),
                    }
                },
                '"' => self.quoted()?,
                '$' => self.dollar(false)?,
                // The text that a glob expands to is unknown.
                '*' | '?' | '[' => self.text.push(None),
                '{' if self.characters.next_if(|(_, next)| *next == '}').is_some() => self.text.extend([Some('{'), Some('}')]),
                '{' => self.braces = true,
                '~' if first => {
                    self.text.push(None);
                    while self.characters.next_if(|(_, next)| *next != '/').is_some() {}
                }
                '#' if first => return None,
                '`' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | ' ' | '\t' | '\n' => return None,
                character => self.push(character),
            }
            first = false;
        }
        Some(())
    }

    fn quoted(&mut self) -> Option<()> {
        loop {
            let (place, character) = self.characters.peek().copied()?;
            if self.skip_hole(place) {
                continue;
            }
            self.characters.next();
            match character {
                '"' => return Some(()),
                '`' => return None,
                '$' => self.dollar(true)?,
                '\\' => match self.characters.next()?.1 {
                    '\n' => {}
                    escaped @ ('$' | '`' | '"' | '\\') => self.push(escaped),
                    other => self.text.extend([Some('\\'), Some(other)]),
                },
                character => self.push(character),
            }
        }
    }

    /// Reads the text after a `$` that does not start a hole.
    fn dollar(&mut self, quoted: bool) -> Option<()> {
        match self.characters.peek().map(|(_, next)| *next) {
            Some('\'') if !quoted => {
                self.characters.next();
                self.ansi()
            }
            // `$"…"`: text that bash may translate.
            Some('"') if !quoted => Some(()),
            Some(next) if next.is_ascii_alphanumeric() || "_({[*@#?-$!`".contains(next) => None,
            _ => {
                self.push('$');
                Some(())
            }
        }
    }

    /// Reads the text between `$'` and `'`.
    fn ansi(&mut self) -> Option<()> {
        loop {
            let character = match self.characters.next()?.1 {
                '\'' => return Some(()),
                '\\' => match self.characters.next()?.1 {
                    'a' => '\x07',
                    'b' => '\x08',
                    'e' | 'E' => '\x1b',
                    'f' => '\x0c',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'v' => '\x0b',
                    'x' => self.number(16, 2, 0)?,
                    'u' => self.number(16, 4, 0)?,
                    'U' => self.number(16, 8, 0)?,
                    digit @ '0'..='7' => self.number(8, 2, digit.to_digit(8)?)?,
                    escaped @ ('\\' | '\'' | '"' | '?') => escaped,
                    _ => return None,
                },
                character => character,
            };
            self.push(character);
        }
    }

    /// Reads a character code: `first`, followed by at most `digits_max` more digits. Returns
    /// `None` for non-ASCII characters and NUL, which are not analysed.
    fn number(&mut self, radix: u32, digits_max: usize, first: u32) -> Option<char> {
        let mut number = first;
        for _ in 0..digits_max {
            let Some((_, digit)) = self.characters.next_if(|(_, digit)| digit.is_digit(radix)) else { break };
            number = number.checked_mul(radix)? + digit.to_digit(radix)?;
        }
        char::from_u32(number).filter(|character| *character != '\0' && character.is_ascii())
    }
}

/// Returns whether `word` is one of the space-separated `words`.
pub(crate) fn is_one_of(words: &str, word: &str) -> bool {
    let (words, word) = (words.as_bytes(), word.as_bytes());
    let Some(first) = word.first() else { return false };
    let is_end = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_whitespace);
    let is_at = |at: usize| {
        let before = at.checked_sub(1).map(|before| &words[before]);
        is_end(before) && words[at..].starts_with(word) && is_end(words.get(at + word.len()))
    };
    memchr::memchr_iter(*first, words).any(is_at) && !word.iter().any(u8::is_ascii_whitespace)
}

/// Options without a value that are often the last one before `--`.
const FLAGS: &str = "\
    --all --all-features --all-targets --cached --lib --name-only --name-status --no-index --numstat --oneline --quiet --release \
    --shortstat --staged --stat --verbose --workspace";

/// Returns the place of the `--` that ends the options, or the number of words without one.
/// After an option, `--` can be its value.
pub(crate) fn options_end(words: &[Word]) -> usize {
    let takes_next = |word: &Word| {
        let known_prefix = word.known_prefix();
        let option = known_prefix.starts_with('-') && word.text.len() > 1 && !known_prefix.contains('=');
        (option || word.may_be_option()) && !is_one_of(FLAGS, &known_prefix)
    };
    let ends = |place: usize| {
        words[place].value().is_some_and(|word| word == "--")
            && !place.checked_sub(1).is_some_and(|before| takes_next(&words[before]))
    };
    (0..words.len()).find(|place| ends(*place)).unwrap_or(words.len())
}
