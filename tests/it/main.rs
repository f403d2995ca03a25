//! Tests of the program through its public interfaces. They do not link the library, so that an edit
//! in `src` compiles none of them.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[macro_use]
extern crate harness;

mod budget;
mod bundle;
mod chat;
mod cli;
mod cluster;
mod context;
mod docs;
mod documents;
mod durability;
mod eval;
mod extension_methods;
mod hooks;
mod http;
mod hub;
mod lsp;
mod mcp;
mod mcp_serve;
mod nodes;
mod peers;
mod permission;
mod pooler;
mod postgres;
mod processes;
mod prompts;
mod providers;
mod queue;
mod replay;
mod review;
mod rules;
mod sandbox;
mod schema;
mod signed;
mod stdio;
mod store_copy;
mod subagents;
mod tidy;
mod tools;
mod trust;
mod verify;
mod window;
mod workspaces;
