//! A command in a command line: its effect, and the spellings that patterns are matched against.

use std::path::PathBuf;

use super::effect::Effect;
use super::pattern::{Match, Text, fits, known};
use super::search;
use super::word::Word;
use crate::permission::git_acts::GitActs;

/// A command in a command line.
#[derive(Clone, Debug)]
pub struct ShellCommand {
    effect: Effect,
    /// The text that an allow pattern has to match completely.
    text: Text,
    /// The spellings that deny and ask patterns are matched against.
    pub(super) names: Vec<Text>,
    /// The arguments of a program that may run some of its arguments as a command; else empty.
    operands: Vec<Text>,
    /// The file that the shell writes through a redirection, or a program by an option; an empty
    /// string if the file is unknown.
    pub(super) writes: Option<String>,
    /// The option that has the effect. A pattern that names it allows the effect.
    option: String,
    /// Set for a git command.
    pub(super) git_start: Option<GitStart>,
    /// The words of a git command, without the options before its subcommand. An unknown word is
    /// empty.
    git_words: Vec<String>,
}

/// Where a git command begins to look for its repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GitStart {
    /// A directory, relative to that of the shell.
    At(PathBuf),
    /// The command names its repository, or its directory is not known.
    Unknown,
}

impl ShellCommand {
    /// Creates a command from its `words` and from `raw`, its text in the command line.
    pub(super) fn new(effect: Effect, words: &[Word], raw: &str) -> ShellCommand {
        let mut names = vec![known(raw)];
        if let Some((program, arguments)) = words.split_first() {
            // Patterns are also matched against the program name without its directory.
            let directory = program.text.iter().rposition(|character| *character == Some('/')).map_or(0, |slash| slash + 1);
            let by_name = Word { text: program.text[directory..].to_vec(), raw: program.raw.clone() };
            let by_name: Vec<Word> = [by_name].into_iter().chain(arguments.iter().cloned()).collect();
            for name in [words, &by_name].into_iter().flat_map(|words| [shown(words), joined(words)]) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        ShellCommand {
            effect,
            text: shown(words),
            names,
            operands: Vec::new(),
            writes: None,
            option: String::new(),
            git_start: None,
            git_words: Vec::new(),
        }
    }

    /// Marks the command as possibly running its operands.
    pub(super) fn with_operands(mut self, operands: &[Word]) -> ShellCommand {
        self.operands = operands.iter().map(|word| word.text.clone()).collect();
        self
    }

    /// Records that the command writes `file`; `None` if the file is unknown.
    pub(super) fn with_write(mut self, file: Option<String>) -> ShellCommand {
        self.writes = Some(file.unwrap_or_default());
        self
    }

    /// Records that a relative file is in an unknown directory.
    pub(super) fn with_unknown_directory(self) -> ShellCommand {
        let file = self.writes.clone().filter(|file| file.starts_with('/'));
        if self.writes.is_some() { self.with_write(file) } else { self }
    }

    /// Records that `option` has the effect.
    pub(super) fn by_option(mut self, option: &str) -> ShellCommand {
        self.option = option.into();
        self
    }

    /// Records where the command, which is git, begins to look for its repository, and its words
    /// from the subcommand on.
    pub(super) fn with_git(self, start: GitStart, words: &[Word]) -> ShellCommand {
        let git_words = words.iter().map(|word| word.value().unwrap_or_default()).collect();
        ShellCommand { git_start: Some(start), git_words, ..self }
    }

    /// Records that no pattern with wildcards allows the command.
    pub(super) fn refuse_patterns(&mut self) {
        self.effect = Effect::Opaque;
    }

    pub(super) fn changes_directory(&self) -> bool {
        ["cd *", "pushd *", "popd *"].into_iter().any(|pattern| self.match_pattern(pattern) == Match::Yes)
    }

    /// Returns the operand of a `cd` with one operand that is a plain name or path.
    pub(super) fn changed_directory(&self) -> Option<PathBuf> {
        let text: String = self.text.iter().copied().collect::<Option<_>>()?;
        let operand = text.strip_prefix("cd ")?;
        let is_plain = !operand.starts_with(['-', '~']) && !operand.contains([' ', '\'', '"']);
        is_plain.then(|| operand.into())
    }

    /// Adds the spellings of `words`, which deny and ask patterns are matched against.
    pub(super) fn also(mut self, words: &[Word]) -> ShellCommand {
        self.names.extend(ShellCommand::new(Effect::Transparent, words, "").names.into_iter().filter(|name| !name.is_empty()));
        self
    }

    /// Returns whether an allow pattern with wildcards allows the command.
    pub(crate) fn is_allowed_by(&self, pattern: &str) -> bool {
        let named = || {
            let known = pattern.split('*').next().unwrap_or_default();
            let names = |word: &str| word.split('=').next() == Some(self.option.as_str());
            !self.option.is_empty() && known.split(' ').any(names)
        };
        (matches!(self.effect, Effect::Transparent | Effect::Wrapper) || named()) && fits(pattern, &self.text, false)
    }

    /// Returns whether the command only runs another command, so that it is allowed if the other
    /// command is allowed.
    pub(crate) fn only_runs_another(&self) -> bool {
        self.effect == Effect::Wrapper
    }

    /// Returns the acts of the command, if it is git, that only the user decides about.
    pub(crate) fn git_acts(&self) -> GitActs {
        GitActs::of(&self.git_words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Matches a deny or ask pattern against the spellings and operands.
    pub(super) fn match_pattern(&self, pattern: &str) -> Match {
        if self.names.iter().any(|name| fits(pattern, name, false)) {
            Match::Yes
        } else if self.effect == Effect::Opaque
            || self.names.iter().any(|name| fits(pattern, name, true))
            || search::may_run(&self.operands, pattern)
        {
            Match::Maybe
        } else {
            Match::No
        }
    }
}

/// Joins words with spaces. A completely unknown word may be absent, so no space is added before
/// such a word.
fn joined(words: &[Word]) -> Text {
    let mut text = Text::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 && word.text != [None] {
            text.push(Some(' '));
        }
        text.extend(&word.text);
    }
    text
}

/// Joins words unambiguously: empty words and words with whitespace are quoted.
fn shown(words: &[Word]) -> Text {
    let mut text = Text::new();
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            text.push(Some(' '));
        }
        let plain = |character: &Option<char>| character.is_none_or(|character| !character.is_whitespace() && character != '\'');
        if !word.text.is_empty() && word.text.iter().all(plain) {
            text.extend(&word.text);
        } else {
            text.push(Some('\''));
            text.extend(&word.text);
            text.push(Some('\''));
        }
    }
    text
}
