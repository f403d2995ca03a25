//! Options and operands by which programs that otherwise only read write files. Such a write has an
//! effect of its own, like a redirection: a rule that allows the command does not cover it, unless
//! its pattern names the option.

use super::command::ShellCommand;
use super::effect::Effect;
use super::programs::{Program, has_end_of_options, is_option};
use super::word::{Word, is_one_of, options_end};

/// How a program reads the letters after one dash.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    /// Each letter is an option. The value of an option is the rest of the word or the next word.
    Combined,
    /// Each letter is an option, whose value is always a separate word.
    Separate,
    /// The first letter is the option; the other letters are its value, or are ignored.
    First,
    /// The word is a single option.
    Word,
}

/// Options of programs that write files. An option of one dash and several letters is a word; a
/// long option can be abbreviated.
struct FileOptions {
    /// Names of the programs, or of subcommands of `git`.
    programs: &'static str,
    /// Options whose value names a file that the program writes.
    writes: &'static str,
    /// Options that make the program write its operands.
    in_place: &'static str,
    /// Options that make the program write or remove files that the command does not name.
    effects: &'static str,
    /// Options whose value is a text that can name a file to write (`%output{FILE}`).
    texts: &'static str,
    /// Options that upload a file: to another file, if the URL allows it.
    uploads: &'static str,
    /// Prefixes of words with which the program writes files, as in the tables of `programs.rs`.
    others: &'static str,
    letters: Letters,
    /// Letters of the other options that always have a value.
    valued: &'static str,
    /// Letters of options whose value, if there is one, is the rest of the word.
    attached: &'static str,
    /// The number of operands that the program reads. It writes the next one.
    reads: usize,
}

const NONE: FileOptions = FileOptions {
    programs: "",
    writes: "",
    in_place: "",
    effects: "",
    texts: "",
    uploads: "",
    others: "",
    letters: Letters::Combined,
    valued: "",
    attached: "",
    reads: usize::MAX,
};

const PROGRAMS: &[FileOptions] = &[
    FileOptions { programs: "apt-cache", writes: "-p --pkg-cache -s --src-cache", ..NONE },
    FileOptions { programs: "base64", writes: "-o --output", ..NONE },
    FileOptions { programs: "bzcat", effects: "-z --compress", ..NONE },
    FileOptions {
        programs: "curl",
        writes: "-o --output -c --cookie-jar -D --dump-header --alt-svc --etag-save --hsts --libcurl --output-dir --ssl-sessions \
                 --stderr --trace --trace-ascii",
        // A configuration file can contain each option. A local socket can be the one of a service
        // that runs commands.
        effects: "-O --remote-name --remote-name-all -J --remote-header-name -K --config --engine --unix-socket --abstract-unix-socket",
        texts: "-w --write-out",
        uploads: "-T --upload-file",
        valued: "AbCdeEFHmPQrtTuUxXyYz",
        ..NONE
    },
    FileOptions { programs: "date", effects: "-s --set", valued: "dfr", attached: "I", ..NONE },
    FileOptions { programs: "dpkg", writes: "--log", ..NONE },
    FileOptions { programs: "file", effects: "-C --compile", valued: "efFmP", ..NONE },
    FileOptions { programs: "find", writes: "-fls -fprint -fprint0 -fprintf", effects: "-delete", letters: Letters::Word, ..NONE },
    FileOptions {
        programs: "gcc",
        others: "-MF= -MJ= -Wa,= -Wp,= -Xassembler= -Xlinker= -Xpreprocessor= -aux-info= -dumpbase= -dumpdir= \
                 -fcallgraph-info= -fcrash-diagnostics-dir= -fdiagnostics-add-output= -fdiagnostics-format= -fdump-= \
                 -fmodules-cache-path= -foptimization-record-file= -fprofile-dir= -fprofile-note= -fstack-usage= \
                 -ftime-trace= -save-temps= --save-temps= --serialize-diagnostics= *-Map *,-o *dependency-file *out-implib",
        letters: Letters::Word,
        ..NONE
    },
    FileOptions {
        programs: "go",
        writes: "-o --o -outputdir --outputdir -pkgdir --pkgdir -trace --trace",
        // Options of the compiler and of the test can also have these names.
        others: "-test.= --test.= *-blockprofile *-coverprofile *-cpuprofile *-memprofile *-mutexprofile",
        letters: Letters::Word,
        ..NONE
    },
    FileOptions { programs: "gofmt", writes: "-cpuprofile --cpuprofile", in_place: "-w --w", letters: Letters::Word, ..NONE },
    FileOptions { programs: "history", effects: "-a -w", ..NONE },
    FileOptions { programs: "iconv", writes: "-o --output", valued: "ft", ..NONE },
    FileOptions { programs: "info", writes: "-o --output --dribble", valued: "dfkn", ..NONE },
    // Other options can follow a number, or a text that ends with `$`, in the same word.
    FileOptions { programs: "less", writes: "-o -O --log-file --LOG-FILE", ..NONE },
    FileOptions { programs: "patch", writes: "-d --directory -o --output -r --reject-file", valued: "BDFVYgipxz", ..NONE },
    FileOptions {
        programs: "pip pip3",
        writes: "--cache-dir --dest -d --local-log --log --log-file --report --root --src --target -t --wheel-dir -w",
        valued: "cr",
        ..NONE
    },
    FileOptions { programs: "ptx", reads: 1, valued: "FMSWbgiow", ..NONE },
    FileOptions {
        programs: "rsync",
        writes: "-T --temp-dir --backup-dir --log-file --only-write-batch --partial-dir --write-batch",
        valued: "Befm",
        ..NONE
    },
    FileOptions { programs: "rustfmt", effects: "--print-config", ..NONE },
    FileOptions { programs: "sdiff", writes: "-o --output", valued: "Iw", ..NONE },
    FileOptions { programs: "sed gsed", in_place: "-i -I --in-place", valued: "efl", ..NONE },
    FileOptions { programs: "shuf", writes: "-o --output", valued: "in", ..NONE },
    FileOptions { programs: "sort", writes: "-o --output", valued: "kStT", attached: "y", ..NONE },
    FileOptions { programs: "ss", writes: "-D --diag", effects: "-K --kill", valued: "AFfN", ..NONE },
    FileOptions {
        programs: "tar",
        writes: "-g --listed-incremental --index-file --volno-file",
        effects: "--remove-files",
        valued: "bCfFHIKLNTVX",
        ..NONE
    },
    FileOptions { programs: "tree", writes: "-o", effects: "-R", letters: Letters::Separate, valued: "HILPT", ..NONE },
    FileOptions { programs: "uniq", reads: 1, valued: "fsw", ..NONE },
    FileOptions {
        programs: "wget",
        writes: "-a --append-output -o --output-file -O --output-document -P --directory-prefix --hsts-file --rejected-log \
                 --save-cookies --warc-file --warc-tempdir",
        valued: "ABDeiIlQRtTUwX",
        ..NONE
    },
    FileOptions { programs: "xxd", reads: 1, letters: Letters::First, valued: "cglos", ..NONE },
    FileOptions {
        programs: "zip",
        writes: "-O --output-file -b --temp-path",
        effects: "-l -la -lf --log-append --logfile-path",
        ..NONE
    },
    FileOptions { programs: "zstdcat", writes: "-o --output-dir-flat --output-dir-mirror --trace", valued: "D", ..NONE },
];

const GIT: &[FileOptions] = &[
    FileOptions {
        programs: "annotate bisect blame bundle cherry-pick diff diff-files diff-index diff-tree log range-diff reflog rev-list revert \
                   shortlog show stash whatchanged",
        writes: "--output",
        valued: "GLS",
        ..NONE
    },
    FileOptions { programs: "apply", writes: "--build-fake-ancestor", valued: "Cp", ..NONE },
    FileOptions { programs: "archive", writes: "-o --output", ..NONE },
    FileOptions { programs: "checkout-index", writes: "--prefix", ..NONE },
    FileOptions { programs: "clone init init-db", writes: "--separate-git-dir", ..NONE },
    FileOptions { programs: "commit-graph multi-pack-index", writes: "--object-dir", ..NONE },
    FileOptions { programs: "fast-export", writes: "--export-marks --output", ..NONE },
    FileOptions { programs: "fast-import", writes: "--export-marks --export-pack-edges", ..NONE },
    FileOptions { programs: "format-patch", writes: "-o --output --output-directory", valued: "v", ..NONE },
    FileOptions { programs: "gc", writes: "--expire-to", ..NONE },
    FileOptions { programs: "index-pack", writes: "-o", ..NONE },
    FileOptions { programs: "interpret-trailers", in_place: "--in-place", ..NONE },
    FileOptions { programs: "mailsplit", writes: "-o", ..NONE },
    FileOptions { programs: "maintenance", writes: "--config-file", ..NONE },
    FileOptions { programs: "read-tree", writes: "--index-output", ..NONE },
    FileOptions { programs: "repack", writes: "--expire-to --filter-to", ..NONE },
];

/// Files to which writing has no effect.
const HARMLESS: &str = "- /dev/null /dev/stdout /dev/stderr";

/// Returns the writes of a program by its options and operands, as commands.
pub(super) fn writes(program: &Program<'_>, words: &[Word], raw: &str) -> Vec<ShellCommand> {
    let Some(row) = PROGRAMS.iter().find(|row| is_one_of(row.programs, program.name)) else { return Vec::new() };
    // The option letters of tar can be given without a dash.
    let bare = words.get(1).filter(|word| program.name == "tar" && !word.known_prefix().starts_with('-'));
    let mut reading = ArgumentReader::new(row, words.get(1..).unwrap_or_default(), words, raw);
    for letter in bare.iter().flat_map(|word| &word.text) {
        if letter.is_none_or(|letter| is_one_of(row.writes, &format!("-{letter}"))) {
            reading.effect("");
        }
    }
    reading.read(has_end_of_options(program.name))
}

/// Returns the writes of a subcommand of git. `operands` are the words after its name.
pub(super) fn git_writes(name: &str, operands: &[Word], words: &[Word], raw: &str) -> Vec<ShellCommand> {
    let Some(row) = GIT.iter().find(|row| is_one_of(row.programs, name)) else { return Vec::new() };
    ArgumentReader::new(row, operands, words, raw).read(true)
}

/// The arguments of one program while they are read.
struct ArgumentReader<'a> {
    row: &'a FileOptions,
    arguments: std::slice::Iter<'a, Word>,
    operands: Vec<Word>,
    in_place: Option<String>,
    /// The complete command, and its text in the command line.
    words: &'a [Word],
    raw: &'a str,
    found: Vec<ShellCommand>,
}

impl<'a> ArgumentReader<'a> {
    fn new(row: &'a FileOptions, arguments: &'a [Word], words: &'a [Word], raw: &'a str) -> ArgumentReader<'a> {
        ArgumentReader { row, arguments: arguments.iter(), operands: Vec::new(), in_place: None, words, raw, found: Vec::new() }
    }

    fn read(mut self, ends: bool) -> Vec<ShellCommand> {
        let arguments = self.arguments.as_slice();
        let end = if ends { options_end(arguments) } else { arguments.len() };
        self.arguments = arguments[..end].iter();
        while let Some(word) = self.arguments.next() {
            let known_prefix = word.known_prefix();
            if self.row.others.split_whitespace().any(|option| is_option(word, option)) {
                self.effect(known_prefix.split('=').next().unwrap_or_default());
            } else if let Some((option, value)) = self.word_option(word) {
                self.named(&option, &option, value);
            } else if known_prefix.starts_with("--") {
                self.long(word);
            } else if known_prefix.starts_with('-') && word.text.len() > 1 {
                self.letters(word);
            } else {
                // An unknown word can be any option.
                if word.may_be_option() {
                    self.effect("");
                }
                self.operands.push(word.clone());
            }
        }
        self.operands.extend(arguments[end..].iter().skip(1).cloned());
        let in_place = self.in_place.take();
        let read = if in_place.is_some() { 0 } else { self.row.reads.min(self.operands.len()) };
        for operand in self.operands.split_off(read) {
            self.write(in_place.as_deref().unwrap_or_default(), Some(operand));
        }
        self.found
    }

    /// Returns the option and its value in the same word, if the word is a listed option of one
    /// dash and several letters.
    fn word_option(&self, word: &Word) -> Option<(String, Option<Word>)> {
        let (name, value) = split_value(word);
        let several = self.row.letters == Letters::Word || name.as_ref().is_some_and(|name| name.len() > 2);
        let listed = |name: &String| {
            [self.row.writes, self.row.in_place, self.row.effects].into_iter().any(|options| is_one_of(options, name))
        };
        name.filter(|name| several && name.starts_with('-') && !name.starts_with("--") && listed(name)).map(|name| (name, value))
    }

    /// Adds the effect of `option` of the table, written as `written`. `value`: the value in the
    /// same word.
    fn named(&mut self, option: &str, written: &str, value: Option<Word>) {
        if is_one_of(self.row.writes, option) {
            let value = value.or_else(|| self.arguments.next().cloned());
            self.write(written, value);
        } else if is_one_of(self.row.in_place, option) {
            self.in_place = Some(written.to_owned());
        } else if is_one_of(self.row.texts, option) {
            let text = value.or_else(|| self.arguments.next().cloned()).and_then(|word| word.value());
            if text.is_none_or(|text| text.contains("output{") || text.starts_with('@')) {
                self.effect(written);
            }
        } else if is_one_of(self.row.effects, option) || (is_one_of(self.row.uploads, option) && !self.words.iter().all(is_remote))
        {
            self.effect(written);
        }
    }

    /// Reads a long option, which can be abbreviated.
    fn long(&mut self, word: &Word) {
        let (Some(written), mut value) = split_value(word) else {
            return self.effect("");
        };
        // curl replaces variables in the value of such an option.
        let expanded = written.strip_prefix("--expand-").map(|name| format!("--{name}"));
        if expanded.is_some() {
            value = Some(Word::unknown());
        }
        let name = expanded.as_deref().unwrap_or(&written);
        let row = self.row;
        let listed =
            [row.writes, row.in_place, row.texts, row.effects, row.uploads].into_iter().flat_map(|options| options.split(' '));
        let option = listed.filter(|option| option.starts_with(name)).min_by_key(|option| option.len());
        if let Some(option) = option.filter(|_| name.len() > 2) {
            self.named(option, &written, value);
        }
    }

    /// Reads the letters after a dash.
    fn letters(&mut self, word: &Word) {
        if self.row.letters == Letters::Word {
            if split_value(word).0.is_none() {
                self.effect("");
            }
            return;
        }
        let separate = self.row.letters == Letters::Separate;
        for (place, letter) in word.text.iter().enumerate().skip(1) {
            let Some(letter) = *letter else {
                return self.effect("");
            };
            let rest = &word.text[place + 1..];
            let option = format!("-{letter}");
            let written: String = word.text[..=place].iter().flatten().collect();
            let value = match separate {
                false => Some(rest).filter(|rest| !rest.is_empty()).map(|rest| Word { text: rest.to_vec(), raw: word.raw.clone() }),
                // The next words are the values of all letters.
                true => Some(Word::unknown()).filter(|_| word.text.len() > 2),
            };
            self.named(&option, &written, value);
            let row = self.row;
            let takes_rest = [row.writes, row.texts, row.in_place].into_iter().any(|options| is_one_of(options, &option));
            let takes_rest = takes_rest || row.attached.contains(letter);
            if row.valued.contains(letter) && (rest.is_empty() || separate) {
                self.skip_value();
            }
            if row.letters == Letters::First || (!separate && (takes_rest || row.valued.contains(letter))) {
                return;
            }
        }
    }

    /// Skips the value of an option. A word that can be another option is not skipped, nor an
    /// operand that is written: the program may read the letters before it in another way.
    fn skip_value(&mut self) {
        let Some(word) = self.arguments.as_slice().first() else { return };
        let known_prefix = word.known_prefix();
        let operands = self.row.reads == usize::MAX || known_prefix.starts_with(|first: char| first.is_ascii_digit());
        if operands && !known_prefix.starts_with('-') && !word.may_be_option() {
            self.arguments.next();
        }
    }

    fn write(&mut self, option: &str, file: Option<Word>) {
        let file = file.and_then(|word| word.value());
        if !file.as_deref().is_some_and(|file| is_one_of(HARMLESS, file)) {
            let command = ShellCommand::new(Effect::SideEffect, self.words, self.raw);
            self.found.push(command.by_option(option).with_write(file));
        }
    }

    fn effect(&mut self, option: &str) {
        self.found.push(ShellCommand::new(Effect::SideEffect, self.words, self.raw).by_option(option));
    }
}

/// Splits an option at its first `=`: its name, `None` if a part is unknown, and its value.
fn split_value(word: &Word) -> (Option<String>, Option<Word>) {
    let place = word.text.iter().position(|character| *character == Some('='));
    let name = word.text[..place.unwrap_or(word.text.len())].iter().copied().collect();
    (name, place.map(|place| Word { text: word.text[place + 1..].to_vec(), raw: word.raw.clone() }))
}

/// Returns whether no URL in a word of `curl` can be the URL of a file.
fn is_remote(word: &Word) -> bool {
    let is_remote = |word: String| !["file:", "proto-d", "{", "["].iter().any(|part| word.contains(part));
    word.value().is_some_and(|word| is_remote(word.to_ascii_lowercase()))
}
