//! Tools of the embedding program.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::context::ToolContext;
use crate::config::AccessShape;
use crate::content::{Part, ToolContent, ToolKind};
use crate::model::ToolSpec;
use crate::permission::{Access, AccessKind};
use crate::toolkit::{self, AnyCall, AnyTool, PreparedCall, ToolError, ToolOutput};
use crate::workspace::one_line;

/// A tool of the embedding program. Models receive the doc comment of `Input` as the description of
/// the tool, and the doc comments of its fields as the descriptions of the arguments.
pub trait Tool: Send + Sync + 'static {
    /// The arguments, a struct. `schemars` must be the version that [`crate::schemars`] is.
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// Returns the name for models: letters, digits, `_` and `-`.
    fn name(&self) -> &str;

    /// Returns the kind of access that all calls need.
    fn access(&self) -> ToolAccess {
        ToolAccess::Service
    }

    /// Returns the paths ([`ToolAccess::Read`], [`ToolAccess::Write`]) or the URL
    /// ([`ToolAccess::Network`]) that a call accesses, which the permission check evaluates. Must
    /// be pure.
    fn resources(&self, _input: &Self::Input) -> Vec<String> {
        Vec::new()
    }

    /// Returns the title of a call for users, in one line.
    fn title(&self, _input: &Self::Input) -> String {
        self.name().into()
    }

    /// Returns the kind of the tool, which determines the icon of its calls in clients.
    fn kind(&self) -> ToolKind {
        ToolKind::Other
    }

    /// Runs a call. The future is dropped when the call is cancelled.
    fn run(&self, input: Self::Input, context: &ToolContext<'_>) -> impl Future<Output = Result<Output, ToolError>> + Send;
}

/// The kind of access of a tool's calls, from which permission rules and modes decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolAccess {
    /// Calls access nothing that needs a permission. They always run.
    Nothing,
    /// Calls read files.
    Read,
    /// Calls write files.
    Write,
    /// Calls request a URL.
    Network,
    /// Calls use a service outside of the session's directory, as those of MCP servers do: the
    /// mode `auto` allows them, `plan` refuses them, the others ask.
    Service,
}

impl ToolAccess {
    fn shapes(self) -> &'static [AccessShape] {
        match self {
            ToolAccess::Nothing => AccessShape::NOTHING,
            ToolAccess::Read => AccessShape::READ,
            ToolAccess::Write => AccessShape::WRITE,
            ToolAccess::Network => AccessShape::NETWORK,
            ToolAccess::Service => AccessShape::MCP,
        }
    }

    /// Returns the access of a call. Fails if it has no resources but needs some.
    fn of_call(self, mut resources: Vec<String>) -> Result<Access, ToolError> {
        let missing = |what| ToolError(format!("internal error: the tool names no {what}"));
        let files = |kind, paths: Vec<String>| match paths.is_empty() {
            true => Err(missing("path")),
            false => Ok(Access { kind, paths, ..Access::none() }),
        };
        match self {
            ToolAccess::Nothing => Ok(Access::none()),
            ToolAccess::Read => files(AccessKind::Read, resources),
            ToolAccess::Write => files(AccessKind::Write, resources),
            ToolAccess::Network => resources.pop().map(Access::network).ok_or_else(|| missing("URL")),
            ToolAccess::Service => Ok(Access { kind: AccessKind::Mcp, ..Access::none() }),
        }
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output(ToolOutput);

impl Output {
    /// Creates a result with the same text for the model and for users.
    pub fn text(text: impl Into<String>) -> Output {
        Output(ToolOutput::text(text, json!({})))
    }

    /// Creates a result from a value, whose JSON is the text for the model.
    pub fn json(value: &impl Serialize) -> Result<Output, ToolError> {
        let text = serde_json::to_string_pretty(value).map_err(|error| ToolError(format!("internal error: {error}")))?;
        Ok(Output::text(text))
    }

    /// Adds an image for the model and for users. `data` is base64 (RFC 4648, section 4).
    pub fn with_image(mut self, mime_type: impl Into<String>, data: impl Into<String>) -> Output {
        let image = Part::Image { mime_type: mime_type.into(), data: data.into() };
        self.0.parts.push(image.clone());
        self.0.content.push(ToolContent::Content { content: image });
        self
    }

    /// Replaces the text for users. Images are kept.
    pub fn shown_as(mut self, text: impl Into<String>) -> Output {
        self.0.content.retain(|content| !matches!(content, ToolContent::Content { content: Part::Text { .. } }));
        self.0.content.insert(0, ToolContent::text(text));
        self
    }

    /// Sets the typed result, a JSON object that clients receive.
    pub fn with_details(mut self, details: Value) -> Output {
        self.0.details = details;
        self
    }
}

/// The entry of a tool in the table of tools.
pub(super) struct OwnTool<T> {
    tool: T,
    spec: ToolSpec,
}

impl<T: Tool> OwnTool<T> {
    /// Wraps a tool for the table of tools.
    pub(super) fn entry(tool: T) -> Arc<dyn AnyTool> {
        let spec = toolkit::spec::<T::Input>(tool.name());
        Arc::new(OwnTool { tool, spec })
    }
}

impl<T: Tool> AnyTool for OwnTool<T> {
    fn label(&self) -> &str {
        &self.spec.name
    }

    fn kind(&self) -> ToolKind {
        self.tool.kind()
    }

    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn details_schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn access(&self) -> &'static [AccessShape] {
        self.tool.access().shapes()
    }

    fn prepare(self: Arc<Self>, input: Value, context: &toolkit::ToolContext) -> Result<PreparedCall, ToolError> {
        let (input, corrected): (T::Input, Value) = toolkit::parse_input(&self.spec, input)?;
        let access = self.tool.access().of_call(self.tool.resources(&input))?;
        let (name, kind, title) = (self.spec.name.clone(), self.tool.kind(), one_line(self.tool.title(&input)));
        let call = Box::new(OwnCall { entry: self, input });
        Ok(PreparedCall::new(&name, kind, title, access, &context.workspace, corrected, call))
    }
}

struct OwnCall<T: Tool> {
    entry: Arc<OwnTool<T>>,
    input: T::Input,
}

impl<T: Tool> AnyCall for OwnCall<T> {
    fn run<'a>(self: Box<Self>, context: &'a toolkit::ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let own = ToolContext(context);
            context.unless_cancelled(self.entry.tool.run(self.input, &own)).await?.map(|output| output.0)
        })
    }
}
