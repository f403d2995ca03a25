//! Finds the sentences of an answer that say that a check passes.

use crate::claims::answer::sentences;
use crate::claims::check::CheckName;
use crate::claims::languages::{LANGUAGES, admits};
use crate::claims::logographic;
use crate::claims::sentence::{SentenceReader, discloses_failure};
use crate::claims::words::{AnswerToken, tokens};

const CLAIMS_MAX: usize = 50;

/// A sentence that says that a check passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The sentence, or a heading or table row.
    pub text: String,
    pub check: CheckName,
    /// Set if the answer also speaks of checks that fail: a failed run is not hidden then.
    pub discloses_failure: bool,
}

/// A longer answer is not read: it is hardly a report of work.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Returns what the answer (Markdown) claims about checks. An answer that admits that a check did
/// not run or does not pass claims nothing: its other sentences are not about every check.
pub fn claims(answer: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    if answer.len() > ANSWER_BYTES_MAX || admits(answer) {
        return claims;
    }
    let sentences: Vec<(String, Vec<AnswerToken>)> =
        sentences(answer).into_iter().map(|text| (text.clone(), tokens(&text))).collect();
    let discloses_failure = sentences.iter().any(|(_, tokens)| discloses_failure(tokens) || logographic::discloses_failure(tokens));
    for (text, tokens) in &sentences {
        let in_languages = LANGUAGES.iter().flat_map(|language| SentenceReader::new(tokens, language).checks());
        for check in in_languages.chain(logographic::checks(tokens)) {
            let claim = Claim { text: text.clone(), check, discloses_failure };
            if claims.len() < CLAIMS_MAX && !claims.contains(&claim) {
                claims.push(claim);
            }
        }
    }
    claims
}
