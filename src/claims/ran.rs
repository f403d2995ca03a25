//! The checks that a shell command line makes.

use crate::claims::check::Kinds;
use crate::claims::commands::{CommandCheck, CommandRole, meaning};
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

/// A check that a command line makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RanCheck {
    /// Program and subcommand, for example `["cargo", "test"]`.
    pub words: Vec<String>,
    /// The kinds of checks.
    pub kinds: Kinds,
    /// Kinds that a success shows as well, for example that the tested code compiles.
    pub shows: Kinds,
    /// The command without wrappers and redirections.
    pub line: String,
    pub exit: Exit,
}

/// The meaning of the exit code of a command line for a check in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The check passed if the code is 0, else it failed.
    Decides,
    /// The check passed if the code is 0, else another command may have failed.
    ZeroPasses,
    /// Nothing: `cargo test | tail`.
    Nothing,
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
        match meaning {
            CommandRole::Check(check) => found.checks.push(ran_check(check, exit)),
            CommandRole::Silent => {}
            CommandRole::Harmless { replaces_files } => found.replaces_files |= replaces_files,
            CommandRole::Shell(text) if depth < DEPTH_MAX => {
                let inner = nested_kinds(&text, depth + 1);
                found.unknown |= inner.unknown;
                found.replaces_files |= inner.replaces_files;
                let weaker = |check: RanCheck| RanCheck { exit: check.exit.weaker(exit), ..check };
                found.checks.extend(inner.checks.into_iter().map(weaker));
            }
            CommandRole::Shell(_) | CommandRole::Unknown(_) => found.unknown = true,
        }
    }
    found
}

fn ran_check(check: CommandCheck, exit: Exit) -> RanCheck {
    let CommandCheck { words, kinds, shows, exit_tells, line } = check;
    RanCheck { words, kinds, shows, line, exit: if exit_tells { exit } else { Exit::Nothing } }
}

impl Exit {
    fn weaker(self, other: Exit) -> Exit {
        match (self, other) {
            (Exit::Nothing, _) | (_, Exit::Nothing) => Exit::Nothing,
            (Exit::ZeroPasses, _) | (_, Exit::ZeroPasses) => Exit::ZeroPasses,
            (Exit::Decides, Exit::Decides) => Exit::Decides,
        }
    }
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
