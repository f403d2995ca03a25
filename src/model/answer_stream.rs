//! The answer to a model request while it is received: decodes its events to chunks, and limits its
//! size.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use serde::de::IgnoredAny;

use super::allowance::Allowance;
use super::answer::{Chunk, ChunkStream};
use super::call_progress::CallProgress;
use super::connect_error::body_error;
use super::document;
use super::error::{Cause, ModelError};
use super::frames::Frames;
use super::wire::{DecodedChunks, EventReader, interrupted};
use crate::content::{StopReason, Usage};
use crate::json;
use crate::limits::MODEL_EVENT_BYTES_MAX;

/// Maximum size of an event of a proxy, in bytes.
const FILLER_BYTES_MAX: usize = 40;
/// Maximum size of a chunk that [`AnswerStream::join`] extends, in bytes.
const JOINED_BYTES_MAX: usize = 4 << 10;

/// State of an answer that is being read.
pub(super) struct AnswerStream {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    decoder: Frames,
    /// The received bytes until the first event, because a server that does not stream sends a
    /// document.
    document: Option<Vec<u8>>,
    content_type: String,
    reader: Box<dyn EventReader>,
    out: DecodedChunks,
    allowance: Allowance,
    /// The last reported [`Chunk::UsageSoFar`].
    usage: Option<Usage>,
    calls: CallProgress,
    /// A chunk was returned.
    emitted: bool,
    /// Error to return after the chunks in `out`.
    failed: Option<ModelError>,
    over: bool,
}

impl AnswerStream {
    /// Creates an answer of which no byte was read.
    pub(super) fn new(
        bytes: BoxStream<'static, reqwest::Result<Bytes>>,
        decoder: Frames,
        content_type: String,
        reader: Box<dyn EventReader>,
    ) -> AnswerStream {
        AnswerStream {
            bytes,
            decoder,
            document: Some(Vec::new()),
            content_type,
            reader,
            out: VecDeque::new(),
            usage: None,
            calls: CallProgress::default(),
            allowance: Allowance::default(),
            emitted: false,
            failed: None,
            over: false,
        }
    }

    pub(super) fn stream(self) -> ChunkStream {
        stream::unfold(self, |mut answer| async { answer.next().await.map(|item| (item, answer)) }).boxed()
    }

    async fn next(&mut self) -> Option<Result<Chunk, ModelError>> {
        loop {
            if let Some(mut chunk) = self.out.pop_front() {
                self.join(&mut chunk);
                if let Some(bound) = self.allowance.take(&mut chunk) {
                    self.discard_and_truncate(bound);
                    if matches!(chunk, Chunk::ToolCall { .. }) {
                        continue;
                    }
                }
                self.emitted = true;
                return Some(Ok(chunk));
            }
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            if self.over {
                return None;
            }
            let failure = match self.bytes.next().await {
                Some(Ok(bytes)) => {
                    self.decoder.push(&bytes);
                    if let Some(document) = self.document.as_mut().filter(|document| document.len() <= MODEL_EVENT_BYTES_MAX) {
                        document.extend_from_slice(&bytes);
                    }
                    match self.allowance.receive(bytes.len()) {
                        Some(bound) => self.discard_and_truncate(bound),
                        None => self.read(),
                    }
                    self.report_usage();
                    if !self.over {
                        self.out.extend(self.calls.report(self.reader.open_call()));
                    }
                    continue;
                }
                Some(Err(error)) => Some(body_error(&error)),
                None => None,
            };
            self.over = true;
            if let Err(error) = self.read_end(failure) {
                self.fail(error);
            }
        }
    }

    /// Adds the text or thinking that directly follows a chunk and arrived with it, because each
    /// chunk is passed on as an event.
    fn join(&mut self, chunk: &mut Chunk) {
        while let (Chunk::Text(text), Some(Chunk::Text(more))) | (Chunk::Thinking(text), Some(Chunk::Thinking(more))) =
            (&mut *chunk, self.out.front())
            && text.len() + more.len() <= JOINED_BYTES_MAX
        {
            text.push_str(more);
            self.out.pop_front();
        }
    }

    /// Decodes the rest at the end of the body. `failure` is the error that ended the body early.
    fn read_end(&mut self, failure: Option<ModelError>) -> Result<(), ModelError> {
        self.read_last_event()?;
        if let Some(body) = self.document.take() {
            let read = document::read(&body, &self.content_type, self.reader.as_mut(), &mut self.out);
            return read.map_err(|error| failure.unwrap_or(error));
        }
        if matches!(self.out.back(), Some(Chunk::Stop(_))) || self.reader.end(&mut self.out) {
            return Ok(());
        }
        let empty = !self.emitted && self.out.is_empty() && self.reader.pending().is_empty();
        Err(match failure {
            Some(failure) => failure,
            None if empty => ModelError::from_cause(Cause::InvalidAnswer, "the answer contains no known event"),
            None => interrupted("the connection ended"),
        })
    }

    /// Ends the answer at the chunk that exceeds a limit: discards the later chunks, except usage.
    fn discard_and_truncate(&mut self, bound: String) {
        self.out.retain(|chunk| matches!(chunk, Chunk::Usage(_)));
        self.truncate(bound);
    }

    /// Ends the answer after the chunks in `out`.
    fn truncate(&mut self, bound: String) {
        self.out.push_back(Chunk::Truncated { bound });
        self.out.push_back(Chunk::Stop(StopReason::MaxTokens));
        self.failed = None;
        self.over = true;
    }

    /// Decodes an event at the end of the stream that lacks its blank line, if the event is
    /// complete.
    fn read_last_event(&mut self) -> Result<(), ModelError> {
        let complete =
            |data: &String| !is_filler(data) && (data.trim() == "[DONE]" || serde_json::from_str::<IgnoredAny>(data).is_ok());
        let Some(data) = self.decoder.end().filter(complete) else { return Ok(()) };
        self.document = None;
        self.reader.read(&json::replace_surrogates(&data), &mut self.out)
    }

    /// Decodes the complete events that were received.
    fn read(&mut self) {
        let error = loop {
            let data = match self.decoder.next() {
                Ok(Some(data)) => data,
                Ok(None) => return,
                Err(error) => break error,
            };
            if is_filler(&data) {
                continue;
            }
            self.document = None;
            if let Err(error) = self.reader.read(&json::replace_surrogates(&data), &mut self.out) {
                break error;
            }
            if matches!(self.out.back(), Some(Chunk::Stop(_))) {
                self.over = true;
                return;
            }
            if let Some(bound) = self.allowance.exceeded(self.reader.pending()) {
                return self.truncate(bound);
            }
        };
        self.fail(error);
    }

    /// Reports usage that was received during the answer.
    fn report_usage(&mut self) {
        let usage = self.reader.usage();
        if !self.over && usage != self.usage {
            self.usage = usage;
            self.out.extend(usage.map(Chunk::UsageSoFar));
        }
    }

    /// Ends the answer with an error after the chunks in `out`, and reports the usage so far.
    fn fail(&mut self, error: ModelError) {
        self.over = true;
        self.out.extend(self.reader.usage().map(Chunk::Usage));
        self.failed = Some(error);
    }
}

/// Returns whether the data of an event is a word that a proxy sends to keep the connection open,
/// such as `ping` or `null`. Every event of a model protocol is an object or a list, or `[DONE]`.
fn is_filler(data: &str) -> bool {
    let data = data.trim();
    data.len() <= FILLER_BYTES_MAX && !data.contains(['{', '"']) && data != "[DONE]"
}
