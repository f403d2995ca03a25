//! Compares what an answer claims about checks with the checks that ran.

mod answer;
mod check;
mod claim;
mod commands;
mod judge;
mod languages;
mod logographic;
mod programs;
mod ran;
mod script_line;
mod sentence;
mod words;
mod wrappers;

pub use check::{CheckName, Kinds};
pub use claim::{Claim, claims};
pub use commands::{Exit, RanCheck};
pub use judge::{CheckEvent, ClaimState, Contradiction, judge};
pub use ran::{CommandChecks, kinds};
