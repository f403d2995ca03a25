//! Captures the output of a command: the head and the tail for the model, and the whole output in a
//! file if it is longer.

use std::path::PathBuf;

use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt;

use crate::limits;

/// Maximum size of the head, and of the tail, of truncated output, in bytes.
const SIDE_BYTES: usize = limits::BASH_MODEL_BYTES_MAX / 2;

/// The first line of live output whose beginning is omitted.
pub(crate) const OMITTED: &str = "[…]\n";

/// Captures output while a command runs, in bounded memory.
pub(crate) struct Capture {
    path: PathBuf,
    /// Size of the output from which on it is written to the file, in bytes.
    saved_above: usize,
    file: Option<File>,
    /// The error from writing the file.
    failed: Option<String>,
    /// The beginning of the output. This is the whole output as long as it is short enough for the
    /// model.
    head: Vec<u8>,
    /// The end of the output: more than the last [`SIDE_BYTES`] bytes, so that a line that begins
    /// before them is recognized as cut.
    tail: Vec<u8>,
    /// Size of the whole output, in bytes.
    total: usize,
    /// See [`Capture::has_new_output`].
    has_new_output: bool,
}

/// A captured output.
pub(crate) struct CapturedOutput {
    /// The output, or its head and tail. Ends with a line feed unless it is empty.
    pub text: String,
    /// True if `text` is not the whole output.
    pub truncated: bool,
    /// The file with the whole output, if it was truncated or the capture saves all output.
    pub artifact: Option<PathBuf>,
}

impl Capture {
    /// Creates a capture. Output that is too long for the model is also written to `path`.
    pub(crate) fn new(path: PathBuf) -> Capture {
        let saved_above = limits::BASH_MODEL_BYTES_MAX;
        Capture { path, saved_above, file: None, failed: None, head: Vec::new(), tail: Vec::new(), total: 0, has_new_output: false }
    }

    /// Creates a capture that writes all output to `path`.
    pub(crate) fn saved(path: PathBuf) -> Capture {
        Capture { saved_above: 0, ..Capture::new(path) }
    }

    /// Adds output.
    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.has_new_output = true;
        let before = self.total;
        self.total += bytes.len();
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > 4 * SIDE_BYTES {
            self.tail.drain(..self.tail.len() - SIDE_BYTES - 1);
        }
        if self.total > self.saved_above
            && before < limits::BASH_OUTPUT_BYTES_MAX
            && let Err(error) = self.save(bytes, before).await
        {
            self.failed = Some(error.to_string());
        }
        self.head.extend_from_slice(&bytes[..bytes.len().min(limits::BASH_MODEL_BYTES_MAX - self.head.len())]);
    }

    async fn save(&mut self, bytes: &[u8], before: usize) -> std::io::Result<()> {
        if self.failed.is_some() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                if let Some(parent) = self.path.parent() {
                    tokio::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).await?;
                }
                let private = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.path).await?;
                let file = self.file.insert(private);
                file.write_all(&self.head).await?;
                file
            }
        };
        let room = limits::BASH_OUTPUT_BYTES_MAX - before;
        file.write_all(&bytes[..bytes.len().min(room)]).await
    }

    /// Returns whether output has arrived since the last call of [`Capture::live`].
    pub(crate) fn has_new_output(&self) -> bool {
        self.has_new_output
    }

    /// Returns the end of the output so far, and marks the output as shown.
    pub(crate) fn live(&mut self) -> String {
        self.has_new_output = false;
        let text = String::from_utf8_lossy(last_lines(&self.tail, limits::BASH_LIVE_BYTES_MAX));
        if self.total > limits::BASH_LIVE_BYTES_MAX { format!("{OMITTED}{text}") } else { text.into_owned() }
    }

    /// Completes the file and returns the captured output.
    pub(crate) async fn finish(mut self) -> CapturedOutput {
        if let Some(file) = &mut self.file
            && let Err(error) = file.flush().await
        {
            self.failed = Some(error.to_string());
        }
        let truncated = self.total > limits::BASH_MODEL_BYTES_MAX;
        let mut text = if truncated { self.sides() } else { String::from_utf8_lossy(&self.head).into_owned() };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let artifact = (self.file.is_some() && self.failed.is_none()).then_some(self.path);
        CapturedOutput { text, truncated, artifact }
    }

    /// Returns the head and the tail, with a note on the omitted part between them.
    fn sides(&self) -> String {
        let (head, tail) = (first_lines(&self.head, SIDE_BYTES), last_lines(&self.tail, SIDE_BYTES));
        let left_out = self.total - head.len() - tail.len();
        let whole = match &self.failed {
            Some(error) => format!("writing {}: {error}", self.path.display()),
            None if self.total > limits::BASH_OUTPUT_BYTES_MAX => {
                format!(
                    "the first {} MiB of all {} bytes are in {}",
                    limits::BASH_OUTPUT_BYTES_MAX >> 20,
                    self.total,
                    self.path.display()
                )
            }
            None => format!("all {} bytes are in {}", self.total, self.path.display()),
        };
        let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
        format!("{}\n[{left_out} bytes left out; {whole}]\n{tail}", head.trim_end_matches('\n'))
    }
}

/// Returns at most `most` bytes from the beginning: whole lines, or whole characters if lines are
/// long.
fn first_lines(bytes: &[u8], most: usize) -> &[u8] {
    if bytes.len() <= most {
        return bytes;
    }
    let part = &bytes[..most];
    match memchr::memrchr(b'\n', part) {
        Some(end) if end >= most / 2 => &part[..=end],
        _ => {
            let cut = part.iter().rposition(|byte| !(0x80..0xc0).contains(byte)).unwrap_or(most);
            &part[..cut]
        }
    }
}

/// Returns at most `most` bytes from the end: whole lines, or whole characters if lines are long.
fn last_lines(bytes: &[u8], most: usize) -> &[u8] {
    if bytes.len() <= most {
        return bytes;
    }
    let part = &bytes[bytes.len() - most..];
    match memchr::memchr(b'\n', part) {
        Some(end) if end < most / 2 => &part[end + 1..],
        _ => {
            let begin = part.iter().position(|byte| !(0x80..0xc0).contains(byte)).unwrap_or(0);
            &part[begin..]
        }
    }
}
