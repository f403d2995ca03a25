//! Checks regular expressions as Python's `re` compiles them.

use std::iter::Peekable;
use std::str::Chars;

/// Returns whether Python compiles the pattern. Covers brackets, groups, repetitions and escapes.
pub fn compiles(pattern: &str) -> bool {
    let mut reader = PatternReader { rest: pattern.chars().peekable(), depth: 0, repeatable: false };
    reader.read().is_some() && reader.depth == 0
}

/// Returns whether the pattern has a lookahead or a lookbehind.
pub fn looks_around(pattern: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|start| pattern.contains(start))
}

/// Escapes of letters that Python accepts.
const LETTERS: &str = "AbBdDsSwWZafnrtvxuUN";

struct PatternReader<'a> {
    rest: Peekable<Chars<'a>>,
    depth: usize,
    /// The previous item can be repeated.
    repeatable: bool,
}

impl PatternReader<'_> {
    fn read(&mut self) -> Option<()> {
        while let Some(letter) = self.rest.next() {
            match letter {
                '\\' => {
                    self.escape()?;
                    self.repeatable = true;
                }
                '[' => {
                    self.class()?;
                    self.repeatable = true;
                }
                '(' => self.group()?,
                ')' => {
                    self.depth = self.depth.checked_sub(1)?;
                    self.repeatable = true;
                }
                '*' | '+' | '?' => self.repetition()?,
                '{' => self.counted()?,
                '|' => self.repeatable = false,
                '^' => self.repeatable = false,
                _ => self.repeatable = true,
            }
        }
        Some(())
    }

    fn escape(&mut self) -> Option<()> {
        let letter = self.rest.next()?;
        (!letter.is_ascii_alphabetic() || LETTERS.contains(letter)).then_some(())
    }

    /// Reads a class of characters after its `[`. A `]` at its start is a character.
    fn class(&mut self) -> Option<()> {
        self.rest.next_if_eq(&'^');
        let mut first = true;
        loop {
            match self.rest.next()? {
                ']' if !first => return Some(()),
                '\\' => self.escape()?,
                _ => {}
            }
            first = false;
        }
    }

    fn group(&mut self) -> Option<()> {
        self.depth += 1;
        self.repeatable = false;
        if self.rest.next_if_eq(&'?').is_none() {
            return Some(());
        }
        match self.rest.next()? {
            ':' | '=' | '!' | '#' | '(' | '>' => Some(()),
            'P' => matches!(self.rest.next()?, '<' | '=' | '>').then_some(()),
            // `(?<name>…)` is a form of JavaScript.
            '<' => matches!(self.rest.peek()?, '=' | '!').then_some(()),
            flag => "aiLmsux-".contains(flag).then_some(()),
        }
    }

    fn repetition(&mut self) -> Option<()> {
        if !std::mem::replace(&mut self.repeatable, false) {
            return None;
        }
        // A lazy or possessive repetition.
        self.rest.next_if(|letter| matches!(letter, '?' | '+'));
        Some(())
    }

    /// Reads `{2,5}` after its `{`. Other text after the brace makes the brace a character.
    fn counted(&mut self) -> Option<()> {
        let count: String = self.rest.clone().take_while(|letter| letter.is_ascii_digit() || *letter == ',').collect();
        let closes = self.rest.clone().nth(count.len()) == Some('}');
        let (least, most) = count.split_once(',').unwrap_or((&count, &count));
        if !closes || count.is_empty() || count == "," || most.contains(',') {
            self.repeatable = true;
            return Some(());
        }
        let number = |text: &str, default: u64| text.parse().unwrap_or(default);
        if number(least, 0) > number(most, u64::MAX) {
            return None;
        }
        self.rest.nth(count.len());
        self.repetition()
    }
}
