//! Tells whether a sentence says something else than that a check passes now: a negation, a
//! condition, a question, an instruction, or only a part.

use super::{SentenceReader, text};
use crate::claims::commands::named_checks;
use crate::claims::languages::{FAULTS, HARMLESS_NOUNS, NONE, has_word};
use crate::claims::words::AnswerToken;

/// Words that say that a check has a problem.
const PROBLEMS: &str =
    "timeout timeouts timed hang hangs threshold below obsolete sandbox network unavailable offline flaky unrelated legacy";

/// Parts of words for checks.
pub(super) const CHECK_WORDS: [&str; 9] = ["test", "spec", "suite", "lint", "build", "check", "prueba", "prüf", "тест"];

impl SentenceReader<'_> {
    /// Returns whether the sentence does not say that a check passes now.
    pub(super) fn is_blocked(&self) -> bool {
        let blocks = |(index, token): (usize, &AnswerToken)| match token {
            AnswerToken::LineWord(word) => self.word_blocks(index, word),
            AnswerToken::Symbol(symbol) => matches!(symbol, '?' | '❌' | '✗' | '✘' | '⚠' | '#' | '🔴' | '🟡' | '⏳' | '🚧'),
            AnswerToken::Number(number) => self.is_part(index, number),
            AnswerToken::Code(_) | AnswerToken::Mark => false,
        };
        let phrase = |phrase: &str| !self.places(phrase).is_empty();
        self.tokens.iter().enumerate().any(blocks) || self.language.blocker_phrases.split('|').any(phrase) || self.is_imperative()
    }

    fn word_blocks(&self, index: usize, word: &str) -> bool {
        let next = self.tokens.get(index + 1).map_or("", AnswerToken::word);
        let is_none = has_word(NONE, word) && (has_word(HARMLESS_NOUNS, next) || next == "hay");
        if has_word(FAULTS, word) {
            return !is_denied_fault(self.tokens, index);
        }
        // "312 passed, 2 skipped".
        let is_count = word == "skipped"
            && index.checked_sub(1).is_some_and(|before| matches!(self.tokens.get(before), Some(AnswerToken::Number(_))));
        (has_word(self.language.blockers, word) && !is_none && !is_count) || word.ends_with("n't") || word.ends_with("'ll")
    }

    /// Returns whether the number is smaller than what it is a part of: "3 of 4", "3/4", "98%".
    fn is_part(&self, index: usize, number: &str) -> bool {
        if let Some(percent) = number.strip_suffix('%') {
            return percent != "100";
        }
        let joins = |token: &AnswerToken| token.is_symbol('/') || has_word("of von sur de di из su", token.word());
        let joined = self.tokens.get(index + 1).is_some_and(joins);
        let whole = self.tokens.get(index + 2).filter(|_| joined);
        matches!(whole, Some(AnswerToken::Number(whole)) if whole != number)
    }

    /// Returns whether the sentence starts with an instruction to the reader.
    fn is_imperative(&self) -> bool {
        let start = self.tokens.iter().position(|token| matches!(token, AnswerToken::LineWord(_) | AnswerToken::Code(_)));
        let Some((index, word)) = start.and_then(|start| Some((start, self.tokens.get(start)?.word()))) else { return false };
        let is_label = matches!(self.tokens.get(index + 1), Some(AnswerToken::Symbol(':' | '|')));
        has_word(self.language.imperatives, word) && !is_label
    }
}

/// Returns whether the fault at `index` did not happen: "no new errors", "0 failed", "failed: 0".
fn is_denied_fault(tokens: &[AnswerToken], index: usize) -> bool {
    let is_none = |token: &AnswerToken| has_word(NONE, text(token));
    let before = tokens.get(index.saturating_sub(4)..index).unwrap_or_default();
    let mut near = before.iter().rev().take_while(|token| matches!(token, AnswerToken::LineWord(_) | AnswerToken::Number(_)));
    let number_after = match tokens.get(index + 1) {
        Some(AnswerToken::Symbol(':' | '|' | '=')) => tokens.get(index + 2),
        _ => None,
    };
    near.any(is_none) || number_after.is_some_and(is_none)
}

/// Returns whether the sentence speaks of a check that fails or cannot run.
pub(crate) fn discloses_failure(tokens: &[AnswerToken]) -> bool {
    let names_check = |token: &AnswerToken| match token {
        AnswerToken::LineWord(word) => CHECK_WORDS.iter().any(|part| word.contains(part)),
        AnswerToken::Code(code) => !named_checks(code).is_empty(),
        AnswerToken::Number(_) | AnswerToken::Mark | AnswerToken::Symbol(_) => false,
    };
    let is_timeout =
        |window: &[AnswerToken]| matches!(window, [time, out] if time.word().starts_with("time") && out.word() == "out");
    let is_fault = |(index, token): (usize, &AnswerToken)| has_word(FAULTS, token.word()) && !is_denied_fault(tokens, index);
    tokens.iter().any(|token| has_word(PROBLEMS, token.word()))
        || tokens.windows(2).any(is_timeout)
        || (tokens.iter().any(names_check) && tokens.iter().enumerate().any(is_fault))
}
