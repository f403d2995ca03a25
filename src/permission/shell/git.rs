//! What git is told to do, behind its many options.

use super::Nature;
use super::word::Word;

/// Options before the subcommand that have their value in the next word.
const VALUED: &[&str] = &["-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source"];

/// Options of subcommands that are commands, or name a program: the beginnings of words.
const COMMANDS: &[(&str, &[&str])] = &[
    ("archive", &["--exec", "--remote"]),
    ("clone", &["-u", "--upload-pack", "-c", "--config", "--template", "ext::"]),
    ("difftool", &[""]),
    ("fetch", &["--upload-pack", "ext::"]),
    ("fetch-pack", &["--upload-pack", "--exec"]),
    ("filter-branch", &[""]),
    ("for-each-repo", &[""]),
    ("grep", &["-O", "--open-files-in-pager"]),
    ("hook", &[""]),
    ("ls-remote", &["--upload-pack", "--exec", "ext::"]),
    ("mergetool", &[""]),
    ("pull", &["--upload-pack", "ext::"]),
    ("push", &["--receive-pack", "--exec", "ext::"]),
    ("rebase", &["-x", "--exec"]),
    ("remote", &["ext::"]),
    ("remote-ext", &[""]),
    ("send-email", &[""]),
    ("send-pack", &["--receive-pack", "--exec", "ext::"]),
    ("shell", &[""]),
];

/// How much the words after `git` tell, and the command without what stands before its subcommand.
pub fn subcommand(arguments: &[Word]) -> (Nature, Vec<Word>) {
    let mut nature = Nature::Plain;
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let value = word.value();
        match value.as_deref() {
            // It may be any of these.
            None => {
                nature = Nature::Opaque;
                break;
            }
            Some(option) if VALUED.contains(&option) => rest = after.get(1..).unwrap_or_default(),
            // Settings name programs, and aliases are commands.
            Some("-c") => {
                nature = Nature::Opaque;
                rest = after.get(1..).unwrap_or_default();
            }
            Some(option) if option.starts_with('-') => {
                if ["-c", "--config-env", "--exec-path="].iter().any(|prefix| option.starts_with(prefix)) {
                    nature = Nature::Opaque;
                }
                rest = after;
            }
            _ => break,
        }
    }
    let name = rest.first().and_then(Word::value);
    let operands = rest.get(1..).unwrap_or_default();
    let brings = |prefix: &str| operands.iter().any(|word| word.may_be(prefix));
    let is = |word: &str| operands.first().and_then(Word::value).is_some_and(|operand| operand == word);
    let runs = match name.as_deref() {
        Some("bisect") => is("run"),
        Some("submodule") => operands.iter().any(|word| word.value().is_none_or(|word| word == "foreach")),
        // Reading a setting is harmless.
        Some("config") => !["get", "list", "-l", "--get", "--list", "--get-all", "--get-regexp"].into_iter().any(is),
        Some(name) => COMMANDS.iter().any(|(command, prefixes)| *command == name && prefixes.iter().any(|prefix| brings(prefix))),
        None => false,
    };
    let plain = [Word::literal("git")].into_iter().chain(rest.iter().cloned()).collect();
    (if runs { Nature::Opaque } else { nature }, plain)
}
