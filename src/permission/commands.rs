//! Shell commands as rules see them. A pattern that allows fits only what is plainly one command; one that denies is looked for in every
//! part. It is a fence and not a wall: what a script does that a command starts, no pattern sees.

/// A command that is to run.
#[derive(Clone, Copy, Debug)]
pub struct CommandLine<'a> {
    /// The variables that are set for it, as a shell would write them before it; empty where there are none.
    pub environment: &'a str,
    pub command: &'a str,
}

/// What could make one command into more than one, or put another word in its place.
const SHELL_SPECIAL: &[char] = &[';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '\n', '\r', '\\'];

/// Words that stand before a command and are none.
const RESERVED: &[&str] = &["do", "then", "else", "elif", "if", "while", "until", "!", "time"];

impl CommandLine<'_> {
    /// The pattern that fits just this.
    pub fn exactly(&self) -> String {
        escape(&self.whole())
    }

    fn whole(&self) -> String {
        format!("{}{}", self.environment, self.command)
    }

    fn is_exactly(&self, pattern: &str) -> bool {
        self.exactly() == pattern
    }

    /// Only a command that is plain words, and runs as it stands there, can be allowed by a pattern with `*`; any other must be the pattern
    /// to the letter.
    pub fn is_allowed_by(&self, pattern: &str) -> bool {
        self.is_exactly(pattern)
            || (self.environment.is_empty() && !self.command.contains(SHELL_SPECIAL) && wildcard(pattern, self.command))
    }

    /// Looked for in the whole command and in every part of it, whatever stands before that.
    pub fn is_denied_by(&self, pattern: &str) -> bool {
        let parts = self.command.split([';', '&', '|', '\n', '(', ')', '{', '}', '`']);
        self.is_exactly(pattern) || wildcard(pattern, self.command) || parts.map(bare).any(|part| wildcard(pattern, part))
    }
}

/// `do A=b >log make x` as `make x`.
fn bare(part: &str) -> &str {
    let mut rest = part.trim();
    loop {
        let end = word_end(rest);
        let (word, after) = (&rest[..end], rest[end..].trim_start());
        let operator = word.trim_start_matches(|character: char| character.is_ascii_digit());
        rest = if RESERVED.contains(&word) || is_assignment(word) {
            after
        } else if operator.starts_with(['<', '>']) {
            // A redirection, with its target in the same word or in the next.
            let target = operator.trim_start_matches(['<', '>']);
            if target.is_empty() { after[word_end(after)..].trim_start() } else { after }
        } else {
            return rest;
        };
        if rest.is_empty() {
            return rest;
        }
    }
}

/// `NAME=…`, `NAME+=…`, `NAME[…]=…`
fn is_assignment(word: &str) -> bool {
    let name = word.find(|character: char| !character.is_ascii_alphanumeric() && character != '_').unwrap_or(word.len());
    let value = &word[name..];
    name > 0 && (value.starts_with('=') || value.starts_with("+=") || (value.starts_with('[') && value.contains("]=")))
}

/// Where the first word ends: at a blank that is neither quoted nor escaped.
fn word_end(text: &str) -> usize {
    let (mut quote, mut escaped) = (None, false);
    for (place, character) in text.char_indices() {
        match (quote, character) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), character) if open == character => quote = None,
            (None, character) if character.is_whitespace() => return place,
            _ => {}
        }
    }
    text.len()
}

/// `*` stands for any text, `\` takes the meaning from what follows; `git status *` fits `git status` too.
pub(super) fn wildcard(pattern: &str, text: &str) -> bool {
    if pattern.strip_suffix(" *").is_some_and(|bare| wildcard(bare, text)) {
        return true;
    }
    let mut tokens = Vec::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '*' => None,
            '\\' => Some(characters.next().unwrap_or('\\')),
            character => Some(character),
        });
    }
    let text: Vec<char> = text.chars().collect();
    let (mut token, mut place, mut star) = (0, 0, None);
    while place < text.len() {
        match tokens.get(token) {
            Some(None) => {
                star = Some((token, place));
                token += 1;
            }
            Some(Some(character)) if *character == text[place] => {
                token += 1;
                place += 1;
            }
            _ => {
                let Some((star_token, star_place)) = star else { return false };
                star = Some((star_token, star_place + 1));
                token = star_token + 1;
                place = star_place + 1;
            }
        }
    }
    tokens[token..].iter().all(Option::is_none)
}

pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
