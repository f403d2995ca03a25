//! Decisions for command lines.

mod hostile;
mod oracle;
