//! Local settings and files that the chat shows or changes: hooks, and the instructions in
//! AGENTS.md.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use crate::api::App;
use crate::error::{Error, Result};

/// Maximum size of a line of `/memory`, in bytes.
const MEMORY_BYTES_MAX: usize = 4000;

/// Adds a line to an AGENTS.md, which is `project` or `user`, followed by the text. Returns a
/// message with the path.
pub(super) fn add(app: &App, directory: &Path, argument: &str) -> Result<String> {
    let (scope, text) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let directory = match scope {
        "project" => directory.to_owned(),
        "user" => app.places.config.clone(),
        _ => return Err(Error::invalid_params("/memory: name the file first: project or user").hint("/memory project TEXT")),
    };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() || text.len() > MEMORY_BYTES_MAX {
        return Err(Error::invalid_params(format!("/memory: the text must have 1 to {MEMORY_BYTES_MAX} bytes")));
    }
    let path = directory.join("AGENTS.md");
    let failed = |error| Error::io(format_args!("writing {}", path.display()), error);
    std::fs::create_dir_all(&directory).map_err(failed)?;
    let old = std::fs::read(&path).unwrap_or_default();
    let separator = if old.is_empty() || old.ends_with(b"\n") { "" } else { "\n" };
    let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
    file.write_all(format!("{separator}- {text}\n").as_bytes()).map_err(failed)?;
    Ok(format!("added to {}; new sessions read it\n", path.display()))
}

/// Lists the hooks of the settings of a directory.
pub(super) fn hooks(app: &App, directory: &Path) -> Result<String> {
    let loaded = app.services.settings(directory)?;
    let hooks = loaded.settings.hooks.iter().map(|hook| {
        let event = serde_json::to_value(hook.event).ok().and_then(|event| event.as_str().map(String::from)).unwrap_or_default();
        let matches = hook.r#match.as_deref().map(|pattern| format!(" ({pattern})")).unwrap_or_default();
        format!("{event}{matches}: {}\n", hook.command.join(" "))
    });
    let hooks: String = hooks.collect();
    Ok(if hooks.is_empty() { "no hooks are set (docs/HOOKS.md)\n".into() } else { hooks })
}
