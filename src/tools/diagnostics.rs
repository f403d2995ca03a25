//! `diagnostics`: the diagnostics of language servers, on request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::{Location, ToolKind};
use crate::lsp::{self, Diagnostic};
use crate::permission::Access;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use crate::workspace::Workspace;

pub(super) struct Diagnostics;

/// Shows errors and warnings of the language server. Edits report new ones automatically.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct DiagnosticsInput {
    /// Default: all files checked so far.
    #[serde(default, alias = "path", alias = "filePath", alias = "file")]
    file_path: Option<String>,
}

/// The details of the result of a `diagnostics` call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DiagnosticsDetails {
    diagnostics: Vec<Diagnostic>,
}

impl Tool for Diagnostics {
    type Input = DiagnosticsInput;
    type Details = DiagnosticsDetails;
    const NAME: &'static str = "diagnostics";
    const LABEL: &'static str = "Read diagnostics";
    const KIND: ToolKind = ToolKind::Search;
    const PROPERTIES: ToolProperties = ToolProperties { lists_files: true, ..ToolProperties::NONE };

    fn title(&self, input: &DiagnosticsInput, workspace: &Workspace) -> String {
        match &input.file_path {
            Some(path) => format!("Diagnostics of {}", workspace.show(&workspace.resolve(path).path)),
            None => "Diagnostics".into(),
        }
    }

    fn locations(&self, input: &DiagnosticsInput, workspace: &Workspace) -> Vec<Location> {
        input.file_path.iter().map(|path| Location { path: workspace.resolve(path).path, line: None }).collect()
    }

    fn access(&self, input: &DiagnosticsInput) -> Access {
        input.file_path.as_ref().map_or_else(Access::none, Access::read)
    }

    async fn run(&self, input: DiagnosticsInput, context: &ToolContext) -> Result<ToolOutput<DiagnosticsDetails>, ToolError> {
        let Some(path) = &input.file_path else {
            let mut known = context.languages.known();
            known.retain(|diagnostic| context.path_filter.as_ref().is_none_or(|hidden| !hidden(&diagnostic.file_path)));
            return Ok(output(known, "no diagnostics so far; pass file_path to check a file", context));
        };
        let resolved = context.workspace.resolve(path);
        let shown = context.workspace.show(&resolved.path);
        let found = context.unless_cancelled(context.languages.diagnose(&resolved.real, context.server_limits())).await?;
        let found = found.map_err(|why| ToolError(format!("{shown}: {why}")))?;
        Ok(output(found, &format!("no diagnostics in {shown}"), context))
    }
}

fn output(diagnostics: Vec<Diagnostic>, none: &str, context: &ToolContext) -> ToolOutput<DiagnosticsDetails> {
    let text = if diagnostics.is_empty() { none.into() } else { lsp::render(&diagnostics, |path| context.workspace.show(path)) };
    ToolOutput::text(text, DiagnosticsDetails { diagnostics })
}
