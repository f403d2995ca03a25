//! Changing text and showing what changed. Pure: no files, no clock but a diff's time limit.

pub mod apply_patch;
mod block;
pub mod edit;
mod indentation;
mod lines;
mod locate;
mod nearest;
mod refusal;
mod splice;
mod unified;
mod view;

pub use refusal::EditError;
pub use unified::{Diff, Side, unified};
