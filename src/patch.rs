//! Text edits, patches, and unified diffs of the changes. This module does not access files, and it
//! reads the clock only to enforce the time limit for diffs.

pub mod apply_patch;
mod block;
mod diff;
pub mod edit;
mod edit_error;
mod hunks;
mod indentation;
mod line_diff;
mod lines;
mod locate;
mod look_alike;
mod nearest;
mod normalized;
pub(crate) mod pasted_numbers;
mod splice;

pub(crate) use diff::Diff;
pub use diff::{Side, unified_diff};
pub(crate) use hunks::{DiffHunk, HunkChoice, hunks, line_text, merge, merge_texts};
