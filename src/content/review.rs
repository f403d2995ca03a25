//! The review of the changes of a turn or of a call: what is offered, and the user's decisions.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the automatic call that shows a review of changes, and the code of notices about it.
pub(crate) const REVIEW: &str = "review";

/// The changed files that a permission request offers for review. The content of the request shows
/// the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReviewOffer {
    /// All changed files.
    pub files: Vec<ReviewFile>,
}

/// A changed file. A file that was created or deleted, is too large or is not text has no hunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ReviewFile {
    /// The path, which an answer repeats.
    pub path: PathBuf,
    /// In the order of the file.
    pub hunks: Vec<ReviewHunk>,
}

/// A hunk of a changed file, with up to three unchanged lines before and after the change: the
/// lines that it replaces, and the lines in their place. Line numbers start at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReviewHunk {
    /// The number of the hunk in its file, from 1.
    pub hunk: u32,
    /// First replaced line.
    pub old_start: u32,
    /// Number of replaced lines.
    pub old_lines: u32,
    /// First new line.
    pub new_start: u32,
    /// Number of new lines.
    pub new_lines: u32,
}

/// Decisions that differ from the chosen option of a review.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReviewAnswer {
    /// Hunks and files whose changes are accepted or rejected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<HunkDecision>,
    /// Texts of the user in place of changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<ReviewEdit>,
}

/// Accepts or rejects a hunk or a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HunkDecision {
    /// A path of the offer.
    pub path: PathBuf,
    /// Number of the hunk; missing for the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunk: Option<u32>,
    /// True if the change stays.
    pub accept: bool,
}

/// The user's own text in place of the new lines of a hunk or of a file. Decisions about hunks of a
/// file with its own text are applied to this text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewEdit {
    /// A path of the offer.
    pub path: PathBuf,
    /// Number of the hunk; missing for the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hunk: Option<u32>,
    /// The new text.
    pub text: String,
}

impl ReviewAnswer {
    /// Fails if the answer names a file or hunk that `offer` does not contain, or one of them
    /// twice.
    pub(crate) fn check(&self, offer: &ReviewOffer) -> Result<(), String> {
        let decisions = self.hunks.iter().map(|one| ("hunks", one.path.as_path(), one.hunk));
        let edits = self.edits.iter().map(|one| ("edits", one.path.as_path(), one.hunk));
        let mut seen: Vec<(&Path, Option<u32>)> = Vec::new();
        for (field, path, hunk) in decisions.chain(edits) {
            let shown = path.display();
            let Some(file) = offer.files.iter().find(|file| file.path == path) else {
                return Err(format!("{field}: {shown} is not in this review"));
            };
            if let Some(hunk) = hunk.filter(|hunk| !file.hunks.iter().any(|one| one.hunk == *hunk)) {
                return Err(format!("{field}: {shown} has no hunk {hunk}"));
            }
            if seen.contains(&(path, hunk)) {
                return Err(format!("{field}: two decisions about the same part of {shown}: withdraw one of them"));
            }
            seen.push((path, hunk));
        }
        Ok(())
    }
}

/// The details of the call [`REVIEW`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReviewDetails {
    pub files: Vec<ReviewResult>,
}

impl ReviewDetails {
    /// Returns whether the user rejected or changed a part of the changes.
    pub(crate) fn has_rejections(&self) -> bool {
        self.files.iter().any(|file| !matches!(file.decision, FileDecision::Accepted | FileDecision::None))
    }
}

/// The end of the review of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReviewResult {
    #[serde(default)]
    pub path: PathBuf,
    pub decision: FileDecision,
    /// The file was changed during the review, so the decision did not change it.
    #[serde(default)]
    pub conflict: bool,
}

/// The user's decision about the changes to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileDecision {
    Accepted,
    Rejected,
    /// The user wrote another text.
    Edited,
    /// Some parts were rejected or edited.
    Partial,
    /// The review ended without a decision.
    None,
    /// A decision that only a newer version of nuncio knows.
    #[serde(other)]
    Unknown,
}

impl FileDecision {
    /// Returns the decision as a word.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            FileDecision::Accepted => "accepted",
            FileDecision::Rejected => "rejected",
            FileDecision::Edited => "edited",
            FileDecision::Partial => "partial",
            FileDecision::None => "none",
            FileDecision::Unknown => "unknown",
        }
    }
}
