//! Converts between paths and `file` URIs (RFC 8089). Pure.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use lsp_types::Uri;

/// The URI of an absolute path.
pub fn of(path: &Path) -> Uri {
    let mut text = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => text.push(char::from(*byte)),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    Uri::from_str(&text).expect("it consists of unreserved characters and escapes")
}

/// The path of a URI, or `None` if it is not a file on this machine.
pub fn path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    if !rest.starts_with('/') {
        return None;
    }
    let mut bytes = Vec::with_capacity(rest.len());
    let mut left = rest.bytes();
    while let Some(byte) = left.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                digit(left.next())? * 16 + digit(left.next())?
            }
            other => other,
        });
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}
