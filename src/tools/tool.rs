//! What a tool is, and how one with its own type of input becomes one of many.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{ToolContext, input};
use crate::content::{Location, Part, ToolContent, ToolKind};
use crate::model::ToolSpec;
use crate::permission::Access;
use crate::workspace::{Placed, Workspace};

/// Something a model can call. The doc comment of `Input` is what models are told of the tool, those of its fields what they
/// are told of the fields.
pub trait Tool: Send + Sync + 'static {
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;
    const NAME: &'static str;
    /// Other names by which models know it.
    const ALIASES: &'static [&'static str];
    const KIND: ToolKind;

    /// What people are shown, in one line.
    fn title(&self, input: &Self::Input, workspace: &Workspace) -> String;

    fn locations(&self, _input: &Self::Input, _workspace: &Workspace) -> Vec<Location> {
        Vec::new()
    }

    /// All that the call will touch; pure.
    fn access(&self, input: &Self::Input) -> Access;

    /// What is shown with the question whether it may run. Reads at most. An error says why it would fail.
    fn preview(
        &self,
        _input: &Self::Input,
        _context: &ToolContext,
    ) -> impl Future<Output = Result<Vec<ToolContent>, ToolError>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Does it. Returns soon after `context.cancel`, with nothing left running.
    fn run(&self, input: Self::Input, context: &ToolContext) -> impl Future<Output = Result<Output, ToolError>> + Send;
}

/// What a call gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// What the model is told.
    pub parts: Vec<Part>,
    /// What people are shown.
    pub content: Vec<ToolContent>,
    pub locations: Vec<Location>,
    /// The tool's typed result, an object.
    pub details: Value,
}

impl Output {
    /// The same text for the model and for people.
    pub fn text(text: impl Into<String>, details: Value) -> Output {
        let text = text.into();
        Output { parts: vec![Part::text(&text)], content: vec![ToolContent::text(text)], locations: Vec::new(), details }
    }
}

/// Why a call failed, in words for the model: what was wrong and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError(pub String);

impl ToolError {
    pub fn new(message: impl Into<String>) -> ToolError {
        ToolError(message.into())
    }

    pub fn cancelled() -> ToolError {
        ToolError("cancelled".into())
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ToolError {}

impl From<crate::error::Error> for ToolError {
    fn from(error: crate::error::Error) -> ToolError {
        ToolError(error.to_string())
    }
}

/// A tool of whatever input.
pub trait AnyTool: Send + Sync {
    fn name(&self) -> &str;
    fn aliases(&self) -> &[&str];
    fn kind(&self) -> ToolKind;
    fn spec(&self) -> &ToolSpec;

    /// Parses the input, once. The error names the field that is wrong.
    fn prepare(self: Arc<Self>, input: Value, context: &ToolContext) -> Result<Prepared, ToolError>;
}

/// A call that may be judged and then run; its input cannot change any more.
pub struct Prepared {
    /// The tool's own name, whatever the model called it.
    pub name: String,
    pub kind: ToolKind,
    pub title: String,
    pub locations: Vec<Location>,
    pub access: Access,
    /// Where the paths of `access` lead, in their order: to be judged.
    pub placed: Vec<Placed>,
    call: Box<dyn AnyCall>,
}

impl Prepared {
    /// `name` is the tool's own.
    pub fn new(
        name: &str,
        kind: ToolKind,
        title: String,
        access: Access,
        workspace: &Workspace,
        call: Box<dyn AnyCall>,
    ) -> Prepared {
        let placed = access.paths.iter().map(|path| workspace.resolve(path)).collect();
        Prepared { name: name.into(), kind, title, locations: Vec::new(), access, placed, call }
    }

    /// See [`Tool::preview`].
    pub async fn preview(&self, context: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        self.call.preview(&self.judged(context)).await
    }

    /// See [`Tool::run`]. A path that leads elsewhere by now than when it was judged is an error.
    pub async fn run(self, context: &ToolContext) -> Result<Output, ToolError> {
        for (path, placed) in self.access.paths.iter().zip(&self.placed) {
            let now = context.workspace.resolve(path).real;
            if now != placed.real {
                let (before, now) = (placed.real.display(), now.display());
                return Err(ToolError(format!(
                    "{path} led to {before} when the call was judged, and leads to {now} now; call again"
                )));
            }
        }
        let context = self.judged(context);
        self.call.run(&context).await
    }

    /// Where the paths of the call lead where they led when it was judged.
    fn judged(&self, context: &ToolContext) -> ToolContext {
        let paths = self.access.paths.iter().cloned().zip(self.placed.iter().cloned());
        let workspace = Workspace::clone(&context.workspace).judged(paths);
        ToolContext { workspace: Arc::new(workspace), ..context.clone() }
    }
}

/// A call of whatever input.
pub trait AnyCall: Send + Sync {
    fn preview<'a>(&'a self, context: &'a ToolContext) -> BoxFuture<'a, Result<Vec<ToolContent>, ToolError>>;
    fn run<'a>(self: Box<Self>, context: &'a ToolContext) -> BoxFuture<'a, Result<Output, ToolError>>;
}

struct Call<T: Tool> {
    entry: Arc<Entry<T>>,
    input: T::Input,
}

impl<T: Tool> AnyCall for Call<T> {
    fn preview<'a>(&'a self, context: &'a ToolContext) -> BoxFuture<'a, Result<Vec<ToolContent>, ToolError>> {
        Box::pin(self.entry.tool.preview(&self.input, context))
    }

    fn run<'a>(self: Box<Self>, context: &'a ToolContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move { self.entry.tool.run(self.input, context).await })
    }
}

struct Entry<T> {
    tool: T,
    spec: ToolSpec,
}

/// `tool` for a table of tools.
pub fn entry<T: Tool>(tool: T) -> Arc<dyn AnyTool> {
    Arc::new(Entry { tool, spec: input::spec::<T::Input>(T::NAME) })
}

impl<T: Tool> AnyTool for Entry<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn aliases(&self) -> &[&str] {
        T::ALIASES
    }

    fn kind(&self) -> ToolKind {
        T::KIND
    }

    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(self: Arc<Self>, input: Value, context: &ToolContext) -> Result<Prepared, ToolError> {
        let input: T::Input = input::parse(&self.spec, input)?;
        let workspace = &context.workspace;
        let (title, access) = (self.tool.title(&input, workspace), self.tool.access(&input));
        let locations = self.tool.locations(&input, workspace);
        let call = Box::new(Call { entry: self, input });
        Ok(Prepared { locations, ..Prepared::new(T::NAME, T::KIND, title, access, workspace, call) })
    }
}
