//! Attaches the agent's own terminal client to a session: while the session's server runs, a
//! private file contains its address.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::private_file::PrivateFile;
use crate::error::Result;
use crate::workspace::read_small_text;

/// Writes the address and the password of a session's server in the directory of the agent's files.
pub(super) fn write(data: &Path, session: &str, url: &str, password: &str) -> Result<PrivateFile> {
    PrivateFile::write(place(data, session), json!({ "url": url, "password": password }).to_string())
}

/// Returns the path of the file that describes the server of a session.
fn place(data: &Path, session: &str) -> PathBuf {
    data.join(format!("attach-{}.json", session.replace('/', "_")))
}

/// Reads the address and the password of a session's server. Returns `None` if no server runs, and
/// then removes the file of a server that was killed together with nuncio.
pub(super) fn read(data: &Path, session: &str) -> Option<(String, String)> {
    let path = place(data, session);
    let text = read_small_text(&path).ok()?;
    let found: Value = serde_json::from_str(&text).ok()?;
    let (url, password) = (found["url"].as_str()?, found["password"].as_str()?);
    let connected = TcpStream::connect(url.strip_prefix("http://")?);
    if connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
        // Ignore a failure: a file that remains has no effect.
        let _ = std::fs::remove_file(&path);
        return None;
    }
    Some((url.into(), password.into()))
}
