//! Language models: a request goes in, a stream of chunks comes out. Each provider protocol is one
//! file, private to this module.

mod allowance;
mod anthropic;
pub mod catalog;
pub mod endpoint;
mod gemini;
mod http;
pub mod local;
mod openai_chat;
mod openai_responses;
mod provider_error;
mod retry;
pub mod scripted;
mod sse;
mod wire;

use futures_util::stream::BoxStream;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

use crate::content::{Part, ProviderState, StopReason, Usage};
use crate::id::ToolCallId;
pub use crate::options::Thinking;

/// A message of the conversation that is sent to a model. Each tool call has its result in the
/// following message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    User(Vec<Part>),
    Assistant(Vec<Block>),
    ToolResults(Vec<ToolResult>),
}

/// A block of a model's answer. Blocks are stored in the order in which they arrived.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    Thinking { text: String, state: Option<ProviderState> },
    Text { text: String, state: Option<ProviderState> },
    ToolCall { id: ToolCallId, name: String, input: Value, state: Option<ProviderState> },
}

/// The result of a tool call. `failed` marks an error whose message is in `output`.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    pub id: ToolCallId,
    pub name: String,
    pub output: Vec<Part>,
    pub failed: bool,
}

/// The description of a tool for models. `input_schema` is a JSON Schema (draft 2020-12) of an
/// object.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub input_schema: Value,
}

/// One request to a model.
#[derive(Clone, Debug)]
pub struct Request {
    pub system: String,
    pub messages: Vec<Arc<Message>>,
    pub tools: Arc<[ToolSpec]>,
    pub thinking: Thinking,
    /// Identical for all requests of a session: providers use it to route to a warm cache.
    pub cache_key: String,
}

/// A part of the answer to a request, in order. A stream that ends without [`Chunk::Stop`] was
/// interrupted, which is an error.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// Text for the open text block. Opens a text block if none is open.
    Text(String),
    /// Thinking for the open thinking block. Opens a thinking block if none is open.
    Thinking(String),
    /// Ends the open block of this kind, or adds an empty one. `state` is sent back to the provider
    /// with the block. A block also ends when a block of another kind begins.
    BlockEnd {
        thinking: bool,
        state: Option<ProviderState>,
    },
    /// A complete tool call. `input` is the text that the model wrote: normally a JSON object, but
    /// it may be invalid.
    ToolCall {
        id: String,
        name: String,
        input: String,
        state: Option<ProviderState>,
    },
    Usage(Usage),
    /// The answer exceeds this bound (limits.rs) and is truncated: `Stop(MaxTokens)` follows, and
    /// none of its tool calls may run.
    Truncated {
        bound: String,
    },
    /// Discards all chunks received so far: the request is sent again after `delay`.
    Retry {
        attempt: u32,
        delay: Duration,
        reason: String,
    },
    /// The answer is complete; no chunk follows.
    Stop(StopReason),
}

/// The retry policy of a failed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    Never,
    Backoff,
    /// Like `Backoff`, with fewer attempts: a loopback address refused the connection, and waiting
    /// rarely helps.
    Briefly,
    /// Retry after the delay that the provider requested (Retry-After).
    After(Duration),
}

/// A failed request. `message` contains the model and the cause, `hint` a remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelError {
    pub message: String,
    pub hint: Option<String>,
    pub again: Again,
    /// The provider cannot be reached or rejects the API key. Another provider may work.
    pub unreachable: bool,
}

impl ModelError {
    pub fn new(again: Again, message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, again, unreachable: false }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub fn unreachable(mut self) -> Self {
        self.unreachable = true;
        self
    }
}

/// The chunks of one answer.
pub type ChunkStream = BoxStream<'static, Result<Chunk, ModelError>>;

/// A model that accepts requests.
pub trait Model: Send + Sync + 'static {
    /// `PROVIDER/NAME`, as in the settings.
    fn id(&self) -> &str;

    /// Context window in tokens.
    fn context_window(&self) -> u64;

    /// Sends the request when the stream is first polled. Dropping the stream closes the
    /// connection.
    fn stream(&self, request: Request) -> ChunkStream;
}
