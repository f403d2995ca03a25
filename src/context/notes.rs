//! Notes to the model about turns that did not complete, and about the mode.

use super::environment;
use crate::content::Part;
use crate::event::CancelCause;
use crate::model::Message;
use crate::options::Mode;

const CANCELLED: &str = "[the previous request was cancelled by the user]";
const CANCELLED_CUT: &str = "[the previous request was cancelled by the user; the answer above is cut off]";
const UNANSWERED: &str = "[the previous request was stopped: its permission request got no answer]";
const UNANSWERED_CUT: &str =
    "[the previous request was stopped: its permission request got no answer; the answer above is cut off]";
pub(super) const INTERRUPTED: &str = "[the previous request was interrupted]";
pub(super) const INTERRUPTED_CUT: &str = "[the previous request was interrupted; the answer above is cut off]";
pub(super) const FAILED_CUT: &str = "[the previous request failed; the answer above is cut off]";
pub(super) const REFUSED: &str = "[the provider refused the previous request]";
pub(super) const REFUSED_CUT: &str = "[the answer above is cut off: the provider refused the request]";
pub(super) const LIMIT: &str = "[the previous request ended without an answer: the output token limit was reached]";
pub(super) const LIMIT_CUT: &str = "[the answer above is cut off: the output token limit was reached]";

pub(in crate::context) const OVERFLOW: &str = "[the previous request and the work on it are left out of this conversation, because it exceeded your context window; changes to files remain]";
pub(in crate::context) const OVERFLOW_OLDEST: &str = "[the oldest messages and the previous request are left out of this conversation, because it exceeded your context window; changes to files remain]";

/// Returns the note about a cancelled turn.
pub(super) fn cancelled(cause: Option<CancelCause>) -> &'static str {
    cause.map_or(CANCELLED, |_| UNANSWERED)
}

/// Returns the note about a cancelled turn whose answer is cut off.
pub(super) fn cancelled_cut(cause: Option<CancelCause>) -> &'static str {
    cause.map_or(CANCELLED_CUT, |_| UNANSWERED_CUT)
}

/// Starts of the notes about the mode, and of the line in the environment of the first message.
/// They stand in user messages, not in the system prompt: a change must not alter the start of
/// later requests, which providers cache.
const MODE: &str = "[mode: ";
const PLAN_ENDED: &str = "[the mode is no longer plan: you may make changes.";
const MODE_LINE: &str = "\nMode: ";

/// Says what a mode allows.
fn meaning(mode: Mode) -> &'static str {
    match mode {
        Mode::Ask => "Changes and commands need the user's permission.",
        Mode::AcceptEdits => "Changes of files in the directory need no permission, commands do.",
        Mode::Plan => {
            "You have read-only access: investigate, then answer with a plan of the changes you propose. Changes and commands are \
             denied; do not try them."
        }
        Mode::Auto => "Changes and commands in the directory need no permission.",
    }
}

/// Returns the line about the mode in the environment of the first message.
pub(crate) fn mode_line(mode: Mode) -> String {
    format!("Mode: {mode}. {}", meaning(mode))
}

/// Returns the note about a mode that differs from the one that the model knows.
pub(super) fn mode_note(mode: Mode, known: Option<Mode>) -> String {
    match (mode, known) {
        (Mode::Plan, _) | (_, None | Some(Mode::Ask | Mode::AcceptEdits | Mode::Auto)) => {
            format!("{MODE}{mode}. {}]", meaning(mode))
        }
        (_, Some(Mode::Plan)) => {
            format!("{PLAN_ENDED} Carry out the plan only if the user asked for it. Mode: {mode}. {}]", meaning(mode))
        }
    }
}

/// Returns the mode according to the notes in a message, if it has any. Those of earlier versions
/// name only the mode `plan`.
pub(in crate::context) fn told_mode(message: &Message) -> Option<Mode> {
    let Message::User(parts) = message else { return None };
    let texts = parts.iter().filter_map(|part| if let Part::Text { text } = part { Some(text.as_str()) } else { None });
    let named = |text: &str| text.split(['.', ']']).next().and_then(|name| name.parse().ok());
    texts
        .filter_map(|text| match text {
            _ if text.starts_with(MODE) => named(&text[MODE.len()..]),
            _ if text.starts_with(PLAN_ENDED) => text.split_once("Mode: ").map_or(Some(Mode::Ask), |(_, name)| named(name)),
            _ if text.starts_with(environment::START) => named(text.split_once(MODE_LINE)?.1),
            _ => None,
        })
        .next_back()
}
