//! `mcp_resource`: lists and reads the resources of MCP servers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::config::AccessShape;
use crate::content::ToolKind;
use crate::mcp::McpServerHandle;
use crate::model::ToolSpec;
use crate::toolkit::{AnyCall, AnyTool, PreparedCall, ToolContext, ToolError, ToolOutput, mcp_tool_names};
use crate::workspace::one_line;

/// The tool that lists and reads the resources of the servers that have some. Permission rules
/// evaluate a call as a call of `mcp__SERVER__read_resource`.
pub(crate) struct ResourceReader {
    spec: ToolSpec,
    servers: Vec<ResourceServer>,
}

/// A server with resources: its name, and the timeout of its requests.
pub(crate) type ResourceServer = (String, Arc<McpServerHandle>, Duration);

impl ResourceReader {
    pub(crate) const NAME: &str = "mcp_resource";

    /// Creates the tool for the given servers.
    pub(crate) fn new(servers: Vec<ResourceServer>) -> ResourceReader {
        let names: Vec<&str> = servers.iter().map(|(name, ..)| name.as_str()).collect();
        let spec = ToolSpec {
            name: Self::NAME.into(),
            description: "Reads a resource of an MCP server, or lists its resources and templates of URIs if there is no uri."
                .into(),
            input_schema: json!({
                "type": "object",
                "properties": { "server": { "type": "string", "enum": names }, "uri": { "type": "string" } },
                "required": ["server"],
            }),
        };
        ResourceReader { spec, servers }
    }
}

impl AnyTool for ResourceReader {
    fn label(&self) -> &str {
        "Read MCP resource"
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Read
    }

    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self) -> &'static [AccessShape] {
        AccessShape::MCP
    }

    fn details_schema(&self) -> Value {
        super::result::details_schema()
    }

    fn prepare(self: Arc<Self>, input: Value, context: &ToolContext) -> Result<PreparedCall, ToolError> {
        let wanted = input["server"].as_str().unwrap_or_default();
        let Some(server) = self.servers.iter().find(|(name, ..)| name == wanted) else {
            let names: Vec<&str> = self.servers.iter().map(|(name, ..)| name.as_str()).collect();
            return Err(ToolError(format!("mcp_resource: server: use one of {}", names.join(", "))));
        };
        let uri = input["uri"].as_str().filter(|uri| !uri.is_empty()).map(str::to_owned);
        let title = match &uri {
            Some(uri) => one_line(format!("{wanted}: read {uri}")),
            None => super::title(wanted, "list resources", &Map::new()),
        };
        let name = mcp_tool_names(&[(wanted, "read_resource")]).remove(0);
        let mut prepared =
            super::prepared(&name, &server.1.identity, title, context, input, ResourceCall { server: server.clone(), uri });
        prepared.target = Some(self.clone());
        prepared.reads_only = true;
        Ok(prepared)
    }
}

struct ResourceCall {
    server: ResourceServer,
    uri: Option<String>,
}

impl AnyCall for ResourceCall {
    fn run<'a>(self: Box<Self>, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let (name, server, timeout) = &self.server;
            let connection = super::connected(server, name, context).await?;
            let work = async {
                match &self.uri {
                    Some(uri) => {
                        let read = connection.read_resource(uri, *timeout).await.map_err(|error| super::failed(name, error))?;
                        super::result::resource_output(read.contents, name, context).await
                    }
                    None => {
                        let listed = connection.resources(*timeout).await.map_err(|error| super::failed(name, error))?;
                        let templates = connection.resource_templates(*timeout).await;
                        let line = |uri: &str, description: Option<&str>, name: &str| {
                            let field = |text: &str| one_line(super::result::field(text.to_owned()));
                            format!("{}: {}\n", field(uri), field(description.unwrap_or(name)))
                        };
                        let resources = listed.iter().map(|it| line(&it.uri, it.description.as_deref(), &it.name));
                        let templates = templates
                            .iter()
                            .map(|it| line(&format!("{} (template)", it.uri_template), it.description.as_deref(), &it.name));
                        let count = resources.len() + templates.len();
                        let text = super::limited(resources.chain(templates), count, "resources");
                        let note = text.is_empty().then(|| "no resources".into());
                        Ok(ToolOutput::text(text, Value::Null).notes(note))
                    }
                }
            };
            context.unless_cancelled(work).await?
        })
    }
}
