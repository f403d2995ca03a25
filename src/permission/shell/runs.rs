//! Finds the commands that a command runs: wrappers, nested shells, and variables that affect
//! programs.

use super::arithmetic::{Value, is_integer};
use super::programs::Program;
use super::read::Reader;
use super::word::Word;
use super::{Command, Effect, code, git};

/// The commands that a command runs, as far as its words show.
pub enum Runs {
    /// No known command.
    Itself,
    /// No command, whatever the operands.
    Nothing,
    /// Unknown commands.
    Unknown,
    /// Only the command with these words.
    Only(Vec<Word>),
    /// The commands with these words, in addition to an effect of its own.
    Others(Vec<Vec<Word>>),
    /// A command line for a shell.
    Script(String),
}

/// A program that runs the command after its options.
struct Wrapper {
    name: &'static str,
    /// Options with a value, in the same word or the next.
    valued: &'static [&'static str],
    flags: &'static [&'static str],
    /// Number of operands before the command.
    operands: usize,
    /// Assignments can precede the command.
    variables: bool,
    /// The program has an effect of its own.
    more: bool,
}

const BARE: Wrapper = Wrapper { name: "", valued: &[], flags: &[], operands: 0, variables: false, more: false };

const WRAPPERS: &[Wrapper] = &[
    Wrapper { name: "builtin", ..BARE },
    Wrapper { name: "busybox", ..BARE },
    Wrapper { name: "command", flags: &["-p"], ..BARE },
    Wrapper { name: "coproc", ..BARE },
    Wrapper { name: "doas", valued: &["-u"], flags: &["-n"], more: true, ..BARE },
    Wrapper { name: "eatmydata", ..BARE },
    Wrapper {
        name: "env",
        valued: &["-u", "--unset"],
        flags: &["-i", "-", "--ignore-environment", "-0", "--null", "-v"],
        variables: true,
        ..BARE
    },
    Wrapper { name: "exec", valued: &["-a"], flags: &["-c", "-l", "-cl"], ..BARE },
    Wrapper { name: "ionice", valued: &["-c", "-n", "--class", "--classdata"], flags: &["-t"], ..BARE },
    Wrapper { name: "nice", valued: &["-n", "--adjustment"], ..BARE },
    Wrapper { name: "nohup", ..BARE },
    Wrapper { name: "setsid", flags: &["-c", "-f", "-w", "--ctty", "--fork", "--wait"], ..BARE },
    Wrapper { name: "stdbuf", valued: &["-i", "-o", "-e", "--input", "--output", "--error"], ..BARE },
    Wrapper {
        name: "sudo",
        valued: &["-u", "-g", "-p", "--user", "--group", "--prompt"],
        flags: &["-n", "-E", "-H", "-S", "-k", "-b", "--non-interactive", "--set-home", "--stdin"],
        variables: true,
        more: true,
        ..BARE
    },
    Wrapper { name: "time", flags: &["-p"], ..BARE },
    Wrapper {
        name: "timeout",
        valued: &["-s", "-k", "--signal", "--kill-after"],
        flags: &["-v", "--verbose", "--foreground", "--preserve-status"],
        operands: 1,
        ..BARE
    },
    Wrapper { name: "toybox", ..BARE },
    Wrapper {
        name: "xargs",
        valued: &["-n", "-P", "-L", "-d", "-s", "-I", "-E", "--max-args", "--max-procs", "--max-lines", "--delimiter"],
        flags: &["-0", "-r", "-t", "-x", "-0r", "-r0", "--null", "--no-run-if-empty", "--verbose", "--exit"],
        more: true,
        ..BARE
    },
];

/// Reserved words of bash. If one is parsed as a command, the line was misread.
const RESERVED: &str = "\
    ! [[ ]] { } case do done elif else esac fi for function if in select then until while";

/// Variables that only affect the output of programs.
const HARMLESS: &str = "\
    CI CLICOLOR COLUMNS DEBUG FORCE_COLOR LANG LC_ALL LC_CTYPE LINES NODE_ENV NO_COLOR RUST_BACKTRACE RUST_LOG TERM TZ VERBOSE";

/// Parts of the names of variables that select programs, their search paths or their behaviour;
/// [`SENSITIVE_PARTS`] must match between underscores.
const SENSITIVE: &str = "\
    ASKPASS BASH BROWSER CARGO CMD COMMAND CONFIG DYLD EDITOR EXEC FLAGS HOME HOOK IFS LESS MAKE NODE OPTIONS OPTS PAGER PATH \
    PERL PRELOAD PROMPT PROXY PS4 PYTHON RUBY RUST SHELL SSH VISUAL WRAPPER";
const SENSITIVE_PARTS: &str = "AR CC CXX ENV GIT LD MAN OPT RSH TAR UNZIP ZIPOPT";

/// Variables with compiler options, which are harmless if they neither name nor load a program.
const COMPILER_FLAGS: &str = "RUSTFLAGS RUSTDOCFLAGS";

/// Returns the effect of setting a variable; `None` if programs ignore it. `given`: passed to a
/// program, not only to the shell. `value`: its value, if known.
pub fn variable(name: &str, given: bool, value: Option<&str>) -> Option<Effect> {
    let upper = name.to_ascii_uppercase();
    let plain_flags = |flags: &str| {
        let plain = |character: char| character.is_ascii_alphanumeric() || " -_=,+.:".contains(character);
        flags.chars().all(plain) && !["link", "codegen-backend", "-Z"].iter().any(|part| flags.contains(part))
    };
    if is_integer(name) {
        Some(Effect::Opaque)
    } else if is_one_of(HARMLESS, name) || (!given && upper != name && !upper.contains("PROXY")) {
        None
    } else if name == "CARGO_TARGET_DIR" || (is_one_of(COMPILER_FLAGS, name) && value.is_some_and(plain_flags)) {
        Some(Effect::SideEffect)
    } else if SENSITIVE.split(' ').any(|part| upper.contains(part)) || upper.split('_').any(|part| is_one_of(SENSITIVE_PARTS, part))
    {
        Some(Effect::Opaque)
    } else {
        Some(Effect::SideEffect)
    }
}

pub fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name)
}

/// Adds the effects of a command with these words to `reader`. For allow rules, a wrapper or shell
/// that is not a system program is treated like any other program; deny and ask rules also apply to
/// the commands that it runs.
pub fn run(reader: &mut Reader<'_>, words: &[Word], raw: &str) {
    let Some((first, arguments)) = words.split_first() else { return };
    let Some(path) = first.value() else {
        return reader.push(Command::new(Effect::Opaque, words, raw));
    };
    reader.opaque |= is_one_of(RESERVED, &first.raw) || is_assignment(&first.raw);
    let program = Program::of(&path);
    match code::assigned_names(program.name, arguments) {
        Some(names) => names.iter().for_each(|name| reader.variables.assign(name, Value::default(), 0..0)),
        None => reader.variables.unknown = true,
    }
    let found = match WRAPPERS.iter().find(|wrapper| wrapper.name == program.name) {
        Some(wrapper) => wrapped(reader, wrapper, arguments, raw),
        None if program.name == "find" => found(arguments),
        None => code::runs(&program, arguments),
    };
    let wrapper = if program.standard { Effect::Wrapper } else { Effect::Transparent };
    let with_operands = |command: Command| if program.standard { command } else { command.with_operands(arguments) };
    match found {
        Runs::Nothing => reader.push(Command::new(Effect::Transparent, words, raw)),
        Runs::Itself if program.name == "git" => reader.push(git::command(arguments, words, raw)),
        Runs::Itself if path_name(&path).starts_with("git-") => {
            let subcommand = Word::literal(&path_name(&path)["git-".len()..]);
            let arguments: Vec<Word> = [subcommand].into_iter().chain(arguments.iter().cloned()).collect();
            reader.push(git::command(&arguments, words, raw));
        }
        Runs::Itself => {
            let command = Command::new(code::effect(&program, arguments), words, raw);
            reader.push(if program.runs_no_other(arguments) { command } else { command.with_operands(arguments) });
        }
        Runs::Unknown => reader.push(Command::new(Effect::Opaque, words, raw)),
        Runs::Only(inner) => {
            reader.push(with_operands(Command::new(wrapper, words, raw)));
            reader.nested(|reader| run(reader, &inner, raw));
        }
        Runs::Others(commands) => {
            reader.push(with_operands(Command::new(Effect::Transparent, words, raw)));
            for inner in commands {
                reader.nested(|reader| run(reader, &inner, raw));
            }
        }
        Runs::Script(script) => reader.nested(|reader| {
            let commands = reader.script(&script);
            reader.push(with_operands(Command::new(if commands.is_empty() { Effect::Transparent } else { wrapper }, words, raw)));
            commands.into_iter().for_each(|command| reader.push(command));
        }),
    }
}

/// Returns the last component of a path.
fn path_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn wrapped(reader: &mut Reader<'_>, wrapper: &Wrapper, arguments: &[Word], raw: &str) -> Runs {
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let Some(option) = word.value() else { break };
        let value = match option.split_once('=') {
            Some((name, _)) if wrapper.valued.contains(&name) => true,
            _ => option.len() > 2 && wrapper.valued.iter().any(|valued| !valued.starts_with("--") && option.starts_with(valued)),
        };
        if wrapper.name == "xargs" && option.starts_with("-I") {
            // The replaced string may be any word of the command.
            let replaced = if option == "-I" { after.first().and_then(Word::value) } else { Some(option[2..].to_owned()) };
            if replaced.as_deref() != Some("{}") {
                return Runs::Unknown;
            }
        }
        match option.as_str() {
            "--" => {
                rest = after;
                break;
            }
            "-v" | "-V" if wrapper.name == "command" => return Runs::Itself,
            option if wrapper.valued.contains(&option) => rest = after.get(1..).unwrap_or_default(),
            option if wrapper.flags.contains(&option) || value => rest = after,
            option if wrapper.name == "nice" && option.strip_prefix('-').is_some_and(|number| number.parse::<u8>().is_ok()) => {
                rest = after
            }
            option if option.starts_with('-') && option != "-" => return Runs::Unknown,
            _ => break,
        }
    }
    let operands = &rest[..wrapper.operands.min(rest.len())];
    if operands.iter().any(|operand| operand.value().is_none()) {
        return Runs::Unknown;
    }
    rest = &rest[operands.len()..];
    while let (true, Some((word, after))) = (wrapper.variables, rest.split_first()) {
        let known_prefix = word.known_prefix();
        let Some((name, _)) = known_prefix.split_once('=') else { break };
        let value = word.value().and_then(|value| value.split_once('=').map(|(_, value)| value.to_owned()));
        if let Some(effect) = variable(name, true, value.as_deref()) {
            reader.push(Command::new(effect, &[], raw));
        }
        rest = after;
    }
    match (rest.is_empty(), wrapper.name) {
        (true, _) => Runs::Itself,
        (false, "xargs") => Runs::Others(vec![rest.iter().map(|word| word.without("{}")).chain([Word::unknown()]).collect()]),
        (false, _) if wrapper.more => Runs::Others(vec![rest.to_vec()]),
        (false, _) => Runs::Only(rest.to_vec()),
    }
}

/// Returns the commands after `-exec` and similar options of `find`.
fn found(arguments: &[Word]) -> Runs {
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

/// Returns whether `word` is one of the space-separated `words`.
pub fn is_one_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

/// Returns whether the word is an assignment: `NAME=…`, `NAME+=…`, `NAME[…]=…`.
fn is_assignment(word: &str) -> bool {
    let name = word.find(|character: char| !character.is_ascii_alphanumeric() && character != '_').unwrap_or(word.len());
    let value = &word[name..];
    name > 0 && (value.starts_with('=') || value.starts_with("+=") || (value.starts_with('[') && value.contains("]=")))
}
