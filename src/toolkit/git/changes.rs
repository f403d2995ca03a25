//! Parses the list of changed files in a diff (`--raw --numstat -z`), for diffs and commits.

use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::repository::{Git, GitOutput};

/// Options for every diff, which override the git settings.
pub(crate) const DIFF_OPTIONS: [&str; 9] = [
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-relative",
    "--find-renames",
    "--ignore-submodules=dirty",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// A changed file in the details of a call.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ChangedFile {
    /// Displayed path.
    pub path: String,
    /// `added`, `copied`, `deleted`, `renamed`, `type_changed`, `conflicted` or `modified`.
    pub status: &'static str,
    /// Displayed path before a rename or copy.
    pub from: Option<String>,
    /// Number of inserted lines; absent for a binary file.
    pub insertions: Option<u64>,
    /// Number of deleted lines; absent for a binary file.
    pub deletions: Option<u64>,
    /// Path relative to the top of the working tree.
    #[serde(skip)]
    raw: Vec<u8>,
    /// Path before a rename or copy, relative to the top of the working tree.
    #[serde(skip)]
    raw_from: Option<Vec<u8>>,
}

impl ChangedFile {
    /// Returns the new path and, after a rename or copy, the old path, relative to the top of the
    /// working tree.
    pub(crate) fn raw_paths(&self) -> impl Iterator<Item = &[u8]> {
        [Some(&self.raw), self.raw_from.as_ref()].into_iter().flatten().map(Vec::as_slice)
    }

    /// Describes the change in one line: `modified src/a.rs +1 -2`.
    pub(crate) fn line(&self) -> String {
        let from = self.from.as_ref().map(|from| format!("{from} -> ")).unwrap_or_default();
        let counts = match (self.insertions, self.deletions) {
            (Some(insertions), Some(deletions)) => format!(" +{insertions} -{deletions}"),
            _ => String::new(),
        };
        format!("{} {from}{}{counts}", self.status, self.path)
    }
}

/// Returns the name for a status letter; see git-diff(1), "Raw output format".
pub(crate) fn status_name(letter: u8) -> &'static str {
    match letter {
        b'A' => "added",
        b'C' => "copied",
        b'D' => "deleted",
        b'R' => "renamed",
        b'T' => "type_changed",
        b'U' => "conflicted",
        _ => "modified",
    }
}

/// Parses the output of a diff: records `:MODE MODE ID ID STATUS` followed by one path or, for a
/// rename or copy, two, and records `INSERTIONS TAB DELETIONS TAB PATH`, where an empty path is
/// followed by both paths of a rename.
pub(crate) fn parse(git: &Git<'_>, output: &GitOutput) -> Vec<ChangedFile> {
    let mut changes: Vec<ChangedFile> = Vec::new();
    let mut fields = output.fields();
    while let Some(field) = fields.next() {
        if let Some(record) = field.strip_prefix(b":") {
            let letter = record.split(|byte| *byte == b' ').nth(4).and_then(<[u8]>::first).copied().unwrap_or(b'M');
            let from = if matches!(letter, b'R' | b'C') { fields.next() } else { None };
            let Some(raw) = fields.next() else { break };
            // git lists a conflicted file twice: as conflicted, and compared with our side.
            if !changes.iter().any(|change| change.raw == raw) {
                changes.push(ChangedFile {
                    path: git.show(raw),
                    status: status_name(letter),
                    from: from.map(|from| git.show(from)),
                    insertions: None,
                    deletions: None,
                    raw: raw.to_owned(),
                    raw_from: from.map(<[u8]>::to_owned),
                });
            }
            continue;
        }
        let mut columns = field.splitn(3, |byte| *byte == b'\t');
        let mut count = || columns.next().and_then(|count| std::str::from_utf8(count).ok()?.parse().ok());
        let (insertions, deletions) = (count(), count());
        let raw = match columns.next() {
            Some(raw) if !raw.is_empty() => raw,
            _ => fields.nth(1).unwrap_or_default(),
        };
        if let Some(change) = changes.iter_mut().find(|change| change.raw == raw) {
            (change.insertions, change.deletions) = (insertions, deletions);
        }
    }
    changes
}
