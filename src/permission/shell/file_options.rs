//! Options and operands by which programs that otherwise only read write files. Such a write has an
//! effect of its own, like a redirection: a rule that allows the command does not cover it, unless
//! its pattern names the option.

use super::command::ShellCommand;
use super::effect::Effect;
use super::programs::{Program, has_end_of_options};
use super::word::{Word, is_one_of};

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
    /// Letters of the other options that always have a value.
    valued: &'static str,
    /// The number of operands that the program reads. It writes the next one.
    reads: usize,
}

const NONE: FileOptions =
    FileOptions { programs: "", writes: "", in_place: "", effects: "", texts: "", valued: "", reads: usize::MAX };

const PROGRAMS: &[FileOptions] = &[
    FileOptions { programs: "apt-cache", writes: "-p --pkg-cache -s --src-cache", ..NONE },
    FileOptions { programs: "bzcat", effects: "-z --compress", ..NONE },
    FileOptions {
        programs: "curl",
        writes: "-o --output -c --cookie-jar -D --dump-header --alt-svc --etag-save --hsts --libcurl --output-dir --ssl-sessions \
                 --stderr --trace --trace-ascii",
        // A configuration file can contain each option.
        effects: "-O --remote-name --remote-name-all -J --remote-header-name -K --config --engine",
        texts: "-w --write-out",
        valued: "AbCdeEFHmPQrtTuUxXyYz",
        ..NONE
    },
    FileOptions { programs: "date", effects: "-s --set", valued: "dfr", ..NONE },
    FileOptions { programs: "file", effects: "-C --compile", valued: "efFmP", ..NONE },
    FileOptions { programs: "find", writes: "-fls -fprint -fprint0 -fprintf", effects: "-delete", ..NONE },
    FileOptions { programs: "gofmt", writes: "-cpuprofile --cpuprofile", in_place: "-w --w", ..NONE },
    FileOptions { programs: "history", effects: "-a -w", ..NONE },
    FileOptions { programs: "iconv", writes: "-o --output", valued: "ft", ..NONE },
    FileOptions { programs: "info", writes: "-o --output --dribble", valued: "dfkn", ..NONE },
    FileOptions { programs: "less", writes: "-o -O --log-file --LOG-FILE", valued: "bhjkpPtTxyz", ..NONE },
    FileOptions { programs: "pip pip3", writes: "--log --log-file --local-log --report", ..NONE },
    FileOptions { programs: "ptx", reads: 1, valued: "FMSWbgiow", ..NONE },
    FileOptions { programs: "sdiff shuf", writes: "-o --output", valued: "InwW", ..NONE },
    FileOptions { programs: "sed gsed", in_place: "-i --in-place", valued: "efl", ..NONE },
    FileOptions { programs: "sort", writes: "-o --output", valued: "kStT", ..NONE },
    FileOptions { programs: "ss", writes: "-D --diag", effects: "-K --kill", valued: "AFfN", ..NONE },
    FileOptions {
        programs: "tar",
        writes: "-g --listed-incremental --index-file --volno-file",
        effects: "--remove-files",
        valued: "bCfFHIKLNTVX",
        ..NONE
    },
    FileOptions { programs: "tree", writes: "-o", effects: "-R", valued: "HILPT", ..NONE },
    FileOptions { programs: "uniq", reads: 1, valued: "fsw", ..NONE },
    FileOptions {
        programs: "wget",
        writes: "-a --append-output -o --output-file -O --output-document -P --directory-prefix --hsts-file --rejected-log \
                 --save-cookies --warc-file --warc-tempdir",
        valued: "ABDeiIlQRtTUwX",
        ..NONE
    },
    FileOptions { programs: "xxd", reads: 1, valued: "cglosR", ..NONE },
    FileOptions { programs: "zstdcat", writes: "-o --output-dir-flat --output-dir-mirror --trace", valued: "DM", ..NONE },
];

const GIT: &[FileOptions] = &[
    FileOptions {
        programs: "annotate blame diff diff-files diff-index diff-tree log range-diff reflog rev-list shortlog show stash whatchanged",
        writes: "--output",
        valued: "GLS",
        ..NONE
    },
    FileOptions { programs: "apply", writes: "--build-fake-ancestor", valued: "Cp", ..NONE },
    FileOptions { programs: "archive", writes: "-o --output", ..NONE },
    FileOptions { programs: "fast-export", writes: "--export-marks --output", ..NONE },
    FileOptions { programs: "fast-import", writes: "--export-marks --export-pack-edges", ..NONE },
    FileOptions { programs: "format-patch", writes: "-o --output --output-directory", valued: "v", ..NONE },
    FileOptions { programs: "index-pack", writes: "-o", ..NONE },
    FileOptions { programs: "interpret-trailers", in_place: "--in-place", ..NONE },
    FileOptions { programs: "mailsplit", writes: "-o", ..NONE },
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
    let mut reading = Reading::new(row, words.get(1..).unwrap_or_default(), words, raw);
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
    Reading::new(row, operands, words, raw).read(true)
}

/// The arguments of one program while they are read.
struct Reading<'a> {
    row: &'a FileOptions,
    arguments: std::slice::Iter<'a, Word>,
    operands: Vec<Word>,
    in_place: Option<String>,
    /// The complete command, and its text in the command line.
    words: &'a [Word],
    raw: &'a str,
    found: Vec<ShellCommand>,
}

impl<'a> Reading<'a> {
    fn new(row: &'a FileOptions, arguments: &'a [Word], words: &'a [Word], raw: &'a str) -> Reading<'a> {
        Reading { row, arguments: arguments.iter(), operands: Vec::new(), in_place: None, words, raw, found: Vec::new() }
    }

    fn read(mut self, ends: bool) -> Vec<ShellCommand> {
        while let Some(word) = self.arguments.next() {
            let known_prefix = word.known_prefix();
            if ends && word.value().is_some_and(|word| word == "--") {
                self.operands.extend(self.arguments.by_ref().cloned());
            } else if self.is_word_option(&known_prefix) {
                self.named(&known_prefix, &known_prefix, None);
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
        let in_place = self.in_place.take();
        let read = if in_place.is_some() { 0 } else { self.row.reads.min(self.operands.len()) };
        for operand in self.operands.split_off(read) {
            self.write(in_place.as_deref().unwrap_or_default(), Some(operand));
        }
        self.found
    }

    /// Returns whether the word is an option of one dash and several letters.
    fn is_word_option(&self, word: &str) -> bool {
        let listed = || [self.row.writes, self.row.in_place, self.row.effects].into_iter().any(|options| is_one_of(options, word));
        word.len() > 2 && !word.starts_with("--") && listed()
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
        } else if is_one_of(self.row.effects, option) {
            self.effect(written);
        }
    }

    /// Reads a long option, which can be abbreviated.
    fn long(&mut self, word: &Word) {
        let place = word.text.iter().position(|character| *character == Some('='));
        let name: Option<String> = word.text[..place.unwrap_or(word.text.len())].iter().copied().collect();
        let Some(name) = name else {
            return self.effect("");
        };
        let value = place.map(|place| Word { text: word.text[place + 1..].to_vec(), raw: word.raw.clone() });
        let listed = [self.row.writes, self.row.in_place, self.row.texts, self.row.effects]
            .into_iter()
            .flat_map(|options| options.split(' '));
        let option = listed.filter(|option| option.starts_with(&name)).min_by_key(|option| option.len());
        if let Some(option) = option.filter(|_| name.len() > 2) {
            self.named(option, &name, value);
        }
    }

    /// Reads the letters after a dash.
    fn letters(&mut self, word: &Word) {
        for (place, letter) in word.text.iter().enumerate().skip(1) {
            let Some(letter) = *letter else {
                return self.effect("");
            };
            let rest = &word.text[place + 1..];
            let option = format!("-{letter}");
            let written: String = word.text[..=place].iter().flatten().collect();
            let value = Some(rest).filter(|rest| !rest.is_empty()).map(|rest| Word { text: rest.to_vec(), raw: word.raw.clone() });
            self.named(&option, &written, value);
            if is_one_of(self.row.writes, &option) || is_one_of(self.row.texts, &option) {
                return;
            }
            if self.row.valued.contains(letter) {
                if rest.is_empty() {
                    self.arguments.next();
                }
                return;
            }
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
