//! The files of a review, and the decisions about them. Pure.

use std::path::Path;

use crate::content::{HunkDecision, ReviewAnswer, ReviewEdit, ReviewFile, ReviewHunk, ToolContent};
use crate::limits;
use crate::patch::{DiffHunk, HunkChoice, hunks, line_text, merge};
use crate::toolkit::TurnFile;

/// A file of a review with the decisions about it.
pub(in crate::agent) struct ReviewedFile {
    pub file: TurnFile,
    pub hunks: Vec<DiffHunk>,
    /// The decision about the file, for its parts without their own decision.
    pub choice: HunkChoice,
    /// The decisions about single hunks.
    choices: Vec<Option<HunkChoice>>,
}

impl ReviewedFile {
    /// Prepares a changed file. All its changes are accepted until decided otherwise.
    pub(in crate::agent) fn new(file: TurnFile) -> ReviewedFile {
        let is_text = |bytes: &Vec<u8>| bytes.len() <= limits::DIFF_TEXT_BYTES_MAX && std::str::from_utf8(bytes).is_ok();
        let hunks = match (&file.before, &file.after) {
            (Some(before), Some(after)) if is_text(before) && is_text(after) => hunks(before, after),
            _ => Vec::new(),
        };
        ReviewedFile { choices: vec![None; hunks.len()], hunks, file, choice: HunkChoice::New }
    }

    pub(in crate::agent) fn path(&self) -> &Path {
        &self.file.resolved.path
    }

    /// Describes the file and its hunks for a permission request.
    pub(in crate::agent) fn offer(&self) -> ReviewFile {
        let line = |line: usize| line as u32;
        let hunk = |(at, hunk): (usize, &DiffHunk)| ReviewHunk {
            hunk: line(at + 1),
            old_start: line(hunk.old.start + 1),
            old_lines: line(hunk.old.len()),
            new_start: line(hunk.new.start + 1),
            new_lines: line(hunk.new.len()),
        };
        ReviewFile { path: self.path().to_owned(), hunks: self.hunks.iter().enumerate().map(hunk).collect() }
    }

    /// Returns one hunk of the file as permission requests show it.
    pub(in crate::agent) fn shown_hunk(&self, at: usize) -> ToolContent {
        let text = |bytes: &Option<Vec<u8>>, range| bytes.as_ref().map(|bytes| line_text(bytes, range)).unwrap_or_default();
        let hunk = &self.hunks[at];
        let (old_text, new_text) = (Some(text(&self.file.before, &hunk.old)), text(&self.file.after, &hunk.new));
        ToolContent::Diff { path: self.path().to_owned(), old_text, new_text }
    }

    /// Decides about the whole file.
    pub(in crate::agent) fn decide(&mut self, choice: HunkChoice) {
        self.choice = choice;
        self.choices.fill(None);
    }

    /// Decides about one hunk.
    pub(in crate::agent) fn decide_hunk(&mut self, at: usize, choice: HunkChoice) {
        self.choices[at] = Some(choice);
    }

    /// Applies the decisions of an answer that name this file.
    pub(in crate::agent) fn apply(&mut self, answer: &ReviewAnswer) {
        let choice = |accept: bool| if accept { HunkChoice::New } else { HunkChoice::Old };
        let decisions = answer.hunks.iter().map(|HunkDecision { path, hunk, accept }| (path, *hunk, choice(*accept)));
        let edits = answer.edits.iter().map(|ReviewEdit { path, hunk, text }| (path, *hunk, HunkChoice::Text(text.clone())));
        let mut own: Vec<_> = decisions.chain(edits).filter(|(path, ..)| *path == self.path()).collect();
        // A decision about the whole file does not override those about its hunks.
        own.sort_by_key(|(_, hunk, _)| *hunk);
        for (_, hunk, choice) in own {
            match hunk {
                None => self.choice = choice,
                Some(number) => self.choices[number as usize - 1] = Some(choice),
            }
        }
    }

    /// Returns the decision in effect about each hunk.
    pub(in crate::agent) fn hunk_choices(&self) -> impl Iterator<Item = &HunkChoice> {
        self.choices.iter().map(|choice| choice.as_ref().unwrap_or(&self.choice))
    }

    /// Returns the content of the file after the review; `None`: the file does not exist.
    pub(in crate::agent) fn result(&self) -> Option<Vec<u8>> {
        let whole = |choice: &HunkChoice| match choice {
            HunkChoice::Old => self.file.before.clone(),
            HunkChoice::New => self.file.after.clone(),
            HunkChoice::Text(text) => Some(text.clone().into_bytes()),
        };
        if self.choices.iter().all(Option::is_none) {
            return whole(&self.choice);
        }
        let choices: Vec<HunkChoice> = self.hunk_choices().cloned().collect();
        match (&self.file.before, &self.file.after) {
            (Some(before), Some(after)) => Some(merge(before, after, &self.hunks, &choices)),
            _ => whole(&self.choice),
        }
    }

    /// Returns the decision in words: `accepted`, `rejected`, `edited` or `partial`.
    pub(in crate::agent) fn decision(&self) -> &'static str {
        let result = self.result();
        match &self.choice {
            _ if result == self.file.after => "accepted",
            _ if result == self.file.before => "rejected",
            HunkChoice::Text(_) => "edited",
            _ => "partial",
        }
    }
}
