//! What the provider protocols have in common: how an answer is read, whose state a block carries, how ids and results are written.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

pub use super::allowance::Held;
use super::endpoint::Protocol;
use super::{Again, ModelError, ToolResult};
use crate::content::{Part, ProviderState, plain_text};

pub use super::Chunk;

/// What was read of an answer and not yet handed on.
pub type Out = VecDeque<Chunk>;

/// A request as it goes out.
pub struct Sent {
    pub url: String,
    /// Beside `content-type`, the key and what the endpoint's settings add.
    pub headers: Vec<(&'static str, &'static str)>,
    pub body: Vec<u8>,
}

/// Reads one streamed answer. Messages of errors need not name the model.
pub trait Reader: Send {
    /// Takes the data of one event. [`Chunk::Stop`] in `out` ends the answer, whatever follows.
    fn read(&mut self, data: &str, out: &mut Out) -> Result<(), ModelError>;

    /// What the reader holds of the answer that is not in `out` yet.
    fn held(&self) -> Held {
        Held::default()
    }

    /// The connection ended without a stop; true if the answer is whole all the same.
    fn end(&mut self, _out: &mut Out) -> bool {
        false
    }
}

/// An event as JSON. One that is no JSON was mangled on its way: worth another attempt.
pub fn parse<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, ModelError> {
    serde_json::from_str(data).map_err(|error| ModelError::new(Again::Backoff, format!("an event could not be read: {error}")))
}

/// What a block carries for `protocol`; the state of another protocol is nobody's business here.
pub fn state(state: &Option<ProviderState>, protocol: Protocol) -> Option<&Value> {
    state.as_ref().filter(|state| state.protocol == protocol.as_str()).map(|state| &state.value)
}

pub fn keep(protocol: Protocol, value: Value) -> Option<ProviderState> {
    Some(ProviderState { protocol: protocol.as_str().to_owned(), value })
}

/// A tool call's id as `fits` wants it: itself, or nine letters and digits made of it (the narrowest rule there is, Mistral's).
pub fn call_id(id: &str, fits: impl Fn(&str) -> bool) -> Cow<'_, str> {
    if fits(id) {
        return Cow::Borrowed(id);
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let mut rest = hasher.finish();
    let letters = (0..9).map(|_| {
        let digit = (rest % 36) as u32;
        rest /= 36;
        char::from_digit(digit, 36).expect("less than 36")
    });
    Cow::Owned(letters.collect())
}

/// Letters, digits, `_` and `-`, at most `length` of them.
pub fn is_plain(id: &str, length: usize) -> bool {
    (1..=length).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A tool call's input as an object: the wires take nothing else back, even if the model wrote something else.
pub fn object(input: &Value) -> Cow<'_, Value> {
    match input {
        Value::Object(_) => Cow::Borrowed(input),
        other => Cow::Owned(json!({ "input": other })),
    }
}

/// A tool result's text, for wires that cannot mark a failure otherwise.
pub fn result_text(result: &ToolResult) -> String {
    let texts: Vec<Part> = result.output.iter().filter(|part| !is_image(part)).cloned().collect();
    let text = plain_text(&texts);
    match result.failed && !text.starts_with("error") {
        true => format!("error: {text}"),
        false => text,
    }
}

pub fn is_image(part: &Part) -> bool {
    matches!(part, Part::Image { .. })
}

/// `data:` URL of an image (RFC 2397).
pub fn data_url(mime_type: &str, data: &str) -> String {
    format!("data:{mime_type};base64,{data}")
}

/// An answer that broke off.
pub fn cut(why: impl std::fmt::Display) -> ModelError {
    ModelError::new(Again::Backoff, format!("the answer was cut: {why}"))
}

/// `fixed` and a little by chance.
pub fn jittered(fixed: Duration) -> Duration {
    let chance = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0u8);
    fixed + Duration::from_micros(chance % (crate::limits::MODEL_JITTER.as_micros() as u64 + 1))
}

/// A request's body. Serializing plain data cannot fail; if it does all the same, the request is at fault.
pub fn body(body: &impl serde::Serialize) -> Result<Vec<u8>, ModelError> {
    serde_json::to_vec(body).map_err(|error| ModelError::new(Again::Never, format!("writing the request: {error}")))
}
