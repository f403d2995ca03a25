//! Analyses simple commands (bash(1), SIMPLE COMMANDS): the command itself, and the commands that
//! it runs.

use super::arithmetic::Value;
use super::command::ShellCommand;
use super::effect::Effect;
use super::programs::Program;
use super::read::ScriptReader;
use super::runs::Runs;
use super::word::{Word, is_one_of};
use super::wrappers::{wrapped, wrapper};
use super::{code, file_options, git};

/// Bash reserved words. If a reserved word is parsed as a command name, the grammar has misparsed
/// the line.
const RESERVED: &str = "\
    ! [[ ]] { } case do done elif else esac fi for function if in select then until while";

impl ScriptReader<'_> {
    /// Adds the command with these words, and the commands that it runs. For allow rules, a wrapper
    /// or shell that is not a system program is treated like any other program; deny and ask rules
    /// also apply to the commands that it runs.
    pub(crate) fn run(&mut self, words: &[Word], raw: &str) {
        let Some((first, arguments)) = words.split_first() else { return };
        let Some(path) = first.value() else {
            return self.push(ShellCommand::new(Effect::Opaque, words, raw));
        };
        self.opaque |= is_one_of(RESERVED, &first.raw) || is_assignment(&first.raw);
        let program = Program::from_path(&path);
        match code::assigned_names(program.name, arguments) {
            Some(names) => names.iter().for_each(|name| self.variables.assign(name, Value::default(), 0..0)),
            None => self.variables.unknown = true,
        }
        let mut effects = Vec::new();
        let runs = match wrapper(program.name) {
            Some(wrapper) => wrapped(wrapper, arguments, &mut effects),
            None if program.name == "find" => find(arguments),
            None => code::runs(&program, arguments),
        };
        for write in file_options::writes(&program, words, raw) {
            self.push(write);
        }
        for effect in effects {
            self.push(ShellCommand::new(effect, &[], raw));
        }
        let wrapper = if program.standard { Effect::Wrapper } else { Effect::Transparent };
        let with_operands = |command: ShellCommand| if program.standard { command } else { command.with_operands(arguments) };
        match runs {
            Runs::Nothing => self.push(ShellCommand::new(Effect::Transparent, words, raw)),
            Runs::Itself if program.name == "git" => self.push_all(git::commands(arguments, words, raw)),
            Runs::Itself if path_name(&path).starts_with("git-") => {
                let subcommand = Word::literal(&path_name(&path)["git-".len()..]);
                let arguments: Vec<Word> = [subcommand].into_iter().chain(arguments.iter().cloned()).collect();
                self.push_all(git::commands(&arguments, words, raw));
            }
            Runs::Itself => {
                let command = ShellCommand::new(code::effect(&program, arguments), words, raw);
                self.push(if program.runs_no_other(arguments) { command } else { command.with_operands(arguments) });
            }
            Runs::Unknown => self.push(ShellCommand::new(Effect::Opaque, words, raw)),
            Runs::Only(inner) => {
                self.push(with_operands(ShellCommand::new(wrapper, words, raw)));
                self.nested(|reader| reader.run(&inner, raw));
            }
            Runs::Others(commands) => {
                self.push(with_operands(ShellCommand::new(Effect::Transparent, words, raw)));
                for inner in commands {
                    self.nested(|reader| reader.run(&inner, raw));
                }
            }
            Runs::Script(script) => self.nested(|reader| {
                let commands = reader.script(&script);
                let effect = if commands.is_empty() { Effect::Transparent } else { wrapper };
                reader.push(with_operands(ShellCommand::new(effect, words, raw)));
                reader.push_all(commands);
            }),
        }
    }
}

/// Returns the last component of a path.
fn path_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the commands after `-exec` and similar options of `find`.
fn find(arguments: &[Word]) -> Runs {
    let mut commands = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.value().as_deref() {
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                let command: Vec<Word> =
                    rest.by_ref().take_while(|word| !matches!(word.value().as_deref(), Some(";" | "+"))).cloned().collect();
                commands.push(command.iter().map(|word| word.without("{}")).collect());
            }
            Some(_) => {}
            // An unknown word may be any of these options.
            None if ["-exec", "-ok"].into_iter().any(|option| word.may_be(option)) => return Runs::Unknown,
            None => {}
        }
    }
    if commands.is_empty() { Runs::Itself } else { Runs::Others(commands) }
}

/// Returns whether the word is an assignment: `NAME=…`, `NAME+=…`, `NAME[…]=…`.
fn is_assignment(word: &str) -> bool {
    let name = word.find(|character: char| !character.is_ascii_alphanumeric() && character != '_').unwrap_or(word.len());
    let value = &word[name..];
    name > 0 && (value.starts_with('=') || value.starts_with("+=") || (value.starts_with('[') && value.contains("]=")))
}
