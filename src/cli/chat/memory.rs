//! Local settings and files that the chat shows or changes: hooks, and the instructions in
//! AGENTS.md.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::api::App;
use crate::error::{Error, Kind, Result};
use crate::workspace::{self, FileChange, followed_path};

/// Maximum size of a line of `/memory`, in bytes.
const MEMORY_BYTES_MAX: usize = 4000;

/// Adds a line to an AGENTS.md, which is `project` or `user`, followed by the text. Returns the
/// path.
pub(super) fn add(app: &App, directory: &Path, argument: &str) -> Result<PathBuf> {
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
    let real = followed_path(&path);
    if scope == "project" && !real.starts_with(followed_path(&directory)) {
        let message = format!("/memory: {} is a symlink to {}, outside of the project", path.display(), real.display());
        return Err(Error::new(Kind::Forbidden, message).hint("edit that file yourself"));
    }
    let failed = |error| Error::io(format_args!("writing {}", path.display()), error);
    let mut content = Vec::new();
    match workspace::open(&real).and_then(|mut file| file.read_to_end(&mut content)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let separator = if content.is_empty() || content.ends_with(b"\n") { "" } else { "\n" };
    content.extend_from_slice(format!("{separator}- {text}\n").as_bytes());
    let change = FileChange::Put { real: &real, bytes: &content, like: None };
    workspace::commit(&[change]).map_err(|change| failed(change.error))?;
    Ok(path)
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
