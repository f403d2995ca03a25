//! Language models: a request goes in, a stream of chunks comes out. Each provider protocol is one
//! file, private to this module.

mod allowance;
mod answer;
mod anthropic;
pub mod catalog;
pub mod endpoint;
mod error;
mod gemini;
mod http;
pub mod local;
mod message;
mod openai_chat;
mod openai_responses;
mod provider_error;
mod request;
mod retry;
pub mod scripted;
mod sse;
mod wire;

pub use crate::options::Thinking;
pub use answer::{Chunk, Model};
pub use error::{ModelError, Retry};
pub use http::open;
pub use message::{Block, Message, ToolResult};
pub use request::{Request, ToolSpec};
