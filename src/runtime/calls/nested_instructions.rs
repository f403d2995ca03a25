//! Adds the instruction files of directories below the session's directory to the result of the
//! first tool call that touches the directory.

use std::path::PathBuf;

use crate::content::Part;
use crate::context::system_prompt;
use crate::runtime::calls::call_host::CallHost;
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::toolkit::ToolOutput;

/// Adds the instruction files that apply to the paths `touched` and that the conversation does not
/// have yet.
pub(in crate::runtime) async fn add(
    output: &mut ToolOutput,
    host: &dyn CallHost,
    environment: &SessionEnvironment,
    touched: Vec<PathBuf>,
) {
    let (workspace, settings) = (environment.workspace.clone(), &environment.loaded.settings.instructions);
    let below = |path: &PathBuf| path.starts_with(&workspace.cwd) && *path != workspace.cwd;
    if !settings.auto_inject || !touched.iter().any(below) {
        return;
    }
    let (services, patterns) = (environment.services.clone(), settings.patterns.clone());
    let reading = workspace.clone();
    let read = tokio::task::spawn_blocking(move || {
        let search = services.instruction_search(&reading.cwd, &patterns);
        let dirs = touched.iter().filter_map(|path| if path.is_dir() { Some(path.as_path()) } else { path.parent() });
        let mut found: Vec<_> = dirs.flat_map(|dir| search.below(dir).taken).collect();
        found.dedup();
        found
    });
    for instruction in read.await.unwrap_or_default() {
        let file = workspace.show(&instruction.path);
        if host.needs_instructions(&file) && environment.claim_instructions(&file) {
            output.parts.push(Part::note(system_prompt::announced(&file)));
            output.parts.push(Part::text(system_prompt::instructions(&file, &instruction.text)));
        }
    }
}
