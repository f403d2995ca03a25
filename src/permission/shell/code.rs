//! Programs that take code as an argument. The code can be analysed only for shells and a few other
//! programs.

use super::arithmetic::is_integer;
use super::effect::Effect;
use super::interpreters::{INTERPRETERS, is_shell, is_unreadable};
use super::programs::Program;
use super::runs::Runs;
use super::scripts;
use super::word::{Word, is_one_of};
use super::wrappers::is_wrapper;

/// Python modules that run other code or take code as an argument.
const MODULES: &str = "IPython asyncio bdb cProfile code idlelib pdb profile ptpython runpy timeit trace";

/// Builtins that evaluate subscripts in variable names and so may run commands.
const EVALUATING: &[&str] = &["[", "getopts", "mapfile", "printf", "read", "readarray", "test", "unset", "wait"];

/// The builtins of [`EVALUATING`] that assign to the named variables.
const ASSIGNING: &str = "getopts mapfile read readarray unset wait";

/// Returns the variables that a builtin assigns to; `None` if they are unknown.
pub(crate) fn assigned_names(name: &str, arguments: &[Word]) -> Option<Vec<String>> {
    if !is_one_of(ASSIGNING, name) {
        return if is_one_of(". eval source trap", name) { None } else { Some(Vec::new()) };
    }
    let names: Option<Vec<String>> = arguments.iter().map(Word::value).collect();
    let implied = ["MAPFILE", "OPTARG", "REPLY"].map(String::from);
    // An unknown argument of `wait` is a process id. If there is an option, the command is opaque
    // anyway.
    let names = if name == "wait" { Some(names.unwrap_or_default()) } else { names };
    names.map(|names| names.into_iter().chain(implied).collect())
}

/// Returns the commands that a program runs.
pub(crate) fn runs(program: &Program<'_>, arguments: &[Word]) -> Runs {
    let name = program.name;
    if program.prints_version(arguments) {
        return Runs::Nothing;
    }
    let loader = ["ld-linux", "ld-musl"].iter().any(|loader| name.starts_with(loader));
    if loader || (is_unreadable(name) && !program.runs_no_other(arguments)) {
        return Runs::Unknown;
    }
    if is_shell(name) {
        return shell(arguments);
    }
    match name {
        "eval" => {
            let words: Option<Vec<String>> = arguments.iter().map(Word::value).collect();
            let without = |words: Vec<String>| words[usize::from(words.first().is_some_and(|word| word == "--"))..].join(" ");
            words.map_or(Runs::Unknown, |words| Runs::Script(without(words)))
        }
        "." | "source" => script(arguments.first()),
        "set" => {
            let harmless = |word: &Word| {
                let value = word.value().unwrap_or_else(|| "?".into());
                value == "pipefail" || (value.starts_with(['-', '+']) && value[1..].chars().all(|flag| "euxo".contains(flag)))
            };
            if arguments.iter().all(harmless) { Runs::Itself } else { Runs::Unknown }
        }
        "trap" => handler(arguments),
        "mapfile" | "readarray" if !reads_lines(arguments) => Runs::Unknown,
        "awk" | "gawk" | "mawk" | "nawk" => scripts::analyse(arguments, "", "Fv", scripts::is_plain_awk),
        "sed" | "gsed" => scripts::analyse(arguments, "nrEisuz", "", scripts::is_plain_sed),
        "sqlite3" if !scripts::is_plain_sqlite(arguments) => Runs::Unknown,
        "make" if !has_inspectable_makefiles(arguments) || !arguments.iter().all(sets_plainly) => Runs::Unknown,
        _ => match INTERPRETERS.iter().find(|(interpreter, ..)| *interpreter == name) {
            Some((_, code, valued)) => interpreter(code, valued, arguments),
            None => Runs::Itself,
        },
    }
}

/// Returns the effect of a command that is not known to run another command.
pub(crate) fn effect(program: &Program<'_>, arguments: &[Word]) -> Effect {
    let runs_code = program.runs_by_option(arguments) || evaluates(program.name, arguments);
    match runs_code || (!program.runs_no_other(arguments) && passes_code(arguments)) {
        true => Effect::Opaque,
        false => Effect::Transparent,
    }
}

/// Returns whether variable names among the arguments may have subscripts, or name variables whose
/// assigned values bash evaluates.
fn evaluates(name: &str, arguments: &[Word]) -> bool {
    let unknown = |word: &Word| word.value().is_none();
    let is = |word: &Word, options: &str| word.value().is_some_and(|word| is_one_of(options, &word));
    let before = |place: usize| place.checked_sub(1).map(|place| &arguments[place]);
    if name == "printf" {
        return arguments.first().is_some_and(|word| word.may_be("-v"));
    }
    let integer = |word: &Word| is_one_of(ASSIGNING, name) && word.value().is_some_and(|word| is_integer(&word));
    EVALUATING.contains(&name)
        && arguments.iter().enumerate().any(|(place, word)| {
            word.raw.contains('[')
                || word.text.contains(&Some('['))
                || integer(word)
                || match name {
                    "read" => unknown(word) && !before(place).is_some_and(|word| is(word, "-p -t -n -N -d -u -i")),
                    "test" => unknown(word) && before(place).is_some_and(|word| is(word, "-v -R") || (place == 1 && unknown(word))),
                    "getopts" => place == 1 && unknown(word),
                    "wait" => word.may_be("-p") && arguments.len() > 1,
                    _ => unknown(word),
                }
        })
}

/// Returns whether the arguments contain a shell or interpreter followed by an option that takes
/// code. A shell or interpreter that reads its code from elsewhere counts if it is the first
/// operand or follows a wrapper.
fn passes_code(arguments: &[Word]) -> bool {
    let (mut first, mut behind_wrapper) = (true, false);
    arguments.iter().enumerate().any(|(place, word)| {
        let value = word.value().unwrap_or_default();
        let program = Program::from_path(&value);
        let rest = &arguments[place + 1..];
        let takes_code = is_shell(program.name) || INTERPRETERS.iter().any(|(one, ..)| *one == program.name);
        let options = rest.first().is_some_and(|word| word.known_prefix().starts_with('-'));
        let found = takes_code && (first || options) && !matches!(runs(&program, rest), Runs::Itself | Runs::Nothing);
        behind_wrapper |= first && is_wrapper(program.name);
        first = behind_wrapper || (first && value.starts_with('-'));
        found
    })
}

/// Analyses the arguments of `trap`: a command line that runs later, unless the signals are only
/// reset, ignored or listed.
fn handler(arguments: &[Word]) -> Runs {
    let words: Option<Vec<String>> = arguments.iter().map(Word::value).collect();
    let Some(words) = words else { return Runs::Unknown };
    let words = &words[usize::from(words.first().is_some_and(|word| word == "--"))..];
    match words {
        [] | [_] => Runs::Itself,
        [action, ..] if ["", "-", "-p", "-l"].contains(&action.as_str()) => Runs::Itself,
        [action, ..] if action.starts_with('-') => Runs::Unknown,
        [action, ..] => Runs::Script(action.clone()),
    }
}

/// Returns whether `mapfile` has no option with a command and its array name is known.
fn reads_lines(arguments: &[Word]) -> bool {
    let mut rest = arguments.iter().map(Word::value);
    while let Some(word) = rest.next() {
        let Some(word) = word else { return false };
        let Some(option) = word.strip_prefix('-') else {
            return word.chars().all(|one| one.is_ascii_alphanumeric() || one == '_') && rest.next().is_none();
        };
        let value = option.trim_start_matches('t');
        match value.chars().next() {
            None => {}
            Some('d' | 'n' | 'O' | 's' | 'u') if value.len() > 1 => {}
            Some('d' | 'n' | 'O' | 's' | 'u') if rest.next().flatten().is_some() => {}
            Some(_) => return false,
        }
    }
    true
}

/// Returns whether an argument of `make` assigns no variable, or assigns a value that is not a
/// command of several words to a variable that selects neither the shell nor settings of `make`.
fn sets_plainly(word: &Word) -> bool {
    let known: String = word.text.iter().flatten().collect();
    let Some((name, value)) = known.split_once('=') else { return true };
    let name = name.trim_end_matches([':', '+', '?', '!']);
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:,+=@%".contains(character);
    known.starts_with('-')
        || (word.value().is_some() && value.chars().all(plain) && !name.contains("SHELL") && !name.starts_with("MAKE"))
}

/// Returns whether `make` reads no makefile from a pipe.
fn has_inspectable_makefiles(arguments: &[Word]) -> bool {
    let file = |(place, word): (usize, &Word)| {
        let option = word.value()?;
        let next = || arguments.get(place + 1).and_then(Word::value).unwrap_or_else(|| "-".into());
        let Some(long) = option.strip_prefix("--") else {
            let (_, file) = option.strip_prefix('-')?.split_once('f')?;
            return Some(if file.is_empty() { next() } else { file.into() });
        };
        let (name, file) = long.split_once('=').map_or((long, None), |(name, file)| (name, Some(file)));
        let is_file = name.len() > 1 && ["file", "makefile"].into_iter().any(|option| option.starts_with(name));
        is_file.then(|| file.map_or_else(next, str::to_owned))
    };
    arguments.iter().enumerate().filter_map(file).all(|file| is_inspectable(&file))
}

/// Returns whether the content of a file can be inspected before it runs: the path is not a pipe in
/// any working directory.
fn is_inspectable(file: &str) -> bool {
    let names: Vec<&str> = file.split('/').filter(|name| !["", "."].contains(name)).collect();
    let pipe = |name: &str| is_one_of("- cmdline comm environ stdin tty", name) || name.chars().all(|digit| digit.is_ascii_digit());
    // After `..`, any component may be directly below the root directory.
    let roots = if names.contains(&"..") { names.len() } else { usize::from(file.starts_with('/')) };
    let device = names.iter().take(roots).any(|name| ["dev", "proc"].contains(name));
    !device && names.last().is_some_and(|name| !pipe(name))
}

/// Analyses a command that runs a script. A script in a file is treated like any other program; a
/// pipe or substitution cannot be inspected.
fn script(file: Option<&Word>) -> Runs {
    if file.and_then(Word::value).is_some_and(|file| is_inspectable(&file)) { Runs::Itself } else { Runs::Unknown }
}

fn shell(arguments: &[Word]) -> Runs {
    let mut code = false;
    // `-n` parses commands without running them.
    let only_reads = |word: &Word| word.value().is_some_and(|word| word == "-n");
    if matches!(arguments, [option, file] if only_reads(option) && !file.may_be_option() && !file.known_prefix().starts_with(['-', '+']))
    {
        return Runs::Nothing;
    }
    let mut rest = arguments.iter();
    loop {
        let word = rest.next();
        let Some(option) = word.and_then(Word::value) else { return Runs::Unknown };
        match option.as_str() {
            "--version" | "--help" => return Runs::Itself,
            "--norc" | "--noprofile" | "--posix" => {}
            "-o" | "+o" | "-eo" | "-euo"
                if rest.next().and_then(Word::value).is_some_and(|name| name == "pipefail" || name == "errexit") => {}
            option if option.len() > 1 && option.starts_with('-') && option[1..].chars().all(|flag| "ceux".contains(flag)) => {
                code |= option.contains('c');
            }
            option if option.starts_with(['-', '+']) => return Runs::Unknown,
            script if code => return Runs::Script(script.into()),
            _ => return self::script(word),
        }
    }
}

/// Analyses an interpreter. `code` and `valued` are option letters, as in [`INTERPRETERS`].
fn interpreter(code: &str, valued: &str, arguments: &[Word]) -> Runs {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(option) = word.value() else { return Runs::Unknown };
        match option.strip_prefix('-') {
            None if ["eval", "exec", "repl", "x"].contains(&option.as_str()) => return Runs::Unknown,
            None => return script(Some(word)),
            Some("-version" | "V" | "v" | "-help" | "h") if arguments.len() == 1 => return Runs::Itself,
            Some(long) if long.starts_with('-') || long.is_empty() => return Runs::Unknown,
            Some(flags) => {
                let flag = |letter: char| letter.is_ascii_alphabetic() && !code.contains(letter);
                match flags.char_indices().find(|(_, letter)| !flag(*letter) || valued.contains(*letter) || *letter == 'm') {
                    None => {}
                    // A module is treated like a script in a file, except modules that take code.
                    Some((place, 'm')) if !code.contains('m') => {
                        let module = Some(flags[place + 1..].to_owned()).filter(|name| !name.is_empty());
                        let module = module.or_else(|| rest.next().and_then(Word::value));
                        let script = module.is_some_and(|module| !is_one_of(MODULES, module.split('.').next().unwrap_or_default()));
                        return if script { Runs::Itself } else { Runs::Unknown };
                    }
                    Some((place, letter)) if valued.contains(letter) => {
                        let known = place + 1 < flags.len() || rest.next().and_then(Word::value).is_some();
                        if !known {
                            return Runs::Unknown;
                        }
                    }
                    Some(_) => return Runs::Unknown,
                }
            }
        }
    }
    Runs::Unknown
}
