//! Whether a program that is not known may run one that a pattern names, by what stands in its operands.

use super::code::is_shell;
use super::pattern::{Text, fits};
use super::runs::is_wrapper;

/// Whether the program of `pattern`, and behind it the other words of it, stand among the operands, as parts of them too. An unknown
/// first operand may be the program.
pub fn may_run(operands: &[Text], pattern: &str) -> bool {
    let mut words = pattern.split(' ').filter(|word| !word.is_empty());
    let program = words.next().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let name = program.strip_suffix('*').unwrap_or(program);
    if name.is_empty() || !name.chars().all(is_part) {
        return false;
    }
    if may_be_program(operands, program) {
        return true;
    }
    // As it stands, and as a shell that is given it would take it: without quotes.
    let quotes = |character: &Option<char>| character.is_some_and(|character| "\\'\"".contains(character));
    let plain = |operand: &Text| operand.iter().filter(|character| !quotes(character)).copied().collect();
    let unquoted: Vec<Text> = operands.iter().map(plain).collect();
    let rest: Vec<&str> = words.collect();
    stands_among(operands, name, name != program, &rest) || stands_among(&unquoted, name, name != program, &rest)
}

/// Whether `name`, or what begins with it if it is only a `beginning`, stands among the operands, and behind it all words of `rest`
/// that are plain: wildcards say nothing.
fn stands_among(operands: &[Text], name: &str, beginning: bool, rest: &[&str]) -> bool {
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

/// Whether the first operand is unknown and may be the program; behind a wrapper or a shell, any may.
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

/// What programs' names consist of.
fn is_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_.+".contains(character)
}

/// The last part of a path.
fn name_of(operand: &[Option<char>]) -> &[Option<char>] {
    operand.rsplit(|character| *character == Some('/')).next().unwrap_or_default()
}

/// The names in an operand, without those of directories; none for a part that is unknown, which may hold blanks.
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
