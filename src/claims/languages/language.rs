//! The table of words of one language.

use crate::claims::check::Kinds;

/// The words of a language that separates words by spaces. Words are separated by spaces, phrases
/// by `|`.
pub(crate) struct Language {
    /// Names of checks.
    pub(crate) kinds: &'static [(Kinds, &'static str)],
    /// Whole statements that a check passes.
    pub(crate) statements: &'static [(Kinds, &'static str)],
    /// Words for a check that passes. Only the words of `after` may follow a phrase that starts
    /// with `>`: "tests pass a value" says something else. No word may follow one with `!`.
    pub(crate) passes: &'static str,
    /// Words that may stand between the check and what it does.
    pub(crate) between: &'static str,
    /// Words that may stand before the check in its clause, besides those of `between`.
    pub(crate) before: &'static str,
    /// Words that start an addition to the name of the check: "tests for the parser".
    pub(crate) prepositions: &'static str,
    /// Words that may follow what the check does.
    pub(crate) after: &'static str,
    /// Words of sentences that do not say that a check passes now: negations, conditions, futures,
    /// earlier times, reports of others, parts.
    pub(crate) blockers: &'static str,
    pub(crate) blocker_phrases: &'static str,
    /// Imperatives at the start of a sentence that tells the reader what to do.
    pub(crate) imperatives: &'static str,
}
