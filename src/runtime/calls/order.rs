//! The order in which the calls of one answer run.

use crate::config::AccessKind;
use crate::permission::shell::{CommandLine, ShellCommand};
use crate::toolkit::PreparedCall;

/// Commands that only read, as patterns of rules. The list decides about the order of calls, never
/// about permission.
const READING_COMMANDS: [&str; 24] = [
    "basename *",
    "cat *",
    "cut *",
    "dirname *",
    "du *",
    "echo *",
    "file *",
    "find *",
    "git diff *",
    "git log *",
    "git show *",
    "git status *",
    "grep *",
    "head *",
    "ls *",
    "printf *",
    "pwd *",
    "rg *",
    "sleep *",
    "sort *",
    "stat *",
    "tail *",
    "wc *",
    "which *",
];

/// Returns whether neighbouring calls may run at the same time as this one, because it changes
/// nothing, or works in a session of its own (`task`). All other calls run alone: a model writes
/// them for the state that the calls before them leave.
pub(super) fn is_concurrent(call: &PreparedCall) -> bool {
    match call.access.kind {
        // Ending a job is no access, but has an effect.
        AccessKind::Read => call.name != "bash_kill",
        AccessKind::Network => true,
        AccessKind::Mcp => call.reads_only,
        AccessKind::Write => false,
        AccessKind::Exec => {
            let is_background = call.input["background"] == true;
            let line = call.access.command.as_deref().map(|line| CommandLine::parse(&call.access.environment, line));
            call.name == "bash" && !is_background && line.is_some_and(|line| only_reads(&line))
        }
    }
}

fn only_reads(line: &CommandLine) -> bool {
    let reads = |command: &ShellCommand| {
        command.only_runs_another() || READING_COMMANDS.iter().any(|pattern| command.is_allowed_by(pattern))
    };
    line.writes().next().is_none() && line.commands.iter().all(reads)
}
