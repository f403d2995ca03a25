//! The answer to a request as a stream of chunks, and the trait of the models that produce it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::error::ModelError;
use super::media::Media;
use super::request::Request;
use super::request_form::RequestForm;
use crate::content::{ProviderState, StopReason, Usage};

/// A part of the answer to a request, in order. A stream that ends without [`Chunk::Stop`] was
/// interrupted, which is an error.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Chunk {
    /// Text for the open text block. Opens a text block if none is open.
    Text(String),
    /// Thinking for the open thinking block. Opens a thinking block if none is open.
    Thinking(String),
    /// Ends the open block of this kind, or adds an empty block. A block also ends when a block of
    /// another kind begins.
    BlockEnd {
        /// True for a thinking block, false for a text block.
        thinking: bool,
        /// Sent back to the provider with the block.
        state: Option<ProviderState>,
    },
    /// A tool call whose input the model is writing. Only for long inputs.
    CallInput {
        /// The name of the tool.
        name: String,
        /// Bytes of the input so far.
        bytes: u64,
        /// The path in the input, once it is known.
        path: Option<String>,
    },
    /// A complete tool call.
    ToolCall {
        /// The id, unique in the answer.
        id: String,
        /// The name of the tool.
        name: String,
        /// The text that the model wrote: normally a JSON object, but it may be invalid.
        input: String,
        /// Sent back to the provider with the call.
        state: Option<ProviderState>,
    },
    /// Usage of one attempt. A failed attempt may report its usage too, before [`Chunk::Retry`] or
    /// the error.
    Usage(Usage),
    /// Usage of the current attempt so far. Counts only if the caller drops the stream before
    /// [`Chunk::Usage`]. Replaces earlier values.
    UsageSoFar(Usage),
    /// The answer exceeds a limit and is truncated. `Stop(MaxTokens)` follows, and no tool call of
    /// the answer may run.
    Truncated {
        /// The limit, for users.
        bound: String,
    },
    /// A fact about the server that the user should know. Does not belong to the answer.
    Notice {
        /// One line.
        title: String,
        /// The text below the title.
        description: String,
        /// The subject: `image_replaced`, `tool_left_out` or `request_repaired`; `None` for others.
        code: Option<String>,
    },
    /// A provider refused these parts of the conversation, and accepted the request without them.
    /// Later requests contain their digests in `refused`.
    Refused {
        /// The digests.
        parts: Vec<String>,
    },
    /// Discards all chunks received so far, except usage: the request is sent again.
    Retry {
        /// Number of the next attempt; the first one is 1.
        attempt: u32,
        /// Time until the request is sent.
        delay: Duration,
        /// Time for which the request is still repeated; `None` if the number of attempts is
        /// limited instead.
        left: Option<Duration>,
        /// Why the attempt failed.
        reason: String,
    },
    /// The answer is complete; no chunk follows.
    Stop(StopReason),
}

/// The chunks of one answer, or the error that ends it.
pub type ChunkStream = BoxStream<'static, Result<Chunk, ModelError>>;

/// A model that accepts requests.
pub trait Model: Send + Sync + 'static {
    /// Returns the id of the model: `PROVIDER/NAME`, as in the settings.
    fn id(&self) -> &str;

    /// Returns the size of the context window in tokens.
    fn context_window(&self) -> u64;

    /// Returns false if the model's server reports that the model cannot call tools. Requests then
    /// contain no tools.
    fn supports_tools(&self) -> bool {
        true
    }

    /// Returns the documents and audio that the model reads.
    fn media(&self) -> Media {
        Media::default()
    }

    /// Asks a local server for the properties of the model, unless they are known.
    fn prepare(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Returns the form of the last request; before the first one, the form that it will have
    /// unless the server refuses a part. `None` for a model that is not behind HTTP.
    fn request_form(&self) -> Option<Arc<RequestForm>> {
        None
    }

    /// Sends the request when the stream is first polled. Dropping the stream closes the
    /// connection.
    fn stream(&self, request: Request) -> ChunkStream;
}

/// Opens the models of one provider. A program that embeds nuncio implements it, together with
/// [`Model`], for a wire format of its own.
pub trait ModelProvider: Send + Sync + 'static {
    /// Opens a model. `id` is `PROVIDER/NAME`. Must not block or use the network.
    fn open(&self, id: &str) -> Result<Arc<dyn Model>, ModelError>;
}
