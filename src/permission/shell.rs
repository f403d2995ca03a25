//! Analyses shell command lines, so that rules are applied to every command in a line. This is not
//! a security boundary: the analysis does not see what a script or program does.

mod arithmetic;
mod assign;
mod code;
mod git;
mod grammar;
mod pattern;
mod plain;
mod programs;
mod read;
mod redirect;
mod runs;
mod scripts;
mod search;
mod test;
mod word;

pub use pattern::{Match, escape, wildcard};
use pattern::{Text, fits, known};
use word::Word;

/// A command line for bash.
#[derive(Clone, Debug)]
pub struct Line {
    /// The line, preceded by the variables set for it in shell syntax.
    whole: String,
    text: Text,
    /// The commands in the line; at least one.
    pub commands: Vec<Command>,
}

/// The effect of a command, as far as its text shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The words describe everything that the command does.
    Transparent,
    /// Runs another command of the line and does nothing else. It is allowed if that command is.
    Wrapper,
    /// Does something more, such as writing a file or removing files it finds. A pattern for its
    /// words does not allow that.
    SideEffect,
    /// Runs code that cannot be analysed, or cannot be analysed itself.
    Opaque,
}

/// A command of a line.
#[derive(Clone, Debug)]
pub struct Command {
    effect: Effect,
    /// The text that an allow pattern has to match completely.
    text: Text,
    /// The spellings that deny and ask patterns are matched against.
    names: Vec<Text>,
    /// The arguments of a program that may run some of them.
    operands: Vec<Text>,
    /// A file that the shell writes; empty if it is unknown.
    writes: Option<String>,
}

/// Formats a variable as an assignment in shell syntax.
pub fn assignment(name: &str, value: &str) -> String {
    format!("{name}='{}' ", value.replace('\'', r"'\''"))
}

/// Returns whether a variable selects the programs that run or changes their behaviour, so that
/// commands depend on its value.
pub fn decides_what_runs(name: &str) -> bool {
    runs::variable(name, true, None) == Some(Effect::Opaque)
}

impl Line {
    /// Analyses `line`. `environment` holds the variables set for it, in shell syntax.
    pub fn read(environment: &str, line: &str) -> Line {
        let line = line.trim_matches([' ', '\t', '\n']);
        let mut commands = read::environment(environment);
        commands.extend(read::commands(line));
        if commands.is_empty() {
            commands.push(Command::new(Effect::Transparent, &[], line));
        }
        Line { whole: format!("{environment}{line}"), text: known(line), commands }
    }

    /// Returns the pattern that matches only this line.
    pub fn exactly(&self) -> String {
        escape(&self.whole)
    }

    /// Returns whether `pattern` is the exact pattern of this line.
    pub fn is_exactly(&self, pattern: &str) -> bool {
        self.exactly() == pattern
    }

    /// Returns the files that the shell writes, as they are named; `None` for a file that cannot be
    /// determined.
    pub fn writes(&self) -> impl Iterator<Item = Option<&str>> {
        let changes = |pattern| self.commands.iter().any(|command| command.fit(pattern) == Match::Yes);
        let changes_directory = ["cd *", "pushd *", "popd *"].into_iter().any(changes);
        let known = move |path: &&str| !path.is_empty() && (!changes_directory || path.starts_with('/'));
        self.commands.iter().filter_map(|command| command.writes.as_deref()).map(move |path| Some(path).filter(known))
    }

    /// Matches a deny or ask pattern against `command` and against the complete line.
    pub fn fit(&self, command: &Command, pattern: &str) -> Match {
        if self.is_exactly(pattern) || fits(pattern, &self.text, false) { Match::Yes } else { command.fit(pattern) }
    }
}

impl Command {
    fn new(effect: Effect, words: &[Word], raw: &str) -> Command {
        let mut names = vec![known(raw)];
        if let Some((program, arguments)) = words.split_first() {
            // The name without its directory is matched as well.
            let directory = program.text.iter().rposition(|character| *character == Some('/')).map_or(0, |slash| slash + 1);
            let by_name = Word { text: program.text[directory..].to_vec(), raw: program.raw.clone() };
            let by_name: Vec<Word> = [by_name].into_iter().chain(arguments.iter().cloned()).collect();
            for name in [words, &by_name].into_iter().flat_map(|words| [shown(words), joined(words)]) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        Command { effect, text: shown(words), names, operands: Vec::new(), writes: None }
    }

    /// Marks the command as possibly running its operands.
    fn with_operands(mut self, operands: &[Word]) -> Command {
        self.operands = operands.iter().map(|word| word.text.clone()).collect();
        self
    }

    /// Adds the spellings of `words`.
    fn also(mut self, words: &[Word]) -> Command {
        self.names.extend(Command::new(Effect::Transparent, words, "").names.into_iter().filter(|name| !name.is_empty()));
        self
    }

    /// Returns whether an allow pattern with wildcards allows the command.
    pub fn is_allowed_by(&self, pattern: &str) -> bool {
        matches!(self.effect, Effect::Transparent | Effect::Wrapper) && fits(pattern, &self.text, false)
    }

    /// Returns whether the command is allowed if the command that it runs is.
    pub fn only_runs_another(&self) -> bool {
        self.effect == Effect::Wrapper
    }

    fn fit(&self, pattern: &str) -> Match {
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

/// Joins words with spaces. A completely unknown word may be absent, so it has no space before it.
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
