//! The version that a hosted agent reported last, in a private file of the agent.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::Error;
use crate::task;
use crate::workspace::{create_private_dir, read_small_text, replace_private};

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct ReportedVersion {
    /// The program that reported the version, with its arguments. Another one may have another
    /// version.
    command: Vec<String>,
    version: String,
}

fn path(data: &Path) -> PathBuf {
    data.join("version.json")
}

/// Returns the version that this command reported last. `data` is the directory for files of the
/// agent.
pub(super) fn read(data: &Path, command: &[String]) -> Option<String> {
    let text = read_small_text(&path(data)).ok()?;
    let reported: ReportedVersion = serde_json::from_str(&text).ok()?;
    Some(reported.version).filter(|_| reported.command == command)
}

/// Writes the version that a command reported, unless the file has it.
pub(super) async fn write(data: PathBuf, command: Vec<String>, version: String) {
    let write = move || {
        if read(&data, &command).as_ref() == Some(&version) {
            return Ok(());
        }
        create_private_dir(&data)?;
        let content = json!(ReportedVersion { command, version }).to_string();
        replace_private(&path(&data), content.as_bytes()).map_err(|error| Error::io("writing a file", error))
    };
    // Only the list of agents uses it.
    if let Err(error) = task::blocking("writing an agent's version", write).await.flatten() {
        tracing::debug!(%error, "the version of an agent was not written");
    }
}
