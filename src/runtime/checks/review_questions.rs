//! The permission requests of a review: one about all changes, and if the user chooses that, one
//! for each file or hunk.

use std::time::Duration;

use crate::content::{PermissionOption, PermissionOptionKind, ReviewOffer, ToolContent, ToolLabel};
use crate::event::{Body, PermissionOutcome};
use crate::id::ToolCallId;
use crate::patch::HunkChoice;
use crate::session::{PermissionAnswer, Turn, TurnQuestion};
use crate::toolkit::{ReviewedFile, changes_shown};

/// Asks the clients about the changes.
pub(in crate::runtime) struct ReviewQuestions<'a> {
    pub turn: &'a Turn,
    pub call: &'a ToolCallId,
    pub label: &'a ToolLabel,
    /// Time limit of each permission request.
    pub timeout: Duration,
}

/// A permission request ended without a decision, for this reason.
pub(in crate::runtime) struct NoDecision(pub String);

const ACCEPT: &str = "accept";
const REJECT: &str = "reject";
const ACCEPT_REST: &str = "accept_rest";
const REJECT_REST: &str = "reject_rest";
const EACH_FILE: &str = "each_file";
const EACH_HUNK: &str = "each_hunk";

/// The answer to a permission request about one part.
enum PartAnswer {
    One(HunkChoice),
    /// For this part and all that follow.
    Rest(HunkChoice),
    /// Each hunk of the file has its own permission request.
    EachHunk,
}

impl ReviewQuestions<'_> {
    /// Asks until all files have a decision.
    pub(in crate::runtime) async fn ask(&self, files: &mut [ReviewedFile]) -> Result<(), NoDecision> {
        let mut options = vec![option(ACCEPT, "Accept all"), option(REJECT, "Reject all")];
        if files.len() > 1 {
            options.push(option(EACH_FILE, "Review each file"));
        }
        if files.iter().map(|file| file.hunks.len()).sum::<usize>() > 1 {
            options.push(option(EACH_HUNK, "Review each hunk"));
        }
        let (chosen, answer) = self.question(shown(files), options, offer(files)).await?;
        let by_hunk = chosen == EACH_HUNK;
        if chosen == EACH_FILE || by_hunk {
            return self.each_file(files, by_hunk).await;
        }
        for file in files {
            file.decide(if chosen == REJECT { HunkChoice::Old } else { HunkChoice::New });
            file.apply(&answer.review);
        }
        Ok(())
    }

    async fn each_file(&self, files: &mut [ReviewedFile], by_hunk: bool) -> Result<(), NoDecision> {
        let mut rest: Option<HunkChoice> = None;
        for at in 0..files.len() {
            let is_last = at + 1 == files.len();
            let file = &mut files[at];
            if let Some(choice) = &rest {
                file.decide(choice.clone());
                continue;
            }
            let several = file.hunks.len() > 1;
            if by_hunk && several {
                rest = self.each_hunk(file, is_last).await?;
                continue;
            }
            let only = std::slice::from_ref(&*file);
            match self.part(offer(only), shown(only), several, is_last).await? {
                (PartAnswer::EachHunk, _) => rest = self.each_hunk(file, is_last).await?,
                (PartAnswer::One(choice), answer) => {
                    file.decide(choice);
                    file.apply(&answer.review);
                }
                (PartAnswer::Rest(choice), _) => {
                    file.decide(choice.clone());
                    rest = Some(choice);
                }
            }
        }
        Ok(())
    }

    /// Asks about each hunk. Returns the decision about everything that follows, if the user made
    /// one.
    async fn each_hunk(&self, file: &mut ReviewedFile, is_last_file: bool) -> Result<Option<HunkChoice>, NoDecision> {
        for at in 0..file.hunks.len() {
            let is_last = is_last_file && at + 1 == file.hunks.len();
            let content = vec![file.shown_hunk(at)];
            let only =
                ReviewOffer { files: vec![crate::content::ReviewFile { hunks: vec![file.offer().hunks[at]], ..file.offer() }] };
            match self.part(only, content, false, is_last).await? {
                (PartAnswer::Rest(choice), _) => {
                    (at..file.hunks.len()).for_each(|rest| file.decide_hunk(rest, choice.clone()));
                    return Ok(Some(choice));
                }
                (PartAnswer::One(choice), answer) => {
                    file.decide_hunk(at, choice);
                    file.apply(&answer.review);
                }
                (PartAnswer::EachHunk, _) => {}
            }
        }
        Ok(None)
    }

    async fn part(
        &self,
        offer: ReviewOffer,
        content: Vec<ToolContent>,
        several: bool,
        is_last: bool,
    ) -> Result<(PartAnswer, PermissionAnswer), NoDecision> {
        let mut options = vec![option(ACCEPT, "Accept"), option(REJECT, "Reject")];
        if several {
            options.push(option(EACH_HUNK, "Review each hunk"));
        }
        if !is_last {
            options.push(option(ACCEPT_REST, "Accept this and the rest"));
            options.push(option(REJECT_REST, "Reject this and the rest"));
        }
        let (chosen, answer) = self.question(content, options, offer).await?;
        let part = match chosen.as_str() {
            EACH_HUNK => PartAnswer::EachHunk,
            ACCEPT_REST => PartAnswer::Rest(HunkChoice::New),
            REJECT_REST => PartAnswer::Rest(HunkChoice::Old),
            REJECT => PartAnswer::One(HunkChoice::Old),
            _ => PartAnswer::One(HunkChoice::New),
        };
        Ok((part, answer))
    }

    /// Sends a permission request. Returns the id of the chosen option, with the answer.
    async fn question(
        &self,
        content: Vec<ToolContent>,
        options: Vec<PermissionOption>,
        offer: ReviewOffer,
    ) -> Result<(String, PermissionAnswer), NoDecision> {
        let (tool_call_id, tool, cancel) = (self.call.clone(), self.label.clone(), self.turn.cancel.clone());
        let (timeout, review) = (self.timeout, Some(offer));
        let question = TurnQuestion { tool_call_id, tool, content, options, timeout, ends_turn: false, cancel, review };
        let (permission_id, answer) = self.turn.ask(question).await;
        let outcome = answer.outcome;
        let no_decision = NoDecision(answer.reason.clone().unwrap_or_else(|| format!("by {}", answer.by)));
        // A permission request that reached no client was not recorded.
        if permission_id.is_some() {
            let decision = answer.decision(permission_id, self.call, self.label);
            self.turn.emit(Body::PermissionResolved(decision)).await;
        }
        match (outcome, answer.option_id.clone()) {
            (PermissionOutcome::Denied | PermissionOutcome::Cancelled, _) | (_, None) => Err(no_decision),
            (_, Some(chosen)) => Ok((chosen, answer)),
        }
    }
}

fn option(id: &str, name: &str) -> PermissionOption {
    let kind = match id {
        REJECT => PermissionOptionKind::RejectOnce,
        REJECT_REST => PermissionOptionKind::RejectAlways,
        ACCEPT_REST => PermissionOptionKind::AllowAlways,
        _ => PermissionOptionKind::AllowOnce,
    };
    PermissionOption { option_id: id.into(), name: name.into(), kind }
}

fn offer(files: &[ReviewedFile]) -> ReviewOffer {
    ReviewOffer { files: files.iter().map(ReviewedFile::offer).collect() }
}

fn shown(files: &[ReviewedFile]) -> Vec<ToolContent> {
    changes_shown(files.iter().map(|file| (file.path(), file.file.before.as_deref(), file.file.after.clone())))
}
