//! Checks of directories in method params.

use std::path::{Path, PathBuf};

use super::call_context::CallContext;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::workspace::real_path;

/// Checks that `path` is an existing directory that the client has access to. A relative path from
/// a local client is resolved against the working directory of this process; other clients must
/// send absolute paths. Error messages name `field`.
pub(crate) fn directory(cx: &CallContext, field: &str, path: &Path) -> Result<PathBuf> {
    let path = absolute(cx, path);
    if !path.is_absolute() {
        return Err(Error::invalid_params(format!("{field}: {} is not an absolute path", path.display())));
    }
    cx.client.require_dir(&path)?;
    if !path.is_dir() {
        return Err(Error::invalid_params(format!("{field}: {} is not a directory", path.display())));
    }
    Ok(path)
}

/// The subject of a completion.
pub(crate) enum Place {
    Session(SessionId),
    /// A directory in which a session will be created.
    Directory(PathBuf),
}

/// Returns the place that params name by either of two fields.
pub(crate) fn place(cx: &CallContext, session: Option<SessionId>, cwd: Option<PathBuf>) -> Result<Place> {
    match (session, cwd) {
        (Some(id), None) => Ok(Place::Session(id)),
        (None, Some(cwd)) => directory(cx, "cwd", &cwd).map(Place::Directory),
        _ => Err(Error::invalid_params("expected either sessionId or cwd")),
    }
}

/// Resolves a relative path from a local client; other paths are unchanged.
pub(crate) fn absolute(cx: &CallContext, path: &Path) -> PathBuf {
    let Some(base) = cx.client.local.as_ref().filter(|_| path.is_relative()) else { return path.into() };
    let joined = base.join(path);
    real_path(&joined)
}

/// Applies [`directory`] to each path of the field `additionalDirectories`.
pub(crate) fn directories(cx: &CallContext, paths: Option<Vec<PathBuf>>) -> Result<Vec<PathBuf>> {
    let checked = |(index, path): (usize, PathBuf)| directory(cx, &format!("additionalDirectories[{index}]"), &path);
    paths.into_iter().flatten().enumerate().map(checked).collect()
}
