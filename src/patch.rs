//! Edits and patches of text, and unified diffs of the changes. Pure: no file access; the clock is
//! read only for the time limit of a diff.

pub mod apply_patch;
mod block;
mod diff;
pub mod edit;
mod edit_error;
mod indentation;
mod lines;
mod locate;
mod nearest;
mod normalized;
mod splice;

pub(crate) use diff::Diff;
pub use diff::{Side, unified_diff};
