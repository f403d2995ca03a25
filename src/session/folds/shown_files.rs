//! The files of a session whose whole content its model knows.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::Value;

use crate::content::{Part, Role, ToolStatus};
use crate::event::{Body, Event, ToolEnd};

/// The files that the tools of a session have shown or written, by path.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShownFiles(BTreeMap<PathBuf, ShownFile>);

#[derive(Clone, Debug, Default)]
struct ShownFile {
    /// When the model last knew the whole content, in milliseconds since the Unix epoch.
    known_at: Option<u64>,
    /// True if the model knows the content from several reads of parts.
    by_parts: bool,
    /// Lines of the file at the last read of a part.
    total: u64,
    /// The parts that were read since then: the first line, and the line after the last one.
    parts: Vec<(u64, u64)>,
    /// The time of the first of these reads.
    parts_since: u64,
}

/// The fields that the fold reads of the details of `read`, `write`, `edit` and `apply_patch`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FileDetails {
    file_path: PathBuf,
    total_lines: u64,
    lines_read: u64,
    offset: u64,
    truncated: bool,
    diff: String,
    kind: String,
    files: Vec<FileDetails>,
}

impl ShownFiles {
    /// Returns when the model last knew the whole content of the file, in milliseconds since the
    /// Unix epoch.
    pub(crate) fn known_at(&self, path: &Path) -> Option<u64> {
        self.0.get(path).and_then(|file| file.known_at)
    }

    /// Returns whether the last call for the file showed or wrote its whole content.
    pub(crate) fn is_last_seen_whole(&self, path: &Path) -> bool {
        self.0.get(path).is_some_and(|file| file.known_at.is_some() && !file.by_parts && file.parts.is_empty())
    }

    /// Adds an event. Copies shared files only if the event concerns them.
    pub(super) fn apply(files: &mut Arc<ShownFiles>, event: &Event) {
        match &event.body {
            Body::ToolCompleted(ToolEnd { tool: Some(tool), status: ToolStatus::Completed, details: Some(details), .. })
                if ["read", "write", "edit", "apply_patch"].contains(&&*tool.name) =>
            {
                Arc::make_mut(files).add_call(&tool.name, details, event.at_ms);
            }
            Body::MessageCompleted { role: Role::User, parts, .. } => {
                let uris = parts.iter().filter_map(|part| if let Part::Resource { uri, .. } = part { Some(uri) } else { None });
                for path in uris.filter_map(|uri| file_path(uri)) {
                    Arc::make_mut(files).0.insert(path, ShownFile::known(event.at_ms));
                }
            }
            _ => {}
        }
    }

    fn add_call(&mut self, tool: &str, details: &Value, at_ms: u64) {
        let Ok(details) = FileDetails::deserialize(details) else { return };
        match tool {
            "read" => self.add_lines(details, at_ms),
            "write" => drop(self.0.insert(details.file_path, ShownFile::known(at_ms))),
            "edit" if details.diff.starts_with("--- /dev/null") => {
                drop(self.0.insert(details.file_path, ShownFile::known(at_ms)));
            }
            "edit" => self.changed(&details.file_path, at_ms),
            _ => details.files.into_iter().for_each(|file| match &*file.kind {
                "add" => drop(self.0.insert(file.file_path, ShownFile::known(at_ms))),
                _ => self.changed(&file.file_path, at_ms),
            }),
        }
    }

    fn add_lines(&mut self, details: FileDetails, at_ms: u64) {
        let FileDetails { file_path, total_lines, lines_read, offset, truncated, .. } = details;
        let next = offset + lines_read;
        let has_partial_lines = truncated && next > total_lines;
        if has_partial_lines {
            return;
        }
        if offset <= 1 && next > total_lines {
            self.0.insert(file_path, ShownFile::known(at_ms));
            return;
        }
        let file = self.0.entry(file_path).or_default();
        if file.total != total_lines || file.parts.is_empty() {
            (file.total, file.parts_since) = (total_lines, at_ms);
            file.parts.clear();
        }
        file.parts.push((offset, next));
        if file.has_all_parts() {
            // The file may have changed between the reads.
            *file = ShownFile { by_parts: true, ..ShownFile::known(file.parts_since) };
        }
    }

    /// Adds a change of a part: the model knows the file if it knew it before, and has not read
    /// parts since, which another program may have changed.
    fn changed(&mut self, path: &Path, at_ms: u64) {
        match self.0.get_mut(path) {
            Some(file) if file.known_at.is_some() && !file.by_parts && file.parts.is_empty() => *file = ShownFile::known(at_ms),
            _ => drop(self.0.remove(path)),
        }
    }
}

impl ShownFile {
    fn known(at_ms: u64) -> ShownFile {
        ShownFile { known_at: Some(at_ms), ..ShownFile::default() }
    }

    fn has_all_parts(&self) -> bool {
        let mut parts = self.parts.clone();
        parts.sort_unstable();
        let reached = parts.iter().fold(1, |reached, (first, next)| if *first <= reached { reached.max(*next) } else { reached });
        reached > self.total
    }
}

/// Returns the path in the URI of a whole file.
fn file_path(uri: &str) -> Option<PathBuf> {
    let path = uri.strip_prefix("file://").filter(|path| path.starts_with('/') && !path.contains(['#', '?']))?;
    Some(PathBuf::from(OsString::from_vec(percent_decode_str(path).collect())))
}
