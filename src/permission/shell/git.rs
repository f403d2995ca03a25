//! Analyses `git` commands.

use std::path::PathBuf;

use super::command::{GitStart, ShellCommand};
use super::effect::Effect;
use super::file_options::git_writes;
use super::word::{Word, is_one_of, options_end};

/// Options before the subcommand whose value is the next word.
const VALUED: &str = "-C --git-dir --work-tree --namespace --super-prefix --attr-source --shallow-file --list-cmds";

/// Options of wrappers, such as `env` and `find`, that run a command in another directory.
const MOVING: [&str; 5] = [" -C", "--chdir", "-execdir", "-okdir", " -D"];

/// Options before the subcommand without a value. `--git-dir=…` and similar options are covered by
/// [`VALUED`].
const FLAGS: &str = "\
    --bare --exec-path --glob-pathspecs --help --html-path --icase-pathspecs --info-path --literal-pathspecs --man-path --no-advice \
    --no-lazy-fetch --no-optional-locks --no-pager --no-replace-objects --noglob-pathspecs --paginate --version -P -h -p -v";

/// Known Git subcommands. Any other name may be an alias or an external program.
const SUBCOMMANDS: &str = "\
    add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout \
    checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree config count-objects describe diff \
    diff-files diff-index diff-tree fast-export fast-import fetch fetch-pack fmt-merge-msg for-each-ref format-patch fsck gc \
    get-tar-commit-id grep hash-object help index-pack init init-db interpret-trailers lfs log ls-files ls-remote ls-tree mailinfo \
    mailsplit maintenance merge merge-base merge-file merge-tree mktag mktree multi-pack-index mv name-rev notes pack-objects pack-refs \
    patch-id prune prune-packed pull push range-diff read-tree rebase reflog remote repack replace rerere reset restore rev-list \
    rev-parse revert rm shortlog show show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule switch \
    symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info var verify-commit verify-pack verify-tag \
    version whatchanged worktree write-tree";

/// Settings that only identify the user or are otherwise harmless.
const PERSONAL: &str = "init.defaultbranch user.email user.name";

/// For each subcommand, the prefixes of options and operands that contain a command or name a
/// program.
const COMMANDS: &[(&str, &str)] = &[
    ("archive", "--exec --remote"),
    ("clone", "-u --upload-pack -c --config --template ext::"),
    ("fetch", "--upload-pack ext::"),
    ("fetch-pack", "--upload-pack --exec"),
    ("grep", "-O --open-files-in-pager"),
    ("init init-db", "--template"),
    ("ls-remote", "--upload-pack --exec ext::"),
    ("pull", "--upload-pack ext::"),
    ("push", "--receive-pack --exec ext::"),
    ("rebase", "-x --exec"),
    ("remote", "ext::"),
];

/// Creates the command `git` with these arguments, written as `words`, and its writes by options.
/// Deny and ask rules are also matched against the command without the options before the
/// subcommand.
pub(crate) fn commands(arguments: &[Word], words: &[Word], raw: &str) -> Vec<ShellCommand> {
    let (effect, plain) = subcommand(arguments);
    let name = plain.get(1).and_then(Word::value).unwrap_or_default();
    let writes = git_writes(&name, plain.get(2..).unwrap_or_default(), words, raw).into_iter();
    // An option before the subcommand can name another directory.
    let writes = writes.map(|write| if plain.len() < words.len() { write.with_unknown_directory() } else { write });
    let own = ShellCommand::new(effect, words, raw).also(&plain).with_git(start(arguments, raw), &plain);
    [own].into_iter().chain(writes).collect()
}

/// Returns where the command begins to look for its repository. `raw` has the wrappers around the
/// command.
fn start(arguments: &[Word], raw: &str) -> GitStart {
    let is_wrapped = !raw.trim_start().starts_with("git");
    if is_wrapped && MOVING.iter().any(|option| raw.contains(option)) {
        return GitStart::Unknown;
    }
    let mut directory = PathBuf::new();
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let Some(option) = word.value() else { return GitStart::Unknown };
        if !option.starts_with('-') {
            break;
        }
        let name = option.split('=').next().unwrap_or_default();
        rest = match name {
            "-C" => match after.first().map(Word::value) {
                Some(Some(value)) => {
                    directory.push(value);
                    &after[1..]
                }
                _ => return GitStart::Unknown,
            },
            "--git-dir" | "--work-tree" | "--bare" => return GitStart::Unknown,
            "-c" => after.get(1..).unwrap_or_default(),
            _ if option == name && is_one_of(VALUED, name) => after.get(1..).unwrap_or_default(),
            _ => after,
        };
    }
    GitStart::At(directory)
}

/// Returns the effect of the command, and its words without the options before the subcommand.
fn subcommand(arguments: &[Word]) -> (Effect, Vec<Word>) {
    let mut effect = Effect::Transparent;
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let value = word.value();
        match value.as_deref() {
            // An unknown word may be any of these options.
            None => {
                effect = Effect::Opaque;
                break;
            }
            Some(option) if is_one_of(VALUED, option) => rest = after.get(1..).unwrap_or_default(),
            // A setting can name a program or define an alias, which is a command.
            Some("-c") => {
                effect = Effect::Opaque;
                rest = after.get(1..).unwrap_or_default();
            }
            Some(option) if option.starts_with('-') => {
                let valued = option.split_once('=').is_some_and(|(name, _)| is_one_of(VALUED, name));
                if !valued && !is_one_of(FLAGS, option) {
                    effect = Effect::Opaque;
                }
                rest = after;
            }
            _ => break,
        }
    }
    let name = rest.first().and_then(Word::value);
    let operands = rest.get(1..).unwrap_or_default();
    let options = &operands[..options_end(operands)];
    let has_option = |prefix: &str| options.iter().any(|word| word.may_be(prefix));
    let is = |word: &str| operands.first().and_then(Word::value).is_some_and(|operand| operand == word);
    let runs = match name.as_deref() {
        Some("bisect") => is("run"),
        Some("submodule") => operands.iter().any(|word| word.value().is_none_or(|word| word == "foreach")),
        Some("config") => !is_harmless_setting(operands),
        Some(name) if !is_one_of(SUBCOMMANDS, name) => true,
        Some(name) => {
            COMMANDS.iter().any(|(names, prefixes)| is_one_of(names, name) && prefixes.split_whitespace().any(has_option))
        }
        None => false,
    };
    let plain = [Word::literal("git")].into_iter().chain(rest.iter().cloned()).collect();
    (if runs { Effect::Opaque } else { effect }, plain)
}

/// Returns whether `git config` with these operands only reads settings, or sets a harmless setting
/// ([`PERSONAL`]).
fn is_harmless_setting(operands: &[Word]) -> bool {
    let scope = |word: &&Word| word.value().is_some_and(|word| is_one_of("--global --local --system --worktree", &word));
    let words: Vec<Option<String>> = operands.iter().skip_while(scope).map(Word::value).collect();
    let is_name = |word: &str| !word.starts_with('-');
    let personal = |word: &str| is_one_of(PERSONAL, &word.to_ascii_lowercase());
    match words.as_slice() {
        [Some(word), ..] if is_one_of("get list -l --get --list --get-all --get-regexp", word) => true,
        // A single setting name reads the setting. The dot distinguishes it from a subcommand of
        // `git config`.
        [Some(name)] => is_name(name) && name.contains('.'),
        [Some(name), Some(value)] => personal(name) && is_name(value),
        _ => false,
    }
}
