//! The replacement of files that a review has decided about.

use super::change::{PlannedChange, commit, current, lock};
use super::context::ToolContext;
use super::turn_changes::TurnFile;
use crate::workspace::ResolvedPath;

/// A file with its expected content and the content that replaces it (`None`: no file).
pub(crate) struct Replacement {
    pub file: TurnFile,
    pub new: Option<Vec<u8>>,
}

/// Replaces the content of files, all or none of those that still have the content `file.after` and
/// that no other program changed during the turn. Returns the files that were not changed, each
/// with the reason.
pub(crate) async fn replace(context: &ToolContext, files: Vec<Replacement>) -> Vec<(ResolvedPath, String)> {
    let locks = lock(context, files.iter().map(|file| file.file.resolved.real.clone()).collect()).await;
    let inner = context.clone();
    let all: Vec<ResolvedPath> = files.iter().map(|file| file.file.resolved.clone()).collect();
    let replaced = context.write_blocking(move || {
        let _locks = locks;
        Ok(replace_now(&inner, files))
    });
    replaced.await.unwrap_or_else(|error| all.into_iter().map(|file| (file, error.0.clone())).collect())
}

fn replace_now(context: &ToolContext, files: Vec<Replacement>) -> Vec<(ResolvedPath, String)> {
    let (mut kept, mut changes, mut done) = (Vec::new(), Vec::new(), Vec::new());
    for Replacement { file, new } in files {
        match current(&file.resolved, context) {
            Ok(now) if file.conflict || now.bytes != file.after => {
                kept.push((file.resolved, "it was changed by another program".to_owned()));
            }
            Ok(now) => {
                // The user sees this content in the review, so the session may replace it.
                context.files.note(&file.resolved.real, now.client_copy.unsaved());
                changes.push(PlannedChange::new(file.resolved.clone(), context, now, new));
                done.push(file);
            }
            Err(error) => kept.push((file.resolved, error.0)),
        }
    }
    match commit(&changes, context) {
        Ok(_) => changes.iter().zip(&done).for_each(|(change, file)| file.restored(change.new.is_some())),
        Err(error) => kept.extend(done.into_iter().map(|file| (file.resolved, error.0.clone()))),
    }
    kept
}
