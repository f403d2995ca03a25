//! The texts that the user sent, in a private file of the data directory: one JSON string per line.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::workspace::create_private_dir;

/// Maximum number of texts that are kept.
const TEXTS_MAX: usize = 1_000;

/// Reads the newest texts, oldest first, and removes others from the file when they are many. A
/// line that is not JSON is skipped.
pub(crate) fn load(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut texts: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if texts.len() > 2 * TEXTS_MAX {
        texts.drain(..texts.len() - TEXTS_MAX);
        let shorter = file.with_extension("new");
        texts.iter().for_each(|text| add(&shorter, text));
        // On a failure, the longer file stays.
        let _ = std::fs::rename(&shorter, file);
    }
    texts
}

/// Adds a text. A failure is logged, because the text was sent.
pub(crate) fn add(file: &Path, text: &str) {
    let line = format!("{}\n", serde_json::Value::from(text));
    // A chat with a server elsewhere may be the first use of the directory.
    let _ = file.parent().map(create_private_dir);
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(file);
    if let Err(error) = opened.and_then(|mut file| file.write_all(line.as_bytes())) {
        tracing::warn!(%error, file = %file.display(), "the history of the chat was not written");
    }
}
