//! Splits the bytes of an answer into events: server-sent events, lines of JSON (Ollama) or AWS
//! event streams (Amazon Bedrock).

use std::borrow::Cow;

use super::error::{ModelError, Retry};
use super::event_stream::{Invalid, MessageDecoder};
use super::json_lines::LineDecoder;
use super::sse;
use super::wire::interrupted;
use crate::limits::MODEL_EVENT_BYTES_MAX;

/// A decoder of the framing that a protocol uses.
pub(crate) enum Frames {
    ServerSentEvents(sse::Decoder),
    JsonLines(LineDecoder),
    EventStream(MessageDecoder),
}

impl Frames {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match self {
            Frames::ServerSentEvents(decoder) => decoder.push(bytes),
            Frames::JsonLines(decoder) => decoder.push(bytes),
            Frames::EventStream(decoder) => decoder.push(bytes),
        }
    }

    /// Returns the data of the next complete event, or `None` if more bytes are needed.
    pub(crate) fn next(&mut self) -> Result<Option<Cow<'_, str>>, ModelError> {
        match self {
            Frames::ServerSentEvents(decoder) => decoder.next_event().map_err(|_| too_large()),
            Frames::JsonLines(decoder) => decoder.next_line().map_err(|_| too_large()),
            Frames::EventStream(decoder) => match decoder.next() {
                Ok(data) => Ok(data.map(Cow::Owned)),
                Err(Invalid::TooLarge) => Err(too_large()),
                Err(Invalid::Checksum) => Err(interrupted("the checksum of an event is wrong")),
                Err(Invalid::Structure) => Err(interrupted("an event is malformed")),
            },
        }
    }

    /// Returns the data of a last event that only lacks its end. Called once at the end of the
    /// stream.
    pub(crate) fn end(&mut self) -> Option<String> {
        match self {
            Frames::ServerSentEvents(decoder) => decoder.end(),
            Frames::JsonLines(decoder) => decoder.end(),
            Frames::EventStream(_) => None,
        }
    }
}

fn too_large() -> ModelError {
    ModelError::new(Retry::Never, format!("an event is larger than {MODEL_EVENT_BYTES_MAX} bytes"))
}
