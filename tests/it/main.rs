//! The integration test binary: tests through the public interfaces.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

/// Skips a test of a feature that the POSIX calls do not provide, in a build with NUNCIO_POSIX=1.
macro_rules! needs_linux {
    ($feature:literal) => {
        if cfg!(posix) {
            eprintln!("skipped: {}: the POSIX calls have no {}", module_path!(), $feature);
            return;
        }
    };
}

/// Skips a test of SQLite's files if the store is PostgreSQL (`NUNCIO_TEST_STORE`).
macro_rules! needs_sqlite {
    ($reason:literal) => {
        if crate::harness::on_postgres() {
            eprintln!("skipped: {}: {}", module_path!(), $reason);
            return;
        }
    };
}

mod budget;
mod bundle;
mod chat;
mod cli;
mod cluster;
mod context;
mod docs;
mod durability;
mod extension_methods;
mod frames;
mod harness;
mod history;
mod hooks;
mod http;
mod hub;
mod library;
mod lsp;
mod mcp;
mod mcp_serve;
mod models;
mod nodes;
mod openapi;
mod patch;
mod peers;
mod permission;
mod pooler;
mod postgres;
mod process;
mod processes;
mod prompts;
mod provider;
mod providers;
mod queue;
mod review;
mod rpc;
mod sandbox;
mod schema;
mod session_core;
mod stdio;
mod store_copy;
mod subagents;
mod terminal_text;
mod tidy;
mod tools;
mod transcript;
mod trust;
mod verify;
mod window;
mod workspaces;
