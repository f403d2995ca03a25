//! Results of tool calls from a recording of a session. Such a call is decided and recorded as any
//! other one, but it does not run.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::config::AccessShape;
use crate::content::{Part, ToolContent, ToolKind, plain_text};
use crate::model::ToolSpec;
use crate::permission::{Access, AccessKind};
use crate::toolkit::{AnyCall, AnyTool, PreparedCall, ToolContext, ToolError, ToolOutput};

/// The recorded results, by the ids of their calls.
pub(crate) type RecordedResults = HashMap<String, RecordedResult>;

/// The recorded end of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RecordedResult {
    /// True if `output` has the message of an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// True if the call ran until it was cancelled.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    pub output: Vec<Part>,
    /// Notified when the call waits for its cancellation.
    #[serde(skip)]
    pub waits: Arc<Notify>,
    /// Content that users saw.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ToolContent>,
}

impl RecordedResult {
    /// Returns the result. A call that was cancelled waits for the cancellation.
    pub(in crate::runtime) async fn result(&self, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
        if self.cancelled {
            self.waits.notify_one();
            cancel.cancelled().await;
            return Err(ToolError(plain_text(&self.output)));
        }
        match self.failed {
            true => Err(ToolError(plain_text(&self.output))),
            false => Ok(ToolOutput { parts: self.output.clone(), content: self.content.clone(), ..ToolOutput::default() }),
        }
    }
}

/// Refuses a call of a replay that reaches beyond its directories: a recording contains the answers
/// to permission requests, so they permit nothing.
pub(crate) fn check(call: &PreparedCall) -> Result<(), ToolError> {
    let is_foreign = match call.access.kind {
        AccessKind::Network | AccessKind::Mcp => true,
        // Commands are confined.
        AccessKind::Exec => false,
        AccessKind::Read | AccessKind::Write => call.resolved.iter().any(|path| !path.inside),
    };
    match is_foreign {
        true => Err(ToolError::new("the recording has no result of this call, which a replay does not run")),
        false => Ok(()),
    }
}

/// A tool that a replay cannot run, such as that of an MCP server. Its calls have recorded results.
pub(crate) struct UnavailableTool(ToolSpec);

impl UnavailableTool {
    /// Creates the tool with its recorded specification.
    pub(crate) fn entry(spec: ToolSpec) -> Arc<dyn AnyTool> {
        Arc::new(UnavailableTool(spec))
    }
}

impl AnyTool for UnavailableTool {
    fn label(&self) -> &str {
        &self.0.name
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Other
    }

    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn details_schema(&self) -> Value {
        json!({ "type": "null" })
    }

    fn access(&self) -> &'static [AccessShape] {
        AccessShape::MCP
    }

    fn prepare(self: Arc<Self>, input: Value, context: &ToolContext) -> Result<PreparedCall, ToolError> {
        let (name, access) = (self.0.name.clone(), Access { kind: AccessKind::Mcp, ..Access::none() });
        Ok(PreparedCall::new(&name, ToolKind::Other, name.clone(), access, &context.workspace, input, Box::new(NoResult)))
    }
}

/// A call without a recorded result.
struct NoResult;

impl AnyCall for NoResult {
    fn run<'a>(self: Box<Self>, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Err(ToolError::new("the recording has no result of this call")) })
    }
}
