//! The files of a difference between two trees, as git tells of them with `--raw --numstat -z`. What diffs and commits share.

use serde::Serialize;

use super::{Git, Said};

/// What every diff is asked with, whatever settings there are.
pub const FORM: [&str; 9] = [
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

/// A file that differs.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    pub path: String,
    pub status: &'static str,
    /// Where it was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Lines; none of a binary file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insertions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    #[serde(skip)]
    raw: Vec<u8>,
    #[serde(skip)]
    raw_from: Option<Vec<u8>>,
}

impl Change {
    /// Its paths, from the top, as git names them.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        [Some(&self.raw), self.raw_from.as_ref()].into_iter().flatten().map(Vec::as_slice)
    }

    /// `modified src/a.rs +1 -2`
    pub fn line(&self) -> String {
        let from = self.from.as_ref().map(|from| format!("{from} -> ")).unwrap_or_default();
        let counts = match (self.insertions, self.deletions) {
            (Some(insertions), Some(deletions)) => format!(" +{insertions} -{deletions}"),
            _ => String::new(),
        };
        format!("{} {from}{}{counts}", self.status, self.path)
    }
}

/// A letter of git-diff(1), "Raw output format".
pub fn kind(letter: u8) -> &'static str {
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

/// Reads `:MODE MODE ID ID STATUS`, path and perhaps another, and `INSERTIONS TAB DELETIONS TAB PATH`, or of a rename an empty path with
/// both behind it.
pub fn read(git: &Git<'_>, said: &Said) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let mut fields = said.fields();
    while let Some(field) = fields.next() {
        if let Some(record) = field.strip_prefix(b":") {
            let letter = record.split(|byte| *byte == b' ').nth(4).and_then(<[u8]>::first).copied().unwrap_or(b'M');
            let from = if matches!(letter, b'R' | b'C') { fields.next() } else { None };
            let Some(raw) = fields.next() else { break };
            // A conflict is told twice: as such, and by how the file differs from our side.
            if !changes.iter().any(|change| change.raw == raw) {
                changes.push(Change {
                    path: git.show(raw),
                    status: kind(letter),
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
