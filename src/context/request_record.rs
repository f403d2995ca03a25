//! A record of a model request: what the log does not have of it. The log has the conversation; the
//! record refers to its messages by their numbers, and to the texts by their digests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::hex::hex;
use crate::model::{Message, Messages, Request, RequestForm, ToolSpec};
use crate::options::Thinking;

/// Length of a digest, in bytes before hexadecimal encoding.
const DIGEST_BYTES: usize = 12;

/// A text by its digest, which is the start of its SHA-256 in hexadecimal.
#[derive(Clone, Debug)]
pub(crate) struct RecordedText {
    pub digest: String,
    pub text: String,
}

impl RecordedText {
    fn new(text: String) -> RecordedText {
        RecordedText { digest: digest_of(&text), text }
    }
}

pub(crate) fn digest_of(text: &str) -> String {
    hex(&digest(&SHA256, text.as_bytes()).as_ref()[..DIGEST_BYTES])
}

/// A request without its conversation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelRequestRecord {
    /// The version of nuncio that sent the request.
    pub version: String,
    /// Digest of the system prompt.
    pub system: String,
    /// Digest of the tools as JSON.
    pub tools: String,
    thinking: Thinking,
    json_answer: bool,
    cache_key: String,
    /// `None` for a model that is not behind HTTP.
    pub form: Option<RequestForm>,
    /// The messages of the request; missing if they are those of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<RecordedMessages>>,
}

/// The messages of a request by those of the conversation; `None` if they are the same.
pub(crate) type RequestMessages = Option<Vec<RequestMessage>>;

/// A message of a request: one of the conversation, by its number, or another one.
#[derive(Clone, Debug)]
pub(crate) enum RequestMessage {
    Conversation(usize),
    Other(Arc<Message>),
}

/// Messages of a request, in order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum RecordedMessages {
    /// Messages of the conversation, from the first number up to the second, which is excluded.
    Conversation(usize, usize),
    /// A message that the conversation does not have: the digest of its JSON.
    Other(String),
}

/// Makes the records of the requests of a session. Keeps the last one, because the next one mostly
/// has the same texts.
#[derive(Default)]
pub(crate) struct RequestRecorder {
    last: Option<LastTexts>,
    usual: Option<UsualRecord>,
    /// The digests of the texts that were returned.
    known: HashSet<String>,
}

/// The system prompt and the tools of the last request.
struct LastTexts {
    system: RecordedText,
    tools: Arc<[ToolSpec]>,
    tools_digest: String,
}

/// The last record of a request whose messages were those of the conversation. The next such
/// request has the same record, unless the form or the thinking level differs.
struct UsualRecord {
    form: Option<Arc<RequestForm>>,
    thinking: Thinking,
    digest: String,
}

impl RequestRecorder {
    /// Records a request. Returns the digest of the record, and the texts that were not returned
    /// before.
    pub(crate) fn record(
        &mut self,
        request: &Request,
        form: Option<Arc<RequestForm>>,
        messages: &RequestMessages,
    ) -> (String, Vec<RecordedText>) {
        let mut texts = Vec::new();
        let is_same = |last: &&LastTexts| Arc::ptr_eq(&last.tools, &request.tools) && *last.system.text == *request.system;
        let same = self.last.as_ref().filter(is_same).map(|last| (last.system.digest.clone(), last.tools_digest.clone()));
        let (system, tools) = same.unwrap_or_else(|| {
            self.usual = None;
            let system = RecordedText::new(request.system.to_string());
            let tools = RecordedText::new(serde_json::to_string(&request.tools).unwrap_or_default());
            texts.extend([system.clone(), tools.clone()]);
            let tools_digest = tools.digest.clone();
            self.last = Some(LastTexts { system: system.clone(), tools: request.tools.clone(), tools_digest });
            (system.digest, tools.digest)
        });
        let is_usual = |usual: &&UsualRecord| messages.is_none() && usual.form == form && usual.thinking == request.thinking;
        if let Some(usual) = self.usual.as_ref().filter(is_usual) {
            return (usual.digest.clone(), texts);
        }
        let record = ModelRequestRecord {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            system,
            tools,
            thinking: request.thinking,
            json_answer: request.json_answer,
            cache_key: request.cache_key.clone(),
            form: form.as_deref().cloned(),
            messages: messages.as_ref().map(|messages| recorded(messages, &mut texts)),
        };
        let record = RecordedText::new(serde_json::to_string(&record).unwrap_or_default());
        let digest = record.digest.clone();
        if messages.is_none() {
            self.usual = Some(UsualRecord { form, thinking: request.thinking, digest: digest.clone() });
        }
        texts.push(record);
        texts.retain(|text| self.known.insert(text.digest.clone()));
        (digest, texts)
    }
}

impl ModelRequestRecord {
    /// Returns the digests of the messages that the conversation does not have.
    pub(crate) fn other_messages(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().flatten().filter_map(|recorded| match recorded {
            RecordedMessages::Other(digest) => Some(digest.as_str()),
            RecordedMessages::Conversation(..) => None,
        })
    }

    /// Returns the request. `conversation` has the messages of the session, `others` those that it
    /// does not have by their digests, `refused` the parts that a provider refused.
    pub(crate) fn request(
        &self,
        system: Arc<str>,
        tools: Arc<[ToolSpec]>,
        conversation: &[Arc<Message>],
        others: &HashMap<String, Arc<Message>>,
        refused: Arc<HashSet<String>>,
    ) -> Result<Request> {
        let messages = match &self.messages {
            None => Arc::new(conversation.to_vec()),
            Some(recorded) => {
                let mut messages = Vec::new();
                for part in recorded {
                    let found = match part {
                        RecordedMessages::Conversation(start, end) => conversation.get(*start..*end),
                        RecordedMessages::Other(digest) => others.get(digest).map(std::slice::from_ref),
                    };
                    messages.extend_from_slice(found.ok_or_else(|| Error::internal("a recorded message is missing"))?);
                }
                Arc::new(messages)
            }
        };
        let (thinking, json_answer, cache_key) = (self.thinking, self.json_answer, self.cache_key.clone());
        Ok(Request { system, messages, tools, thinking, json_answer, cache_key, refused })
    }
}

/// Describes the messages of a request by those of the conversation.
pub(crate) fn request_messages(sent: &Messages, conversation: &Messages) -> RequestMessages {
    if Arc::ptr_eq(sent, conversation) {
        return None;
    }
    let is_same = |left: &Arc<Message>, right: &Arc<Message>| Arc::ptr_eq(left, right) || left == right;
    if sent.len() == conversation.len() && sent.iter().zip(conversation.iter()).all(|(left, right)| is_same(left, right)) {
        return None;
    }
    let mut next = 0;
    let described = sent.iter().map(|message| {
        let found = conversation.iter().skip(next).position(|candidate| is_same(message, candidate));
        let Some(index) = found.map(|offset| next + offset) else { return RequestMessage::Other(message.clone()) };
        next = index + 1;
        RequestMessage::Conversation(index)
    });
    Some(described.collect())
}

/// Returns the messages for a record. Adds those that the conversation does not have to `texts`.
fn recorded(messages: &[RequestMessage], texts: &mut Vec<RecordedText>) -> Vec<RecordedMessages> {
    let mut recorded = Vec::new();
    for message in messages {
        match (message, recorded.last_mut()) {
            (RequestMessage::Conversation(index), Some(RecordedMessages::Conversation(_, end))) if end == index => *end += 1,
            (RequestMessage::Conversation(index), _) => recorded.push(RecordedMessages::Conversation(*index, index + 1)),
            (RequestMessage::Other(message), _) => {
                let text = RecordedText::new(serde_json::to_string(&**message).unwrap_or_default());
                recorded.push(RecordedMessages::Other(text.digest.clone()));
                texts.push(text);
            }
        }
    }
    recorded
}
