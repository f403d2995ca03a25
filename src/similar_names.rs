//! Compares names, to suggest the one that was meant.

use rapidfuzz::distance::indel;

/// Returns how similar two names are, from 0 to 1: twice the number of characters of their longest
/// common subsequence, divided by the number of their characters.
pub(crate) fn similarity(one: &str, other: &str) -> f64 {
    indel::normalized_similarity(one.chars(), other.chars())
}

/// Returns the index of the known name that is most similar to `unknown`, the first of equally
/// similar ones in alphabetical order, if its similarity is at least `least`.
pub(crate) fn nearest(unknown: &str, known: &[impl AsRef<str>], least: f64) -> Option<usize> {
    let scored = known.iter().map(AsRef::as_ref).enumerate().map(|(index, name)| (index, name, similarity(unknown, name)));
    let best = scored.max_by(|(_, one, score), (_, other, more)| score.total_cmp(more).then(other.cmp(one)));
    best.filter(|(.., score)| *score >= least).map(|(index, ..)| index)
}
