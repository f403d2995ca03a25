//! A connection to an initialized server: its capabilities, tool calls, resources and prompts.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest, GetPromptRequestParams,
    GetPromptResult, JsonObject, ListToolsRequest, ListToolsResult, PaginatedRequestParams, Prompt, ReadResourceRequestParams,
    ReadResourceResult, RequestId, Resource, ResourceTemplate, ServerResult, Tool,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use rmcp::transport::DynamicTransportError;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::handler::McpHandler;
use super::inputs;
use super::open_calls::{ProgressHandler, ServerRequests};
use super::tokens::UrlTokens;
use super::tool_list;
use crate::content::shortened;
use crate::web::HttpFailure;

/// Maximum number of times that a call of an MCP tool is repeated with input that the server
/// requested.
const MCP_INPUT_ROUNDS_MAX: usize = 16;
/// Pause before a call is repeated for a server that requested no input.
const MCP_INPUT_PAUSE: Duration = Duration::from_millis(250);
/// Maximum time of a call to an MCP server that reports progress.
const MCP_CALL_MAX: Duration = Duration::from_secs(3600);
/// How long a cancelled call waits until its cancellation is sent to the MCP server.
const MCP_CANCEL: Duration = Duration::from_millis(500);
/// Maximum number of tools, of prompts and of resources that are read from one MCP server.
const MCP_ITEMS_MAX: usize = 2_000;
/// Maximum number of pages of a list of an MCP server.
const MCP_PAGES_MAX: usize = 100;
/// Maximum size of an error message of an MCP server, in bytes.
const MCP_ERROR_BYTES_MAX: usize = 4 << 10;

/// The tools, prompts and other properties of a server.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// Name and version of the server's program.
    pub server: String,
    pub protocol: String,
    pub tools: Vec<Tool>,
    /// Tools of the server that are not offered, each as `NAME: reason`.
    pub omitted: Vec<String>,
    pub prompts: Vec<Prompt>,
    /// True if the server has resources.
    pub resources: bool,
}

/// A connection to a server. The connection may have ended; then calls fail.
pub struct McpConnection {
    pub offer: Arc<Offer>,
    /// Restart count of the server.
    pub run: u32,
    /// The reason for the end of the previous instance.
    pub after: Option<String>,
    pub(super) peer: Peer<RoleClient>,
    pub(super) handler: Arc<McpHandler>,
    /// Cancelled when the server has refused a request without a valid sign-in.
    pub(super) unauthorized: CancellationToken,
    /// The tokens of a sign-in, if the connection uses them.
    pub(super) tokens: Option<UrlTokens>,
}

/// Options of a tool call.
pub struct CallOptions {
    /// Maximum time without an answer or a progress report.
    pub timeout: Duration,
    pub cancel: CancellationToken,
    pub on_progress: ProgressHandler,
    /// Answers the requests of the server; `None` declines them.
    pub requests: Option<Arc<dyn ServerRequests>>,
}

/// The reason why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    Cancelled,
    /// The server has ended or is unreachable, so the effect of the call is unknown.
    Disconnected(String),
    /// The server answered with an error, or not in time.
    Failed(String),
}

impl McpConnection {
    /// Sends a tool call and waits for its result. Cancels the call on the server on cancellation
    /// and on timeout. Since protocol 2026-07-28 a server requests input in a result; then the call
    /// is repeated with the input.
    pub async fn call(&self, tool: &str, arguments: JsonObject, options: CallOptions) -> Result<CallToolResult, CallError> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        for _ in 0..MCP_INPUT_ROUNDS_MAX {
            let required = match self.call_once(params.clone(), &options).await? {
                ServerResult::CallToolResult(result) => return Ok(result),
                ServerResult::InputRequiredResult(required) => required,
                _ => return Err(CallError::Failed("the answer is not the result of a tool".into())),
            };
            let asked = required.input_requests.unwrap_or_default();
            let input = async {
                if asked.is_empty() {
                    tokio::time::sleep(MCP_INPUT_PAUSE).await;
                }
                inputs::answer(&self.handler, asked, options.requests.as_ref()).await
            };
            let answered = options.cancel.run_until_cancelled(input).await.ok_or(CallError::Cancelled)?;
            params.input_responses = Some(answered.map_err(CallError::Failed)?).filter(|answers| !answers.is_empty());
            params.request_state = required.request_state;
        }
        Err(CallError::Failed(format!("it asked for input more than {} times", MCP_INPUT_ROUNDS_MAX)))
    }

    async fn call_once(&self, params: CallToolRequestParams, options: &CallOptions) -> Result<ServerResult, CallError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let handle = handle.map_err(|error| self.failure(error))?;
        let id = handle.id.clone();
        let (on_progress, requests) = (options.on_progress.clone(), options.requests.clone());
        let mut call = self.handler.calls.register(handle.progress_token.clone(), on_progress, requests);
        let end = Instant::now() + MCP_CALL_MAX.max(options.timeout);
        let mut answer = pin!(handle.await_response());
        loop {
            let due = call.due(options.timeout).min(end);
            tokio::select! {
                biased;
                () = options.cancel.cancelled() => {
                    self.send_cancellation(id).await;
                    return Err(CallError::Cancelled);
                }
                answer = &mut answer => {
                    call.show();
                    return answer.map_err(|error| self.failure(error));
                }
                () = call.wait_for_report() => call.show(),
                () = sleep_until(due) => {
                    if call.due(options.timeout).min(end) <= Instant::now() {
                        self.send_cancellation(id).await;
                        return Err(CallError::Failed(timeout_message(options.timeout)));
                    }
                }
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// Sends `notifications/cancelled`; waits a limited time until it is sent.
    async fn send_cancellation(&self, id: RequestId) {
        let params = CancelledNotificationParam::new(Some(id), Some("the call was cancelled".into()));
        let _ = tokio::time::timeout(MCP_CANCEL, self.peer.notify_cancelled(params)).await;
    }

    pub(crate) async fn resources(&self, timeout: Duration) -> Result<Vec<Resource>, CallError> {
        let list = pages(|page| {
            Box::pin(async move { self.peer.list_resources(page).await.map(|listed| (listed.resources, listed.next_cursor)) })
        });
        self.within(timeout, list).await
    }

    /// Lists the server's URI templates. The list is empty if the server does not support the
    /// request.
    pub(crate) async fn resource_templates(&self, timeout: Duration) -> Vec<ResourceTemplate> {
        let list = pages(|page| {
            Box::pin(async move {
                self.peer.list_resource_templates(page).await.map(|listed| (listed.resource_templates, listed.next_cursor))
            })
        });
        self.within(timeout, list).await.unwrap_or_default()
    }

    pub(crate) async fn prompt(&self, name: &str, arguments: JsonObject, timeout: Duration) -> Result<GetPromptResult, CallError> {
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        self.within(timeout, Box::pin(self.peer.get_prompt(params))).await
    }

    pub(crate) async fn read_resource(&self, uri: &str, timeout: Duration) -> Result<ReadResourceResult, CallError> {
        self.within(timeout, Box::pin(self.peer.read_resource(ReadResourceRequestParams::new(uri)))).await
    }

    async fn within<T>(&self, timeout: Duration, request: impl Future<Output = Result<T, ServiceError>>) -> Result<T, CallError> {
        match tokio::time::timeout(timeout, request).await {
            Ok(answer) => answer.map_err(|error| self.failure(error)),
            Err(_) => Err(CallError::Failed(format!("no answer within {} s", timeout.as_secs()))),
        }
    }

    fn failure(&self, error: ServiceError) -> CallError {
        match error {
            ServiceError::McpError(error) => {
                let message = shortened(error.message.into_owned(), MCP_ERROR_BYTES_MAX);
                CallError::Failed(format!("error {}: {message}", error.code.0))
            }
            ServiceError::TransportClosed => CallError::Disconnected("the connection to it ended".into()),
            ServiceError::TransportSend(error) => match HttpFailure::from_error(&*error.error) {
                HttpFailure::Closed => CallError::Disconnected(chain(&*error.error)),
                HttpFailure::Unauthorized => {
                    self.unauthorized.cancel();
                    CallError::Failed(login_message(&self.handler.name))
                }
                HttpFailure::Scope => CallError::Failed(self.store_required_scope(crate::web::required_scope(&*error.error))),
                HttpFailure::Refresh | HttpFailure::Other => {
                    let why = failure_message(&self.handler.name, &*error.error);
                    CallError::Failed(format!("the request failed: {why}; its effect is unknown"))
                }
            },
            ServiceError::Cancelled { .. } => CallError::Cancelled,
            ServiceError::Timeout { timeout } => CallError::Failed(timeout_message(timeout)),
            error => CallError::Failed(error.to_string()),
        }
    }
}

impl McpConnection {
    /// Stores the scope for which the next sign-in asks. Returns the message about it.
    fn store_required_scope(&self, scope: Option<&str>) -> String {
        let name = &self.handler.name;
        let what = scope.map_or_else(|| "more rights".into(), |scope| format!("the scope \"{scope}\""));
        let Some(tokens) = &self.tokens else { return format!("it requires {what}, which its token in the settings lacks") };
        match scope.map(|scope| tokens.want(scope)) {
            Some(Err(error)) => format!("it requires {what}, which could not be stored for the sign-in: {error}"),
            Some(Ok(())) | None => format!("it requires {what}: to sign in again with it: nuncio mcp login {name}"),
        }
    }
}

fn timeout_message(timeout: Duration) -> String {
    format!("no answer and no progress report within {} s; the call was cancelled", timeout.as_secs())
}

/// Returns whether a request failed because the user must sign in.
pub(super) fn requires_login(error: &ServiceError) -> bool {
    let failure = |error: &DynamicTransportError| HttpFailure::from_error(&*error.error);
    matches!(error, ServiceError::TransportSend(error) if failure(error) == HttpFailure::Unauthorized)
}

/// Returns the message about a server to which the user must sign in.
pub(super) fn login_message(name: &str) -> String {
    format!("it requires authorization: nuncio mcp login {name}, or set bearer_token_env or headers")
}

/// Returns the message about a failed request. The error does not distinguish between a removed
/// registration of nuncio and a temporary failure of the authorization server.
pub(super) fn failure_message(name: &str, error: &(dyn std::error::Error + 'static)) -> String {
    let hint = match HttpFailure::from_error(error) {
        HttpFailure::Refresh => format!("; if this persists: nuncio mcp login {name}"),
        _ => String::new(),
    };
    chain(error) + &hint
}

/// Joins the messages of an error and of its sources. Omits a message that the text already
/// contains. Shortens the text, and masks URLs in it.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(error) = crate::web::request_error(error) {
        return chain(error);
    }
    let mut text = error.to_string();
    for source in std::iter::successors(error.source(), |error| error.source()) {
        let source = source.to_string();
        if !text.contains(&source) {
            text = format!("{text}: {source}");
        }
    }
    crate::config::mask_urls(&shortened(text, MCP_ERROR_BYTES_MAX))
}

/// Fetches the server's lists of tools and prompts.
pub(super) async fn offer(peer: &Peer<RoleClient>) -> Result<Offer, ServiceError> {
    let info = peer.peer_info();
    let Some(info) = info.as_deref() else { return Ok(Offer::default()) };
    let capabilities = &info.capabilities;
    let tools = async {
        if capabilities.tools.is_none() {
            return Ok(Vec::new());
        }
        pages(|page| {
            Box::pin(async move {
                let listed = list_tools(peer, page).await?;
                let omitted = tool_list::omitted_tools(&listed).into_iter().map(Err);
                Ok((listed.tools.into_iter().map(Ok).chain(omitted).collect(), listed.next_cursor))
            })
        })
        .await
    };
    let prompts = async {
        if capabilities.prompts.is_none() {
            return Ok(Vec::new());
        }
        pages(|page| Box::pin(async move { peer.list_prompts(page).await.map(|listed| (listed.prompts, listed.next_cursor)) }))
            .await
    };
    let (tools, prompts) = tokio::join!(tools, prompts);
    let tools: Vec<Result<Tool, String>> = tools?;
    Ok(Offer {
        server: info.server_info.as_ref().map(|server| format!("{} {}", server.name, server.version)).unwrap_or_default(),
        protocol: info.protocol_version.to_string(),
        omitted: tools.iter().filter_map(|tool| tool.as_ref().err().cloned()).collect(),
        tools: tools.into_iter().flatten().collect(),
        prompts: prompts?,
        resources: capabilities.resources.is_some(),
    })
}

/// Fetches a page of the server's tools, without those that cannot be called.
async fn list_tools(peer: &Peer<RoleClient>, page: Option<PaginatedRequestParams>) -> Result<ListToolsResult, ServiceError> {
    let request = page.map_or_else(ListToolsRequest::default, ListToolsRequest::with_param);
    match peer.send_request(ClientRequest::ListToolsRequest(request)).await? {
        ServerResult::ListToolsResult(listed) => Ok(listed),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// Fetches all pages of a list, within limits. The list ends at a cursor that makes no progress:
/// one that is empty or was sent before, or that leads to the page before it.
async fn pages<'a, T: PartialEq>(
    request: impl Fn(Option<PaginatedRequestParams>) -> BoxFuture<'a, Result<(Vec<T>, Option<String>), ServiceError>>,
) -> Result<Vec<T>, ServiceError> {
    let (mut items, mut cursors): (Vec<T>, Vec<String>) = (Vec::new(), Vec::new());
    let mut page_begin = 0;
    for _ in 0..MCP_PAGES_MAX {
        let page = PaginatedRequestParams::default().with_cursor(cursors.last().cloned());
        let (more, next) = request(Some(page)).await?;
        if !more.is_empty() {
            if items[page_begin..] == more {
                break;
            }
            page_begin = items.len();
        }
        items.extend(more);
        match next.filter(|next| !next.is_empty() && !cursors.contains(next)) {
            Some(next) if items.len() < MCP_ITEMS_MAX => cursors.push(next),
            _ => break,
        }
    }
    items.truncate(MCP_ITEMS_MAX);
    Ok(items)
}
