//! Detects repetitions of a model: tool calls with the same results, and text. Pure.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::event::{Body, Notice, Severity};
use crate::runtime::calls::execute::EndedCall;

/// Number of repetitions of tool calls with the same results after which the model receives a note.
const REPEATED_ROUNDS_NOTE: usize = 3;
/// Number of repetitions of tool calls with the same results at which the turn stops.
const REPEATED_ROUNDS_MAX: usize = 5;
/// Maximum number of answers in a repeated cycle of tool calls.
const REPEATED_ROUNDS_CYCLE_MAX: usize = 3;
/// Number of bytes at the end of an answer that must be periodic for text to count as repeated.
const REPEATED_TEXT_SCAN_BYTES: usize = 4 << 10;
/// Maximum length of a repeated piece of text, in bytes.
const REPEATED_TEXT_PERIOD_MAX: usize = 2000;
/// Minimum size of repeated prose, in bytes, at which an answer is truncated.
const REPEATED_PROSE_BYTES: usize = 8 << 10;
/// Number of repetitions of prose at which an answer is truncated.
const REPEATED_PROSE_TIMES: usize = 8;
/// Minimum size of other repeated text, such as data, in bytes, at which an answer is truncated.
const REPEATED_TEXT_BYTES: usize = 16 << 10;
/// Number of repetitions of other text at which an answer is truncated.
const REPEATED_TEXT_TIMES: usize = 256;

/// Code of the notice about repeated tool calls.
const CALLS: &str = "repeated_calls";
/// Code of the notice about repeated text.
const TEXT: &str = "repeated_text";
/// Minimum period of prose, in bytes.
const PROSE_PERIOD_MIN: usize = 20;
/// Number of repetitions that a truncated text keeps.
const KEPT: usize = 3;

/// The tool calls of one answer, in a form that can be compared with other answers.
pub(crate) struct CallPattern {
    fingerprint: u64,
    /// The names of the tools, each once.
    names: String,
}

impl CallPattern {
    /// Creates the pattern of calls in order; `None` if one of them polls and may therefore be
    /// repeated.
    pub(crate) fn new(calls: impl Iterator<Item = EndedCall>) -> Option<CallPattern> {
        let (mut hasher, mut names) = (DefaultHasher::new(), Vec::new());
        for EndedCall { name, fingerprint, polls, .. } in calls {
            if polls {
                return None;
            }
            fingerprint.hash(&mut hasher);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Some(CallPattern { fingerprint: hasher.finish(), names: names.join(", ") })
    }
}

/// The consequence of a repetition, with the notice about it.
pub(crate) enum Repetition {
    /// The turn continues, and the notice has a note to the model.
    Note(Body),
    /// The turn ends.
    Stop(Body),
}

/// The repetitions of one turn since the user's last message.
#[derive(Default)]
pub(crate) struct RepetitionGuard {
    /// The last rounds, up to the number that a cycle needs for a note.
    rounds: VecDeque<CallPattern>,
    noted: Option<NotedCycle>,
    /// True if an answer was truncated because it repeats its text.
    text: bool,
}

/// A cycle of rounds that the model received a note about.
struct NotedCycle {
    length: usize,
    /// Number of rounds since the note that continue the cycle.
    continued: usize,
}

impl RepetitionGuard {
    /// Adds the tool calls of an answer; `None` if the answer may be repeated.
    pub(crate) fn calls(&mut self, round: Option<CallPattern>) -> Option<Repetition> {
        let Some(round) = round else {
            (self.rounds, self.noted) = Default::default();
            return None;
        };
        self.rounds.push_back(round);
        if self.rounds.len() > REPEATED_ROUNDS_CYCLE_MAX * REPEATED_ROUNDS_NOTE {
            self.rounds.pop_front();
        }
        if let Some(noted) = &mut self.noted {
            if is_cycle(&self.rounds, noted.length, noted.length + 1) {
                noted.continued += 1;
                let stops = noted.continued >= noted.length * (REPEATED_ROUNDS_MAX - REPEATED_ROUNDS_NOTE);
                return stops
                    .then(|| Repetition::Stop(calls_notice(&names(&self.rounds, noted.length), REPEATED_ROUNDS_MAX, false)));
            }
            self.noted = None;
        }
        let cycle = |length: &usize| is_cycle(&self.rounds, *length, length * REPEATED_ROUNDS_NOTE);
        let length = (1..=REPEATED_ROUNDS_CYCLE_MAX).find(cycle)?;
        self.noted = Some(NotedCycle { length, continued: 0 });
        Some(Repetition::Note(calls_notice(&names(&self.rounds, length), REPEATED_ROUNDS_NOTE, true)))
    }

    /// Adds an answer that was truncated because it repeats its text.
    pub(crate) fn text(&mut self, text: RepeatedText) -> Repetition {
        let RepeatedText { period, times, .. } = text;
        let title = "The model's answer repeats itself";
        let what = format!("the same {period} bytes {times} times in a row; the answer is cut");
        match std::mem::replace(&mut self.text, true) {
            false => {
                Repetition::Note(notice(TEXT, title, format!("{what}, and the model is asked to go on"), Some(TEXT_NOTE.into())))
            }
            true => Repetition::Stop(notice(TEXT, title, format!("{what}, and the turn ends"), None)),
        }
    }
}

const TEXT_NOTE: &str = "your last answer was stopped, because it repeated the same text again and again. Do not repeat it: take the next step, or answer briefly.";

/// Returns whether the last `count` rounds repeat a cycle of `length` rounds.
fn is_cycle(rounds: &VecDeque<CallPattern>, length: usize, count: usize) -> bool {
    let last = rounds.iter().rev().take(count).map(|round| round.fingerprint);
    let earlier = rounds.iter().rev().skip(length).map(|round| round.fingerprint);
    rounds.len() >= count && last.zip(earlier).take(count - length).all(|(later, earlier)| later == earlier)
}

/// Returns the names of the tools in the last `length` rounds.
fn names(rounds: &VecDeque<CallPattern>, length: usize) -> String {
    let names: Vec<&str> = rounds.iter().skip(rounds.len() - length).map(|round| round.names.as_str()).collect();
    names.join(", ")
}

fn calls_notice(names: &str, times: usize, continues: bool) -> Body {
    let what = format!("{names}: called {times} times in a row with the same input and the same result");
    let note = format!(
        "{what}. Do not repeat this: change the input, use another tool, or tell the user what is missing. \
         If you repeat it again, the turn ends."
    );
    let next = if continues { "the model is asked to do something else" } else { "the turn ends" };
    notice(CALLS, "The model repeats a tool call", format!("{what}; {next}"), continues.then_some(note))
}

fn notice(code: &str, title: &str, description: String, note: Option<String>) -> Body {
    let (code, description) = (Some(code.into()), Some(description));
    Body::Notice(Notice { description, code, note, ..Notice::new(Severity::Warning, title) })
}

/// A text that ends in repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RepeatedText {
    /// Length of the repeated piece, in bytes.
    period: usize,
    times: usize,
    /// Length of the text with the first repetitions only.
    pub kept: usize,
}

/// Returns the repetitions at the end of a text if they exceed the limits. The limits are higher
/// for text that is not prose, because tables, data and code also repeat themselves.
pub(crate) fn repeated_text(text: &str) -> Option<RepeatedText> {
    let bytes = text.as_bytes();
    let period = (1..=REPEATED_TEXT_PERIOD_MAX)
        .find(|period| repeated_bytes(bytes, *period, REPEATED_TEXT_SCAN_BYTES) >= REPEATED_TEXT_SCAN_BYTES)?;
    let (times, size) = match is_prose(&bytes[bytes.len() - period..]) {
        true => (REPEATED_PROSE_TIMES, REPEATED_PROSE_BYTES),
        false => (REPEATED_TEXT_TIMES, REPEATED_TEXT_BYTES),
    };
    let needed = size.max(times * period);
    if repeated_bytes(bytes, period, needed) < needed {
        return None;
    }
    let length = repeated_bytes(bytes, period, bytes.len());
    let kept = text.floor_char_boundary(bytes.len() - length + KEPT * period);
    Some(RepeatedText { period, times: length / period, kept })
}

/// Returns the length of the end of `text` that repeats its last `period` bytes. Stops at `max`.
fn repeated_bytes(text: &[u8], period: usize, max: usize) -> usize {
    let Some(earlier) = text.len().checked_sub(period).map(|end| &text[..end]) else { return 0 };
    let equal = text.iter().rev().zip(earlier.iter().rev()).take(max.saturating_sub(period));
    period + equal.take_while(|(later, earlier)| later == earlier).count()
}

/// Returns whether a repeated piece consists of words, as in a sentence.
fn is_prose(piece: &[u8]) -> bool {
    if piece.len() < PROSE_PERIOD_MIN || piece.iter().any(|byte| b"{}[]<>|=;".contains(byte)) {
        return false;
    }
    let text = String::from_utf8_lossy(piece);
    let count = |fits: fn(char) -> bool| text.chars().filter(|character| fits(*character)).count();
    let (all, letters, spaces) = (text.chars().count(), count(char::is_alphabetic), count(char::is_whitespace));
    // Some languages are written without spaces.
    letters * 10 >= all * 6 && (spaces * 20 >= all || !text.is_ascii())
}
