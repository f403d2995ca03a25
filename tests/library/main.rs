//! Tests of the library: its public interface, and parts that a program does not show.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[macro_use]
extern crate harness;

mod actor;
mod budget;
mod claims;
mod config;
mod docs;
mod durability;
mod embedding;
mod frames;
mod history;
mod http;
mod hub;
mod lsp;
mod mcp;
mod models;
mod openapi;
mod patch;
mod permission;
mod process;
mod providers;
mod random;
mod rpc;
mod runtime;
mod schema;
mod session;
mod session_core;
mod terminal_text;
mod toolkit;
mod tools;
mod transcript;
