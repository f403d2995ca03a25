//! The checks that a shell command line makes.

use crate::claims::commands::{CommandRole, Exit, RanCheck, meaning};
use crate::claims::script_line::{LineCommand, Operator, ScriptLine};

/// Maximum number of nested shells, as in `sh -c`.
const DEPTH_MAX: usize = 4;

/// The checks that a command line makes, if it runs to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandChecks {
    pub checks: Vec<RanCheck>,
    /// Set if other parts of the line may make any check, for example a script.
    pub unknown: bool,
    /// Set if the line replaces files with others, as `git stash` does.
    pub replaces_files: bool,
}

/// Returns the checks that a command line makes.
pub fn kinds(line: &str) -> CommandChecks {
    nested_kinds(line, 0)
}

fn nested_kinds(line: &str, depth: usize) -> CommandChecks {
    let line = ScriptLine::new(line);
    let meanings: Vec<CommandRole> = line.commands.iter().map(|command| meaning(&command.words)).collect();
    let exits = exits(&line, &meanings);
    let mut found = CommandChecks { unknown: !line.complete, ..CommandChecks::default() };
    for (meaning, exit) in meanings.into_iter().zip(exits) {
        let weaker = |check: RanCheck| RanCheck { exit: check.exit.weaker(exit), ..check };
        match meaning {
            CommandRole::Check(check) => found.checks.push(weaker(check)),
            CommandRole::Silent => {}
            CommandRole::Harmless { replaces_files } => found.replaces_files |= replaces_files,
            CommandRole::Shell(text) if depth < DEPTH_MAX => {
                let inner = nested_kinds(&text, depth + 1);
                found.unknown |= inner.unknown;
                found.replaces_files |= inner.replaces_files;
                found.checks.extend(inner.checks.into_iter().map(weaker));
            }
            CommandRole::Shell(_) | CommandRole::Unknown(_) => found.unknown = true,
        }
    }
    found
}

/// Returns what the exit code of the line says about each of its commands.
fn exits(line: &ScriptLine, meanings: &[CommandRole]) -> Vec<Exit> {
    let has = |operator| line.commands.iter().any(|command| command.after == Some(operator));
    let starts_negated = |command: &LineCommand| command.words.first().is_some_and(|word| word.text == "!");
    if !line.complete || has(Operator::Or) || has(Operator::Background) || line.commands.iter().any(starts_negated) {
        return vec![Exit::Nothing; meanings.len()];
    }
    // After `set -e`, a command that fails ends the line.
    let is_option = |text: &str| text.starts_with('-') && !text.starts_with("--") && text.contains('e');
    let sets = |command: &LineCommand| {
        let mut words = command.words.iter();
        words.next().is_some_and(|word| word.text == "set") && words.any(|word| is_option(&word.text))
    };
    let stops = line.commands.first().is_some_and(sets);
    let goes_on = |operator| operator == Some(Operator::And) || (stops && operator == Some(Operator::Then));
    // The exit code is that of the last commands that `&&` joins.
    let mut start = line.commands.len();
    for (index, command) in line.commands.iter().enumerate().rev() {
        if command.after.is_some() && !goes_on(command.after) && command.after != Some(Operator::Pipe) {
            break;
        }
        start = index;
    }
    let first = if line.grouped { 0 } else { start };
    let may_fail = |meaning: &CommandRole| !matches!(meaning, CommandRole::Silent);
    let failing = meanings.iter().skip(first).filter(|meaning| may_fail(meaning)).count();
    let exit = |(index, command): (usize, &LineCommand)| match command.after {
        _ if index < start => Exit::Nothing,
        Some(Operator::Pipe) => Exit::Nothing,
        _ if failing == 1 => Exit::Decides,
        _ => Exit::ZeroPasses,
    };
    line.commands.iter().enumerate().map(exit).collect()
}
