//! Commands of Gemini CLI, whose tool calls have no input: the command is the title, and the
//! directory is in the first text of the content, or at the end of the title in early versions
//! (`ShellToolInvocation` in its package `core`).

use serde_json::{Value, json};

/// Prefixes of the directory of a command; `]` ends the directory.
const DIRECTORIES: [&str; 2] = ["[current working directory ", "[in "];

/// Returns the input of a command whose tool call has only a title.
pub(super) fn input(call: &Value) -> Option<Value> {
    // After the end of the call, its content is the output.
    let describes = call["kind"] == "execute" && call["status"] != "completed" && call["status"] != "failed";
    let title = call["title"].as_str().filter(|_| describes)?;
    let details = call.pointer("/content/0/content/text").and_then(Value::as_str);
    let (command, directory) = match details.and_then(directory) {
        Some(directory) => (title, directory),
        None => title_with_directory(title)?,
    };
    Some(json!({ "command": command, "directory": directory }))
}

/// Returns the directory at the start of the details, which a description by the model may follow.
fn directory(details: &str) -> Option<&str> {
    let rest = DIRECTORIES.iter().find_map(|start| details.strip_prefix(start))?;
    let (directory, rest) = rest.split_once(']')?;
    (rest.is_empty() || rest.starts_with(" (") || rest == " [background]").then_some(directory)
}

/// Splits a title that ends with the details. The command and the description are written by the
/// model, so a title in which the details may begin at several places is not split.
fn title_with_directory(title: &str) -> Option<(&str, &str)> {
    let starts = DIRECTORIES.iter().flat_map(|start| title.match_indices(start)).map(|(at, _)| at);
    let mut starts: Vec<usize> = starts.collect();
    let start = starts.pop().filter(|_| starts.is_empty())?;
    let (command, details) = title.split_at(start);
    Some((command.strip_suffix(' ')?, directory(details)?))
}
