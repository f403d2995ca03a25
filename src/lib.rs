//! nuncio: a coding agent inside a Rust program. The same crate is the program `nuncio`, which
//! editors, scripts and other agents start.
//!
//! ```no_run
//! use nuncio::{Agent, Decision, Mode};
//!
//! fn main() -> nuncio::Result<()> {
//!     // This program also runs the commands of the agent, in a process of its own.
//!     nuncio::init();
//!     let runtime = tokio::runtime::Runtime::new().expect("a runtime");
//!     runtime.block_on(async {
//!         let agent = Agent::builder(".")
//!             .environment(std::env::vars())
//!             .mode(Mode::Ask)
//!             .decide(|question| async move {
//!                 match question.command_starts_with("cargo test") {
//!                     true => Decision::Once,
//!                     false => Decision::Deny("only the tests may run".into()),
//!                 }
//!             })
//!             .build()
//!             .await?;
//!         let mut turn = agent.session().await?.prompt("Repair the failing test").await?;
//!         while let Some(event) = turn.next().await {
//!             if let Some(text) = event?.text() {
//!                 print!("{text}");
//!             }
//!         }
//!         println!("\n{:?}, {} tokens", turn.stop(), turn.usage().total());
//!         agent.close().await
//!     })
//! }
//! ```
//!
//! The library has no effects on the whole process: it reads no environment variables, changes no
//! signal handlers, limits or TLS providers, and prints nothing; its log messages are events of
//! `tracing`. docs/LIBRARY.md is the guide; docs/ARCHITECTURE.md describes the modules.

// Parts of the modules serve only the command line, the HTTP server or documents.
#![cfg_attr(not(all(feature = "cli", feature = "documents")), allow(dead_code, unused_imports))]

mod acp;
mod agent;
mod api;
mod app;
mod claims;
#[cfg(feature = "cli")]
mod cli;
mod client;
mod cluster;
mod config;
#[deny(missing_docs)]
pub mod content;
mod context;
mod documents;
#[deny(missing_docs)]
mod error;
#[deny(missing_docs)]
pub mod event;
mod hex;
mod hooks;
#[cfg(feature = "http")]
mod http;
mod hub;
#[deny(missing_docs)]
pub mod id;
#[doc(hidden)]
pub mod internal;
mod json;
#[deny(missing_docs)]
mod library;
mod limits;
mod local_socket;
mod lsp;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mcp")]
mod mcp_server;
mod model;
#[deny(missing_docs)]
mod options;
mod patch;
mod peer;
mod permission;
mod process;
mod protocol;
mod rpc;
mod runtime;
mod session;
mod similar_names;
mod store;
mod task;
mod terminal_text;
mod toolkit;
mod tools;
mod transcript;
mod web;
mod workspace;
mod worktrees;

pub use config::FailurePolicy;
pub use error::{Error, Kind, Result};
pub use hooks::{Hook, HookCompaction, HookEffect, HookError, HookRequest, HookTool};
#[cfg(feature = "http")]
pub use library::Server;
pub use library::{Agent, AgentBuilder, Decision, Events, Output, Question, Session, Store, Tool, ToolAccess, ToolContext, Turn};
pub use model::{
    Block, Cause, Chunk, ChunkStream, Media, Message, Model, ModelError, ModelProvider, Request as ModelRequest, Retry, ToolResult,
    ToolSpec,
};
pub use options::{Mode, OptionValue, Thinking};
pub use process::init;
pub use schemars;
pub use toolkit::ToolError;
