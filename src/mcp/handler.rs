//! Answers the requests of a server and receives its notifications.

#![expect(
    deprecated,
    reason = "a later version of the protocol has neither roots, log messages nor sampling; servers still use them"
)]

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationCapability, FormElicitationCapability, Implementation, ListRootsResult,
    LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, Root, SamplingCapability,
    UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::Notify;

use super::identity::server_identity;
use super::launch::McpLaunch;
use super::open_calls::OpenCalls;
use super::server_requests;
use crate::content::FormAnswer;
use crate::limits;
use crate::workspace::one_line;

/// Unreserved characters (RFC 3986) and `/`.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The client's side of one connection.
pub(super) struct McpHandler {
    pub(super) name: String,
    /// Digest of the program or URL of the server.
    pub(super) identity: String,
    roots: Vec<PathBuf>,
    /// True if the server may send requests to the model.
    pub(super) sampling: bool,
    /// Notified when one of the server's lists has changed.
    pub(super) lists_changed: Notify,
    pub(super) calls: Arc<OpenCalls>,
}

impl McpHandler {
    pub(super) fn new(launch: &McpLaunch) -> McpHandler {
        let McpLaunch { name, roots, sampling, .. } = launch;
        let (name, roots, sampling) = (name.clone(), roots.clone(), *sampling);
        let identity = server_identity(launch);
        McpHandler { name, identity, roots, sampling, lists_changed: Notify::new(), calls: Arc::default() }
    }

    /// Creates the answer to `roots/list`.
    pub(super) fn roots(&self) -> ListRootsResult {
        let uri = |root: &PathBuf| Root::new(format!("file://{}", percent_encode(root.as_os_str().as_bytes(), PATH)));
        ListRootsResult::new(self.roots.iter().map(uri).collect())
    }
}

impl ClientHandler for McpHandler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::builder().enable_roots().build();
        capabilities.elicitation = Some(
            ElicitationCapability::new().with_form(FormElicitationCapability::new()).with_url(UrlElicitationCapability::new()),
        );
        capabilities.sampling = self.sampling.then(SamplingCapability::default);
        let client = Implementation::new("nuncio", env!("CARGO_PKG_VERSION"));
        // The newest version that has `initialize`, which servers of later versions also answer.
        ClientConfig::new(capabilities, client).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, rmcp::ErrorData> {
        Ok(self.roots())
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, rmcp::ErrorData> {
        let declined = Ok(server_requests::form_result(FormAnswer::Declined, None));
        let Some(form) = server_requests::form(&self.name, params) else { return declined };
        let Some(call) = self.calls.of_request() else { return declined };
        let link = form.link.clone();
        let answer = tokio::select! {
            biased;
            () = context.ct.cancelled() => FormAnswer::Cancelled,
            answer = call.requests.fill(form) => answer,
        };
        Ok(server_requests::form_result(answer, link.as_ref()))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, rmcp::ErrorData> {
        let refused = |why: String| rmcp::ErrorData::invalid_params(why, None);
        if !self.sampling {
            return Err(rmcp::ErrorData::method_not_found::<CreateMessageRequestMethod>());
        }
        let query = server_requests::query(&self.name, &self.identity, params).map_err(refused)?;
        let call = self.calls.of_request().ok_or_else(|| refused("no tool call of one session is running".into()))?;
        let reply = tokio::select! {
            biased;
            () = context.ct.cancelled() => Err("the request was cancelled".into()),
            reply = call.requests.query(query) => reply,
        };
        reply.map(server_requests::query_result).map_err(refused)
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.calls.report(report);
    }

    async fn on_logging_message(&self, message: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let text: String = message.data.to_string().chars().take(limits::MCP_LOG_LINE_BYTES_MAX).collect();
        tracing::debug!(server = self.name, level = ?message.level, "{}", one_line(text));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.lists_changed.notify_one();
    }

    async fn on_prompt_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.lists_changed.notify_one();
    }
}
