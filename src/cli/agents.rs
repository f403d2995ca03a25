//! Commands for hosted agents.

pub(super) mod command;
pub(super) mod exec;
pub(super) mod file;
