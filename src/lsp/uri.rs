//! Converts between paths and `file` URIs (RFC 8089), without accessing files.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use lsp_types::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

/// Unreserved characters (RFC 3986) and `/`.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Converts an absolute path to a URI.
pub(crate) fn from_path(path: &Path) -> Uri {
    let text = format!("file://{}", percent_encode(path.as_os_str().as_bytes(), PATH));
    Uri::from_str(&text).expect("it consists of unreserved characters and escapes")
}

/// Converts a URI to a path. Returns `None` if the URI does not name a file on this machine.
pub(crate) fn path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    rest.starts_with('/').then(|| PathBuf::from(OsString::from_vec(percent_decode_str(rest).collect())))
}
