//! The integration tests, one binary.
#![allow(clippy::unwrap_used)]

mod process;
mod tools;
