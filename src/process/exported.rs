//! Parses the output of `export -p` from bash and POSIX shells, and compares two such outputs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// A variable with its new value, or `None` if it is no longer exported.
pub(crate) type ExportedChange = (OsString, Option<OsString>);

/// Returns the changes from `before` to `after`; no changes if either output cannot be parsed.
pub(super) fn changes(before: &[u8], after: &[u8]) -> Vec<ExportedChange> {
    if before == after {
        return Vec::new();
    }
    let (Some(before), Some(after)) = (variables(before), variables(after)) else { return Vec::new() };
    let gone = before.keys().filter(|name| !after.contains_key(*name)).map(|name| (name.clone(), None));
    let set = after.iter().filter(|(name, value)| before.get(*name) != Some(value));
    gone.chain(set.map(|(name, value)| (name.clone(), Some(value.clone())))).collect()
}

/// Parses lines of the form `declare -x NAME="value"` or `export NAME='value'`. Variables without a
/// value are not in the environment, and arrays cannot be; both are skipped.
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

/// Returns the text up to an unquoted line feed with its quotes removed, and the rest of the input.
fn word(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut unquoted = Vec::new();
    let mut rest = text;
    loop {
        rest = match rest {
            [b'\n', after @ ..] => return Some((unquoted, after)),
            [b'\'', after @ ..] => {
                let end = memchr::memchr(b'\'', after)?;
                unquoted.extend_from_slice(&after[..end]);
                &after[end + 1..]
            }
            [b'"', after @ ..] => double_quoted(after, &mut unquoted)?,
            [b'$', b'\'', after @ ..] => escaped(after, &mut unquoted)?,
            [b'\\', byte, after @ ..] | [byte, after @ ..] => {
                unquoted.push(*byte);
                after
            }
            [] => return None,
        };
    }
}

/// Reads up to the closing `"`; a backslash quotes the next character.
fn double_quoted<'a>(mut text: &'a [u8], unquoted: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        text = match text {
            [b'"', after @ ..] => return Some(after),
            [b'\\', byte @ (b'$' | b'`' | b'"' | b'\\'), after @ ..] | [byte, after @ ..] => {
                unquoted.push(*byte);
                after
            }
            [] => return None,
        };
    }
}

/// Reads up to the closing `'` of `$'…'`, with the escapes that bash writes.
fn escaped<'a>(mut text: &'a [u8], unquoted: &mut Vec<u8>) -> Option<&'a [u8]> {
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
        unquoted.push(byte);
        text = after;
    }
}
