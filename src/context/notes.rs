//! Notes to the model about turns that did not complete, and about the mode.

use crate::content::Part;
use crate::event::CancelCause;
use crate::model::Message;

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

pub(super) const OVERFLOW: &str = "[the previous request and the work on it are left out of this conversation, because it exceeded your context window; changes to files remain]";
pub(super) const OVERFLOW_OLDEST: &str = "[the oldest messages and the previous request are left out of this conversation, because it exceeded your context window; changes to files remain]";

/// Returns the note about a cancelled turn.
pub(super) fn cancelled(cause: Option<CancelCause>) -> &'static str {
    cause.map_or(CANCELLED, |_| UNANSWERED)
}

/// Returns the note about a cancelled turn whose answer is cut off.
pub(super) fn cancelled_cut(cause: Option<CancelCause>) -> &'static str {
    cause.map_or(CANCELLED_CUT, |_| UNANSWERED_CUT)
}

/// Notes about the mode stand in the user message after the change, not in the system prompt: a
/// change must not alter the start of later requests, which providers cache.
pub(super) const PLAN: &str =
    "[mode: plan. You have read-only access: investigate, then answer with a plan of the changes you propose.]";
pub(super) const PLAN_ENDED: &str = "[the mode is no longer plan: you may make changes.]";

/// Returns whether the mode is `plan` according to the note about it in a message, if any.
pub(super) fn plan_told(message: &Message) -> Option<bool> {
    let Message::User(parts) = message else { return None };
    parts.iter().find_map(|part| match part {
        Part::Text { text } if text == PLAN => Some(true),
        Part::Text { text } if text == PLAN_ENDED => Some(false),
        _ => None,
    })
}
