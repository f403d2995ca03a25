//! The result of an MCP tool as a tool output. Large texts and binary data become artifacts.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::content::{Part, ToolContent, shortened};
use crate::limits;
use crate::toolkit::capture::Capture;
use crate::toolkit::{ToolContext, ToolError, ToolOutput, artifact, schema_of};
use crate::workspace::{image_type, one_line};

/// Maximum size of the structured content in the details of an MCP call, in bytes. Larger content
/// is stored as an artifact.
const MCP_STRUCTURED_BYTES_MAX: usize = 64 << 10;
/// Maximum length of the file name extension of an artifact, which an MCP server chooses.
const MCP_EXTENSION_CHARS_MAX: usize = 10;

/// The details of the result of an MCP call.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct McpDetails {
    /// Name of the server in the settings.
    server: String,
    /// The server's own name of the tool.
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Value>,
    /// Files with truncated text, binary content and large structured content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<PathBuf>,
}

pub(super) fn details_schema() -> Value {
    schema_of::<McpDetails>()
}

/// Converts the result of a tool. A result with `isError` is an error of the call.
pub(super) async fn output(
    result: CallToolResult,
    server: &str,
    tool: &str,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let mut converted = ResultParts::new(context);
    for block in result.content {
        converted.add(block).await?;
    }
    let structured = result.structured_content;
    let json = structured.as_ref().map(Value::to_string).unwrap_or_default();
    let is_large = json.len() > MCP_STRUCTURED_BYTES_MAX;
    // Servers repeat structured content as text for clients that do not support it.
    if structured.is_some() && converted.parts.is_empty() {
        converted.text(json).await;
    } else if is_large {
        converted.keep("structured content", "json", json.into_bytes()).await?;
    }
    converted.finish(result.is_error == Some(true), server, tool, structured.filter(|_| !is_large))
}

pub(super) async fn resource_output(
    contents: Vec<ResourceContents>,
    server: &str,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let mut converted = ResultParts::new(context);
    for content in contents {
        if converted.has_room() {
            converted.resource(content).await?;
        }
    }
    converted.finish(false, server, "resources/read", None)
}

/// The parts of a result, of limited number and size.
struct ResultParts<'a> {
    context: &'a ToolContext,
    parts: Vec<Part>,
    artifacts: Vec<PathBuf>,
    /// Remaining size of the texts, in bytes.
    text_bytes: usize,
    /// Remaining size of the images, in base64 characters.
    image_chars: usize,
    /// Number of parts that are left out.
    left_out: usize,
}

impl ResultParts<'_> {
    fn new(context: &ToolContext) -> ResultParts<'_> {
        let (text_bytes, image_chars) = (limits::MCP_RESULT_TEXT_BYTES_MAX, limits::MCP_RESULT_IMAGE_CHARS_MAX);
        ResultParts { context, parts: Vec::new(), artifacts: Vec::new(), text_bytes, image_chars, left_out: 0 }
    }

    /// Returns whether another part can be added, and counts it as left out if not.
    fn has_room(&mut self) -> bool {
        let has_room = self.parts.len() < limits::MCP_RESULT_PARTS_MAX;
        self.left_out += usize::from(!has_room);
        has_room
    }

    async fn add(&mut self, block: ContentBlock) -> Result<(), ToolError> {
        if !self.has_room() {
            return Ok(());
        }
        match block {
            ContentBlock::Text(text) => self.text(text.text).await,
            ContentBlock::Image(image) => self.binary("image", &image.mime_type, image.data).await?,
            ContentBlock::Audio(audio) => self.binary("audio", &audio.mime_type, audio.data).await?,
            ContentBlock::Resource(embedded) => self.resource(embedded.resource).await?,
            ContentBlock::ResourceLink(link) => {
                let (uri, name, mime_type) = (field(link.uri), field(link.name), link.mime_type.map(field));
                self.parts.push(Part::ResourceLink { uri, name, mime_type, description: link.description.map(field) });
            }
            _ => self.parts.push(Part::note("content of an unknown type")),
        }
        Ok(())
    }

    /// Adds text. Of a long text, the head and the tail are added, and the whole becomes an
    /// artifact. After many texts, only the path of the artifact is added.
    async fn text(&mut self, text: String) {
        if text.len() <= self.text_bytes.min(limits::BASH_MODEL_BYTES_MAX) {
            self.text_bytes -= text.len();
            return self.parts.push(Part::text(text));
        }
        let mut capture = Capture::saved(self.path());
        capture.push(text.as_bytes()).await;
        let captured = capture.finish().await;
        let path = captured.artifact.as_ref().map_or_else(|| "not kept".into(), |path| path.display().to_string());
        self.artifacts.extend(captured.artifact);
        match self.text_bytes.checked_sub(captured.text.len()) {
            Some(left) => {
                self.text_bytes = left;
                self.parts.push(Part::text(captured.text));
            }
            None => self.parts.push(Part::note(format!("text, {} bytes: {path}", text.len()))),
        }
    }

    async fn resource(&mut self, resource: ResourceContents) -> Result<(), ToolError> {
        match resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. }
                if text.len() <= self.text_bytes.min(limits::BASH_MODEL_BYTES_MAX) =>
            {
                self.text_bytes -= text.len();
                self.parts.push(Part::Resource { uri: field(uri), mime_type: mime_type.map(field), text });
            }
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.parts.push(Part::text(format!("{}:", field(uri))));
                self.text(text).await;
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let mime_type = mime_type.unwrap_or_else(|| "application/octet-stream".into());
                self.binary(&field(uri), &mime_type, blob).await?;
            }
            _ => self.parts.push(Part::note("a resource of an unknown type")),
        }
        Ok(())
    }

    /// Adds base64 data: an image that models accept as an image, whatever the declared type of
    /// image is, and other data as an artifact.
    async fn binary(&mut self, what: &str, mime_type: &str, data: String) -> Result<(), ToolError> {
        let mime_type = one_line(field(mime_type.to_owned()));
        let Ok(bytes) = STANDARD.decode(&data) else {
            return self.keep(&format!("{what}, {mime_type}, not base64"), "txt", data.into_bytes()).await;
        };
        let size_max = self.image_chars.min(limits::MCP_IMAGE_CHARS_MAX);
        match image_of(&mime_type, &bytes).filter(|_| data.len() <= size_max) {
            Some(image) => {
                self.image_chars -= data.len();
                self.parts.push(Part::Image { mime_type: image.into(), data });
                Ok(())
            }
            None => {
                let plain = mime_type.rsplit('/').next().unwrap_or_default().chars().filter(char::is_ascii_alphanumeric);
                let extension: String = plain.take(MCP_EXTENSION_CHARS_MAX).collect();
                self.keep(&format!("{what}, {mime_type}"), &extension, bytes).await
            }
        }
    }

    /// Stores data as an artifact, and adds a text about it.
    async fn keep(&mut self, what: &str, extension: &str, bytes: Vec<u8>) -> Result<(), ToolError> {
        let (context, extension, length) = (self.context.clone(), extension.to_owned(), bytes.len());
        let kept = self.context.write_blocking(move || artifact::keep(&context, "mcp", &extension, &bytes)).await?;
        self.parts.push(Part::text(format!("[{what}, {length} bytes: {}]", kept.display())));
        self.artifacts.push(kept);
        Ok(())
    }

    /// Returns the path of the file for the next long text.
    fn path(&self) -> PathBuf {
        let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '_' };
        let name: String = self.context.call_id.as_str().chars().map(plain).collect();
        self.context.workspace.artifacts.join(format!("mcp-{name}-{}.txt", self.artifacts.len() + 1))
    }

    fn finish(self, is_error: bool, server: &str, tool: &str, structured_content: Option<Value>) -> Result<ToolOutput, ToolError> {
        let ResultParts { mut parts, artifacts, left_out, .. } = self;
        if left_out > 0 {
            parts.push(Part::note(format!("{left_out} more parts are left out")));
        }
        if is_error {
            let text = crate::content::plain_text(&parts);
            return Err(ToolError(if text.trim().is_empty() { "the tool failed without a message".into() } else { text }));
        }
        if parts.is_empty() {
            parts.push(Part::note("no output"));
        }
        let content = parts.iter().map(|part| ToolContent::Content { content: part.clone() }).collect();
        let details = McpDetails { server: server.into(), tool: tool.into(), structured_content, artifacts };
        ToolOutput { parts, content, locations: Vec::new(), details, plan: None, polls: false }.into_json()
    }
}

/// Returns the MIME type of an image that models accept, by its base64 `data`. `None` for other
/// data, or if `mime_type` is not a type of images.
pub(crate) fn valid_image(mime_type: &str, data: &str) -> Option<&'static str> {
    image_of(mime_type, &STANDARD.decode(data).ok()?)
}

fn image_of(mime_type: &str, bytes: &[u8]) -> Option<&'static str> {
    image_type(bytes).filter(|_| mime_type.starts_with("image/"))
}

/// Shortens an address, name or description to a limited size.
pub(super) fn field(text: String) -> String {
    shortened(text, limits::MCP_FIELD_BYTES_MAX)
}
