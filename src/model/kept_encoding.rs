//! EncodedJson parts of a request that the next request of the session repeats: the tools, and the
//! messages up to the last answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::endpoint::Protocol;
use super::message::Message;
use super::request::{Request, ToolSpec};
use crate::options::Thinking;

/// Maximum size of the messages that are kept, in bytes: of a model, and of all models.
const MODEL_BYTES_MAX: usize = 1 << 20;
const ALL_BYTES_MAX: usize = 16 << 20;

/// The size of the messages that all models keep.
static ALL_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A piece of JSON that several requests share.
#[derive(Clone, Debug)]
pub(crate) struct EncodedJson(Arc<RawValue>);

impl EncodedJson {
    fn new(value: &impl Serialize) -> serde_json::Result<EncodedJson> {
        to_raw_value(value).map(|json| EncodedJson(json.into()))
    }
}

impl Serialize for EncodedJson {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The encoded parts of a model's last request.
#[derive(Default)]
pub(crate) struct KeptEncoding {
    tools: Mutex<Option<KeptTools>>,
    conversation: Mutex<KeptConversation>,
}

/// The encoded tools of a request, and those that they encode.
struct KeptTools {
    protocol: Protocol,
    specs: Arc<[ToolSpec]>,
    json: EncodedJson,
}

/// The encoding of a message depends on these besides the message and the endpoint.
type Form = (Protocol, Thinking);

#[derive(Default)]
struct KeptConversation {
    form: Option<Form>,
    messages: Vec<Arc<Message>>,
    turns: Vec<EncodedJson>,
    bytes: usize,
}

impl KeptEncoding {
    /// Encodes the tools of a request, which are those of the last one unless their address
    /// differs.
    pub(crate) fn tools<'a, T: Serialize>(
        &self,
        protocol: Protocol,
        request: &'a Request,
        encode: impl Fn(&'a ToolSpec) -> T,
    ) -> serde_json::Result<Option<EncodedJson>> {
        if request.tools.is_empty() {
            return Ok(None);
        }
        let mut kept = self.tools.lock();
        let is_same = |kept: &&KeptTools| kept.protocol == protocol && Arc::ptr_eq(&kept.specs, &request.tools);
        if let Some(kept) = kept.as_ref().filter(is_same) {
            return Ok(Some(kept.json.clone()));
        }
        let json = EncodedJson::new(&request.tools.iter().map(encode).collect::<Vec<T>>())?;
        *kept = Some(KeptTools { protocol, specs: request.tools.clone(), json: json.clone() });
        Ok(Some(json))
    }

    /// Encodes the messages of a request, which follow `first`. The turns up to an answer must not
    /// depend on what follows it. The start of the conversation that the last request had is not
    /// encoded again.
    pub(crate) fn turns<'a, T: Serialize>(
        &self,
        protocol: Protocol,
        request: &'a Request,
        first: Option<T>,
        encode: impl Fn(&'a [Arc<Message>]) -> Vec<T>,
    ) -> serde_json::Result<Vec<EncodedJson>> {
        let encoded = |messages| encode(messages).iter().map(EncodedJson::new).collect::<serde_json::Result<Vec<_>>>();
        let messages = request.messages.as_slice();
        let is_answer = |message: &Arc<Message>| matches!(**message, Message::Assistant(_));
        let end = messages.iter().rposition(is_answer).map_or(0, |index| index + 1);
        let mut kept = self.conversation.lock();
        let known = kept.start_of(messages, (protocol, request.thinking));
        let new = encoded(&messages[known..end])?;
        let mut turns = Vec::with_capacity(1 + kept.turns.len() + new.len() + messages.len() - end);
        turns.extend(first.as_ref().map(EncodedJson::new).transpose()?);
        turns.extend(kept.turns.iter().chain(&new).cloned());
        kept.add(&messages[known..end], new);
        drop(kept);
        turns.extend(encoded(&messages[end..])?);
        #[cfg(debug_assertions)]
        check(&turns[usize::from(first.is_some())..], || encoded(messages));
        Ok(turns)
    }
}

impl KeptConversation {
    /// Returns the number of messages that are kept, if `messages` begins with them. Otherwise
    /// forgets them.
    fn start_of(&mut self, messages: &[Arc<Message>], form: Form) -> usize {
        let is_start = self.messages.len() <= messages.len()
            && self.messages.iter().zip(messages).all(|(kept, message)| Arc::ptr_eq(kept, message));
        if !is_start || self.form != Some(form) {
            *self = KeptConversation::default();
            self.form = Some(form);
        }
        self.messages.len()
    }

    /// Keeps further messages with their turns, or none at all if they are too large.
    fn add(&mut self, messages: &[Arc<Message>], turns: Vec<EncodedJson>) {
        let bytes: usize = turns.iter().map(|turn| turn.0.get().len()).sum();
        let all = ALL_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.bytes += bytes;
        self.messages.extend_from_slice(messages);
        self.turns.extend(turns);
        if self.bytes > MODEL_BYTES_MAX || all > ALL_BYTES_MAX {
            *self = KeptConversation::default();
        }
    }
}

impl Drop for KeptConversation {
    fn drop(&mut self) {
        ALL_BYTES.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Compares the turns of a request with a fresh encoding: of a short conversation, and of a longer
/// one each time its length doubles.
#[cfg(debug_assertions)]
fn check(turns: &[EncodedJson], fresh: impl FnOnce() -> serde_json::Result<Vec<EncodedJson>>) {
    if turns.len() < 16 || turns.len().is_power_of_two() {
        let texts = |turns: &[EncodedJson]| turns.iter().map(|turn| turn.0.get().to_owned()).collect::<Vec<_>>();
        assert_eq!(Some(texts(turns)), fresh().ok().map(|fresh| texts(&fresh)), "kept messages differ from a fresh encoding");
    }
}
