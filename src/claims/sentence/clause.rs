//! Tells what a sentence says about the checks that it names: which pass, in a clause of the answer
//! itself.

use std::ops::Range;

use super::blocked::CHECK_WORDS;
use super::{SentenceReader, Subject, is_program};
use crate::claims::check::Kinds;
use crate::claims::languages::{NONE, has_word};
use crate::claims::words::AnswerToken;

/// Maximum number of words between a check and what it does.
const GAP_MAX: usize = 16;

/// Maximum number of words of an addition to the name of a check: "tests for the new parser".
const ADDITION_MAX: usize = 6;

/// Maximum number of words between "passes" and the check: "passes all existing tests".
const OBJECT_GAP_MAX: usize = 5;

/// Verbs whose object a check may be: "Added tests, and the build passes" says nothing about tests.
const OBJECT_VERBS: &str = "\
    add added adds wrote write writes updated update updates extended created create refactored moved removed adjusted \
    introduced changed rewrote renamed covered cover covers simplified cleaned improved implemented \
    hinzugefügt ergänzt erweitert ajouté ajoutés añadí agregué aggiunto adicionei добавил добавлены";

/// Forms of verbs whose subject is one check.
const SINGULAR: &str =
    "is was ist war est es è é passes succeeds exits besteht passe réussit pasa pasó passa passou проходит прошла";

/// Words that make several checks the subject of a verb.
const TOGETHER: &str = "all both everything each alle beide tous toutes todas todos tutti tutte все";

/// Words that say when or how a check passes. An object may follow.
const ADVERBS: &str = "\
    now again successfully cleanly locally too both all jetzt wieder lokal maintenant désormais localement aussi tous toutes \
    bien ahora también todas todos localmente ora anche tutti tutte agora também теперь также все локально";

/// Words that start another clause.
const CONJUNCTIONS: &str = "and und et y e и &";

/// Words that start a circumstance, under which alone a check may pass.
const CIRCUMSTANCES: &str = "\
    in with after upon on under given at during for from by until mit nach bei unter auf en avec après sous dans con tras bajo \
    dopo sotto com depois sob em no na с после при под по на в als like";

/// Words of a circumstance that is the change itself: "With this fix, all tests pass".
const CHANGES: &str = "\
    change changes fix fixes patch refactoring refactor update edit rewrite änderung änderungen korrektur anpassung \
    modification modifications changement correction cambio cambios corrección modifica modifiche correzione mudança mudanças \
    correção alteração изменения изменений правки правок исправления";

/// Words one of which before a colon makes what follows the result of checks.
const VERIFYING: &str = "\
    ran re-ran verified verification validation validated checked double-checked confirmed geprüft verifiziert vérifié \
    vérification verificado verificación verificato проверено проверка";

/// Words of which a label before a colon may consist: "Test results".
const LABELS: &str = "\
    result results status summary works done passed final current state now everything ergebnis ergebnisse stand résultat \
    résultats resultado resultados risultato risultati результат fertig terminé listo fatto pronto готово все";

impl SentenceReader<'_> {
    /// Returns whether the words between the check and `passes` make the check its subject.
    pub(super) fn links(&self, subject: &Subject, passes: &Range<usize>, subjects: &[Subject]) -> bool {
        let (start, end) = (subject.place.end, passes.start);
        let Some(gap) = self.tokens.get(start..end).filter(|gap| gap.len() <= GAP_MAX) else { return false };
        if !self.is_between(gap, subject, subjects) || !self.opens_clause(subject.place.start) {
            return false;
        }
        let is_distant = subjects.iter().any(|other| other.place.start >= start && other.place.end <= end);
        let first = [end.saturating_sub(1), end].map(|index| self.tokens.get(index).map_or("", AnswerToken::word));
        let together = gap.iter().any(|token| has_word(TOGETHER, token.word()));
        let before = self.tokens.get(subject.place.start.saturating_sub(4)..subject.place.start).unwrap_or_default();
        let is_object = before.iter().any(|token| has_word(OBJECT_VERBS, token.word()));
        let is_singular = first.iter().any(|word| has_word(SINGULAR, word));
        !is_distant || ((!is_singular || together) && !is_object)
    }

    /// Returns whether only words that say nothing else stand in `gap`, which follows `subject`.
    fn is_between(&self, gap: &[AnswerToken], subject: &Subject, subjects: &[Subject]) -> bool {
        let start = subject.place.end;
        // "Type checking of nested generics" is not a check of the project.
        let addition_max = if subject.check.kinds().intersects(Kinds::TEST) { ADDITION_MAX } else { 0 };
        let mut addition = 0;
        for (index, token) in gap.iter().enumerate() {
            let place = start + index;
            let is_subject = subjects.iter().any(|subject| subject.place.contains(&place))
                || self.kinds.iter().any(|(_, kind)| kind.contains(&place));
            match token {
                _ if is_subject => {}
                AnswerToken::Number(_) | AnswerToken::Mark | AnswerToken::Code(_) => {}
                AnswerToken::Symbol('"' | '=' | '…') => return false,
                AnswerToken::Symbol(symbol) => addition = if *symbol == ',' { 0 } else { addition },
                AnswerToken::LineWord(word) if has_word(self.language.prepositions, word) => addition = addition_max,
                AnswerToken::LineWord(word) if has_word(self.language.between, word) => {}
                AnswerToken::LineWord(_) if addition > 0 => addition -= 1,
                AnswerToken::LineWord(_) => return false,
            }
        }
        true
    }

    /// Returns whether a clause of the answer itself starts at most a few known words before the
    /// token at `start`: "all tests", "I ran the tests", but not "starts after the tests".
    pub(super) fn opens_clause(&self, start: usize) -> bool {
        let before = self.tokens.get(..start).unwrap_or_default();
        for (index, token) in before.iter().enumerate().rev() {
            match token {
                AnswerToken::LineWord(word) if has_word(CONJUNCTIONS, word) => return self.follows_clause(index),
                AnswerToken::LineWord(word) if has_word(self.language.before, word) || has_word(self.language.between, word) => {}
                AnswerToken::LineWord(_) => {
                    return self.kinds.iter().any(|(_, place)| place.contains(&index)) && self.opens_clause(index);
                }
                AnswerToken::Number(number) if number.trim_end_matches('%').chars().all(|one| one.is_ascii_digit()) => {}
                AnswerToken::Code(_) | AnswerToken::Mark => {}
                AnswerToken::Symbol(':') => return self.is_label(before.get(..index).unwrap_or_default()),
                AnswerToken::Symbol('+' | '/' | '&' | '.') => {}
                AnswerToken::Symbol(',' | ';' | '(' | ')' | '-' | '–' | '—' | '·' | '•') => {
                    return self.follows_clause(index);
                }
                AnswerToken::Number(_) | AnswerToken::Symbol(_) => return false,
            }
        }
        true
    }

    /// Returns whether what stands before the end of a clause lets the next one speak about a check
    /// that ran: no list that a colon or arrow introduces, no circumstance ("In theory, …").
    fn follows_clause(&self, end: usize) -> bool {
        let before = self.tokens.get(..end).unwrap_or_default();
        let colon = before.iter().rposition(|token| token.is_symbol(':'));
        let is_label = colon.is_none_or(|colon| self.is_label(before.get(..colon).unwrap_or_default()));
        let start =
            before.iter().rposition(|token| matches!(token, AnswerToken::Symbol(',' | ';' | ':'))).map_or(0, |start| start + 1);
        let first = before.split(|token| token.is_symbol(',')).next().unwrap_or_default();
        let is_circumstance = [first, before.get(start..).unwrap_or_default()].into_iter().any(is_circumstance);
        is_label && !is_circumstance && !before.iter().any(|token| token.is_symbol('→'))
    }

    /// Returns whether the words before a colon introduce results.
    fn is_label(&self, before: &[AnswerToken]) -> bool {
        let mut words = before.iter().map(AnswerToken::word).filter(|word| !word.is_empty());
        let names_check = |word: &str| CHECK_WORDS.iter().any(|part| word.contains(part));
        let is_known = |word: &str| names_check(word) || has_word(LABELS, word) || has_word(self.language.before, word);
        words.clone().any(|word| has_word(VERIFYING, word)) || words.all(is_known)
    }

    /// Returns whether the check is what is passed: "passes all tests".
    pub(super) fn is_object(&self, subject: &Subject, start: usize) -> bool {
        let Some(gap) = self.tokens.get(start..subject.place.start) else { return false };
        let is_between = |token: &AnswerToken| match token {
            AnswerToken::LineWord(word) => has_word(self.language.between, word),
            AnswerToken::Number(_) | AnswerToken::Code(_) | AnswerToken::Mark => true,
            AnswerToken::Symbol(symbol) => ":,+&(".contains(*symbol),
        };
        gap.len() <= OBJECT_GAP_MAX
            && gap.iter().all(is_between)
            && self.may_end_at(subject.place.end)
            && self.opens_clause(start.saturating_sub(1))
    }

    /// Returns whether a symbol that says that it passed follows a code span: "`cargo test` ✅".
    pub(super) fn is_marked(&self, subject: &Subject) -> bool {
        let mut after = self.tokens.iter().skip(subject.place.end);
        is_program(&subject.check)
            && after.next() == Some(&AnswerToken::Mark)
            && after.next().is_none_or(|next| matches!(next, AnswerToken::Symbol(_)))
            && self.opens_clause(subject.place.start)
    }

    /// Returns whether the sentence only consists of checks and symbols that say that they passed.
    pub(super) fn is_marked_list(&self, subjects: &[Subject]) -> bool {
        let is_known = |(index, token): (usize, &AnswerToken)| match token {
            AnswerToken::LineWord(word) => {
                has_word(self.language.between, word) || subjects.iter().any(|subject| subject.place.contains(&index))
            }
            AnswerToken::Code(_) => subjects.iter().any(|subject| subject.place.contains(&index)),
            AnswerToken::Number(_) | AnswerToken::Mark => true,
            AnswerToken::Symbol(symbol) => "|:,()+&-–—/".contains(*symbol),
        };
        // "✅ Tests" may be an item that is done: without a program, a count has to follow.
        let counts = |token: &AnswerToken| token.is_symbol('/');
        let says = subjects.iter().any(|subject| is_program(&subject.check)) || self.tokens.iter().any(counts);
        says && self.tokens.contains(&AnswerToken::Mark) && self.tokens.iter().enumerate().all(is_known)
    }

    /// Returns whether a clause may end before the token at `index`, or go on without an object.
    pub(super) fn may_end_at(&self, index: usize) -> bool {
        match self.tokens.get(index) {
            None | Some(AnswerToken::Mark | AnswerToken::Number(_)) => true,
            Some(AnswerToken::LineWord(word)) if has_word(ADVERBS, word) => self.may_end_at(index + 1),
            // "pass in 3.2s", but not "are clean in the new files".
            Some(AnswerToken::LineWord(word)) if word == "in" => matches!(self.tokens.get(index + 1), Some(AnswerToken::Number(_))),
            Some(AnswerToken::LineWord(word)) => has_word(self.language.after, word),
            // "Build passes: the badge turns green" describes what follows.
            Some(AnswerToken::Symbol(':')) => match self.tokens.get(index + 1) {
                Some(AnswerToken::LineWord(word)) => has_word(NONE, word),
                _ => true,
            },
            Some(AnswerToken::Symbol(symbol)) => !"\"/=→'".contains(*symbol),
            Some(AnswerToken::Code(_)) => false,
        }
    }
}

/// Returns whether the clause only names a circumstance: "In theory".
fn is_circumstance(clause: &[AnswerToken]) -> bool {
    let first = clause.iter().map(AnswerToken::word).find(|word| !word.is_empty()).unwrap_or_default();
    has_word(CIRCUMSTANCES, first) && !clause.iter().any(|token| has_word(CHANGES, token.word()))
}
