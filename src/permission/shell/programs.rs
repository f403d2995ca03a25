//! Tables of known programs: programs that run no other programs, and the options that make them
//! run other programs.

use super::interpreters::{INTERPRETERS, is_shell, is_unreadable};
use super::word::{Word, is_one_of, options_end};
use super::wrappers::is_wrapper;

/// Directories of system programs.
const SYSTEM: &str = "/bin /sbin /usr/bin /usr/sbin /usr/local/bin /usr/local/sbin /opt/homebrew/bin /run/current-system/sw/bin";

/// Shell builtins for which no program of the same name exists.
const BUILTINS: &str = "\
    . alias bind builtin compgen complete coproc declare enable eval exec export hash let local mapfile readarray readonly set shopt \
    source trap typeset unset";

/// Programs that are treated like another program.
const SAME: &[(&str, &str)] = &[
    ("gmake", "make"),
    ("bmake", "make"),
    ("gtar", "tar"),
    ("bsdtar", "tar"),
    ("gfind", "find"),
    ("gxargs", "xargs"),
    ("cc", "gcc"),
    ("c++", "gcc"),
    ("g++", "gcc"),
    ("cpp", "gcc"),
    ("clang", "gcc"),
    ("clang++", "gcc"),
    ("apt", "apt-get"),
    ("yum", "dnf"),
    ("podman", "docker"),
];

/// Programs that run no other programs, except through the options in the same row. The options are
/// prefixes of words. All other operands of these programs are data.
const KNOWN: &[(&str, &str)] = &[
    // Shell builtins.
    (
        ": [ bg break caller cd continue dirs disown echo exit false fg getopts help history logout mapfile popd \
         printf pushd pwd read readarray return set shift suspend test times true type ulimit umask unalias unset wait",
        "",
    ),
    // Files and text.
    (
        "arch b2sum base32 base64 basename basenc bzcat bzip2 cal cat chattr chcon chgrp chmod chown cksum cmp column comm cp csplit \
         cut date dd df diff dir dircolors dirname du expand expr factor file fmt fold getconf getfacl gunzip gzip head hexdump \
         iconv join jq link ln locale look ls lsattr md5 md5sum mkdir mkfifo mknod mktemp mv nl numfmt od paste patch \
         pathchk pr ptx readelf readlink realpath rev rm rmdir seq setfacl sha1sum sha224sum sha256sum sha384sum sha512sum shasum \
         shred shuf sleep strings stty sum sync tac tail tee touch tr tree truncate tsort tty unexpand uniq unlink unxz \
         unzip unzstd uuidgen vdir wc whatis xxd xz xzcat yes zcat zipinfo zstd zstdcat",
        "",
    ),
    ("awk egrep fgrep gawk grep mawk nawk zgrep", ""),
    ("diff3 sdiff", "--diff-program"),
    ("nm objdump size strip", "--plugin @"),
    ("rg", "--pre --hostname-bin"),
    ("fd fdfind", "-x -X --exec"),
    ("find", ""),
    ("install", "--strip-program"),
    // A text that ends with `$` can precede other options in the same word.
    ("less", "+ -k --lesskey --pattern *$"),
    ("more", "+"),
    ("man", "-C --config-file -P --pager -H --html -p --preprocessor -X --gxditview"),
    ("sed gsed", ""),
    ("sort", "--compress-program"),
    ("split", "--filter"),
    // A list of files (`-T`) may contain options.
    (
        "tar",
        "--checkpoint-action --to-command --use-compress-program -I --set-mtime-command --rsh --rmt -F --info-script \
         --new-volume -T --files=",
    ),
    ("zip", "-T --unzip-command"),
    // The system.
    (
        "arp cpuid dig dmesg free groups host hostid hostname id info kill killall last logname lsblk lscpu lsof lspci lsusb \
         netstat nproc nslookup pgrep pidof pinky ping pkill printenv ps pstree ss tput traceroute uname uptime users vmstat w \
         whereis which who whoami",
        "",
    ),
    ("apk dpkg-query", ""),
    ("apt-get apt-cache", "-o --option -c --config-file"),
    ("dnf", "--setopt -c --config"),
    ("dpkg", "--pre-invoke --post-invoke --status-logger"),
    ("pip pip3", "--editor --python"),
    // Access to other machines.
    ("curl", ""),
    ("wget", "--use-askpass -e --execute --config"),
    ("rsync", "-e --rsh --rsync-path --config --daemon"),
    ("scp sftp", "-S -o -F -D -J -b"),
    // Compilers, which run only their own components.
    (
        "gcc",
        "-wrapper -fplugin -fpass-plugin -fmodule-mapper -specs --specs -B= --prefix --sysroot -fuse-ld --ld-path --config \
         --cuda-path --gcc-install-dir --gcc-toolchain -cc1 -load -mllvm -Xclang *plugin @ *,@",
    ),
    ("rustc", "*linker *link-arg *codegen-backend --extern -L --sysroot -Z @"),
    ("rustdoc", "--test --runtool *linker *link-arg *codegen-backend --extern -L --sysroot -Z @"),
    ("javac", "-J @ -processor --processor -cp -classpath --class-path -Xplugin"),
    ("rustfmt gofmt", "-J @"),
];

/// Programs that start no other programs, with their subcommands; the options listed in the same
/// row are the exceptions.
const SUBCOMMANDS: &[(&str, &str, &str)] = &[
    (
        "cargo",
        "add b bench build c check clean clippy d doc fetch fix fmt generate-lockfile help info init install locate-project login \
         logout metadata new nextest owner package pkgid publish r remove report rm run search t test tree uninstall update vendor \
         verify-project version yank",
        "--config",
    ),
    (
        "docker",
        "history images info inspect logs pause port ps pull push rename rm rmi start stats stop tag top unpause version wait",
        "",
    ),
    (
        "go",
        "build clean doc env fmt generate get help install list mod run test version vet work",
        "-exec --exec -toolexec --toolexec -vettool --vettool -w= *extld",
    ),
    ("systemctl", "cat is-active is-enabled is-failed list-timers list-unit-files list-units show status", "-H --host"),
];

/// Programs that run other programs through these options, and also in other ways.
const OTHERS: &[(&str, &str)] = &[("jobs", "-x"), ("make", "--eval -E"), ("npm", "-c --call --script-shell"), ("npx", "-c --call")];

/// Programs that accept options after `--`.
const NO_END_OF_OPTIONS: &str = "find go jobs npm npx zip";

/// Programs that run other programs, unless their only argument is `--version`.
const VERSIONED: &str = "\
    bash docker emacs fish gdb kubectl lldb ltrace nvim parallel perf podman rvim screen strace tmux valgrind vi view vim vimdiff \
    watch zsh";

/// Returns whether a table in this file contains the program.
fn is_listed(name: &str) -> bool {
    let listed = KNOWN.iter().chain(OTHERS).any(|(names, _)| is_one_of(names, name));
    listed || SUBCOMMANDS.iter().any(|(program, ..)| *program == name)
}

/// Returns whether a table in this file or another file contains the program.
fn is_named(name: &str) -> bool {
    is_unreadable(name)
        || is_shell(name)
        || INTERPRETERS.iter().any(|(interpreter, ..)| *interpreter == name)
        || ["git", "sqlite3"].contains(&name)
        || is_wrapper(name)
        || is_listed(name)
}

/// A program, identified by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program<'a> {
    /// The canonical name, without directory and version.
    pub name: &'a str,
    /// True if the name refers to a builtin or to a program in a system directory.
    pub standard: bool,
}

impl<'a> Program<'a> {
    /// Identifies the program that a command name or path refers to.
    pub(crate) fn from_path(path: &'a str) -> Program<'a> {
        let (directory, base) = path.rsplit_once('/').map_or((None, path), |(directory, base)| (Some(directory), base));
        let system = |directory: &str| {
            let names: Vec<&str> = directory.split('/').filter(|name| !name.is_empty()).collect();
            directory.starts_with('/') && is_one_of(SYSTEM, &format!("/{}", names.join("/")))
        };
        let resolved = directory.is_none_or(|directory| system(directory) && !is_one_of(BUILTINS, base));
        let same = |name: &'a str| SAME.iter().find(|(one, _)| *one == name).map_or(name, |(_, other)| *other);
        if is_named(base) || same(base) != base {
            return Program { name: same(base), standard: resolved };
        }
        let name = same(unversioned(base));
        Program { name, standard: resolved && name == base }
    }

    /// Returns whether the program runs no other program, except through options
    /// ([`Program::runs_by_option`]).
    pub(crate) fn runs_no_other(&self, arguments: &[Word]) -> bool {
        let row = |names: &str| is_one_of(names, self.name);
        let subcommand = || {
            // Skip the toolchain in `cargo +nightly`.
            let skipped =
                usize::from(self.name == "cargo" && arguments.first().is_some_and(|word| word.known_prefix().starts_with('+')));
            arguments.get(skipped).and_then(Word::value)
        };
        self.standard
            && (KNOWN.iter().any(|(names, _)| row(names))
                || SUBCOMMANDS
                    .iter()
                    .any(|(program, known, _)| *program == self.name && subcommand().is_some_and(|word| is_one_of(known, &word))))
    }

    /// Returns whether an option among the arguments contains a command or makes the program run
    /// one.
    pub(crate) fn runs_by_option(&self, arguments: &[Word]) -> bool {
        let listed = KNOWN.iter().chain(OTHERS).find(|(names, _)| is_one_of(names, self.name)).map(|(_, options)| *options);
        let subcommands = || SUBCOMMANDS.iter().find(|(program, ..)| *program == self.name).map(|(.., options)| *options);
        let options = listed.or_else(subcommands).unwrap_or_default();
        let end = if has_end_of_options(self.name) { options_end(arguments) } else { arguments.len() };
        // The option letters of tar can be given without a dash.
        let bare = arguments.first().filter(|_| self.name == "tar").map(|word| Word::literal(&format!("-{}", word.known_prefix())));
        let runs = |word: &Word| options.split_whitespace().any(|option| is_option(word, option));
        arguments[..end].iter().chain(&bare).any(runs)
    }

    /// Returns whether the program only prints its version.
    pub(crate) fn prints_version(&self, arguments: &[Word]) -> bool {
        let asks = |word: &Word| word.value().is_some_and(|word| word == "--version");
        self.standard && is_one_of(VERSIONED, self.name) && matches!(arguments, [word] if asks(word))
    }
}

/// Returns whether the program accepts no options after `--`.
pub(super) fn has_end_of_options(name: &str) -> bool {
    !is_one_of(NO_END_OF_OPTIONS, name)
}

/// Returns whether `word` may be `option`. An option with a leading `*` can occur anywhere in the
/// word; an option with a trailing `=` is neither abbreviated nor combined with other letters.
pub(super) fn is_option(word: &Word, option: &str) -> bool {
    if let Some(part) = option.strip_prefix('*') {
        return word.may_be_option() || word.text.iter().flatten().collect::<String>().contains(part);
    }
    match option.strip_suffix('=') {
        Some(option) => word.may_be_option() || word.known_prefix().starts_with(option),
        None => word.may_be(option),
    }
}

/// Removes a version or variant from a program name: `python3.12`, `perl5.36.0`, `gcc-12`,
/// `vim.basic`.
fn unversioned(name: &str) -> &str {
    let variant = name.split_once('.').filter(|(name, _)| is_named(name)).map(|(name, _)| name);
    let plain = || name.trim_end_matches(|last: char| last.is_ascii_digit() || ".-_".contains(last));
    Some(variant.unwrap_or_else(plain)).filter(|name| !name.is_empty()).unwrap_or(name)
}
