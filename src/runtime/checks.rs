//! The checks and the review at the end of a turn that changed files.

pub(crate) mod review;
pub(super) mod review_questions;
pub(crate) mod verify;
