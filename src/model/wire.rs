//! Code shared by the provider protocols: decoding of answers, provider state of blocks, encoding
//! of ids and results.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use super::allowance::AnswerSize;
use super::endpoint::Protocol;
use super::error::{Cause, ModelError, Retry};
use super::message::{Message, ToolResult};
use super::request::Request;
use crate::content::{Part, ProviderState, Usage, joined};
use crate::json;

pub(crate) use super::answer::Chunk;

/// Maximum random time that is added to a pause, so that concurrent failures are not retried at the
/// same time.
const MODEL_JITTER: Duration = Duration::from_millis(20);

thread_local! {
    /// True while [`from_str`] parses strictly: lenient fields fail at an unexpected value. As a
    /// parameter, the mode would be one of every struct of every protocol.
    static IS_STRICT: Cell<bool> = const { Cell::new(false) };
}

/// Decoded chunks that were not returned yet.
pub(crate) type DecodedChunks = VecDeque<Chunk>;

/// An HTTP request to the API of a model provider.
pub(crate) struct EncodedRequest {
    pub url: String,
    /// Headers that the protocol requires. The sender adds `content-type`, the API key and the
    /// headers of the endpoint.
    pub headers: Vec<(&'static str, &'static str)>,
    pub body: Vec<u8>,
}

/// Decodes one streamed answer. Error messages need not name the model, because the caller adds its
/// name.
pub(crate) trait EventReader: Send {
    /// Decodes the data of one event. [`Chunk::Stop`] in `out` ends the answer; later events are
    /// ignored.
    fn read(&mut self, data: &str, out: &mut DecodedChunks) -> Result<(), ModelError>;

    /// Decodes a complete answer that is one JSON document, from a server that does not stream.
    fn read_document(&mut self, document: &str, out: &mut DecodedChunks) -> Result<(), ModelError> {
        self.read(document, out)
    }

    /// Returns the size of the parts of the answer that are buffered in the reader and not in `out`
    /// yet.
    fn pending(&self) -> AnswerSize {
        AnswerSize::default()
    }

    /// Returns the name and the input so far of the tool call that is being received.
    fn open_call(&self) -> Option<(&str, &str)> {
        None
    }

    /// Returns usage that was received and is not in `out` yet, for an answer that fails.
    fn usage(&self) -> Option<Usage> {
        None
    }

    /// Ends the answer if the connection ends before [`Chunk::Stop`]. Returns whether the answer is
    /// complete.
    fn end(&mut self, _out: &mut DecodedChunks) -> bool {
        false
    }
}

/// Parses an event as JSON.
pub(crate) fn parse<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, ModelError> {
    from_str(data).map_err(|error| ModelError::from_cause(Cause::InvalidAnswer, format!("invalid event: {error}")))
}

/// Parses text in one pass if all values have the expected types. Otherwise parses it leniently,
/// which scans a value once more for each lenient field around it.
fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    let outer = IS_STRICT.replace(true);
    let strict = serde_json::from_str(text);
    IS_STRICT.set(false);
    let parsed = strict.or_else(|_| serde_json::from_str(text));
    IS_STRICT.set(outer);
    parsed
}

/// Decodes a field of a known event. An absent field, `null` and a value of an unexpected type are
/// the default.
pub(crate) fn field<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(|raw| from_str(raw.get()).ok()).unwrap_or_default()
}

/// Deserializes an optional field. `null` and values of an unexpected type count as absent, so that
/// one odd field does not cost the whole answer.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    if IS_STRICT.get() {
        return Deserialize::deserialize(deserializer);
    }
    let raw: &'de RawValue = Deserialize::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// Deserializes a list without its elements of an unexpected type.
pub(crate) fn lenient_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    if IS_STRICT.get() {
        return Ok(lenient(deserializer)?.unwrap_or_default());
    }
    let items: Option<Vec<&'de RawValue>> = lenient(deserializer)?;
    Ok(items.into_iter().flatten().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect())
}

/// Deserializes a number of tokens, which some servers write as a fraction.
pub(crate) fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(lenient::<D, f64>(deserializer)?.map(|number| number as u64))
}

/// Returns the arguments of a call as text. Some servers send an object instead of a string with
/// JSON.
pub(crate) fn arguments(raw: &RawValue) -> Cow<'_, str> {
    match serde_json::from_str::<Option<String>>(raw.get()) {
        Ok(text) => text.unwrap_or_default().into(),
        Err(_) => raw.get().into(),
    }
}

/// Returns the provider state of a block, unless it belongs to another protocol.
pub(crate) fn state(state: &Option<ProviderState>, protocol: Protocol) -> Option<&Value> {
    state.as_ref().filter(|state| state.protocol == protocol.as_str()).map(|state| &state.value)
}

/// Creates the provider state of a block.
pub(crate) fn new_state(protocol: Protocol, value: Value) -> Option<ProviderState> {
    Some(ProviderState { protocol: protocol.as_str().to_owned(), value, model: None })
}

/// Returns the input of a tool call as an object. Protocols accept only objects, but models may
/// write other values.
fn object(input: &Value) -> Cow<'_, Value> {
    match input {
        Value::Object(_) => Cow::Borrowed(input),
        other => Cow::Owned(serde_json::json!({ "input": other })),
    }
}

/// The input of a tool call as JSON for a request.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Input<'a> {
    /// As the model wrote it, so that the provider finds it in its cache.
    Verbatim(&'a RawValue),
    Serialized(Cow<'a, Value>),
}

/// Returns the input of a tool call: as the model wrote it, if that is known and an object. Escapes
/// of unpaired surrogates are not sent, because providers refuse them.
pub(crate) fn input<'a>(input: &'a Value, text: &'a Option<String>) -> Input<'a> {
    let text = text.as_deref().filter(|_| input.is_object());
    match text.and_then(|text| serde_json::from_str::<&RawValue>(text).ok()).filter(|raw| is_sendable(raw.get())) {
        Some(raw) => Input::Verbatim(raw),
        None => Input::Serialized(object(input)),
    }
}

fn is_sendable(object: &str) -> bool {
    object.starts_with('{') && matches!(json::replace_surrogates(object), Cow::Borrowed(_))
}

/// Returns the input of a tool call as text.
pub(crate) fn input_text<'a>(value: &'a Value, text: &'a Option<String>) -> Cow<'a, str> {
    match (input(value, text), text) {
        (Input::Verbatim(_), Some(text)) => text.into(),
        (Input::Verbatim(raw), None) => raw.get().into(),
        (Input::Serialized(value), _) => value.to_string().into(),
    }
}

/// A turn of a conversation.
#[derive(Serialize)]
pub(crate) struct WireTurn<C> {
    pub role: &'static str,
    pub content: Vec<C>,
}

/// Encodes the conversation: `encode` returns the role and the content of a message. Consecutive
/// messages of a role become one turn; messages without content are omitted.
pub(crate) fn turns<'a, C>(request: &'a Request, encode: impl Fn(&'a Message) -> (&'static str, Vec<C>)) -> Vec<WireTurn<C>> {
    let mut turns: Vec<WireTurn<C>> = Vec::new();
    for message in request.messages.iter() {
        let (role, content) = encode(message);
        match turns.last_mut() {
            _ if content.is_empty() => {}
            Some(last) if last.role == role => last.content.extend(content),
            _ => turns.push(WireTurn { role, content }),
        }
    }
    turns
}

/// Returns the images of a tool result as parts of a user message, for protocols and chat templates
/// that ignore images in a tool message.
pub(crate) fn result_images(result: &ToolResult) -> Vec<Cow<'_, Part>> {
    let images: Vec<Cow<'_, Part>> = result.output.iter().filter(|part| is_image(part)).map(Cow::Borrowed).collect();
    let title = Part::text(format!("Output of {}:", result.name));
    (!images.is_empty()).then_some(Cow::Owned(title)).into_iter().chain(images).collect()
}

/// Returns the text of a tool result, prefixed with `error:` if it failed. Used by protocols
/// without an error flag.
pub(crate) fn result_text(result: &ToolResult) -> Cow<'_, str> {
    let text = joined(result.output.iter().filter(|part| !is_image(part)).map(Part::as_text));
    match result.failed && !text.starts_with("error") {
        true => format!("error: {text}").into(),
        false => text,
    }
}

/// Returns whether the part is an image, which most protocols encode separately from text.
pub(crate) fn is_image(part: &Part) -> bool {
    matches!(part, Part::Image { .. })
}

/// Creates a `data:` URL of an image (RFC 2397).
pub(crate) fn data_url(mime_type: &str, data: &str) -> String {
    format!("data:{mime_type};base64,{data}")
}

/// Creates the error for an interrupted answer.
pub(crate) fn interrupted(why: impl std::fmt::Display) -> ModelError {
    ModelError::new(Retry::Backoff, format!("the answer was interrupted: {why}"))
}

/// Adds a random jitter to `fixed`.
pub(crate) fn jittered(fixed: Duration) -> Duration {
    let chance = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0u8);
    fixed + Duration::from_micros(chance % (MODEL_JITTER.as_micros() as u64 + 1))
}

/// Serializes the body of a request. A failure is not retried, because the result would be the
/// same.
pub(crate) fn body(body: &impl Serialize) -> Result<Vec<u8>, ModelError> {
    serde_json::to_vec(body).map_err(unencodable)
}

pub(crate) fn unencodable(error: serde_json::Error) -> ModelError {
    ModelError::new(Retry::Never, format!("serializing the request: {error}"))
}
