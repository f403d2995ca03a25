//! Programs that are given code: what is in it, only they know.

use super::Nature;
use super::runs::{Runs, is_one_of};
use super::word::Word;

/// Shells whose lines we can read.
const SHELLS: &[&str] = &["ash", "bash", "dash", "rbash", "sh"];

/// They run what they are told in ways of their own, or on other machines and terminals.
const UNREADABLE: &str = "\
    alias at batch bind bwrap capsh catchsegv choom chroot chrt compgen complete crontab csh dbus-run-session dc declare docker ed emacs enable entr ex \
    expect export fakeroot fc fish flock gdb hash hyperfine inotifywait ksh kubectl let linux32 linux64 lldb local ltrace lxc \
    machinectl mapfile mksh nix-shell nsenter numactl nvim parallel perf pkexec podman prlimit pwsh readarray readonly rlwrap rsh \
    run-parts runuser rush screen script setarch setpriv sg shopt socat ssh ssh-agent start-stop-daemon strace su systemd-run taskset tclsh \
    tcsh tmux trap typeset unbuffer unshare valgrind vi vim watch zsh";

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

/// Programs whose operands are data and never commands, except as options say.
pub const READERS: &str = "\
    : [ apk apt apt-get basename brew cat cd chmod chown cmp comm cp curl cut df diff dirname dnf du echo egrep export false fgrep \
    file find git grep gzip hash head hg id info jobs jq kill killall less ln ls man md5sum mkdir more mv pgrep pip pip3 pkill popd \
    printf ps pushd pwd read readlink realpath rev rg rm rmdir sed seq set sha256sum sort stat svn tail tar tee test touch tr true \
    type uniq unset wc wget whatis whereis which yum zip unzip";

/// Builtins that reckon what stands in brackets, and so may run it.
const RECKONING: &[&str] = &["[", "getopts", "printf", "read", "test", "unset", "wait"];

/// Options of programs that are commands, or make them run some: the beginnings of words.
const COMMANDS_IN_OPTIONS: &[(&str, &[&str])] = &[
    ("cargo", &["--config"]),
    ("fd", &["-x", "-X", "--exec"]),
    ("fdfind", &["-x", "-X", "--exec"]),
    ("find", &["-fprint", "-fls", "-delete"]),
    ("jobs", &["-x"]),
    ("make", &["--eval", "-E"]),
    ("man", &["-P", "--pager", "-H"]),
    ("npm", &["-c", "--call", "--script-shell"]),
    ("npx", &["-c", "--call"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-S", "-o"]),
    ("sftp", &["-S", "-o"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("sqlite3", &[".s", ".read", "-cmd", "-init"]),
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
        "awk" | "gawk" | "mawk" | "nawk" => given(arguments, "", "Fv", is_plain_awk),
        "sed" | "gsed" => given(arguments, "nrEisuz", "", is_plain_sed),
        _ => match INTERPRETERS.iter().find(|(interpreter, ..)| without_version(name) == *interpreter || name == *interpreter) {
            Some((_, code, valued)) => interpreter(code, valued, arguments),
            None if name == "make" && !has_seen_makefiles(arguments) => Runs::Unknown,
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
    // The letters of tar's options may stand without a dash.
    let bare = arguments.first().filter(|_| name == "tar").map(|word| Word::literal(&format!("-{}", word.begun())));
    let brings = |word: &Word| prefixes.iter().any(|prefix| word.may_be(prefix));
    let brings = arguments.iter().chain(&bare).any(brings) || reckons(name, arguments);
    match brings || (!is_one_of(READERS, name) && hands_code_on(arguments)) {
        true if name == "find" => Nature::More,
        true => Nature::Opaque,
        false => Nature::Plain,
    }
}

/// Whether names of variables among the words may have brackets with something in them.
fn reckons(name: &str, arguments: &[Word]) -> bool {
    let unknown = |word: &Word| word.value().is_none();
    let is = |word: &Word, options: &str| word.value().is_some_and(|word| is_one_of(options, &word));
    let before = |place: usize| place.checked_sub(1).map(|place| &arguments[place]);
    RECKONING.contains(&name)
        && arguments.iter().enumerate().any(|(place, word)| {
            word.raw.contains('[')
                || match name {
                    "printf" => place == 0 && word.may_be("-v"),
                    "read" => unknown(word) && !before(place).is_some_and(|word| is(word, "-p -t -n -N -d -u -i")),
                    "test" => unknown(word) && before(place).is_some_and(|word| is(word, "-v -R") || (place == 1 && unknown(word))),
                    "getopts" => place == 1 && unknown(word),
                    "wait" => word.may_be("-p") && arguments.len() > 1,
                    _ => unknown(word),
                }
        })
}

/// Whether a shell or an interpreter stands among the words, with options that bring code.
fn hands_code_on(arguments: &[Word]) -> bool {
    arguments.windows(2).enumerate().any(|(place, pair)| {
        let value = pair[0].value().unwrap_or_default();
        let name = value.rsplit('/').next().unwrap_or_default();
        let takes_code = SHELLS.contains(&name) || INTERPRETERS.iter().any(|(one, ..)| *one == without_version(name));
        takes_code && pair[1].begun().starts_with('-') && !matches!(runs(name, &arguments[place + 1..]), Runs::Itself)
    })
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

/// Programs whose first operand is code, unless options bring it. `flags`, `valued`: letters of options that are known; `e` brings code
/// where there are flags.
fn given(arguments: &[Word], flags: &str, valued: &str, is_plain: impl Fn(&str) -> bool) -> Runs {
    let mut seen = false;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(value) = word.value() else {
            if seen && !word.begun().starts_with('-') && !word.may_be_option() {
                continue;
            }
            return Runs::Unknown;
        };
        match value.strip_prefix('-').filter(|option| !option.is_empty()) {
            None if seen => {}
            None if is_plain(&value) => seen = true,
            None => return Runs::Unknown,
            Some(option) if option.chars().all(|flag| flags.contains(flag)) => {}
            Some(option) if option.strip_suffix('e').is_some_and(|option| option.chars().all(|flag| flags.contains(flag))) => {
                if flags.is_empty() || !rest.next().and_then(Word::value).is_some_and(|code| is_plain(&code)) {
                    return Runs::Unknown;
                }
                seen = true;
            }
            Some(option) if !seen && option.starts_with(|letter| valued.contains(letter)) => {
                let known = option.len() > 1 || rest.next().and_then(Word::value).is_some();
                if !known {
                    return Runs::Unknown;
                }
            }
            Some(_) => return Runs::Unknown,
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
