//! The user's editor.

use std::path::Path;

use crate::config::Environment;
use crate::process::Command;

/// Creates the command that edits a file in `$VISUAL`, else in `$EDITOR`, else in vi. Also returns
/// the editor's name.
pub(in crate::cli) fn editor_command(environment: &Environment, file: &Path, cwd: &Path) -> (Command, String) {
    let editor = environment.get("VISUAL").or(environment.get("EDITOR")).unwrap_or("vi").to_owned();
    let words = editor.split_whitespace().map(String::from).chain([file.to_string_lossy().into_owned()]);
    (Command::program(words, cwd), editor)
}
