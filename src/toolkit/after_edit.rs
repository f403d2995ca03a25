//! Checks edited files with their language servers.

use futures_util::future::join_all;
use serde_json::json;

use super::context::ToolContext;
use super::output::ToolOutput;
use crate::content::{Part, ToolContent};
use crate::lsp::{self, EditDiagnostics};

/// Maximum number of files per tool call that are checked for diagnostics.
const LSP_CALL_FILES_MAX: usize = 10;

/// Adds the new diagnostics of the edited files to the result of an edit, and `diagnostics` to its
/// details. Returns soon after a cancellation.
pub(crate) async fn after_edit(output: &mut ToolOutput, context: &ToolContext) {
    let mut paths: Vec<_> =
        output.locations.iter().map(|location| context.workspace.resolve(&location.path.to_string_lossy()).real).collect();
    paths.sort();
    paths.dedup();
    paths.truncate(LSP_CALL_FILES_MAX);
    let checks = join_all(paths.iter().map(|path| context.languages.after_edit(path, context.server_limits())));
    let Ok(checked) = context.unless_cancelled(checks).await else { return };
    let mut all = Vec::new();
    let mut checked_any = false;
    for (path, news) in paths.iter().zip(checked) {
        let text = match news {
            None => continue,
            Some(EditDiagnostics::Broken(why)) => format!("[{why}]\n"),
            Some(EditDiagnostics::Diagnostics { new, first }) => {
                checked_any = true;
                let shown = context.workspace.show(path);
                let head = if first { format!("errors in {shown}:\n") } else { format!("new diagnostics in {shown}:\n") };
                let text =
                    if new.is_empty() { String::new() } else { head + &lsp::render(&new, |path| context.workspace.show(path)) };
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
