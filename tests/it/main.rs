//! The one integration test binary: everything through the front door.
#![allow(clippy::unwrap_used)]

mod harness;
mod models;
mod permission;
mod process;
mod provider;
mod providers;
mod schema;
mod stdio;
mod tools;
