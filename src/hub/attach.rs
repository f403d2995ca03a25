//! How a user's own terminal client of an agent attaches to a session: the address of the session's
//! server is in a private file while the server is in use.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::workspace::{create_private_dir, read_small_text, replace_private};

/// The file with the address and the password of a session's server. Removed when the value is
/// dropped.
pub(super) struct AttachFile {
    path: PathBuf,
    content: String,
}

impl AttachFile {
    /// Writes the file in the directory of the agent's files.
    pub(super) fn write(data: &Path, session: &str, url: &str, password: &str) -> Result<AttachFile> {
        create_private_dir(data)?;
        let path = place(data, session);
        let content = json!({ "url": url, "password": password }).to_string();
        let written = replace_private(&path, content.as_bytes());
        written.map_err(|error| Error::io(format_args!("writing {}", path.display()), error))?;
        Ok(AttachFile { path, content })
    }
}

impl Drop for AttachFile {
    fn drop(&mut self) {
        // The next server of the session may have replaced the file.
        if read_small_text(&self.path).is_ok_and(|content| content == self.content) {
            // A file that remains has the address of a server that no longer runs.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The file of a session in an agent.
fn place(data: &Path, session: &str) -> PathBuf {
    data.join(format!("attach-{}.json", session.replace('/', "_")))
}

/// The address and the password of the server of a session, if it runs.
pub(super) fn read(data: &Path, session: &str) -> Option<(String, String)> {
    let text = read_small_text(&place(data, session)).ok()?;
    let found: Value = serde_json::from_str(&text).ok()?;
    Some((found["url"].as_str()?.into(), found["password"].as_str()?.into()))
}
