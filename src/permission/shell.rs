//! Analyses shell command lines, so that rules are applied to every command in a line. This is not
//! a security boundary: the analysis does not see what a script or program does.

mod arithmetic;
mod assign;
mod code;
mod command;
mod effect;
mod environment;
mod file_options;
mod git;
mod grammar;
mod interpreters;
mod line;
mod pattern;
mod plain;
mod programs;
mod read;
mod redirect;
mod runs;
mod scripts;
mod search;
mod simple_command;
mod test;
mod word;
mod wrappers;

pub(crate) use command::ShellCommand;
pub(crate) use environment::{assignment, decides_what_runs};
pub use line::CommandLine;
pub(crate) use pattern::{Match, escape, wildcard};
