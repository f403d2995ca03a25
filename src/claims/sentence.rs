//! Finds the checks that a sentence says to pass, in a language that separates words by spaces.

mod blocked;
mod clause;

pub(crate) use blocked::discloses_failure;

use std::ops::Range;

use crate::claims::check::{CheckName, Kinds};
use crate::claims::commands::named_checks;
use crate::claims::languages::Language;
use crate::claims::programs::check_tool;
use crate::claims::words::AnswerToken;

/// Maximum number of words of a sentence. A longer text is no sentence.
const SENTENCE_MAX: usize = 300;
/// Verbs that may have the check as their object: "passes all tests".
const OBJECT_PASSES: &str =
    "pass passes passed besteht bestehen passe passent pasa pasan passa passano passam supera проходит прошли";

pub(crate) struct SentenceReader<'a> {
    tokens: &'a [AnswerToken],
    language: &'a Language,
    /// The places of words for kinds of checks.
    kinds: Vec<(Kinds, Range<usize>)>,
}

/// A check that the sentence names.
struct Subject {
    place: Range<usize>,
    check: CheckName,
}

impl<'a> SentenceReader<'a> {
    pub(crate) fn new(tokens: &'a [AnswerToken], language: &'a Language) -> SentenceReader<'a> {
        let tokens = if tokens.len() > SENTENCE_MAX { &[] } else { tokens };
        let mut reader = SentenceReader { tokens, language, kinds: Vec::new() };
        for (kinds, phrases) in language.kinds {
            let places = phrases.split('|').flat_map(|phrase| reader.places(phrase));
            let places: Vec<_> = places.map(|place| (*kinds, place)).collect();
            reader.kinds.extend(places);
        }
        reader
    }

    /// Returns the checks that the sentence says to pass.
    pub(crate) fn checks(&self) -> Vec<CheckName> {
        let subjects = self.subjects();
        let statements = self.statements();
        if (subjects.is_empty() && statements.is_empty()) || self.is_blocked() {
            return Vec::new();
        }
        if self.is_marked_list(&subjects) {
            return subjects.into_iter().map(|subject| subject.check).collect();
        }
        let passes = self.passes();
        let objects: Vec<usize> = OBJECT_PASSES.split(' ').flat_map(|verb| self.places(verb)).map(|place| place.end).collect();
        let is_claimed = |subject: &&Subject| {
            passes.iter().any(|passes| self.links(subject, passes, &subjects))
                || objects.iter().any(|start| self.is_object(subject, *start))
                || self.is_marked(subject)
        };
        let mut checks: Vec<CheckName> = subjects.iter().filter(is_claimed).map(|subject| subject.check.clone()).collect();
        let has_kind = |check: &CheckName| checks.iter().any(|known| known.kinds().intersects(check.kinds()));
        let further: Vec<CheckName> = statements.into_iter().filter(|check| !has_kind(check)).collect();
        checks.extend(further);
        checks
    }

    /// Returns the checks that the sentence names. The words for kinds of checks count only if no
    /// program in a code span makes a check of the kind.
    fn subjects(&self) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for (index, token) in self.tokens.iter().enumerate() {
            match token {
                AnswerToken::Code(code) => {
                    let named = |check| Subject { place: index..index + 1, check };
                    subjects.extend(named_checks(code).into_iter().map(named));
                }
                AnswerToken::LineWord(word) => {
                    if let Some((row, words)) = check_tool(word) {
                        let check = CheckName::Program { words, kinds: row.kinds };
                        subjects.push(Subject { place: index..index + 1, check });
                    }
                }
                AnswerToken::Number(_) | AnswerToken::Mark | AnswerToken::Symbol(_) => {}
            }
        }
        let by_program = |kinds: Kinds| subjects.iter().any(|subject| subject.check.kinds().intersects(kinds));
        let others = self.kinds.iter().filter(|(kinds, _)| !by_program(*kinds));
        let others: Vec<_> =
            others.map(|(kinds, place)| Subject { place: place.clone(), check: CheckName::Kind(*kinds) }).collect();
        subjects.extend(others);
        subjects
    }

    /// Returns the checks of statements such as "compiles cleanly".
    fn statements(&self) -> Vec<CheckName> {
        let opens = |place: &Range<usize>| self.opens_clause(place.start);
        let found = |phrases: &str| phrases.split('|').any(|phrase| self.phrase_places(phrase).iter().any(opens));
        let statements = self.language.statements.iter().filter(|(_, phrases)| found(phrases));
        statements.map(|(kinds, _)| CheckName::Kind(*kinds)).collect()
    }

    /// Returns where the sentence says that something passes.
    fn passes(&self) -> Vec<Range<usize>> {
        self.language.passes.split('|').flat_map(|phrase| self.phrase_places(phrase)).collect()
    }

    /// Returns the places of a phrase. After a phrase that starts with `>`, only some words may
    /// follow, and after one with `!` none.
    fn phrase_places(&self, phrase: &str) -> Vec<Range<usize>> {
        let plain = phrase.trim_start_matches(['>', '!']);
        let mut places = self.places(plain);
        match phrase.chars().next() {
            Some('>') => places.retain(|place| self.may_end_at(place.end)),
            Some('!') => places.retain(|place| self.tokens.get(place.end).is_none_or(|token| token.word().is_empty())),
            _ => {}
        }
        places
    }

    fn places(&self, phrase: &str) -> Vec<Range<usize>> {
        let words: Vec<&str> = phrase.split(' ').collect();
        let is_phrase = |window: &[AnswerToken]| window.iter().zip(&words).all(|(token, word)| text(token) == *word);
        let windows = self.tokens.windows(words.len()).enumerate();
        windows.filter(|(_, window)| is_phrase(window)).map(|(start, _)| start..start + words.len()).collect()
    }
}

fn is_program(check: &CheckName) -> bool {
    matches!(check, CheckName::Program { .. })
}

/// Returns the text of a word or number.
fn text(token: &AnswerToken) -> &str {
    match token {
        AnswerToken::LineWord(text) | AnswerToken::Number(text) => text,
        AnswerToken::Code(_) | AnswerToken::Mark | AnswerToken::Symbol(_) => "",
    }
}
