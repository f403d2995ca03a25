//! Texts of lines about a session that need no attention.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::amounts::{duration, tokens};
use crate::content::{Cost, PlanEntry, PlanStatus, ToolCategory, Usage};
use crate::event::{Actor, ChildEnd, ChildLabel, ChildStatus};
use crate::options::Mode;
use crate::terminal_text::output_line;
use crate::transcript::Denial;

/// Formats what a turn or a subagent used, as far as it is known.
pub(crate) fn used(usage: Option<Usage>, cost: Option<Cost>, time: Option<Duration>) -> String {
    let usage = usage.map(|usage| format!("{} tokens in, {} out", tokens(usage.input_tokens), tokens(usage.output_tokens)));
    let amounts = [usage, cost.map(|cost| cost.to_string()), time.map(duration)];
    amounts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Names a hosted agent, and says whether it makes calls without asking nuncio.
pub(crate) fn hosted_agent(name: &str, has_own_rules: bool) -> String {
    format!("{name}{}", if has_own_rules { ": own rules" } else { "" })
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

/// Returns how to allow calls like one that was denied, unless a person decided. `mode` is that of
/// the session in `cwd`.
pub(crate) fn denial_hint(denial: &Denial<'_>, mode: Option<Mode>, cwd: &Path) -> Option<&'static str> {
    let is_guarded = |path: &PathBuf| {
        let is_control = |name: Component<'_>| [".git", ".nuncio"].iter().any(|control| name.as_os_str() == *control);
        path.strip_prefix(cwd).is_ok_and(|path| path.components().any(is_control)) || !path.starts_with(cwd)
    };
    Some(match (denial.by, denial.category) {
        _ if denial.cancelled => return None,
        // No mode and no rule answers what is not a call of a tool.
        (Actor::Nobody, Some(ToolCategory::Other) | None) if mode == Some(Mode::Auto) => "answer at a terminal",
        (Actor::Nobody, _) if mode == Some(Mode::Auto) || denial.paths.iter().any(is_guarded) => {
            "answer at a terminal, or use a rule in [permissions] of the settings"
        }
        (Actor::Nobody, Some(ToolCategory::File)) => {
            "answer at a terminal, or use --mode accept-edits, or a rule in [permissions] of the settings"
        }
        (Actor::Nobody, _) => "answer at a terminal, or use --mode auto, or a rule in [permissions] of the settings",
        (Actor::Unasked, _) => {
            "ask for it in the prompt, or use nuncio run --allow-commit, or a rule in [permissions] of the settings"
        }
        (Actor::Mode, _) => "use another mode: --mode ask at a terminal, else --mode auto",
        (Actor::Rule, _) => "change the rule: nuncio config show",
        _ => return None,
    })
}

/// Formats an entry of a plan with its status.
pub(crate) fn plan_entry(entry: &PlanEntry) -> String {
    let mark = match entry.status {
        PlanStatus::Completed => "✔",
        PlanStatus::InProgress => "▶",
        PlanStatus::Pending => "·",
    };
    format!("  {mark} {}", output_line(&entry.content))
}
