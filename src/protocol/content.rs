//! Conversion of content blocks, tool calls and plans between ACP and nuncio's own types.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::acp;
use crate::content::PDF;
use crate::content::{
    Location, Part, PermissionOption, PermissionOptionKind, PlanEntry, PlanPriority, PlanStatus, ToolContent, ToolKind, ToolStatus,
    Usage,
};

/// The characters to percent-encode in a part of a URI: all except the unreserved ones (RFC 3986).
pub(crate) const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Begins the URI of a document that has only a name.
const ATTACHMENT: &str = "attachment:";

/// The content of a prompt. In JSON: a text, or ACP's content blocks.
#[derive(Debug)]
pub(crate) struct PromptContent(pub Vec<Part>);

/// A part, in JSON as a content block.
struct BlockPart(Part);

impl<'de> Deserialize<'de> for BlockPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BlockPart, D::Error> {
        part(acp::ContentBlock::deserialize(deserializer)?).map(BlockPart).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for PromptContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PromptContent, D::Error> {
        deserializer.deserialize_any(PromptVisitor)
    }
}

struct PromptVisitor;

impl<'de> Visitor<'de> for PromptVisitor {
    type Value = PromptContent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    // A blank text is an empty prompt.
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<PromptContent, E> {
        Ok(PromptContent(if text.trim().is_empty() { Vec::new() } else { vec![Part::text(text)] }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<PromptContent, A::Error> {
        let mut parts = Vec::new();
        while let Some(BlockPart(part)) = blocks.next_element()? {
            parts.push(part);
        }
        Ok(PromptContent(parts))
    }
}

impl Serialize for PromptContent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(block))
    }
}

impl JsonSchema for PromptContent {
    fn schema_name() -> Cow<'static, str> {
        "PromptContent".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let block = generator.subschema_for::<acp::ContentBlock>();
        json_schema!({ "anyOf": [
            { "type": "array", "items": block, "minItems": 1 },
            { "type": "string", "description": "The text of the prompt." },
        ] })
    }
}

/// Converts a content block of a prompt. The error is the reason why the block is not accepted.
pub(crate) fn part(block: acp::ContentBlock) -> Result<Part, &'static str> {
    match block {
        acp::ContentBlock::Text(text) => Ok(Part::Text { text: text.text }),
        acp::ContentBlock::Image(image) => Ok(Part::Image { mime_type: image.mime_type, data: image.data }),
        acp::ContentBlock::ResourceLink(link) => {
            Ok(Part::ResourceLink { uri: link.uri, name: link.name, mime_type: link.mime_type, description: link.description })
        }
        acp::ContentBlock::Resource(resource) => match resource.resource {
            acp::EmbeddedResourceResource::TextResourceContents(text) => {
                Ok(Part::Resource { uri: text.uri, mime_type: text.mime_type, text: text.text })
            }
            acp::EmbeddedResourceResource::BlobResourceContents(blob) => match blob.mime_type {
                Some(mime_type) if mime_type.starts_with("image/") => Ok(Part::Image { mime_type, data: blob.blob }),
                Some(mime_type) if mime_type.starts_with("audio/") => Ok(Part::Audio { mime_type, data: blob.blob }),
                Some(mime_type) if mime_type == PDF => {
                    let name = blob
                        .uri
                        .strip_prefix(ATTACHMENT)
                        .or_else(|| blob.uri.rsplit('/').next())
                        .filter(|name| !name.is_empty())
                        .map(|name| percent_decode_str(name).decode_utf8_lossy().into_owned());
                    Ok(Part::Document { mime_type, name, data: blob.blob, text: None })
                }
                _ => Err("a binary resource must be an image, audio or a PDF document"),
            },
            _ => Err("unknown kind of embedded resource"),
        },
        acp::ContentBlock::Audio(audio) => Ok(Part::Audio { mime_type: audio.mime_type, data: audio.data }),
        _ => Err("unknown kind of content block"),
    }
}

pub(crate) fn block(part: &Part) -> acp::ContentBlock {
    match part {
        Part::Text { text } => acp::ContentBlock::Text(acp::TextContent::new(text.clone())),
        // A part of its own: clients join the texts of a message.
        Part::Note { .. } => acp::ContentBlock::Text(acp::TextContent::new(part.as_text() + "\n")),
        Part::Image { mime_type, data } => acp::ContentBlock::Image(acp::ImageContent::new(data.clone(), mime_type.clone())),
        Part::Audio { mime_type, data } => acp::ContentBlock::Audio(acp::AudioContent::new(data.clone(), mime_type.clone())),
        Part::Document { mime_type, name, data, .. } => {
            let uri = format!("{ATTACHMENT}{}", utf8_percent_encode(name.as_deref().unwrap_or("document"), UNRESERVED));
            let contents = acp::BlobResourceContents::new(data.clone(), uri).mime_type(mime_type.clone());
            acp::ContentBlock::Resource(acp::EmbeddedResource::new(acp::EmbeddedResourceResource::BlobResourceContents(contents)))
        }
        Part::Resource { uri, mime_type, text } => {
            let contents = acp::TextResourceContents::new(text.clone(), uri.clone()).mime_type(mime_type.clone());
            acp::ContentBlock::Resource(acp::EmbeddedResource::new(acp::EmbeddedResourceResource::TextResourceContents(contents)))
        }
        Part::ResourceLink { uri, name, mime_type, description } => acp::ContentBlock::ResourceLink(
            acp::ResourceLink::new(name.clone(), uri.clone()).mime_type(mime_type.clone()).description(description.clone()),
        ),
    }
}

/// Converts tool content for the client with id `client`. A terminal that belongs to another client
/// is replaced by the terminal's output.
fn tool_content(content: &ToolContent, client: &str) -> acp::ToolCallContent {
    match content {
        ToolContent::Content { content } => acp::ToolCallContent::Content(acp::Content::new(block(content))),
        ToolContent::Diff { path, old_text, new_text } => {
            acp::ToolCallContent::Diff(acp::Diff::new(path.clone(), new_text.clone()).old_text(old_text.clone()))
        }
        ToolContent::Terminal { client: owner, terminal_id, .. } if owner == client => {
            acp::ToolCallContent::Terminal(acp::Terminal::new(terminal_id.clone()))
        }
        ToolContent::Terminal { output, .. } => acp::ToolCallContent::Content(acp::Content::new(block(&Part::text(output)))),
    }
}

/// Converts the content of a tool call for the client with id `client`.
pub(crate) fn tool_contents(contents: &[ToolContent], client: &str) -> Vec<acp::ToolCallContent> {
    contents.iter().map(|content| tool_content(content, client)).collect()
}

pub(crate) fn location(location: &Location) -> acp::ToolCallLocation {
    acp::ToolCallLocation::new(location.path.clone()).line(location.line)
}

pub(crate) fn tool_kind(kind: ToolKind) -> acp::ToolKind {
    match kind {
        ToolKind::Read => acp::ToolKind::Read,
        ToolKind::Edit => acp::ToolKind::Edit,
        ToolKind::Search => acp::ToolKind::Search,
        ToolKind::Execute => acp::ToolKind::Execute,
        ToolKind::Think => acp::ToolKind::Think,
        ToolKind::Fetch => acp::ToolKind::Fetch,
        ToolKind::Other => acp::ToolKind::Other,
    }
}

pub(crate) fn tool_status(status: ToolStatus) -> acp::ToolCallStatus {
    match status {
        ToolStatus::Pending => acp::ToolCallStatus::Pending,
        ToolStatus::InProgress => acp::ToolCallStatus::InProgress,
        ToolStatus::Completed => acp::ToolCallStatus::Completed,
        ToolStatus::Failed => acp::ToolCallStatus::Failed,
    }
}

/// Converts the token counts of a turn. Input tokens include cached tokens.
pub(crate) fn usage(usage: &Usage) -> acp::Usage {
    let some = |tokens: u64| (tokens > 0).then_some(tokens);
    acp::Usage::new(usage.input_tokens + usage.output_tokens, usage.input_tokens, usage.output_tokens)
        .cached_read_tokens(some(usage.cache_read_tokens))
        .cached_write_tokens(some(usage.cache_write_tokens))
}

pub(crate) fn permission_option(option: &PermissionOption) -> acp::PermissionOption {
    let kind = match option.kind {
        PermissionOptionKind::AllowOnce => acp::PermissionOptionKind::AllowOnce,
        PermissionOptionKind::AllowAlways => acp::PermissionOptionKind::AllowAlways,
        PermissionOptionKind::RejectOnce => acp::PermissionOptionKind::RejectOnce,
        PermissionOptionKind::RejectAlways => acp::PermissionOptionKind::RejectAlways,
    };
    acp::PermissionOption::new(Arc::<str>::from(option.option_id.as_str()), option.name.clone(), kind)
}

pub(crate) fn plan_entry(entry: &PlanEntry) -> acp::PlanEntry {
    let priority = match entry.priority {
        PlanPriority::High => acp::PlanEntryPriority::High,
        PlanPriority::Medium => acp::PlanEntryPriority::Medium,
        PlanPriority::Low => acp::PlanEntryPriority::Low,
    };
    let status = match entry.status {
        PlanStatus::Pending => acp::PlanEntryStatus::Pending,
        PlanStatus::InProgress => acp::PlanEntryStatus::InProgress,
        PlanStatus::Completed => acp::PlanEntryStatus::Completed,
    };
    acp::PlanEntry::new(entry.content.clone(), priority, status)
}
