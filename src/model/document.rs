//! Answers that are not an event stream. A server that does not stream sends the answer as one JSON
//! document; any other content is an error.

use serde_json::Value;

use super::error::{Cause, ModelError};
use super::provider_error::document_error;
use super::wire::{Chunk, DecodedChunks, EventReader, interrupted};

/// Maximum length of an excerpt from a response that is not an answer, in bytes.
const MODEL_EXCERPT_BYTES_MAX: usize = 200;

/// Decodes a body that contains no event. The chunks in `out` end with [`Chunk::Stop`].
pub(super) fn read(
    body: &[u8],
    content_type: &str,
    reader: &mut dyn EventReader,
    out: &mut DecodedChunks,
) -> Result<(), ModelError> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{feff}').trim();
    let value = match serde_json::from_str::<Value>(text) {
        Ok(value) => value,
        Err(error) if error.is_eof() && text.starts_with(['{', '[']) => return Err(interrupted("the connection ended")),
        Err(_) => return Err(unexpected(content_type, text)),
    };
    if value.get(0).unwrap_or(&value).get("error").is_some_and(|error| !error.is_null()) {
        return Err(document_error(text));
    }
    reader.read_document(text, out)?;
    let complete = matches!(out.back(), Some(Chunk::Stop(_))) || reader.end(out);
    if complete { Ok(()) } else { Err(unexpected(content_type, text)) }
}

/// Creates the error for a body that is not an answer.
fn unexpected(content_type: &str, text: &str) -> ModelError {
    let what = match content_type {
        _ if text.is_empty() => return ModelError::from_cause(Cause::InvalidAnswer, "the answer is empty"),
        "" => "content of an unknown type",
        _ => content_type,
    };
    let message = format!("the server sent {what} instead of an answer: {}", excerpt(text));
    ModelError::from_cause(Cause::InvalidAnswer, message).hint("check base_url and protocol")
}

/// Returns the first words. Does not truncate a word, because the mask for API keys would not
/// recognize a part of a key.
fn excerpt(text: &str) -> String {
    let mut excerpt = String::new();
    for word in text.split_whitespace() {
        if excerpt.len() + word.len() > MODEL_EXCERPT_BYTES_MAX {
            break;
        }
        excerpt.push_str(if excerpt.is_empty() { "" } else { " " });
        excerpt.push_str(word);
    }
    excerpt
}
