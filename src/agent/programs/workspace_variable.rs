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

/// Replaces `$WORKSPACE` in a setting. A longer name, such as `$WORKSPACE_TOKEN`, is kept.
pub(in crate::agent) fn in_workspace(text: &str, workspace: &Workspace) -> String {
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
pub(in crate::agent) fn is_workspace(name: &str) -> bool {
    name.strip_prefix(&WORKSPACE[1..]).is_some_and(|rest| !continues_name(rest))
}

fn continues_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// Replaces `$WORKSPACE` in the words of a command. In a line of code it is kept, because the name
/// of a directory must not become code; the returned flag says that the command has such a line,
/// which uses the environment variable WORKSPACE.
pub(in crate::agent) fn command_in_workspace(command: &[String], workspace: &Workspace) -> (Vec<String>, bool) {
    let is_code = |index: usize| is_code(&command[..index]);
    let words = command.iter().enumerate().map(|(index, word)| match is_code(index) {
        true => word.clone(),
        false => in_workspace(word, workspace),
    });
    (words.collect(), (0..command.len()).any(is_code))
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
