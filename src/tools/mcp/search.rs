//! `mcp_search` and `mcp_call`: the tools of MCP servers, if there are too many for the prompt.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::McpTool;
use crate::config::AccessShape;
use crate::content::ToolKind;
use crate::model::ToolSpec;
use crate::permission::Access;
use crate::toolkit::{AnyCall, AnyTool, PreparedCall, ToolContext, ToolError, ToolOutput};

/// Maximum number of tools in a result of `mcp_search`.
const MCP_SEARCH_RESULTS_MAX: usize = 10;

/// A tool that finds MCP tools, or one that calls them by name. Their specifications are the same
/// for all lists of tools, so that the prefix of requests is stable.
pub(crate) struct Search {
    spec: ToolSpec,
    tools: Arc<[Arc<McpTool>]>,
    calls: bool,
}

impl Search {
    /// Creates both tools for the given MCP tools.
    pub(crate) fn both(tools: Vec<Arc<McpTool>>) -> [Arc<dyn AnyTool>; 2] {
        let tools: Arc<[Arc<McpTool>]> = tools.into();
        let spec = |name: &str, description: &str, input_schema: Value| ToolSpec {
            name: name.into(),
            description: description.into(),
            input_schema,
        };
        let query = json!({ "type": "string", "description": "Words of the names and descriptions of tools." });
        let find = spec(
            "mcp_search",
            "Finds tools of MCP servers. Returns names, descriptions and input schemas; mcp_call calls them.",
            json!({ "type": "object", "properties": { "query": query }, "required": ["query"] }),
        );
        let tool = json!({ "type": "string", "description": "Name from mcp_search: mcp__SERVER__TOOL." });
        let call = spec(
            "mcp_call",
            "Calls a tool that mcp_search has found.",
            json!({ "type": "object", "properties": { "tool": tool, "arguments": { "type": "object" } }, "required": ["tool"] }),
        );
        [Arc::new(Search { spec: find, tools: tools.clone(), calls: false }), Arc::new(Search { spec: call, tools, calls: true })]
    }

    /// Returns the tools that match most words of the query, the best first.
    fn find(&self, query: &str) -> String {
        let words: Vec<String> =
            query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
        let score = |tool: &McpTool| {
            let (name, description) = (tool.spec.name.to_lowercase(), tool.spec.description.to_lowercase());
            words.iter().map(|word| 3 * usize::from(name.contains(word)) + usize::from(description.contains(word))).sum::<usize>()
        };
        let mut found: Vec<(usize, &Arc<McpTool>)> = self.tools.iter().map(|tool| (score(tool), tool)).collect();
        found.retain(|(score, _)| *score > 0 || words.is_empty());
        found.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.spec.name.cmp(&b.spec.name)));
        if found.is_empty() {
            let mut servers: Vec<&str> = self.tools.iter().map(|tool| tool.server_name.as_str()).collect();
            servers.dedup();
            return format!("no tool matches; there are {} tools of the servers {}\n", self.tools.len(), servers.join(", "));
        }
        let shown = found.iter().take(MCP_SEARCH_RESULTS_MAX).map(|(_, tool)| {
            let ToolSpec { name, description, input_schema } = &tool.spec;
            format!("{name}: {description}\ninput schema: {input_schema}\n\n")
        });
        super::limited(shown, found.len(), "tools match")
    }
}

impl AnyTool for Search {
    fn label(&self) -> &str {
        if self.calls { "Call MCP tool" } else { "Search MCP tools" }
    }

    fn kind(&self) -> ToolKind {
        if self.calls { ToolKind::Other } else { ToolKind::Search }
    }

    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self) -> &'static [AccessShape] {
        AccessShape::MCP
    }

    fn details_schema(&self) -> Value {
        if self.calls { super::result::details_schema() } else { json!({ "type": "null" }) }
    }

    /// Prepares a call. A call of an MCP tool is evaluated by permission rules under the name of
    /// that tool.
    fn prepare(self: Arc<Self>, input: Value, context: &ToolContext) -> Result<PreparedCall, ToolError> {
        let text = |name: &str| {
            let given = input[name].as_str().map(str::to_owned);
            given.ok_or_else(|| ToolError(format!("{}: {name}: must be a string", self.spec.name)))
        };
        if !self.calls {
            let found = SearchResult(self.find(&text("query")?));
            let title = "Search MCP tools".to_owned();
            return Ok(PreparedCall::new(
                "mcp_search",
                ToolKind::Search,
                title,
                Access::none(),
                &context.workspace,
                input,
                Box::new(found),
            ));
        }
        let name = text("tool")?;
        let Some(tool) = self.tools.iter().find(|tool| tool.spec.name == name) else {
            return Err(ToolError(format!("there is no tool {name}; find tools with mcp_search")));
        };
        let arguments = match &input["arguments"] {
            Value::Null => json!({}),
            // Some models write objects as JSON text.
            Value::String(text) => serde_json::from_str(text).map_err(|error| ToolError(format!("arguments: {error}")))?,
            arguments => arguments.clone(),
        };
        let mut prepared = tool.clone().prepare(arguments, context)?;
        prepared.target = Some(tool.clone());
        Ok(prepared)
    }
}

struct SearchResult(String);

impl AnyCall for SearchResult {
    fn run<'a>(self: Box<Self>, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Ok(ToolOutput::text(self.0, Value::Null)) })
    }
}
