//! The review of a turn's changes to files (`review.mode`), at the end of the turn.

use std::fmt::Write;
use std::time::Duration;

use serde_json::json;

use super::review_questions::{NoDecision, ReviewQuestions};
use crate::config::ReviewMode;
use crate::content::{
    FileDecision, Part, REVIEW, ReviewDetails, ReviewResult, ToolCategory, ToolContent, ToolKind, ToolLabel, ToolStatus, listed,
};
use crate::error::Result;
use crate::event::{Body, Notice, Severity, ToolEnd, ToolStart};
use crate::id::ToolCallId;
use crate::limits;
use crate::patch::{HunkChoice, Side, unified_diff};
use crate::runtime::environment::session_environment::SessionEnvironment;
use crate::session::Turn;
use crate::toolkit::change_scan::changed_by_commands;
use crate::toolkit::replacement::{Replacement, replace};
use crate::toolkit::{ReviewedFile, ToolContext, changes_shown};

/// Maximum size of the diffs in the note to the model about a review, in bytes.
const REVIEW_NOTE_BYTES_MAX: usize = 4 << 10;

/// Title of the notice about changes that were not reviewed.
pub(crate) const NOT_REVIEWED: &str = "The changes were not reviewed";

/// Returns whether the changes of turns are reviewed.
pub(crate) fn is_on(environment: &SessionEnvironment) -> bool {
    environment.loaded.settings.review.mode != ReviewMode::Off
}

/// Reviews the changes that the turn's tools made to files. Without a decision, the files are
/// unchanged, and a notice reports that. A cancelled turn is not reviewed. `out_of_time` is true if
/// the time budget cancelled the turn; then a notice reports that the changes were not reviewed.
pub(crate) async fn review_changes(turn: &Turn, environment: &SessionEnvironment, out_of_time: bool) -> Result<()> {
    let mode = environment.loaded.settings.review.mode;
    let changed = environment.changes.files().into_iter().filter(|file| file.before != file.after);
    let files: Vec<ReviewedFile> = changed.map(ReviewedFile::new).collect();
    let left_out = environment.changes.left_out();
    if mode == ReviewMode::Off {
        return Ok(());
    }
    if turn.cancel.is_cancelled() {
        if out_of_time && !(files.is_empty() && left_out.is_empty()) {
            let description = "the time budget is used up: the files stay as they were written".to_owned();
            turn.emit(review_notice(Severity::Warning, NOT_REVIEWED, description)).await;
        }
        return Ok(());
    }
    let mut context = environment.tool_context();
    (context.cancel, context.client) = (turn.cancel.child_token(), turn.clients.latest());
    report_commands(turn, &context).await;
    let review = Review { turn, context, id: ToolCallId::new(), label: label(files.len()), files };
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(|real| review.context.workspace.show(real)).collect();
        let description = format!("{}: the changes are too large", names.join(", "));
        turn.emit(review_notice(Severity::Warning, "Some changes are not reviewed", description)).await;
    }
    if review.files.is_empty() {
        return Ok(());
    }
    review.announce(mode).await;
    Box::pin(review.decide(mode, environment.answer_timeout())).await
}

/// Reports the files that only commands changed, whose content before the turn is unknown.
async fn report_commands(turn: &Turn, context: &ToolContext) {
    let (changed, deleted) = changed_by_commands(context).await;
    let names: Vec<String> = changed.iter().map(|path| context.workspace.show(path)).collect();
    let changed = (!names.is_empty()).then(|| listed(&names, limits::DIRTY_FILES_SHOWN));
    let deleted = (deleted > 0).then(|| format!("deleted files: {deleted}"));
    let all: Vec<String> = changed.into_iter().chain(deleted).collect();
    if !all.is_empty() {
        turn.emit(review_notice(Severity::Warning, "Changes by commands are not reviewed", all.join("; "))).await;
    }
}

fn label(count: usize) -> ToolLabel {
    let title = format!("Review: changes in {count} {}", if count == 1 { "file" } else { "files" });
    ToolLabel { name: REVIEW.into(), title, category: Some(ToolCategory::File) }
}

/// The note to the model about a review in which the user did not accept all changes.
const REVIEWED: &str = "the user reviewed the changes of this turn. The result follows. Read a file again before you change it.";

/// Creates a notice about the review of a turn.
pub(crate) fn review_notice(severity: Severity, title: &str, description: String) -> Body {
    Body::notice_about(REVIEW, severity, title, description)
}

/// A review. Clients receive it as a tool call that nuncio makes.
struct Review<'a> {
    turn: &'a Turn,
    context: ToolContext,
    id: ToolCallId,
    label: ToolLabel,
    files: Vec<ReviewedFile>,
}

impl Review<'_> {
    async fn announce(&self, mode: ReviewMode) {
        let paths: Vec<_> = self.files.iter().map(|file| file.path()).collect();
        let locations = paths.iter().map(|path| crate::content::Location { path: path.to_path_buf(), line: None }).collect();
        let input = json!({ "mode": mode, "files": paths });
        let started = ToolStart::new(self.id.clone(), self.label.clone(), ToolKind::Edit, input);
        self.turn.emit(Body::ToolStarted(ToolStart { locations, automatic: true, ..started })).await;
    }

    async fn decide(mut self, mode: ReviewMode, timeout: Duration) -> Result<()> {
        if mode == ReviewMode::Request {
            let questions = ReviewQuestions { turn: self.turn, call: &self.id, label: &self.label, timeout };
            if let Err(NoDecision(why)) = questions.ask(&mut self.files).await {
                // Some parts may have been decided before.
                self.files.iter_mut().for_each(|file| file.decide(HunkChoice::New));
                let text = format!("no decision ({why}): the files stay as they were written");
                self.complete(ToolStatus::Failed, text.clone(), &[]).await?;
                self.turn.emit(review_notice(Severity::Warning, NOT_REVIEWED, text)).await;
                return Ok(());
            }
        }
        let replaced = self.files.iter().filter(|file| file.result() != file.file.after);
        let replacements = replaced.map(|file| Replacement { file: file.file.clone(), new: file.result() });
        let kept = replace(&self.context, replacements.collect()).await;
        let conflicts: Vec<(String, String)> =
            kept.into_iter().map(|(resolved, why)| (self.context.workspace.show(&resolved.path), why)).collect();
        let status = if conflicts.is_empty() { ToolStatus::Completed } else { ToolStatus::Failed };
        let summary = self.summary(&conflicts);
        self.complete(status, summary.clone(), &conflicts).await?;
        if self.files.iter().any(|file| file.decision() != FileDecision::Accepted) {
            let title = if conflicts.is_empty() { "Changes were rejected or edited" } else { "A review has conflicts" };
            let quoted = Some(format!("{summary}{}", self.differences(&conflicts)).trim_end().to_owned());
            let (severity, code, description) = (Severity::Warning, Some(REVIEW.into()), Some(summary.trim_end().into()));
            let note = Some(REVIEWED.into());
            self.turn.commit(Body::Notice(Notice { description, code, note, quoted, ..Notice::new(severity, title) })).await?;
        }
        Ok(())
    }

    /// Describes the result for each file in one line.
    fn summary(&self, conflicts: &[(String, String)]) -> String {
        let mut summary = String::new();
        for file in &self.files {
            let name = self.context.workspace.show(file.path());
            let conflict = conflicts.iter().find(|(conflicting, _)| *conflicting == name);
            let _ = match (conflict, file.decision()) {
                (Some((_, why)), decision) => {
                    writeln!(summary, "{name}: {}, but not changed: {why}; it stays as it is now", decision.as_str())
                }
                (None, FileDecision::Accepted) => writeln!(summary, "{name}: accepted"),
                (None, FileDecision::Rejected) if file.file.before.is_none() => {
                    writeln!(summary, "{name}: rejected; the file was removed again")
                }
                (None, FileDecision::Rejected) => writeln!(summary, "{name}: rejected; the file has its former content again"),
                (None, FileDecision::Edited) => writeln!(summary, "{name}: replaced by the user's own text"),
                (None, FileDecision::Partial | FileDecision::None | FileDecision::Unknown) => {
                    writeln!(summary, "{name}: partly rejected or edited")
                }
            };
        }
        summary
    }

    /// Diffs for the model of the user's decisions about parts of files.
    fn differences(&self, conflicts: &[(String, String)]) -> String {
        let mut text = String::new();
        for file in self.files.iter().filter(|file| matches!(file.decision(), FileDecision::Edited | FileDecision::Partial)) {
            let name = self.context.workspace.show(file.path());
            let (result, side) = (file.result(), |bytes| Side { name: &name, bytes });
            if conflicts.iter().all(|(conflicting, _)| *conflicting != name) {
                text += &unified_diff(file.file.after.as_deref().map(side), result.as_deref().map(side)).text;
            }
        }
        if text.len() > REVIEW_NOTE_BYTES_MAX {
            text.truncate(text.floor_char_boundary(REVIEW_NOTE_BYTES_MAX));
            text += "\n[diff truncated]\n";
        }
        text
    }

    /// Records the end of the review, with the changes that remain.
    async fn complete(&self, status: ToolStatus, text: String, conflicts: &[(String, String)]) -> Result<()> {
        let (failed, workspace) = (status == ToolStatus::Failed, &self.context.workspace);
        let is_conflict = |file: &ReviewedFile| conflicts.iter().any(|(name, _)| *name == workspace.show(file.path()));
        let files = self
            .files
            .iter()
            .map(|file| {
                let decision = if failed && conflicts.is_empty() { FileDecision::None } else { file.decision() };
                ReviewResult { path: file.path().to_owned(), decision, conflict: is_conflict(file) }
            })
            .collect();
        let details = ReviewDetails { files };
        let remaining = self.files.iter().filter(|file| file.result() != file.file.before || is_conflict(file));
        let remaining = remaining.map(|file| {
            let after = if is_conflict(file) { file.file.after.clone() } else { file.result() };
            (file.path(), file.file.before.as_deref(), after)
        });
        let mut content = changes_shown(remaining);
        content.insert(0, ToolContent::text(&text));
        let completed = Body::ToolCompleted(ToolEnd {
            tool_call_id: self.id.clone(),
            tool: Some(self.label.clone()),
            status,
            output: vec![Part::text(text)],
            content,
            locations: Vec::new(),
            details: Some(json!(details)),
            effect: None,
        });
        self.turn.commit(completed).await.map(drop)
    }
}
