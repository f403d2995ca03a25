//! Programs that are given code: what is in it, only they know.

use super::arithmetic::is_integer;
use super::programs::{self, Program};
use super::runs::{self, Runs, is_one_of};
use super::word::Word;
use super::{Nature, scripts};

/// Shells whose lines we can read.
const SHELLS: &[&str] = &["ash", "bash", "dash", "rbash", "sh"];

/// They run what they are told in ways of their own, or on other machines and terminals.
const UNREADABLE: &str = "\
    alias at batch bind bwrap capsh catchsegv choom chroot chrt compgen complete crontab csh dbus-run-session dc declare docker ed \
    editor emacs emacs-gtk emacs-lucid emacs-nox emacs-pgtk emacsclient enable entr ex expect export fakeroot fc fish flock gdb gview \
    gvim hash hyperfine i386 i486 i586 i686 inotifywait jed joe ksh kubectl ld.so let linux32 linux64 lldb local ltrace lxc \
    machinectl mg mksh nano ne nix-shell nsenter numactl nvim parallel perf pico pkexec prlimit pwsh readonly rlwrap rsh run-parts \
    runcon runuser rush rview rvim screen script select-editor sensible-editor sensible-pager setarch setpriv sg shopt socat ssh \
    ssh-agent start-stop-daemon strace su systemd-run taskset tclsh tcsh tmux typeset uname26 unbuffer unshare valgrind vi view vim \
    vimdiff watch wish x86_64 zsh";

/// Interpreters with the letters of their options that bring code, and of those that have a value.
const INTERPRETERS: &[(&str, &str, &str)] = &[
    ("bun", "ep", ""),
    ("deno", "", ""),
    ("lua", "el", ""),
    ("luajit", "el", ""),
    ("node", "epr", "C"),
    ("nodejs", "epr", "C"),
    ("perl", "eEFMmdx", "I"),
    ("php", "rBREd", "c"),
    ("pypy", "c", "WX"),
    ("pypy3", "c", "WX"),
    ("python", "c", "QWX"),
    ("python2", "c", "QW"),
    ("python3", "c", "WX"),
    ("ruby", "erx", "CEI"),
    ("Rscript", "e", ""),
];

/// Modules of Python that take code.
const MODULES: &str = "IPython asyncio bdb cProfile code idlelib pdb profile ptpython runpy timeit trace";

/// Builtins that evaluate what stands in the brackets of a name, and so may run it.
const EVALUATING: &[&str] = &["[", "getopts", "mapfile", "printf", "read", "readarray", "test", "unset", "wait"];

/// Those of them that assign to the variables that are named.
const ASSIGNING: &str = "getopts mapfile read readarray unset wait";

pub fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Whether the program is known by this name, in any table.
pub fn is_named(name: &str) -> bool {
    is_one_of(UNREADABLE, name)
        || SHELLS.contains(&name)
        || INTERPRETERS.iter().any(|(interpreter, ..)| *interpreter == name)
        || ["git", "sqlite3"].contains(&name)
        || runs::is_wrapper(name)
        || programs::is_listed(name)
}

/// The variables that a builtin assigns to; none where they are unknown.
pub fn assigned_names(name: &str, arguments: &[Word]) -> Option<Vec<String>> {
    if !is_one_of(ASSIGNING, name) {
        return if is_one_of(". eval source trap", name) { None } else { Some(Vec::new()) };
    }
    let names: Option<Vec<String>> = arguments.iter().map(Word::value).collect();
    let implied = ["MAPFILE", "OPTARG", "REPLY"].map(String::from);
    // An unknown word of `wait` is a process, unless an option says more; then it cannot be read anyway.
    let names = if name == "wait" { Some(names.unwrap_or_default()) } else { names };
    names.map(|names| names.into_iter().chain(implied).collect())
}

pub fn runs(program: &Program<'_>, arguments: &[Word]) -> Runs {
    let name = program.name;
    if program.prints_version(arguments) {
        return Runs::Nothing;
    }
    let loader = ["ld-linux", "ld-musl"].iter().any(|loader| name.starts_with(loader));
    if loader || (is_one_of(UNREADABLE, name) && !program.runs_no_other(arguments)) {
        return Runs::Unknown;
    }
    if SHELLS.contains(&name) {
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
        "awk" | "gawk" | "mawk" | "nawk" => scripts::given(arguments, "", "Fv", scripts::is_plain_awk),
        "sed" | "gsed" => scripts::given(arguments, "nrEisuz", "", scripts::is_plain_sed),
        "sqlite3" if !scripts::is_plain_sqlite(arguments) => Runs::Unknown,
        "make" if !has_seen_makefiles(arguments) || !arguments.iter().all(sets_plainly) => Runs::Unknown,
        _ => match INTERPRETERS.iter().find(|(interpreter, ..)| *interpreter == name) {
            Some((_, code, valued)) => interpreter(code, valued, arguments),
            None => Runs::Itself,
        },
    }
}

/// Of a command that runs no other.
pub fn nature(program: &Program<'_>, arguments: &[Word]) -> Nature {
    let brings = program.runs_by_option(arguments) || evaluates(program.name, arguments);
    match brings || (!program.runs_no_other(arguments) && hands_code_on(arguments)) {
        true if program.name == "find" => Nature::More,
        true => Nature::Opaque,
        false => Nature::Plain,
    }
}

/// Whether names of variables among the words may have brackets with something in them, or be of those that evaluate what they get.
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

/// Whether a shell or an interpreter stands among the words, with options that bring code; as the first operand, or behind a wrapper,
/// also one that reads its code from elsewhere.
fn hands_code_on(arguments: &[Word]) -> bool {
    let (mut first, mut behind_wrapper) = (true, false);
    arguments.iter().enumerate().any(|(place, word)| {
        let value = word.value().unwrap_or_default();
        let program = Program::of(&value);
        let rest = &arguments[place + 1..];
        let takes_code = is_shell(program.name) || INTERPRETERS.iter().any(|(one, ..)| *one == program.name);
        let options = rest.first().is_some_and(|word| word.begun().starts_with('-'));
        let found = takes_code && (first || options) && !matches!(runs(&program, rest), Runs::Itself | Runs::Nothing);
        behind_wrapper |= first && runs::is_wrapper(program.name);
        first = behind_wrapper || (first && value.starts_with('-'));
        found
    })
}

/// `trap`: a line that is run later, unless signals are only reset, ignored or listed.
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

/// `mapfile`: its options have no command, and the array is named.
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

/// Whether a word of `make` is no variable, or one whose value is no command of several words, nor the shell that runs all others.
fn sets_plainly(word: &Word) -> bool {
    let known: String = word.text.iter().flatten().collect();
    let Some((name, value)) = known.split_once('=') else { return true };
    let name = name.trim_end_matches([':', '+', '?', '!']);
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./:,+=@%".contains(character);
    known.starts_with('-')
        || (word.value().is_some() && value.chars().all(plain) && !name.contains("SHELL") && !name.starts_with("MAKE"))
}

/// Whether `make` is given no rules that come in by a pipe.
fn has_seen_makefiles(arguments: &[Word]) -> bool {
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
    arguments.iter().enumerate().filter_map(file).all(|file| is_seen(&file))
}

/// Whether what is in a file can be seen before it runs: it is no pipe, wherever the shell may have gone before.
fn is_seen(file: &str) -> bool {
    let names: Vec<&str> = file.split('/').filter(|name| !["", "."].contains(name)).collect();
    let pipe = |name: &str| is_one_of("- cmdline comm environ stdin tty", name) || name.chars().all(|digit| digit.is_ascii_digit());
    // Behind `..` it may be any of them.
    let roots = if names.contains(&"..") { names.len() } else { usize::from(file.starts_with('/')) };
    let device = names.iter().take(roots).any(|name| ["dev", "proc"].contains(name));
    !device && names.last().is_some_and(|name| !pipe(name))
}

/// A script in a file is like any other program; what comes in by a pipe or a substitution cannot be seen.
fn script(file: Option<&Word>) -> Runs {
    if file.and_then(Word::value).is_some_and(|file| is_seen(&file)) { Runs::Itself } else { Runs::Unknown }
}

fn shell(arguments: &[Word]) -> Runs {
    let mut code = false;
    // `-n`: the commands are read, and none is run.
    let only_reads = |word: &Word| word.value().is_some_and(|word| word == "-n");
    if matches!(arguments, [option, file] if only_reads(option) && !file.may_be_option() && !file.begun().starts_with(['-', '+'])) {
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

/// `code`, `valued`: letters of options, as in [`INTERPRETERS`].
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
                    // A module is a script, save those that take code.
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
