//! A command line in the form that permission rules are matched against.

use super::command::ShellCommand;
use super::effect::Effect;
use super::pattern::{Match, Text, escape, fits, known};
use super::read;

/// Stands for an unknown line. No line has this character.
const UNKNOWN: &str = "\0";

/// A command line for bash.
#[derive(Clone, Debug)]
pub struct CommandLine {
    /// The line, preceded by assignments in shell syntax of the variables that are set for the
    /// line.
    whole: String,
    text: Text,
    /// The commands in the line; at least one.
    pub commands: Vec<ShellCommand>,
}

impl CommandLine {
    /// Analyses `line`. `environment` contains assignments in shell syntax of the variables that
    /// are set for the line.
    pub fn parse(environment: &str, line: &str) -> CommandLine {
        let line = line.trim_matches([' ', '\t', '\n']);
        let mut commands = read::environment(environment);
        commands.extend(read::commands(line));
        if commands.is_empty() {
            commands.push(ShellCommand::new(Effect::Transparent, &[], line));
        }
        CommandLine { whole: format!("{environment}{line}"), text: known(line), commands }
    }

    /// Creates an unknown command line, which may be any: every deny and ask pattern matches it,
    /// and no allow pattern does.
    pub(crate) fn unknown() -> CommandLine {
        let commands = vec![ShellCommand::new(Effect::Opaque, &[], "")];
        CommandLine { whole: UNKNOWN.into(), text: known(""), commands }
    }

    /// Returns whether the line is unknown.
    pub(crate) fn is_unknown(&self) -> bool {
        self.whole == UNKNOWN
    }

    /// Returns the pattern that matches only this line.
    pub(crate) fn exactly(&self) -> String {
        escape(&self.whole)
    }

    /// Returns whether `pattern` is the exact pattern of this line.
    pub(crate) fn is_exactly(&self, pattern: &str) -> bool {
        self.exactly() == pattern
    }

    /// Returns the files that the shell writes through redirections, as named in the line; `None`
    /// for a file that cannot be determined.
    pub fn writes(&self) -> impl Iterator<Item = Option<&str>> {
        let changes = |pattern| self.commands.iter().any(|command| command.match_pattern(pattern) == Match::Yes);
        let changes_directory = ["cd *", "pushd *", "popd *"].into_iter().any(changes);
        let known = move |path: &&str| !path.is_empty() && (!changes_directory || path.starts_with('/'));
        self.commands.iter().filter_map(|command| command.writes.as_deref()).map(move |path| Some(path).filter(known))
    }

    /// Matches a deny or ask pattern against `command` and against the complete line.
    pub(crate) fn match_command(&self, command: &ShellCommand, pattern: &str) -> Match {
        if self.is_unknown() || self.is_exactly(pattern) || fits(pattern, &self.text, false) {
            Match::Yes
        } else {
            command.match_pattern(pattern)
        }
    }
}
