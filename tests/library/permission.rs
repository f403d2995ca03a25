//! Decisions for command lines.

mod git_acts;
mod hostile;
mod oracle;
