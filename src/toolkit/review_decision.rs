//! The files of a review, and the decisions about them: of the review of a turn's changes, and of
//! the permission request of a call that changes files.

use std::path::Path;

use super::shown_change::shown;
use super::turn_changes::TurnFile;
use crate::content::{FileDecision, ReviewAnswer, ReviewEdit, ReviewFile, ReviewHunk, ReviewOffer, ToolContent};
use crate::limits;
use crate::patch::{DiffHunk, HunkChoice, hunks, line_text, merge, merge_texts};
use crate::workspace::ResolvedPath;

fn offered(path: &Path, hunks: &[DiffHunk]) -> ReviewFile {
    let line = |line: usize| line as u32;
    let hunk = |(at, hunk): (usize, &DiffHunk)| ReviewHunk {
        hunk: line(at + 1),
        old_start: line(hunk.old.start + 1),
        old_lines: line(hunk.old.len()),
        new_start: line(hunk.new.start + 1),
        new_lines: line(hunk.new.len()),
    };
    ReviewFile { path: path.to_owned(), hunks: hunks.iter().enumerate().map(hunk).collect() }
}

/// Describes the changes of a call that writes `paths` files, from the content of its permission
/// request. `None` if the answer cannot decide about parts: files are moved or deleted, or a change
/// is not shown as text.
pub(crate) fn offer(content: &[ToolContent], paths: usize) -> Option<ReviewOffer> {
    let file = |content: &ToolContent| match content {
        ToolContent::Diff { new_text, .. } if new_text.is_empty() => None,
        ToolContent::Diff { path, old_text: None, .. } => Some(offered(path, &[])),
        ToolContent::Diff { path, old_text: Some(old), new_text } => {
            Some(offered(path, &hunks(old.as_bytes(), new_text.as_bytes())))
        }
        _ => None,
    };
    let files: Vec<ReviewFile> = content.iter().map(file).collect::<Option<_>>()?;
    (!files.is_empty() && files.len() == paths).then_some(ReviewOffer { files })
}

/// The changes that a permission request shows, about parts of which its answer may decide.
#[derive(Debug)]
pub(crate) struct OfferedReview {
    pub offer: ReviewOffer,
    pub content: Vec<ToolContent>,
}

impl OfferedReview {
    /// Fails if the answer does not fit the offer, or if the user's text of a file and a decision
    /// about one of its hunks change the same lines.
    pub(crate) fn check(&self, answer: &ReviewAnswer) -> Result<(), String> {
        answer.check(&self.offer)?;
        for ReviewEdit { path, text, .. } in answer.edits.iter().filter(|edit| edit.hunk.is_none()) {
            for (number, choice) in decisions(answer, path).filter_map(|(hunk, choice)| Some((hunk?, choice))) {
                let shown = path.display();
                let Some((old, new, parts)) = self.parts(path) else {
                    return Err(format!("edits: the text replaces {shown} as a whole, so hunks of it cannot be named"));
                };
                let mut choices = vec![HunkChoice::New; parts.len()];
                choices[number as usize - 1] = choice;
                let decided = merge(old, new, &parts, &choices);
                if merge_texts(new, text.as_bytes(), &decided).is_none() {
                    return Err(format!(
                        "edits: the text of {shown} and the decision about its hunk {number} change the same lines: withdraw one of them"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the shown texts of a file with its hunks; `None` if not all of the file is shown.
    fn parts(&self, path: &Path) -> Option<(&[u8], &[u8], Vec<DiffHunk>)> {
        self.content.iter().find_map(|content| match content {
            ToolContent::Diff { path: shown, old_text: Some(old), new_text: new } if shown == path => {
                let parts = hunks(old.as_bytes(), new.as_bytes());
                self.offer.files.contains(&offered(path, &parts)).then_some((old.as_bytes(), new.as_bytes(), parts))
            }
            _ => None,
        })
    }
}

/// Returns the decisions of an answer about a file and its hunks.
fn decisions(answer: &ReviewAnswer, path: &Path) -> impl Iterator<Item = (Option<u32>, HunkChoice)> {
    let choice = |accept: bool| if accept { HunkChoice::New } else { HunkChoice::Old };
    let decided = answer.hunks.iter().filter(move |one| one.path == path).map(move |one| (one.hunk, choice(one.accept)));
    let edited = answer.edits.iter().filter(move |one| one.path == path);
    decided.chain(edited.map(|one| (one.hunk, HunkChoice::Text(one.text.clone()))))
}

/// The user's decisions about parts of the changes of a call.
#[derive(Debug)]
pub struct CallReview {
    /// The changes as the user saw them.
    pub content: Vec<ToolContent>,
    pub answer: ReviewAnswer,
}

impl CallReview {
    /// Returns the content that a file gets (`None`: no file) in place of `new`, which the model
    /// proposed. Fails if the user saw another change.
    pub(super) fn apply(
        &self,
        resolved: &ResolvedPath,
        name: &str,
        old: Option<&[u8]>,
        new: &[u8],
    ) -> Result<Option<Vec<u8>>, String> {
        if !self.content.contains(&shown(&resolved.path, name, old, Some(new))) {
            return Err(format!("stale: {name} was changed after the user was asked; read it again"));
        }
        let mut file = TurnFile::new(resolved, old.map(<[u8]>::to_vec));
        file.after = Some(new.to_vec());
        let mut reviewed = ReviewedFile::new(file);
        reviewed.apply(&self.answer);
        Ok(reviewed.result())
    }
}

/// A file of a review with the decisions about it.
pub(crate) struct ReviewedFile {
    pub file: TurnFile,
    pub hunks: Vec<DiffHunk>,
    /// The decision about the file, for its parts without their own decision.
    pub choice: HunkChoice,
    /// The decisions about single hunks.
    choices: Vec<Option<HunkChoice>>,
}

impl ReviewedFile {
    /// Prepares a changed file. All its changes are accepted until decided otherwise.
    pub(crate) fn new(file: TurnFile) -> ReviewedFile {
        let is_text = |bytes: &Vec<u8>| bytes.len() <= limits::DIFF_TEXT_BYTES_MAX && std::str::from_utf8(bytes).is_ok();
        let hunks = match (&file.before, &file.after) {
            (Some(before), Some(after)) if is_text(before) && is_text(after) => hunks(before, after),
            _ => Vec::new(),
        };
        ReviewedFile { choices: vec![None; hunks.len()], hunks, file, choice: HunkChoice::New }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file.resolved.path
    }

    /// Describes the file and its hunks for a permission request.
    pub(crate) fn offer(&self) -> ReviewFile {
        offered(self.path(), &self.hunks)
    }

    /// Returns one hunk of the file as permission requests show it.
    pub(crate) fn shown_hunk(&self, at: usize) -> ToolContent {
        let text = |bytes: &Option<Vec<u8>>, range| bytes.as_ref().map(|bytes| line_text(bytes, range)).unwrap_or_default();
        let hunk = &self.hunks[at];
        let (old_text, new_text) = (Some(text(&self.file.before, &hunk.old)), text(&self.file.after, &hunk.new));
        ToolContent::Diff { path: self.path().to_owned(), old_text, new_text }
    }

    /// Decides about the whole file.
    pub(crate) fn decide(&mut self, choice: HunkChoice) {
        self.choice = choice;
        self.choices.fill(None);
    }

    pub(crate) fn decide_hunk(&mut self, at: usize, choice: HunkChoice) {
        self.choices[at] = Some(choice);
    }

    /// Applies the decisions of an answer that name this file.
    pub(crate) fn apply(&mut self, answer: &ReviewAnswer) {
        let mut own: Vec<_> = decisions(answer, self.path()).collect();
        // A decision about the whole file does not override those about its hunks.
        own.sort_by_key(|(hunk, _)| *hunk);
        for (hunk, choice) in own {
            match hunk {
                None => self.choice = choice,
                Some(number) => self.choices[number as usize - 1] = Some(choice),
            }
        }
    }

    /// Returns the content of the file after the review; `None`: the file does not exist.
    pub(crate) fn result(&self) -> Option<Vec<u8>> {
        let whole = |choice: &HunkChoice| match choice {
            HunkChoice::Old => self.file.before.clone(),
            HunkChoice::New => self.file.after.clone(),
            HunkChoice::Text(text) => Some(text.clone().into_bytes()),
        };
        if self.choices.iter().all(Option::is_none) {
            return whole(&self.choice);
        }
        let (Some(before), Some(after)) = (&self.file.before, &self.file.after) else { return whole(&self.choice) };
        let (rest, own) = match &self.choice {
            HunkChoice::Text(own) => (&HunkChoice::New, Some(own.as_bytes())),
            choice => (choice, None),
        };
        let choices: Vec<HunkChoice> = self.choices.iter().map(|choice| choice.as_ref().unwrap_or(rest).clone()).collect();
        let decided = merge(before, after, &self.hunks, &choices);
        // The user's text wins over decisions about the same lines, which the check of an answer
        // refuses.
        Some(own.map_or(decided.clone(), |own| merge_texts(after, own, &decided).unwrap_or_else(|| own.to_vec())))
    }

    pub(crate) fn decision(&self) -> FileDecision {
        let result = self.result();
        match &self.choice {
            _ if result == self.file.after => FileDecision::Accepted,
            _ if result == self.file.before => FileDecision::Rejected,
            HunkChoice::Text(_) => FileDecision::Edited,
            _ => FileDecision::Partial,
        }
    }
}
