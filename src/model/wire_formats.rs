//! The table of wire formats. A new format is a file with a writer and a reader, and a row here.

use super::anthropic::{self, AnthropicReader};
use super::bedrock::{self, BedrockReader};
use super::endpoint::{Endpoint, Protocol};
use super::error::ModelError;
use super::frames::Frames;
use super::gemini::{self, GeminiReader};
use super::kept_encoding::KeptEncoding;
use super::media::Media;
use super::ollama::{self, OllamaReader};
use super::openai_chat::{self, OpenaiChatReader};
use super::openai_responses::{self, OpenaiResponsesReader};
use super::request::Request;
use super::wire::{EncodedRequest, EventReader};
use crate::web::is_loopback;

type WriteRequest = fn(&Endpoint, &Request, &KeptEncoding, u64, Option<bool>) -> Result<EncodedRequest, ModelError>;

/// A row of the table: the properties in which wire formats differ.
pub(crate) struct WireFormat {
    /// Encodes a request, with the encoding that is kept of the last one. The model has a context
    /// window of this size; whether it can think may be known.
    pub write: WriteRequest,
    /// Creates the reader for the answer to a request.
    pub reader: fn(&Endpoint, &Request) -> Box<dyn EventReader>,
    pub frames: fn() -> Frames,
    /// The header with the API key, and the text before the key.
    pub key_header: (&'static str, &'static str),
    /// Returns the URL of the list of models, with the largest page size.
    pub list: fn(&Endpoint) -> String,
    pub media: Media,
    /// The servers that may report properties of their models.
    pub reports_properties: ServerScope,
    /// The servers that may have no output limit of their own.
    pub lacks_output_limit: ServerScope,
    /// A thinking level may be a number of tokens.
    pub has_thinking_budget: bool,
    pub has_service_tier: bool,
}

/// The servers to which a property of a format applies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerScope {
    None,
    /// Servers on this machine.
    Local,
    All,
}

impl ServerScope {
    pub(crate) fn includes(self, endpoint: &Endpoint) -> bool {
        match self {
            ServerScope::None => false,
            ServerScope::Local => is_loopback(&endpoint.base_url),
            ServerScope::All => true,
        }
    }
}

const ANTHROPIC: WireFormat = WireFormat {
    write: |endpoint, request, kept, _, _| anthropic::write(endpoint, request, kept),
    reader: |_, _| Box::new(AnthropicReader::default()),
    frames: || Frames::ServerSentEvents(Default::default()),
    key_header: ("x-api-key", ""),
    list: |endpoint| anthropic::url(endpoint, "models?limit=1000"),
    media: Media { pdf: true, audio: false },
    reports_properties: ServerScope::Local,
    lacks_output_limit: ServerScope::None,
    has_thinking_budget: true,
    has_service_tier: true,
};

const OPENAI_CHAT: WireFormat = WireFormat {
    write: |endpoint, request, kept, _, _| openai_chat::write(endpoint, request, kept),
    reader: |endpoint, request| Box::new(OpenaiChatReader::new(endpoint, request)),
    frames: || Frames::ServerSentEvents(Default::default()),
    key_header: ("authorization", "Bearer "),
    list: |endpoint| endpoint.url("models"),
    media: Media { pdf: true, audio: true },
    reports_properties: ServerScope::Local,
    lacks_output_limit: ServerScope::Local,
    has_thinking_budget: false,
    has_service_tier: true,
};

const OPENAI_RESPONSES: WireFormat = WireFormat {
    write: |endpoint, request, kept, _, _| openai_responses::write(endpoint, request, kept),
    reader: |_, _| Box::new(OpenaiResponsesReader::default()),
    media: Media { pdf: true, audio: false },
    lacks_output_limit: ServerScope::None,
    ..OPENAI_CHAT
};

const GEMINI: WireFormat = WireFormat {
    write: |endpoint, request, _, _, _| gemini::write(endpoint, request),
    reader: |_, _| Box::new(GeminiReader::default()),
    frames: || Frames::ServerSentEvents(Default::default()),
    key_header: ("x-goog-api-key", ""),
    list: |endpoint| endpoint.url("models?pageSize=1000"),
    media: Media { pdf: true, audio: true },
    reports_properties: ServerScope::None,
    lacks_output_limit: ServerScope::None,
    has_thinking_budget: true,
    has_service_tier: false,
};

const OLLAMA: WireFormat = WireFormat {
    write: ollama::write,
    reader: |_, request| Box::new(OllamaReader::new(request)),
    frames: || Frames::JsonLines(Default::default()),
    key_header: ("authorization", "Bearer "),
    list: |endpoint| endpoint.url("models"),
    media: Media { pdf: false, audio: false },
    reports_properties: ServerScope::All,
    lacks_output_limit: ServerScope::All,
    has_thinking_budget: false,
    has_service_tier: false,
};

const BEDROCK: WireFormat = WireFormat {
    write: |endpoint, request, _, _, _| bedrock::write(endpoint, request),
    reader: |_, _| Box::new(BedrockReader::default()),
    frames: || Frames::EventStream(Default::default()),
    key_header: ("authorization", "Bearer "),
    list: |endpoint| endpoint.url("models"),
    media: Media { pdf: true, audio: false },
    reports_properties: ServerScope::None,
    lacks_output_limit: ServerScope::None,
    has_thinking_budget: true,
    has_service_tier: false,
};

/// Returns the row of a protocol.
pub(crate) fn wire_format(protocol: Protocol) -> &'static WireFormat {
    match protocol {
        Protocol::Anthropic => &ANTHROPIC,
        Protocol::OpenaiChat => &OPENAI_CHAT,
        Protocol::OpenaiResponses => &OPENAI_RESPONSES,
        Protocol::Gemini => &GEMINI,
        Protocol::Ollama => &OLLAMA,
        Protocol::Bedrock => &BEDROCK,
    }
}
