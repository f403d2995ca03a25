//! Paths that the chat itself prints, as links of the terminal (OSC 8).

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::view::ChatView;
use crate::terminal_text::output_line;

impl ChatView {
    /// Prints a path after a word. In a terminal with colours it is a link.
    pub(super) fn print_path(&mut self, word: &str, path: &Path) {
        let text = output_line(&path.display().to_string());
        let shown = if self.colour && !self.plain { format!("\x1b]8;;{}\x1b\\{text}\x1b]8;;\x1b\\", url(path)) } else { text };
        self.output.insert(&format!("{word} {shown}\n"));
    }
}

/// Returns the URL of an absolute path.
fn url(path: &Path) -> String {
    let mut url = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => url.push(char::from(*byte)),
            // Writing to a text does not fail.
            _ => drop(write!(url, "%{byte:02X}")),
        }
    }
    url
}
