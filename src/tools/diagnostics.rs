//! `diagnostics`: the diagnostics of language servers, on request and after edits.

use futures_util::future::join_all;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Output, Tool, ToolContext, ToolError};
use crate::content::{Location, Part, ToolContent, ToolKind};
use crate::limits;
use crate::lsp::{self, Diagnostic, News};
use crate::permission::Access;
use crate::workspace::Workspace;

pub struct Diagnostics;

/// Shows errors and warnings of the language server. Edits report new ones automatically.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// Default: all files checked so far.
    #[serde(default, alias = "path", alias = "filePath", alias = "file")]
    file_path: Option<String>,
}

impl Tool for Diagnostics {
    type Input = Input;
    const NAME: &'static str = "diagnostics";
    const ALIASES: &'static [&'static str] = &[];
    const KIND: ToolKind = ToolKind::Search;

    fn title(&self, input: &Input, workspace: &Workspace) -> String {
        match &input.file_path {
            Some(path) => format!("Diagnostics of {}", workspace.show(&workspace.resolve(path).path)),
            None => "Diagnostics".into(),
        }
    }

    fn locations(&self, input: &Input, workspace: &Workspace) -> Vec<Location> {
        input.file_path.iter().map(|path| Location { path: workspace.resolve(path).path, line: None }).collect()
    }

    fn access(&self, input: &Input) -> Access {
        input.file_path.as_ref().map_or_else(Access::none, Access::read)
    }

    /// details: `{diagnostics: [Diagnostic]}`.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        let Some(path) = &input.file_path else {
            let mut known = context.languages.known();
            known.retain(|diagnostic| context.hidden.as_ref().is_none_or(|hidden| !hidden(&diagnostic.file_path)));
            return Ok(output(known, "no diagnostics so far; pass file_path to check a file", context));
        };
        let placed = context.workspace.resolve(path);
        let shown = context.workspace.show(&placed.path);
        let found = tokio::select! {
            found = context.languages.diagnose(&placed.real, context.sandbox.as_ref()) => found,
            () = context.cancel.cancelled() => return Err(ToolError::cancelled()),
        };
        let found = found.map_err(|why| ToolError(format!("{shown}: {why}")))?;
        Ok(output(found, &format!("no diagnostics in {shown}"), context))
    }
}

fn output(diagnostics: Vec<Diagnostic>, none: &str, context: &ToolContext) -> Output {
    let text = if diagnostics.is_empty() { none.into() } else { render(&diagnostics, context) };
    Output::text(text, json!({ "diagnostics": diagnostics }))
}

fn render(diagnostics: &[Diagnostic], context: &ToolContext) -> String {
    lsp::render(diagnostics, |path| context.workspace.show(path))
}

/// Adds the new diagnostics of the edited files to the result of an edit, and `diagnostics` to its
/// details. Returns soon after a cancellation.
pub async fn after_edit(output: &mut Output, context: &ToolContext) {
    let mut paths: Vec<_> =
        output.locations.iter().map(|location| context.workspace.resolve(&location.path.to_string_lossy()).real).collect();
    paths.sort();
    paths.dedup();
    paths.truncate(limits::LSP_CALL_FILES_MAX);
    let checks = join_all(paths.iter().map(|path| context.languages.after_edit(path, context.sandbox.as_ref())));
    let checked = tokio::select! {
        checked = checks => checked,
        () = context.cancel.cancelled() => return,
    };
    let mut all = Vec::new();
    let mut checked_any = false;
    for (path, news) in paths.iter().zip(checked) {
        let text = match news {
            None => continue,
            Some(News::Broken(why)) => format!("[{why}]\n"),
            Some(News::Diagnostics { new, first }) => {
                checked_any = true;
                let shown = context.workspace.show(path);
                let head = if first { format!("errors in {shown}:\n") } else { format!("new diagnostics in {shown}:\n") };
                let text = if new.is_empty() { String::new() } else { head + &render(&new, context) };
                all.extend(new);
                text
            }
        };
        if !text.is_empty() {
            output.parts.push(Part::text(&text));
            output.content.push(ToolContent::text(text));
        }
    }
    if checked_any && output.details.is_object() {
        output.details["diagnostics"] = json!(all);
    }
}
