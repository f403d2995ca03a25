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

pub use diff::{Diff, Side, unified_diff};
pub use edit_error::EditError;
