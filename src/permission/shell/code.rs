//! Programs that are given code: what is in it, only they know.

use super::Nature;
use super::runs::{Runs, is_one_of};
use super::word::Word;

/// Shells whose lines we can read.
const SHELLS: &[&str] = &["ash", "bash", "dash", "rbash", "sh"];

/// They run what they are told in ways of their own, or on other machines and terminals.
const UNREADABLE: &str = "\
    alias at batch bind capsh chroot chrt compgen complete crontab csh dbus-run-session declare docker ed emacs enable entr ex \
    expect export fakeroot fc fish flock gdb hash hyperfine inotifywait ksh kubectl let linux32 linux64 lldb local ltrace lxc \
    machinectl mapfile mksh nix-shell nsenter numactl nvim parallel perf pkexec podman prlimit readarray readonly rlwrap rsh \
    run-parts runuser rush screen script setarch setpriv shopt socat ssh start-stop-daemon strace su systemd-run taskset tclsh \
    tcsh tmux trap typeset unbuffer unshare valgrind vi vim watch zsh";

/// Interpreters with the letters of their options that bring code.
const INTERPRETERS: &[(&str, &[char])] = &[
    ("bun", &['e', 'p']),
    ("deno", &[]),
    ("lua", &['e', 'l']),
    ("luajit", &['e', 'l']),
    ("node", &['e', 'p', 'r']),
    ("nodejs", &['e', 'p', 'r']),
    ("perl", &['e', 'E', 'M', 'm', 'd', 'x']),
    ("php", &['r', 'B', 'R', 'E', 'd']),
    ("pypy", &['c']),
    ("pypy3", &['c']),
    ("python", &['c']),
    ("python2", &['c']),
    ("python3", &['c']),
    ("ruby", &['e', 'r', 'x']),
    ("Rscript", &['e']),
];

/// Builtins that reckon what stands in brackets, and so may run it.
const RECKONING: &[&str] = &["[", "getopts", "printf", "read", "test", "unset", "wait"];

/// Options of programs that are commands, or make them run some: the beginnings of words.
const COMMANDS_IN_OPTIONS: &[(&str, &[&str])] = &[
    ("cargo", &["--config"]),
    ("fd", &["-x", "-X", "--exec"]),
    ("fdfind", &["-x", "-X", "--exec"]),
    ("find", &["-fprint", "-fls", "-delete"]),
    ("make", &["--eval", "-f-", "-E"]),
    ("man", &["-P", "--pager", "-H"]),
    ("npm", &["-c", "--call", "--script-shell"]),
    ("npx", &["-c", "--call"]),
    ("printf", &["-v"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-S", "-o"]),
    ("sftp", &["-S", "-o"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    (
        "tar",
        &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "-I",
            "--rsh",
            "--rmt",
            "-F",
            "--info-script",
            "--new-volume",
        ],
    ),
    ("wget", &["--use-askpass"]),
    ("zip", &["-T", "--unzip-command"]),
];

pub fn runs(name: &str, arguments: &[Word]) -> Runs {
    if is_one_of(UNREADABLE, name) {
        return Runs::Unknown;
    }
    if SHELLS.contains(&name) {
        return shell(arguments);
    }
    match name {
        "eval" => {
            let words: Option<Vec<String>> = arguments.iter().map(Word::value).collect();
            words.map_or(Runs::Unknown, |words| Runs::Script(words.join(" ")))
        }
        "." | "source" => script(arguments.first()),
        "set" => {
            let harmless = |word: &Word| {
                let value = word.value().unwrap_or_else(|| "?".into());
                value == "pipefail" || (value.starts_with(['-', '+']) && value[1..].chars().all(|flag| "euxo".contains(flag)))
            };
            if arguments.iter().all(harmless) { Runs::Itself } else { Runs::Unknown }
        }
        "awk" | "gawk" | "mawk" | "nawk" => given(arguments, is_plain_awk),
        "sed" | "gsed" => given(arguments, is_plain_sed),
        _ => match INTERPRETERS.iter().find(|(interpreter, _)| without_version(name) == *interpreter || name == *interpreter) {
            Some((_, letters)) => interpreter(letters, arguments),
            None => Runs::Itself,
        },
    }
}

/// `python3.12` as `python3`.
fn without_version(name: &str) -> &str {
    name.split_once('.').filter(|(_, minor)| minor.chars().all(|digit| digit.is_ascii_digit())).map_or(name, |(name, _)| name)
}

/// Of a command that runs no other.
pub fn nature(name: &str, arguments: &[Word]) -> Nature {
    let prefixes =
        COMMANDS_IN_OPTIONS.iter().find(|(program, _)| *program == name).map_or::<&[&str], _>(&[], |(_, prefixes)| prefixes);
    let brings = |word: &Word| {
        let known: String = word.text.iter().map_while(|character| *character).collect();
        let shortened = |prefix: &str| prefix.starts_with("--") && known.len() > 3 && prefix.starts_with(&known);
        let begins = |prefix: &&str| known.starts_with(prefix) || shortened(prefix) || word.may_be_option();
        prefixes.iter().any(begins)
    };
    let reckons = |word: &Word| RECKONING.contains(&name) && word.raw.contains('[');
    match arguments.iter().any(|word| brings(word) || reckons(word)) {
        true if name == "find" => Nature::More,
        true => Nature::Opaque,
        false => Nature::Plain,
    }
}

/// A script in a file is like any other program; what comes in by a pipe or a substitution cannot be seen.
fn script(file: Option<&Word>) -> Runs {
    match file.and_then(Word::value) {
        Some(file) if !file.starts_with("/dev/") && !file.starts_with("/proc/") && file != "-" => Runs::Itself,
        _ => Runs::Unknown,
    }
}

fn shell(arguments: &[Word]) -> Runs {
    let mut code = false;
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

fn interpreter(letters: &[char], arguments: &[Word]) -> Runs {
    for (index, word) in arguments.iter().enumerate() {
        let Some(option) = word.value() else { return Runs::Unknown };
        match option.strip_prefix('-') {
            None => return script(Some(word)),
            Some("-version" | "V" | "v" | "-help") => return Runs::Itself,
            // A module is a script, save those that take code.
            Some("m") => {
                let module = arguments.get(index + 1).and_then(Word::value);
                return if module.is_some_and(|module| module != "timeit") { Runs::Itself } else { Runs::Unknown };
            }
            Some(long) if long.starts_with('-') || long.is_empty() => return Runs::Unknown,
            Some(flags) if flags.chars().any(|flag| letters.contains(&flag) || !flag.is_ascii_alphabetic()) => {
                return Runs::Unknown;
            }
            Some(_) => {}
        }
    }
    Runs::Unknown
}

/// Programs whose first operand is code, unless options bring it.
fn given(arguments: &[Word], is_plain: impl Fn(&str) -> bool) -> Runs {
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(option) = word.value() else { return Runs::Unknown };
        match option.as_str() {
            "-n" | "-r" | "-E" | "-i" | "-s" | "-u" | "-z" | "-ne" | "-nE" | "-nr" => {
                if option.ends_with('e') && !rest.next().and_then(Word::value).is_some_and(|code| is_plain(&code)) {
                    return Runs::Unknown;
                }
            }
            option if option.starts_with("-F") && option.len() > 2 => {}
            option if option.starts_with('-') => return Runs::Unknown,
            code if is_plain(code) => return Runs::Itself,
            _ => return Runs::Unknown,
        }
    }
    Runs::Itself
}

fn is_plain_awk(code: &str) -> bool {
    !["system", "|", "getline", ">", "@", "\\"].iter().any(|word| code.contains(word))
}

/// Printing, deleting and quitting at lines by number, and one substitution, without the flags that run or write something.
fn is_plain_sed(code: &str) -> bool {
    let command = code.trim_start_matches(|character: char| character.is_ascii_digit() || ",$ ".contains(character));
    let Some(rest) = command.strip_prefix('s') else { return ["p", "d", "q"].contains(&command) };
    let Some(delimiter) = rest.chars().next().filter(|delimiter| "/|#,:@!".contains(*delimiter)) else { return false };
    let parts: Vec<&str> = rest[1..].split(delimiter).collect();
    let plain = |part: &str| !part.contains(['\n', '\\', '[', ';', '{', '}']);
    parts.len() == 3 && parts.iter().all(|part| plain(part)) && parts[2].chars().all(|flag| "gpIi0123456789".contains(flag))
}
