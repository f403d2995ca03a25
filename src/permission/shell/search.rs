//! Searches the operands of an unknown program for a command that a pattern names.

use super::interpreters::is_shell;
use super::pattern::{Text, fits};
use super::wrappers::is_wrapper;

/// Returns whether the program named in `pattern` and the other words of `pattern` occur in this
/// order among or within the operands. An unknown first operand may be the program.
pub(crate) fn may_run(operands: &[Text], pattern: &str) -> bool {
    let mut words = pattern.split(' ').filter(|word| !word.is_empty());
    let program = words.next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let name = program.strip_suffix('*').unwrap_or(program);
    if name.is_empty() || !name.chars().all(is_part) {
        return false;
    }
    if may_be_program(operands, program) {
        return true;
    }
    // Search the operands as written, and without quotes, as a nested shell would read them.
    let quotes = |character: &Option<char>| character.is_some_and(|character| "\\'\"".contains(character));
    let plain = |operand: &Text| operand.iter().filter(|character| !quotes(character)).copied().collect();
    let unquoted: Vec<Text> = operands.iter().map(plain).collect();
    let rest: Vec<&str> = words.collect();
    occurs_in(operands, name, name != program, &rest) || occurs_in(&unquoted, name, name != program, &rest)
}

/// Returns whether `name` occurs in the operands, followed by all literal words of `rest`. If
/// `beginning` is set, a token that only starts with `name` counts as well. Words with wildcards
/// are ignored.
fn occurs_in(operands: &[Text], name: &str, beginning: bool, rest: &[&str]) -> bool {
    let mut wanted = rest.iter().filter(|word| word.chars().all(is_part)).peekable();
    let mut found = false;
    for token in operands.iter().flat_map(|operand| tokens(operand)) {
        if found {
            wanted.next_if(|word| token.as_deref().is_none_or(|token| token == **word));
        } else {
            found = token.is_some_and(|token| token == name || (beginning && token.starts_with(name)));
        }
        if found && wanted.peek().is_none() {
            return true;
        }
    }
    false
}

/// Returns whether the first operand is unknown and may be `program`. After a wrapper or a shell,
/// any unknown operand may be `program`.
fn may_be_program(operands: &[Text], program: &str) -> bool {
    let mut behind_wrapper = false;
    for operand in operands.iter().filter(|operand| operand.first() != Some(&Some('-'))) {
        let name = name_of(operand);
        match name.iter().copied().collect::<Option<String>>() {
            None if fits(&format!("{program} *"), name, true) => return true,
            Some(name) if is_wrapper(&name) || is_shell(&name) => behind_wrapper = true,
            _ if !behind_wrapper => return false,
            _ => {}
        }
    }
    false
}

/// Returns whether a character can be part of a program name.
fn is_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_.+".contains(character)
}

/// Returns the last component of a path.
fn name_of(operand: &[Option<char>]) -> &[Option<char>] {
    operand.rsplit(|character| *character == Some('/')).next().unwrap_or_default()
}

/// Returns the names in an operand, without directories; `None` for an unknown part, which may
/// contain spaces.
fn tokens(operand: &[Option<char>]) -> impl Iterator<Item = Option<String>> {
    operand
        .split_inclusive(|character| character.is_none_or(|character| !is_part(character)))
        .filter(|part| part.last() != Some(&Some('/')))
        .flat_map(|part| {
            let known: String = part.iter().flatten().collect();
            let token = known.trim_end_matches(|last| !is_part(last)).to_owned();
            let unknown = part.last() == Some(&None);
            [Some(Some(token)), unknown.then_some(None)].into_iter().flatten()
        })
}
