//! The role of a simple command of a shell line: a check, surely no check, or unknown.

use crate::claims::check::{CheckName, Kinds};
use crate::claims::programs::{check_program, is_harmless, is_silent, replaces_files, script_kinds};
use crate::claims::script_line::{LineCommand, LineWord, ScriptLine};
use crate::claims::wrappers::{base_name, is_python, unwrapped};

#[derive(Debug)]
pub(crate) enum CommandRole {
    /// The command makes a check, which passed if the exit code is 0. The code of some commands is
    /// always 0 and says nothing.
    Check(RanCheck),
    /// Neither makes a check nor fails in practice.
    Silent,
    /// Makes no check.
    Harmless { replaces_files: bool },
    /// Runs this text in a shell.
    Shell(String),
    /// May make a check. A script whose name promises checks has a name and kinds.
    Unknown(Option<(Vec<String>, Kinds)>),
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

impl Exit {
    /// Returns the meaning for a check in a nested command line.
    pub(super) fn weaker(self, other: Exit) -> Exit {
        match (self, other) {
            (Exit::Nothing, _) | (_, Exit::Nothing) => Exit::Nothing,
            (Exit::ZeroPasses, _) | (_, Exit::ZeroPasses) => Exit::ZeroPasses,
            (Exit::Decides, Exit::Decides) => Exit::Decides,
        }
    }
}

/// Options that take the next word as their value and may stand before a subcommand.
const VALUE_OPTIONS: &str = "\
    -C -c -f -p -w -F -Z --manifest-path --prefix --color --config --cwd --dir --filter --workspace --tests \
    --git-dir --work-tree --target-dir --projects";

/// Options with which a program only prints something.
const PRINTING_OPTIONS: &str = "\
    --help --version --list --collect-only --co --listTests --init --showConfig --print-config";

/// Formatters that list files and exit with 0.
const LISTING_FORMATTERS: [&str; 4] = ["gofmt", "gofumpt", "goimports", "clang-format"];

/// Returns what the command with these words does.
pub(crate) fn meaning(words: &[LineWord]) -> CommandRole {
    let words = unwrapped(words);
    let Some((first, arguments)) = words.split_first() else { return CommandRole::Silent };
    if first.expands {
        return CommandRole::Unknown(None);
    }
    let program = program_name(&first.text);
    let is_path = first.text.contains('/');
    let is_system = ["/bin/", "/usr/bin/", "/usr/local/bin/"].iter().any(|directory| first.text.starts_with(directory));
    let prints = matches!(arguments, [option] if matches!(option.text.as_str(), "-h" | "-V" | "-v"))
        || arguments.iter().any(|word| PRINTING_OPTIONS.split(' ').any(|option| option == word.text));
    if let Some(check) =
        check(program, arguments).filter(|_| !is_path || first.text.contains("bin/") || is_build_wrapper(&first.text))
    {
        return if prints { CommandRole::Harmless { replaces_files: false } } else { check };
    }
    if (is_path && !is_system) || is_python(program) {
        return CommandRole::Unknown(None);
    }
    if matches!(program, "bash" | "sh" | "zsh" | "dash") {
        return shell(arguments);
    }
    let subcommand = operands(arguments).next().unwrap_or_default();
    match program {
        "source" | "." if base_name(subcommand) == "activate" => CommandRole::Silent,
        "find" if arguments.iter().any(|word| word.text.starts_with("-exec") || word.text.starts_with("-ok")) => {
            CommandRole::Unknown(None)
        }
        // The log of a program that runs elsewhere.
        "cat" | "tail" | "head" | "less" if arguments.iter().any(is_log) => CommandRole::Unknown(None),
        "find" | "command" => CommandRole::Harmless { replaces_files: false },
        program if is_silent(program) => CommandRole::Silent,
        program if is_harmless(program, subcommand) => {
            CommandRole::Harmless { replaces_files: replaces_files(program, subcommand) }
        }
        _ if prints && arguments.len() == 1 => CommandRole::Harmless { replaces_files: false },
        program => CommandRole::Unknown(script(program, arguments)),
    }
}

/// Returns the name that the table of programs has for the program at `path`.
fn program_name(path: &str) -> &str {
    let name = base_name(path);
    match name.strip_suffix(".cmd").or_else(|| name.strip_suffix(".exe")).unwrap_or(name) {
        "mvnw" => "mvn",
        "gradlew" => "gradle",
        name => name,
    }
}

fn is_log(word: &LineWord) -> bool {
    [".log", ".out"].iter().any(|ending| word.text.ends_with(ending)) || word.text.starts_with("/tmp/")
}

fn is_build_wrapper(path: &str) -> bool {
    matches!(base_name(path), "mvnw" | "gradlew")
}

/// Returns the words that are neither options nor their values.
fn operands(arguments: &[LineWord]) -> impl Iterator<Item = &str> {
    let takes_value = |word: &str| VALUE_OPTIONS.split_ascii_whitespace().any(|option| option == word);
    let mut is_value = false;
    arguments.iter().map(|word| word.text.as_str()).filter(move |word| {
        let skipped = std::mem::replace(&mut is_value, takes_value(word));
        !skipped && !word.starts_with(['-', '+'])
    })
}

fn check(program: &str, arguments: &[LineWord]) -> Option<CommandRole> {
    let has = |option: &str| arguments.iter().any(|word| word.text == option);
    let line = [program].into_iter().chain(arguments.iter().map(|word| word.text.as_str())).collect::<Vec<_>>().join(" ");
    let test = |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let (kinds, exit) = (Kinds::TEST, Exit::Decides);
        Some(CommandRole::Check(RanCheck { words, kinds, shows: kinds, line: line.clone(), exit }))
    };
    match program {
        "node" if arguments.iter().any(|word| word.text.starts_with("--test")) => return test(&["node", "--test"]),
        "php" if has("artisan") && has("test") => return test(&["php", "artisan", "test"]),
        _ => {}
    }
    // Build tools take several tasks: the first that is a check counts.
    let tasks = if matches!(program, "mvn" | "gradle") { usize::MAX } else { 1 };
    let named = operands(arguments).take(tasks).map(|task| task.rsplit(':').next().unwrap_or(task));
    let candidates = named.chain(has("--build").then_some("--build")).chain([""]);
    let (row, subcommand) = candidates.filter_map(|name| Some((check_program(program, name)?, name))).next()?;
    let only_builds = has("--no-run") || (program == "go" && has("-c"));
    let kinds = if only_builds { Kinds::BUILD } else { row.kinds };
    let mut words = vec![program.to_owned()];
    words.extend(row.has_subcommand().then(|| subcommand.to_owned()));
    let is_always_0 = LISTING_FORMATTERS.contains(&program) || has("--exit-zero");
    let exit = if is_always_0 { Exit::Nothing } else { Exit::Decides };
    Some(CommandRole::Check(RanCheck { words, kinds, shows: row.shows, line, exit }))
}

/// Returns the text after `-c` of a shell.
fn shell(arguments: &[LineWord]) -> CommandRole {
    let runs_text = |word: &LineWord| word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('c');
    let option = arguments.iter().position(runs_text);
    let text = option.and_then(|option| arguments.get(option + 1));
    text.map_or(CommandRole::Unknown(None), |word| CommandRole::Shell(word.text.clone()))
}

/// Returns the name of a script or target of the project, and the kinds of checks that it promises.
fn script(program: &str, arguments: &[LineWord]) -> Option<(Vec<String>, Kinds)> {
    let name = operands(arguments).find(|word| !matches!(*word, "run" | "run-script"))?;
    let kinds = script_kinds(program, name)?;
    Some((vec![program.to_owned(), name.to_owned()], kinds))
}

/// Returns the checks that a command line in a sentence names.
pub(crate) fn named_checks(line: &str) -> Vec<CheckName> {
    let line = ScriptLine::new(line.trim_start_matches("$ "));
    let named = |command: &LineCommand| match meaning(&command.words) {
        CommandRole::Check(check) => Some(CheckName::Program { words: check.words, kinds: check.kinds }),
        CommandRole::Unknown(script) => script.map(|(words, kinds)| CheckName::Program { words, kinds }),
        CommandRole::Silent | CommandRole::Harmless { .. } | CommandRole::Shell(_) => None,
    };
    line.commands.iter().filter_map(named).collect()
}
