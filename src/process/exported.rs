//! Reading `export -p` of bash and of POSIX shells (pure), and what a command changed in it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// A variable with its new value; without one when it is not exported any more.
pub type Change = (OsString, Option<OsString>);

/// What is different in `after`. Nothing where one of them cannot be read.
pub(super) fn changes(before: &[u8], after: &[u8]) -> Vec<Change> {
    if before == after {
        return Vec::new();
    }
    let (Some(before), Some(after)) = (variables(before), variables(after)) else { return Vec::new() };
    let gone = before.keys().filter(|name| !after.contains_key(*name)).map(|name| (name.clone(), None));
    let set = after.iter().filter(|(name, value)| before.get(*name) != Some(value));
    gone.chain(set.map(|(name, value)| (name.clone(), Some(value.clone())))).collect()
}

/// Lines of the form `declare -x NAME="value"` or `export NAME='value'`; those without a value are not in the environment, and
/// arrays cannot be.
fn variables(mut text: &[u8]) -> Option<BTreeMap<OsString, OsString>> {
    let mut variables = BTreeMap::new();
    while !text.is_empty() {
        let (line, rest) = word(text)?;
        text = rest;
        let declared = line.strip_prefix(b"declare -").or_else(|| line.strip_prefix(b"export"))?;
        let space = declared.iter().position(|byte| *byte == b' ')?;
        let (flags, declared) = (&declared[..space], &declared[space + 1..]);
        let array = flags.iter().any(|flag| b"aA".contains(flag));
        if let (Some(equals), false) = (declared.iter().position(|byte| *byte == b'='), array) {
            let (name, value) = (declared[..equals].to_vec(), declared[equals + 1..].to_vec());
            variables.insert(OsString::from_vec(name), OsString::from_vec(value));
        }
    }
    Some(variables)
}

/// The text up to a line feed that is not quoted, without its quotes, and what follows.
fn word(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut said = Vec::new();
    let mut rest = text;
    loop {
        rest = match rest {
            [b'\n', after @ ..] => return Some((said, after)),
            [b'\'', after @ ..] => {
                let end = memchr::memchr(b'\'', after)?;
                said.extend_from_slice(&after[..end]);
                &after[end + 1..]
            }
            [b'"', after @ ..] => double_quoted(after, &mut said)?,
            [b'$', b'\'', after @ ..] => escaped(after, &mut said)?,
            [b'\\', byte, after @ ..] | [byte, after @ ..] => {
                said.push(*byte);
                after
            }
            [] => return None,
        };
    }
}

/// Up to the closing `"`, where a backslash only keeps what follows from meaning more.
fn double_quoted<'a>(mut text: &'a [u8], said: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        text = match text {
            [b'"', after @ ..] => return Some(after),
            [b'\\', byte @ (b'$' | b'`' | b'"' | b'\\'), after @ ..] | [byte, after @ ..] => {
                said.push(*byte);
                after
            }
            [] => return None,
        };
    }
}

/// Up to the closing `'` of `$'…'`, with the escapes that bash writes itself.
fn escaped<'a>(mut text: &'a [u8], said: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, after) = match text {
            [b'\'', after @ ..] => return Some(after),
            [b'\\', high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', after @ ..] => {
                ((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'), after)
            }
            [b'\\', letter, after @ ..] => {
                let byte = match letter {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'r' => b'\r',
                    b'e' | b'E' => 0x1b,
                    other => *other,
                };
                (byte, after)
            }
            [byte, after @ ..] => (*byte, after),
            [] => return None,
        };
        said.push(byte);
        text = after;
    }
}
