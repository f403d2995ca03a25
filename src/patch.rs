//! Changing text and showing what changed. Pure: no files, no clock but a diff's time limit.

pub mod edit;
mod unified;

pub use unified::{Side, unified};
