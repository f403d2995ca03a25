//! Shell commands as rules see them: every command in a line, judged by itself. It is a fence and not a wall: what a script does that a
//! command starts, no rule sees.

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

pub use pattern::{Fit, escape, wildcard};
use pattern::{Text, fits, known};
use word::Word;

/// A line that is to be run by bash.
#[derive(Clone, Debug)]
pub struct Line {
    /// With the variables that are set for it, as a shell would write them before it.
    whole: String,
    text: Text,
    /// At least one.
    pub commands: Vec<Command>,
}

/// How much of what a command does its text tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// What its words say.
    Plain,
    /// It runs another one of the line, and does nothing else: what that may, it may.
    Around,
    /// Something beside: it writes a file, removes what it finds. A pattern for its words does not allow that.
    More,
    /// It runs what cannot be read in it, or could not be read itself.
    Opaque,
}

/// One of the commands of a line.
#[derive(Clone, Debug)]
pub struct Command {
    nature: Nature,
    /// What a pattern that allows has to fit, all of it.
    text: Text,
    /// What a pattern that denies or asks is looked for in.
    names: Vec<Text>,
    /// Its words behind the first, where it is not known that it runs none of them.
    operands: Vec<Text>,
    /// A file that the shell writes; an unknown one is empty.
    writes: Option<String>,
}

/// A variable that is set for a command, as a shell would write it before it.
pub fn assignment(name: &str, value: &str) -> String {
    format!("{name}='{}' ", value.replace('\'', r"'\''"))
}

/// Whether a variable says which programs run, or how they behave, so that a command is not the same under another value of it.
pub fn decides_what_runs(name: &str) -> bool {
    runs::variable(name, true, None) == Some(Nature::Opaque)
}

impl Line {
    /// `environment`: the variables that are set for it, as a shell would write them before it; empty where there are none.
    pub fn read(environment: &str, line: &str) -> Line {
        let line = line.trim_matches([' ', '\t', '\n']);
        let mut commands = read::environment(environment);
        commands.extend(read::commands(line));
        if commands.is_empty() {
            commands.push(Command::new(Nature::Plain, &[], line));
        }
        Line { whole: format!("{environment}{line}"), text: known(line), commands }
    }

    /// The pattern that fits just this.
    pub fn exactly(&self) -> String {
        escape(&self.whole)
    }

    pub fn is_exactly(&self, pattern: &str) -> bool {
        self.exactly() == pattern
    }

    /// The files that the shell writes, as they are named; none where it cannot be known which.
    pub fn writes(&self) -> impl Iterator<Item = Option<&str>> {
        let goes = |pattern| self.commands.iter().any(|command| command.fit(pattern) == Fit::Yes);
        let elsewhere = ["cd *", "pushd *", "popd *"].into_iter().any(goes);
        let known = move |path: &&str| !path.is_empty() && (!elsewhere || path.starts_with('/'));
        self.commands.iter().filter_map(|command| command.writes.as_deref()).map(move |path| Some(path).filter(known))
    }

    /// Whether a pattern that denies or asks speaks of `command`, or of the line as a whole.
    pub fn fit(&self, command: &Command, pattern: &str) -> Fit {
        if self.is_exactly(pattern) || fits(pattern, &self.text, false) { Fit::Yes } else { command.fit(pattern) }
    }
}

impl Command {
    fn new(nature: Nature, words: &[Word], raw: &str) -> Command {
        let mut names = vec![known(raw)];
        if let Some((program, arguments)) = words.split_first() {
            // Whatever directory it is in.
            let directory = program.text.iter().rposition(|character| *character == Some('/')).map_or(0, |slash| slash + 1);
            let by_name = Word { text: program.text[directory..].to_vec(), raw: program.raw.clone() };
            let by_name: Vec<Word> = [by_name].into_iter().chain(arguments.iter().cloned()).collect();
            for name in [words, &by_name].into_iter().flat_map(|words| [shown(words), joined(words)]) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        Command { nature, text: shown(words), names, operands: Vec::new(), writes: None }
    }

    /// It may run what its operands say.
    fn with_operands(mut self, operands: &[Word]) -> Command {
        self.operands = operands.iter().map(|word| word.text.clone()).collect();
        self
    }

    /// Known by the name of `words` too.
    fn also(mut self, words: &[Word]) -> Command {
        self.names.extend(Command::new(Nature::Plain, words, "").names.into_iter().filter(|name| !name.is_empty()));
        self
    }

    /// Whether a pattern with `*` allows it.
    pub fn is_allowed_by(&self, pattern: &str) -> bool {
        matches!(self.nature, Nature::Plain | Nature::Around) && fits(pattern, &self.text, false)
    }

    /// Whether it is allowed where what it runs is.
    pub fn only_runs_another(&self) -> bool {
        self.nature == Nature::Around
    }

    fn fit(&self, pattern: &str) -> Fit {
        if self.names.iter().any(|name| fits(pattern, name, false)) {
            Fit::Yes
        } else if self.nature == Nature::Opaque
            || self.names.iter().any(|name| fits(pattern, name, true))
            || search::may_run(&self.operands, pattern)
        {
            Fit::Maybe
        } else {
            Fit::No
        }
    }
}

/// The words with blanks between them; one that is unknown as a whole may be no word at all.
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

/// The same so that no other words look like them: what is empty or has blanks in it stands in quotes.
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
