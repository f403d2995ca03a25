//! `$WORKSPACE` in settings, which stands for the session's directory.

use crate::workspace::Workspace;

const WORKSPACE: &str = "$WORKSPACE";

/// Interpreters whose options take a line of code, and these options. A shell also has them in a
/// group: `-lc`.
const CODE: &[(&str, &[&str])] = &[
    ("bash", &["c"]),
    ("bun", &["e", "p", "-eval", "-print"]),
    ("dash", &["c"]),
    ("deno", &["eval"]),
    ("fish", &["c", "-command"]),
    ("ksh", &["c"]),
    ("node", &["e", "p", "-eval", "-print"]),
    ("perl", &["e", "E"]),
    ("php", &["r"]),
    ("python", &["c"]),
    ("ruby", &["e"]),
    ("sh", &["c"]),
    ("zsh", &["c"]),
];

/// Programs that pass their arguments to a shell.
const SHELL_RUNNERS: [&str; 9] = ["at", "batch", "entr", "parallel", "screen", "script", "ssh", "tmux", "watch"];

/// Words in the name of an option, or of an environment variable, whose value is a command line or
/// a line of code.
const CODE_NAMES: [&str; 12] =
    ["browser", "call", "cmd", "command", "editor", "eval", "exec", "expr", "lessopen", "options", "pager", "shell"];

/// Options with such a value, besides those that end in c, e or S.
const CODE_OPTIONS: [&str; 5] = ["C", "K", "ex", "k", "run"];

/// Replaces `$WORKSPACE` in a setting. A longer name, such as `$WORKSPACE_TOKEN`, is kept.
pub(in crate::runtime) fn in_workspace(text: &str, workspace: &Workspace) -> String {
    let (mut replaced, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(WORKSPACE) {
        replaced += before;
        match continues_name(after) {
            true => replaced += WORKSPACE,
            false => replaced += &workspace.cwd.to_string_lossy(),
        }
        rest = after;
    }
    replaced + rest
}

/// Returns whether the name of a variable, `WORKSPACE` or longer, is exactly `WORKSPACE`.
pub(in crate::runtime) fn is_workspace(name: &str) -> bool {
    name.strip_prefix(&WORKSPACE[1..]).is_some_and(|rest| !continues_name(rest))
}

fn continues_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// Replaces `$WORKSPACE` in the words of a command. In a line of code it is kept, because the name
/// of a directory must not become code; the returned flag says that the command has such a line,
/// which uses the environment variable WORKSPACE.
pub(in crate::runtime) fn command_in_workspace(command: &[String], workspace: &Workspace) -> (Vec<String>, bool) {
    let is_plain = is_plain(&workspace.cwd.to_string_lossy());
    let is_code = |index: usize| is_code(&command[..index]) || (!is_plain && may_be_code(&command[..index], &command[index]));
    let words = command.iter().enumerate().map(|(index, word)| match is_code(index) {
        true => word.clone(),
        false => in_workspace(word, workspace),
    });
    (words.collect(), (0..command.len()).any(is_code))
}

/// Replaces `$WORKSPACE` in the value of an environment variable, unless the value may be a line of
/// code, which uses the environment variable WORKSPACE.
pub(in crate::runtime) fn value_in_workspace(name: &str, value: &str, workspace: &Workspace) -> String {
    let is_code = !is_plain(&workspace.cwd.to_string_lossy()) && (names_code(name) || is_line(value));
    if is_code { value.to_owned() } else { in_workspace(value, workspace) }
}

/// Returns whether a path means the same as a part of a line of code.
fn is_plain(path: &str) -> bool {
    path.chars().all(|character| character.is_alphanumeric() || "/._-+".contains(character))
}

/// Returns whether a word of a command may be a line of code, for any program.
fn may_be_code(before: &[String], word: &str) -> bool {
    if !word.contains(WORKSPACE) {
        return false;
    }
    let runs_shell = before.iter().any(|word| SHELL_RUNNERS.contains(&word.rsplit('/').next().unwrap_or_default()));
    let own_option = word.split_once('=').is_some_and(|(option, _)| is_code_option(option));
    runs_shell || own_option || before.last().is_some_and(|option| is_code_option(option)) || is_line(word)
}

fn is_code_option(option: &str) -> bool {
    let Some(name) = option.strip_prefix(['-', '/', '+']) else { return false };
    let short = !name.starts_with('-') && name.ends_with(['c', 'e', 'S']);
    let name = name.trim_start_matches('-');
    short || CODE_OPTIONS.contains(&name) || names_code(name)
}

fn names_code(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    CODE_NAMES.iter().any(|word| name.contains(word))
}

/// Returns whether a value has characters that paths and options rarely have, but lines of code do.
fn is_line(value: &str) -> bool {
    value
        .replace(WORKSPACE, "")
        .contains(|character: char| character.is_whitespace() || "\"'`$;|&<>(){}[]!#*?\\".contains(character))
}

/// Returns whether the word after these words of a command is a line of code.
fn is_code(before: &[String]) -> bool {
    let Some((option, before)) = before.split_last() else { return false };
    // The options of the interpreter precede the option with the code.
    let start = before.iter().rposition(|word| !word.starts_with(['-', '+']));
    let Some(program) = start.map(|start| before[start].as_str()) else { return false };
    let name = program.rsplit('/').next().unwrap_or_default();
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some((_, options)) = CODE.iter().find(|(interpreter, _)| *interpreter == name) else { return false };
    let Some(given) = option.strip_prefix('-') else { return options.contains(&option.as_str()) };
    let is_group = !given.starts_with('-');
    options.contains(&given) || (is_group && options.iter().any(|option| option.len() == 1 && given.ends_with(option)))
}
