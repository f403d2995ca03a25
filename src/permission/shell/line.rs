//! A command line in the form that permission rules are matched against.

use std::path::{Path, PathBuf};

use super::command::{GitStart, ShellCommand};
use super::effect::Effect;
use super::pattern::{Match, Text, escape, fits, known};
use super::read;
use crate::permission::git_acts::GitActs;

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
    /// A git command in the line may use another repository than the session's.
    foreign_git: bool,
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
        CommandLine { whole: format!("{environment}{line}"), text: known(line), commands, foreign_git: false }
    }

    /// Creates an unknown command line, which may be any: every deny and ask pattern matches it,
    /// and no allow pattern does.
    pub(crate) fn unknown() -> CommandLine {
        let commands = vec![ShellCommand::new(Effect::Opaque, &[], "")];
        CommandLine { whole: UNKNOWN.into(), text: known(""), commands, foreign_git: false }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        self.whole == UNKNOWN
    }

    /// Makes git commands ask if they may use a repository that is not the session's, whose
    /// settings can name programs. `is_own` tells whether git, started in a directory, uses a
    /// repository of the session or none; `here` is the directory of the shell.
    pub fn check_repositories(&mut self, here: &Path, is_own: impl Fn(&Path) -> bool) {
        let Some(places) = self.shell_directories(here) else {
            return self.distrust(|_| true);
        };
        self.distrust(|start| match start {
            GitStart::At(directory) => !places.iter().all(|place| is_own(&place.join(directory))),
            GitStart::Unknown => true,
        });
    }

    fn distrust(&mut self, is_foreign: impl Fn(&GitStart) -> bool) {
        for command in self.commands.iter_mut().filter(|command| command.git_start.as_ref().is_some_and(&is_foreign)) {
            command.refuse_patterns();
            self.foreign_git = true;
        }
    }

    /// Returns the directories in which the shell may run a command of the line. `None` if they are
    /// not known.
    fn shell_directories(&self, here: &Path) -> Option<Vec<PathBuf>> {
        let mut moves = self.commands.iter().filter(|command| command.changes_directory());
        match (moves.next(), moves.next()) {
            (None, _) => Some(vec![here.to_owned()]),
            // The commands before it, and after it if it fails, run in the first directory.
            (Some(change), None) => Some(vec![here.to_owned(), here.join(change.changed_directory()?)]),
            (Some(_), Some(_)) => None,
        }
    }

    /// Returns the pattern that matches only this line.
    pub(crate) fn exactly(&self) -> String {
        escape(&self.whole)
    }

    /// Returns whether `pattern` is the exact pattern of this line.
    pub(crate) fn is_exactly(&self, pattern: &str) -> bool {
        self.exactly() == pattern
    }

    /// Returns whether the pattern of a rule in settings, which hold in all directories, allows
    /// exactly this line.
    pub(crate) fn is_allowed_by(&self, pattern: &str) -> bool {
        !self.foreign_git && self.is_exactly(pattern)
    }

    /// Returns the files that the shell writes through redirections, as named in the line; `None`
    /// for a file that cannot be determined.
    pub fn writes(&self) -> impl Iterator<Item = Option<&str>> {
        let changes_directory = self.commands.iter().any(ShellCommand::changes_directory);
        let known = move |path: &&str| !path.is_empty() && (!changes_directory || path.starts_with('/'));
        self.commands.iter().filter_map(|command| command.writes.as_deref()).map(move |path| Some(path).filter(known))
    }

    /// Returns what the git commands of the line do that only the user decides about.
    pub fn git_acts(&self) -> GitActs {
        self.commands.iter().fold(GitActs::NONE, |acts, command| acts | command.git_acts())
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
