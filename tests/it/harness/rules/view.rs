//! A request of any protocol in one form: tools, and turns of blocks. Each part has the path that
//! the provider's errors give it.

mod anthropic;
mod bedrock;
mod chat;
mod gemini;
mod responses;

use std::ops::Deref;

use serde_json::Value;

use super::{JudgedRequest, Platform, model};
use crate::provider::Protocol;

/// A request, and its parts.
pub struct View<'a> {
    request: JudgedRequest<'a>,
    pub tools: Vec<Tool<'a>>,
    pub turns: Vec<Turn<'a>>,
}

/// A tool that the request offers.
pub struct Tool<'a> {
    pub place: String,
    pub name: &'a str,
    pub description: Option<&'a str>,
    pub schema: Option<&'a Value>,
    /// Name of the field of the schema.
    pub field: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

pub struct Turn<'a> {
    pub role: Role,
    pub place: String,
    pub blocks: Vec<Block<'a>>,
    pub value: &'a Value,
}

pub struct Block<'a> {
    pub place: String,
    pub content: Content<'a>,
    pub value: &'a Value,
}

pub enum Content<'a> {
    Text(&'a str),
    /// Base64 text with its media type.
    Image {
        mime: Option<&'a str>,
        data: &'a str,
    },
    Audio {
        format: Option<&'a str>,
    },
    Document {
        name: Option<&'a str>,
        data: Option<&'a str>,
    },
    Thinking,
    Call {
        id: Option<&'a str>,
        name: &'a str,
        arguments: Arguments<'a>,
    },
    Result {
        id: Option<&'a str>,
        name: Option<&'a str>,
        failed: bool,
        content: Vec<Block<'a>>,
    },
    Other,
}

pub enum Arguments<'a> {
    Json(&'a Value),
    Text(&'a str),
}

impl<'a> View<'a> {
    pub fn new(request: JudgedRequest<'a>) -> View<'a> {
        let body = request.body;
        let (tools, turns) = match request.protocol {
            Protocol::Anthropic => (anthropic::tools(body), anthropic::turns(body)),
            Protocol::OpenaiChat | Protocol::Ollama => (chat::tools(body), chat::turns(body)),
            Protocol::OpenaiResponses => (responses::tools(body), responses::turns(body)),
            Protocol::Gemini => (gemini::tools(body), gemini::turns(body)),
            Protocol::Bedrock => (bedrock::tools(body), bedrock::turns(body)),
        };
        View { request, tools, turns }
    }

    /// Returns the blocks of all turns, without those inside results.
    pub fn blocks(&self) -> impl Iterator<Item = &Block<'a>> {
        self.turns.iter().flat_map(|turn| &turn.blocks)
    }

    /// Returns the blocks of all turns with those inside results.
    pub fn all_blocks(&self) -> impl Iterator<Item = &Block<'a>> {
        self.blocks().flat_map(Block::with_content)
    }

    /// Returns whether this is one of these servers.
    pub fn is_at(&self, platforms: &[Platform]) -> bool {
        platforms.contains(&self.platform)
    }

    /// Servers with the rules of OpenAI for tools.
    pub fn is_like_openai(&self) -> bool {
        matches!(self.protocol, Protocol::OpenaiChat | Protocol::OpenaiResponses)
            && self.is_at(&[Platform::OpenAi, Platform::Azure, Platform::Zai, Platform::Compatible])
    }

    /// Returns whether the model is of one of these families.
    pub fn is_model(&self, words: &[&str]) -> bool {
        model::is_any(self.model, words)
    }
}

impl<'a> Deref for View<'a> {
    type Target = JudgedRequest<'a>;

    fn deref(&self) -> &JudgedRequest<'a> {
        &self.request
    }
}

impl<'a> Block<'a> {
    /// Returns this block and the blocks inside it.
    pub fn with_content(&self) -> impl Iterator<Item = &Block<'a>> {
        let inner = match &self.content {
            Content::Result { content, .. } => content.as_slice(),
            _ => &[],
        };
        std::iter::once(self).chain(inner)
    }

    pub fn is_call(&self) -> bool {
        matches!(self.content, Content::Call { .. })
    }

    pub fn is_result(&self) -> bool {
        matches!(self.content, Content::Result { .. })
    }
}

/// Returns the elements of a list with their indexes; nothing for another value.
fn elements(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    value.as_array().into_iter().flatten().enumerate()
}

/// Splits a data URL into media type and data.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}
