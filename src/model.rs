//! Language models: sends requests to models, and returns each answer as a stream of chunks. Each
//! provider protocol has a private submodule.

mod adapt;
mod allowance;
#[deny(missing_docs)]
mod answer;
mod answer_stream;
mod anthropic;
mod authorize;
mod aws;
mod bedrock;
mod call_ids;
mod call_progress;
pub mod catalog;
mod chat_format;
mod classify;
mod claude_thinking;
pub mod cloud;
mod connect_error;
mod credentials;
mod document;
pub mod endpoint;
#[deny(missing_docs)]
mod error;
mod event_stream;
mod extra_fields;
mod fingerprint;
mod frames;
mod gemini;
mod google;
mod http;
mod json_calls;
pub mod json_lines;
mod kept_encoding;
pub(crate) mod limited_body;
pub(crate) mod list_cache;
pub(crate) mod listing;
pub mod local;
#[deny(missing_docs)]
mod media;
#[deny(missing_docs)]
mod message;
mod observations;
mod ollama;
mod openai_chat;
mod openai_responses;
mod output_limit;
mod provider_error;
pub mod providers;
mod repair;
mod repair_ladder;
pub mod reported;
#[deny(missing_docs)]
mod request;
mod request_form;
mod retry;
pub mod scripted;
mod send;
mod sent_request;
pub mod sigv4;
mod single_calls;
pub mod sse;
mod variables;
mod wire;
pub(crate) mod wire_formats;
#[cfg(debug_assertions)]
mod written_requests;

pub use crate::options::Thinking;
pub use adapt::ImageConverter;
pub use answer::{Chunk, ChunkStream, Model, ModelProvider};
pub use aws::AwsKeys;
pub(crate) use error::FailureInfo;
pub use error::{Cause, ModelError, Retry};
pub use http::open;
pub use media::Media;
pub use message::{Block, Message, Messages, ToolResult};
pub use request::{Request, ToolSpec};
pub use request_form::RequestForm;
pub use sent_request::SentRequest;
