//! Tools of MCP servers, as entries of a session's table of tools.

mod resources;
mod result;
mod search;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

pub(crate) use resources::ResourceReader;
pub(crate) use result::valid_image;
pub(crate) use search::Search;

use crate::config::AccessShape;
use crate::content::{ToolContent, ToolKind, shortened};
use crate::limits;
use crate::mcp::{CallError, CallOptions, McpConnection, McpServerHandle, ServerRequests, definition_digest};
use crate::model::ToolSpec;
use crate::permission::{Access, AccessKind};
use crate::toolkit::{AnyCall, AnyTool, PreparedCall, ToolContext, ToolError, ToolOutput};
use crate::workspace::one_line;

/// Maximum length of the description of an MCP server's tool, in characters.
const MCP_DESCRIPTION_CHARS_MAX: usize = 2_000;

/// A tool of an MCP server. Its annotations have no influence on permissions, only on the order of
/// calls.
pub(crate) struct McpTool {
    spec: ToolSpec,
    label: String,
    /// Name of the server in the settings.
    server_name: String,
    /// The server's own name of the tool.
    tool: String,
    server: Arc<McpServerHandle>,
    timeout: Duration,
    /// Digest of the server and of the definition of the tool.
    definition: String,
    /// The server says that calls change nothing.
    reads_only: bool,
}

impl McpTool {
    /// Creates the entry of `tool` with the given name for models.
    pub(crate) fn new(
        name: String,
        server_name: &str,
        server: Arc<McpServerHandle>,
        tool: &rmcp::model::Tool,
        timeout: Duration,
    ) -> McpTool {
        let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        let mut input_schema = Value::Object(tool.input_schema.as_ref().clone());
        input_schema["type"] = "object".into();
        if !input_schema["properties"].is_object() {
            input_schema["properties"] = json!({});
        }
        let description = description.chars().take(MCP_DESCRIPTION_CHARS_MAX).collect();
        let title = tool.title.as_ref().or(tool.annotations.as_ref().and_then(|annotations| annotations.title.as_ref()));
        let label = shortened(format!("{server_name}: {}", title.map_or(&*tool.name, String::as_str)), limits::MCP_TITLE_CHARS_MAX);
        let spec = ToolSpec { name, description, input_schema };
        let definition = definition_digest(&server.identity, &json!([tool.name, tool.description, tool.input_schema]));
        McpTool {
            spec,
            label: one_line(label),
            server_name: server_name.into(),
            tool: tool.name.clone().into(),
            server,
            timeout,
            definition,
            reads_only: tool.annotations.as_ref().and_then(|annotations| annotations.read_only_hint) == Some(true),
        }
    }
}

impl AnyTool for McpTool {
    fn label(&self) -> &str {
        &self.label
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Other
    }

    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self) -> &'static [AccessShape] {
        AccessShape::MCP
    }

    fn details_schema(&self) -> Value {
        result::details_schema()
    }

    fn prepare(self: Arc<Self>, input: Value, context: &ToolContext) -> Result<PreparedCall, ToolError> {
        let Value::Object(arguments) = input else {
            return Err(ToolError::new("the arguments must be a JSON object"));
        };
        let title = title(&self.server_name, &self.tool, &arguments);
        let name = self.spec.name.clone();
        let input = Value::Object(arguments.clone());
        let definition = self.definition.clone();
        let reads_only = self.reads_only;
        let mut call = prepared(&name, &definition, title, context, input, McpCall { tool: self, arguments });
        call.reads_only = reads_only;
        Ok(call)
    }
}

/// Creates a call that permission rules evaluate as a call of kind `mcp` of the tool `name`.
/// `definition`: see [`PreparedCall::definition`].
fn prepared(
    name: &str,
    definition: &str,
    title: String,
    context: &ToolContext,
    input: Value,
    call: impl AnyCall + 'static,
) -> PreparedCall {
    let access = Access { kind: AccessKind::Mcp, ..Access::none() };
    let mut call = PreparedCall::new(name, ToolKind::Other, title, access, &context.workspace, input, Box::new(call));
    call.definition = Some(definition.into());
    call
}

/// Returns the title of a call in one line: server, tool and the beginning of the arguments.
fn title(server: &str, tool: &str, arguments: &Map<String, Value>) -> String {
    let mut text = format!("{server}: {tool}");
    if !arguments.is_empty() {
        text.push(' ');
        text.extend(serde_json::to_string(arguments).unwrap_or_default().chars().take(limits::MCP_TITLE_CHARS_MAX));
    }
    one_line(text)
}

struct McpCall {
    tool: Arc<McpTool>,
    arguments: Map<String, Value>,
}

impl AnyCall for McpCall {
    fn preview<'a>(&'a self, _: &'a ToolContext) -> BoxFuture<'a, Result<Vec<ToolContent>, ToolError>> {
        Box::pin(async {
            let arguments = serde_json::to_string_pretty(&self.arguments).unwrap_or_default();
            Ok(vec![ToolContent::text(arguments)])
        })
    }

    fn run<'a>(self: Box<Self>, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let McpTool { server, server_name, tool, timeout, .. } = &*self.tool;
            let connection = connected(server, server_name, context).await?;
            let progress = context.progress.clone();
            let on_progress = Arc::new(move |text| progress(vec![ToolContent::text(text)]));
            let requests = context.requests.clone().map(|requests| Arc::new(requests) as Arc<dyn ServerRequests>);
            let options = CallOptions { timeout: *timeout, cancel: context.cancel.clone(), on_progress, requests };
            let answer = connection.call(tool, self.arguments, options).await;
            let answer = answer.map_err(|error| failed(server_name, error))?;
            result::output(answer, server_name, tool, context).await
        })
    }
}

/// Joins the first of `count` entries that fit in a result, at least a part of the first one. A
/// note contains the number of the other entries, followed by `what`.
fn limited(entries: impl Iterator<Item = String>, count: usize, what: &str) -> String {
    let (mut text, mut shown) = (String::new(), 0);
    for entry in entries {
        if shown > 0 && text.len() + entry.len() > limits::BASH_MODEL_BYTES_MAX {
            break;
        }
        text += &shortened(entry, limits::BASH_MODEL_BYTES_MAX);
        shown += 1;
    }
    if shown < count {
        text = format!("{}\n[{} more {what}]\n", text.trim_end_matches('\n'), count - shown);
    }
    text
}

/// Waits until the server is ready.
async fn connected(server: &McpServerHandle, name: &str, context: &ToolContext) -> Result<Arc<McpConnection>, ToolError> {
    let connection = context.unless_cancelled(server.connection(Instant::now() + limits::MCP_CALL_START)).await?;
    connection.map_err(|why| ToolError(format!("the MCP server {name} is not available: {why}")))
}

fn failed(server: &str, error: CallError) -> ToolError {
    match error {
        CallError::Cancelled => ToolError::cancelled(),
        CallError::Disconnected(why) => ToolError(format!(
            "the MCP server {server} ended during the call: {why}; the effect of the call is unknown, and the server is started again"
        )),
        CallError::Failed(why) => ToolError(format!("the MCP server {server}: {why}")),
    }
}
