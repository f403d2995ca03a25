//! The texts that the user sent, in a private file of the data directory: one JSON string per line.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Reads the texts, oldest first. A line that is not JSON is skipped.
pub(crate) fn load(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Adds a text. A failure is logged, because the text was sent.
pub(crate) fn add(file: &Path, text: &str) {
    let line = format!("{}\n", serde_json::Value::from(text));
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(file);
    if let Err(error) = opened.and_then(|mut file| file.write_all(line.as_bytes())) {
        tracing::warn!(%error, file = %file.display(), "the history of the chat was not written");
    }
}
