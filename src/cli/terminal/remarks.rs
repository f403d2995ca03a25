//! Texts of lines about a session that need no attention.

use std::time::Duration;

use super::amounts::{duration, tokens};
use crate::content::{Cost, Usage};
use crate::event::{ChildEnd, ChildLabel, ChildStatus};

/// Formats what a turn or a subagent used, as far as it is known.
pub(crate) fn used(usage: Option<Usage>, cost: Option<Cost>, time: Option<Duration>) -> String {
    let usage = usage.map(|usage| format!("{} tokens in, {} out", tokens(usage.input_tokens), tokens(usage.output_tokens)));
    let amounts = [usage, cost.map(|cost| cost.to_string()), time.map(duration)];
    amounts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Describes a compaction, with the estimated sizes of the conversation in tokens.
pub(crate) fn compaction(before: Option<u64>, after: Option<u64>) -> String {
    let sizes = before.zip(after).map(|(before, after)| format!(": {} → {} tokens", tokens(before), tokens(after)));
    format!("the conversation was replaced by a summary{}", sizes.unwrap_or_default())
}

/// Describes the end of a subagent.
pub(crate) fn subagent(child: &ChildLabel, end: &ChildEnd) -> String {
    let status = match end.status {
        ChildStatus::Completed => "has ended",
        ChildStatus::Failed => "failed",
        ChildStatus::Cancelled => "was cancelled",
        ChildStatus::Interrupted => "was interrupted",
    };
    let error = end.error.as_deref().map(|error| format!(" ({error})")).unwrap_or_default();
    let used = used(end.usage, end.cost, None);
    let used = if used.is_empty() { used } else { format!(" · {used}") };
    format!("subagent {}: {status}{error}{used}", child.title)
}
