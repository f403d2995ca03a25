//! A key that answers a permission request, a review or a form. It counts only if no other input
//! arrives shortly before and after it, because a paste can contain any text: some terminals do not
//! mark it, and its text can contain the mark of its end.

use std::time::Instant;

use crossterm::event::KeyEvent;

use super::question::QuestionChoice;
use crate::id::PermissionId;

/// A key that answers when `due` has passed without other input.
pub(crate) struct HeldKey {
    pub due: Instant,
    pub key: KeyEvent,
    pub answer: KeyAnswer,
}

pub(crate) enum KeyAnswer {
    Question(PermissionId, QuestionChoice),
    /// Sends the decisions of a review.
    Hunks(PermissionId),
    /// Accepts a form, or the default of its field.
    Form,
}
