//! The tools of the MCP server. A row names its schema and the method of nuncio that it calls.

use std::path::Path;
use std::sync::Arc;

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult, JsonObject, Tool};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::delegation::{DelegateInput, DelegateOutput, Delegation};
use super::elicitation::FormChannel;
use super::inputs::{DeleteInput, ExecuteInput, MetadataInput, SetMetadataInput, StatusInput};
use super::schema::{description, schema};
use super::server::ToolServer;
use crate::api::{CreateWorkspaceParams, method};
use crate::config::{worktree_origin, worktrees_in};
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::limits;
use crate::options::Mode;
use crate::runtime::{DelegateCall, McpAccess, ProgressTarget, check_depth};

/// A tool of the server. The description is the doc comment of the input's type.
pub(super) struct ServedTool {
    pub name: &'static str,
    title: &'static str,
    input: fn() -> Arc<JsonObject>,
    output: Option<fn() -> Arc<JsonObject>>,
    /// True if the tool starts agents or makes room for them, so that the limit on nesting applies.
    nests: bool,
    /// True if the tool changes something without a permission request, so that mode `plan` denies
    /// it.
    changes: bool,
    action: Action,
}

/// The action of a call.
enum Action {
    Delegate,
    /// Calls the method whose name the function returns. The function completes the input, so that
    /// it is the params of the method. Only hosted agents receive such a tool.
    Method(fn(&HostedCall<'_>, &mut JsonObject) -> Result<&'static str>),
}

/// The caller of a tool for hosted agents.
struct HostedCall<'a> {
    server: &'a ToolServer,
    session: &'a SessionId,
}

const TOOLS: &[ServedTool] = &[
    ServedTool {
        name: "delegate",
        title: "Delegate a task to nuncio",
        input: schema::<DelegateInput>,
        output: Some(schema::<DelegateOutput>),
        nests: true,
        changes: false,
        action: Action::Delegate,
    },
    hosted("workspace_status", "List workspaces", schema::<StatusInput>, |call, input| {
        input.insert("cwd".into(), call.cwd());
        Ok("_nuncio/workspace/list")
    }),
    hosted("workspace_metadata", "Read a workspace", schema::<MetadataInput>, |call, input| {
        if call.add_workspace(input) {
            return Ok("_nuncio/workspace/status");
        }
        input.insert("sessionId".into(), call.session.as_str().into());
        Ok("_nuncio/session/get")
    }),
    ServedTool {
        changes: true,
        ..hosted("workspace_set_metadata", "Change a workspace's metadata", schema::<SetMetadataInput>, |call, input| {
            let message = "workspaceId: is required, because your directory is not in a workspace";
            call.add_workspace(input)
                .then_some("_nuncio/workspace/set_metadata")
                .ok_or_else(|| Error::invalid_params(message).hint("workspace_status lists the workspaces"))
        })
    },
    ServedTool {
        nests: true,
        changes: true,
        ..hosted("workspace_create", "Create a workspace", schema::<CreateWorkspaceParams>, |call, input| {
            input.entry("cwd").or_insert_with(|| call.cwd());
            Ok("_nuncio/workspace/create")
        })
    },
    hosted("workspace_delete", "Preview a deletion", schema::<DeleteInput>, |_, _| Ok("_nuncio/workspace/delete")),
    hosted("workspace_execute", "Run a command", schema::<ExecuteInput>, |call, input| {
        input.insert("sessionId".into(), call.session.as_str().into());
        Ok("_nuncio/session/execute")
    }),
];

/// Creates a tool for hosted agents that calls a method.
const fn hosted(
    name: &'static str,
    title: &'static str,
    input: fn() -> Arc<JsonObject>,
    params: fn(&HostedCall<'_>, &mut JsonObject) -> Result<&'static str>,
) -> ServedTool {
    ServedTool { name, title, input, output: None, nests: false, changes: false, action: Action::Method(params) }
}

impl HostedCall<'_> {
    fn cwd(&self) -> Value {
        self.server.access.cwd.to_string_lossy().into()
    }

    /// Adds the id of the session's workspace, if the input names none. Returns whether the input
    /// has an id.
    fn add_workspace(&self, input: &mut JsonObject) -> bool {
        if input.get("workspaceId").is_none_or(Value::is_null) {
            input.remove("workspaceId");
            let id = workspace_id(&self.server.app.places.data, &self.server.access.cwd);
            input.extend(id.map(|id| ("workspaceId".into(), id.into())));
        }
        input.contains_key("workspaceId")
    }
}

/// Returns the id of the workspace that contains a directory.
fn workspace_id(data: &Path, cwd: &Path) -> Option<String> {
    let (worktrees, cwd) = (worktrees_in(data), std::fs::canonicalize(cwd).ok()?);
    let top = worktree_origin(&worktrees, &cwd)?.worktree;
    let (project, name) = (top.parent()?.file_name()?, top.file_name()?);
    Some(format!("{}.{}", project.to_str()?, name.to_str()?))
}

impl ServedTool {
    /// Returns the definition that clients receive.
    pub(super) fn spec(&self) -> Tool {
        let input = (self.input)();
        let tool = Tool::new(self.name, description(&input), input).with_title(self.title);
        match self.output {
            Some(output) => tool.with_raw_output_schema(output()),
            None => tool,
        }
    }
}

/// Returns the tools for a client. Only hosted agents receive the tools that call methods.
pub(super) fn offered(access: &McpAccess) -> impl Iterator<Item = &'static ServedTool> {
    let hosted = access.session.is_some();
    TOOLS.iter().filter(move |tool| hosted || matches!(tool.action, Action::Delegate))
}

/// Runs a tool. The call is cancelled by the client, when the client ends, and after
/// [`limits::MCP_SERVED_CALL_MAX`].
pub(super) async fn call(
    server: &ToolServer,
    tool: &ServedTool,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse> {
    if tool.nests {
        check_depth(server.access.depth)?;
    }
    if tool.changes && server.mode().await == Mode::Plan {
        return Err(Error::invalid_params(format!("{}: mode plan allows no changes", tool.name)));
    }
    let params = match tool.action {
        Action::Delegate => return delegate(server, request, context).await,
        Action::Method(params) => params,
    };
    let cancel = CancellationToken::new();
    let (client, ended) = (context.ct.clone(), server.access.ended.clone());
    let work = run_method(server, tool, params, request.arguments.unwrap_or_default(), cancel.clone());
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        result = &mut work => return result.map(Into::into),
        () = client.cancelled() => {}
        () = ended.cancelled() => {}
        () = tokio::time::sleep(limits::MCP_SERVED_CALL_MAX) => {}
    }
    cancel.cancel();
    work.await.map(Into::into)
}

/// Starts or resumes a call of `delegate`. Returns its result, or the forms that the user must
/// answer before the client repeats the request.
async fn delegate(
    server: &ToolServer,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse> {
    let waiting = ProgressTarget { peer: context.peer.clone(), token: context.meta.get_progress_token() };
    let mut call = match &request.request_state {
        Some(state) => server.access.suspended.resume(state, request.input_responses.unwrap_or_default(), waiting)?,
        None => DelegateCall::start(waiting, server.access.ended.clone(), |rounds, waiting, cancel| {
            let (server, channel) = (server.clone(), FormChannel::new(server, &context, &rounds));
            let input = request.arguments.unwrap_or_default();
            async move { Delegation::start(&server, input, channel, waiting, cancel).await?.run().await }
        }),
    };
    let rounds = call.rounds.clone();
    let requests = tokio::select! {
        biased;
        result = call.result() => return result.map(Into::into),
        requests = rounds.pending() => requests,
        () = context.ct.cancelled() => return call.cancelled().await.map(Into::into),
    };
    let result = InputRequiredResult::new(Some(requests), Some(call.state.clone()));
    server.access.suspended.suspend(call);
    Ok(result.into())
}

async fn run_method(
    server: &ToolServer,
    tool: &ServedTool,
    params: fn(&HostedCall<'_>, &mut JsonObject) -> Result<&'static str>,
    mut input: JsonObject,
    cancel: CancellationToken,
) -> Result<CallToolResult> {
    let allowed = (tool.input)();
    let known = allowed.get("properties").and_then(Value::as_object);
    if let Some(unknown) = input.keys().find(|key| !known.is_some_and(|known| known.contains_key(*key))) {
        return Err(Error::invalid_params(format!("{unknown}: unknown field")));
    }
    let session = server.access.session.as_ref().ok_or_else(|| Error::internal("the client is not a hosted agent"))?;
    let name = params(&HostedCall { server, session }, &mut input)?;
    let row = method(name).ok_or_else(|| Error::internal(format!("{name} is not in the method table")))?;
    let result = server.client.call_row(row, Value::Object(input), cancel).await?;
    // Return only the output of a command.
    let text = result["output"].as_str().map_or_else(|| result.to_string(), str::to_owned);
    let mut answer = CallToolResult::success(vec![ContentBlock::text(text)]);
    answer.is_error = Some(result["completed"] == false);
    answer.structured_content = Some(result);
    Ok(answer)
}
