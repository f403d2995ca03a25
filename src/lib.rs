//! nuncio: the coding agent that every editor, script and other agent can spawn. docs/ARCHITECTURE.md is the plan of the house.

pub mod agent;
pub mod api;
pub mod app;
pub mod cli;
pub mod config;
pub mod content;
pub mod context;
pub mod error;
pub mod event;
pub mod http;
pub mod id;
pub mod limits;
pub mod lsp;
pub mod model;
pub mod patch;
pub mod permission;
pub mod process;
pub mod protocol;
pub mod rpc;
pub mod session;
pub mod stdio;
pub mod store;
pub mod terminal_text;
pub mod tools;
pub mod web;
pub mod workspace;
