//! The `Tool` trait, in which each tool has its own input type, and its type-erased form for the
//! table of tools.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::ToolContext;
use super::input;
use super::output::{ToolError, ToolOutput};
use crate::config::AccessShape;
use crate::content::{Location, ToolContent, ToolKind};
use crate::lsp::Diagnostic;
use crate::model::ToolSpec;
use crate::permission::Access;
use crate::workspace::{ResolvedPath, Workspace};

/// A tool that models can call. Models receive the doc comment of `Input` as the description of the
/// tool, and the doc comments of its fields as the descriptions of the arguments.
pub(crate) trait Tool: Send + Sync + 'static {
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// The typed result, an object. Clients receive its JSON; schema/tools.json describes it.
    type Details: Serialize + JsonSchema + Send;
    /// Name on the wire.
    const NAME: &'static str;
    /// Name for users.
    const LABEL: &'static str;
    /// Other names that models use.
    const ALIASES: &'static [&'static str] = &[];
    /// The kind of the tool, which only determines the icon of its calls in clients.
    const KIND: ToolKind;
    /// Properties of a tool that determine how its calls are checked for permission and how their
    /// results are processed.
    const PROPERTIES: ToolProperties = ToolProperties::NONE;
    /// The kinds of access that calls can have besides [`Access::none`].
    const ACCESS: &'static [AccessShape] = AccessShape::READ;

    /// Completes the input with what the call uses by default, before everything else.
    fn complete(&self, _input: &mut Self::Input, _context: &ToolContext) -> Result<(), ToolError> {
        Ok(())
    }

    /// Returns the title of a call for users, in one line.
    fn title(&self, input: &Self::Input, workspace: &Workspace) -> String;

    /// Returns the files that the call reads or writes, for clients that follow along.
    fn locations(&self, _input: &Self::Input, _workspace: &Workspace) -> Vec<Location> {
        Vec::new()
    }

    /// Returns everything that the call will access, for the permission check. Must be pure.
    fn access(&self, input: &Self::Input) -> Access;

    /// Returns content that is shown with the permission request. Must not change anything. An
    /// error says why the call would fail.
    fn preview(
        &self,
        _input: &Self::Input,
        _context: &ToolContext,
    ) -> impl Future<Output = Result<Vec<ToolContent>, ToolError>> + Send {
        async { Ok(Vec::new()) }
    }

    /// Runs the call. Returns soon after `context.cancel`, with no process left running.
    fn run(
        &self,
        input: Self::Input,
        context: &ToolContext,
    ) -> impl Future<Output = Result<ToolOutput<Self::Details>, ToolError>> + Send;
}

/// Properties of a tool that decide how its calls are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolProperties {
    /// True if results list many files. Paths that permission rules hide are then omitted
    /// ([`ToolContext::path_filter`]).
    pub lists_files: bool,
    /// True if calls edit files. New diagnostics for these files are then added to the result.
    pub edits_files: bool,
    /// True if the results of a writing call reveal content of its files. Permission rules for
    /// reading then apply too.
    pub shows_content: bool,
    /// True if calls run any command. Permission rules for `bash` then apply too.
    pub runs_commands: bool,
}

impl ToolProperties {
    pub(crate) const NONE: ToolProperties =
        ToolProperties { lists_files: false, edits_files: false, shows_content: false, runs_commands: false };
}

/// A tool whose input type is erased. See [`Tool`].
pub trait AnyTool: Send + Sync {
    /// Returns the name on the wire.
    fn name(&self) -> &str {
        &self.spec().name
    }

    /// Returns other names that models use.
    fn aliases(&self) -> &[&str] {
        &[]
    }

    /// Returns the name for users.
    fn label(&self) -> &str;
    /// Returns the kind of the tool, which determines the icon of its calls in clients.
    fn kind(&self) -> ToolKind;
    /// Returns the specification for models: name, description and input schema.
    fn spec(&self) -> &ToolSpec;

    /// Returns the JSON schema of a result's details.
    fn details_schema(&self) -> Value;

    /// Returns the kinds of access that calls can have, which rules are checked against.
    fn access(&self) -> &'static [AccessShape];

    /// Parses the input. The error names the invalid field.
    fn prepare(self: Arc<Self>, input: Value, context: &ToolContext) -> Result<PreparedCall, ToolError>;
}

/// A call with parsed, immutable input, ready for the permission check and then to run.
pub struct PreparedCall {
    /// The tool's own name, even if the model used an alias.
    pub name: String,
    pub kind: ToolKind,
    pub properties: ToolProperties,
    pub title: String,
    pub locations: Vec<Location>,
    pub access: Access,
    /// The resolved paths of `access`, in the same order, for the permission check.
    pub resolved: Vec<ResolvedPath>,
    /// Digest of the definition of an MCP tool and its server, which a remembered permission
    /// depends on.
    pub definition: Option<String>,
    /// True for an MCP tool that, as its server says, changes nothing.
    pub reads_only: bool,
    /// The input with the tool's own names and types of the arguments, however the model wrote
    /// them. Hooks receive this input.
    pub input: Value,
    /// The tool that prepared the call, if the model called it through another tool or by another
    /// name.
    pub target: Option<Arc<dyn AnyTool>>,
    call: Box<dyn AnyCall>,
}

impl PreparedCall {
    /// Creates a call of the tool `name`, without locations and properties. Resolves the paths of
    /// `access`.
    pub(crate) fn new(
        name: &str,
        kind: ToolKind,
        title: String,
        access: Access,
        workspace: &Workspace,
        input: Value,
        call: Box<dyn AnyCall>,
    ) -> PreparedCall {
        let resolved = access.paths.iter().map(|path| workspace.resolve(path)).collect();
        let (properties, locations) = (ToolProperties::NONE, Vec::new());
        PreparedCall {
            name: name.into(),
            kind,
            properties,
            title,
            locations,
            access,
            resolved,
            definition: None,
            reads_only: false,
            input,
            target: None,
            call,
        }
    }

    /// Returns content that is shown with the permission request; see [`Tool::preview`].
    pub async fn preview(&self, context: &ToolContext) -> Result<Vec<ToolContent>, ToolError> {
        self.call.preview(&self.pinned(context)).await
    }

    /// Runs the call; see [`Tool::run`]. Fails if a path resolves differently than at the
    /// permission check.
    pub async fn run(self, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        for (path, resolved) in self.access.paths.iter().zip(&self.resolved) {
            let now = context.workspace.resolve(path).real;
            if now != resolved.real {
                let (before, now) = (resolved.real.display(), now.display());
                return Err(ToolError(format!("{path} resolved to {before} at the permission check and to {now} now; call again")));
            }
        }
        let context = self.pinned(context);
        self.call.run(&context).await
    }

    /// Returns a copy of the context that resolves the call's paths as at the permission check.
    fn pinned(&self, context: &ToolContext) -> ToolContext {
        let paths = self.access.paths.iter().cloned().zip(self.resolved.iter().cloned());
        let workspace = Workspace::clone(&context.workspace).with_resolved(paths);
        ToolContext { workspace: Arc::new(workspace), ..context.clone() }
    }
}

/// A call whose input type is erased.
pub(crate) trait AnyCall: Send + Sync {
    /// Returns content that is shown with the permission request; see [`Tool::preview`].
    fn preview<'a>(&'a self, _context: &'a ToolContext) -> BoxFuture<'a, Result<Vec<ToolContent>, ToolError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Runs the call; see [`Tool::run`].
    fn run<'a>(self: Box<Self>, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

struct Call<T: Tool> {
    entry: Arc<Entry<T>>,
    input: T::Input,
}

impl<T: Tool> AnyCall for Call<T> {
    fn preview<'a>(&'a self, context: &'a ToolContext) -> BoxFuture<'a, Result<Vec<ToolContent>, ToolError>> {
        Box::pin(self.entry.tool.preview(&self.input, context))
    }

    fn run<'a>(self: Box<Self>, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.entry.tool.run(self.input, context).await?.into_json() })
    }
}

struct Entry<T> {
    tool: T,
    /// Text at the end of the tool's description, after that of its input type.
    description: String,
    /// Built when it is first needed: many processes never send it to a model.
    spec: OnceLock<ToolSpec>,
}

/// Creates the JSON schema of a serialized `S`, without references.
pub(crate) fn schema_of<S: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<S>();
    schema.remove("title");
    schema.to_value()
}

/// Wraps `tool` for a table of tools.
pub(crate) fn entry<T: Tool>(tool: T) -> Arc<dyn AnyTool> {
    entry_with(tool, "")
}

/// Wraps `tool` for a table of tools, as [`entry`] does, and appends `description` to the
/// tool's description.
pub(crate) fn entry_with<T: Tool>(tool: T, description: &str) -> Arc<dyn AnyTool> {
    Arc::new(Entry { tool, description: description.into(), spec: OnceLock::new() })
}

impl<T: Tool> AnyTool for Entry<T> {
    fn name(&self) -> &str {
        T::NAME
    }

    fn aliases(&self) -> &[&str] {
        T::ALIASES
    }

    fn label(&self) -> &str {
        T::LABEL
    }

    fn kind(&self) -> ToolKind {
        T::KIND
    }

    fn spec(&self) -> &ToolSpec {
        self.spec.get_or_init(|| {
            let mut spec = input::spec::<T::Input>(T::NAME);
            spec.description += &self.description;
            spec
        })
    }

    fn access(&self) -> &'static [AccessShape] {
        T::ACCESS
    }

    fn details_schema(&self) -> Value {
        let mut schema = schema_of::<T::Details>();
        if T::PROPERTIES.edits_files {
            schema["properties"]["diagnostics"] = schema_of::<Vec<Diagnostic>>();
        }
        schema
    }

    fn prepare(self: Arc<Self>, input: Value, context: &ToolContext) -> Result<PreparedCall, ToolError> {
        let (mut input, corrected): (T::Input, Value) = input::parse(self.spec(), input)?;
        self.tool.complete(&mut input, context)?;
        let access = self.tool.access(&input);
        // Resolve each path once, for the title, the locations and the permission check.
        let resolved = access.paths.iter().map(|path| (path.clone(), context.workspace.resolve(path)));
        let workspace = &Workspace::clone(&context.workspace).with_resolved(resolved);
        let title = self.tool.title(&input, workspace);
        debug_assert!(access == Access::none() || T::ACCESS.iter().any(|shape| access.has(shape)), "{}: {access:?}", T::NAME);
        let locations = self.tool.locations(&input, workspace);
        let call = Box::new(Call { entry: self, input });
        Ok(PreparedCall {
            locations,
            properties: T::PROPERTIES,
            ..PreparedCall::new(T::NAME, T::KIND, title, access, workspace, corrected, call)
        })
    }
}
