//! The requests of MCP: lists the tools and dispatches their calls.

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};

use super::server::ToolServer;
use super::tools;
use crate::error::Error;

const INSTRUCTIONS: &str = "nuncio is a coding agent. Delegate a self-contained task to it with the tool delegate: it works in a directory \
                            with tools of its own and returns its result. Continue the same conversation with the sessionId of the result.";

impl ServerHandler for ToolServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("nuncio", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.into());
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::offered(&self.access).map(tools::ServedTool::spec).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::offered(&self.access).find(|tool| tool.name == name).map(tools::ServedTool::spec)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::offered(&self.access).find(|tool| tool.name == request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {}", request.name), None));
        };
        let failed = |error: Error| CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into();
        Ok(tools::call(self, tool, request, context).await.unwrap_or_else(failed))
    }
}
