//! Names of tools and of their arguments that every provider accepts. A name that must change gets
//! a hash of itself, so that it depends on nothing else: not on the other tools, and not on the
//! order in which servers started.

use std::borrow::Cow;

use crate::model::fingerprint::fingerprint;

/// Maximum length of a name, in characters.
const MODEL_NAME_CHARS_MAX: usize = 64;
/// Length of the hash in a changed name, in hexadecimal digits.
const HASH_CHARS: usize = 8;

/// Returns the name of a tool in requests: a letter, followed by letters, digits, `_` and `-`.
pub(super) fn tool_name(name: &str) -> Cow<'_, str> {
    match name {
        "" => "unknown".into(),
        name => fitting(name, |letter| letter.is_ascii_alphabetic(), "t_"),
    }
}

/// Returns the name of an argument in requests: a letter or `_`, followed by letters, digits, `_`,
/// `.` and `-`.
pub(super) fn argument_name(name: &str) -> Cow<'_, str> {
    match name {
        _ if name.contains('.') && is_allowed(&name.replace('.', "_")) && starts(name) => name.into(),
        name => fitting(name, |letter| letter.is_ascii_alphabetic() || letter == '_', "a_"),
    }
}

fn starts(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
}

fn is_allowed(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MODEL_NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(plain)
}

/// Returns `name` if it is allowed and begins with an allowed letter. Otherwise replaces the other
/// characters, adds `prefix` if the first one needs it, and appends a hash.
fn fitting<'a>(name: &'a str, is_first: fn(char) -> bool, prefix: &str) -> Cow<'a, str> {
    if is_allowed(name) && name.starts_with(is_first) {
        return name.into();
    }
    let hash = fingerprint(&[name]);
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let mut fitting: String = name.chars().map(plain).collect();
    if !fitting.starts_with(is_first) {
        fitting.insert_str(0, prefix);
    }
    fitting.truncate(MODEL_NAME_CHARS_MAX - HASH_CHARS - 1);
    format!("{fitting}_{}", &hash[..HASH_CHARS]).into()
}
