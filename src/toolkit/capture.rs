//! Captures the output of a command: for the model, the head and the tail of what a terminal would
//! show, and the whole output, byte by byte, in a file if it is longer.

use std::path::{Path, PathBuf};

use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt;

use crate::limits;
use crate::terminal_text::PrintedText;

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
    /// The output that is not in the file, until the file is created.
    unsaved: Vec<u8>,
    /// Size of the whole output, in bytes.
    total: usize,
    /// Converts the output to the text for the model.
    printed: PrintedText,
    /// The beginning of the text. This is the whole text as long as it is short enough for the
    /// model.
    head: Vec<u8>,
    /// The end of the text: more than the last [`SIDE_BYTES`] bytes, so that a line that begins
    /// before them is recognized as cut.
    tail: Vec<u8>,
    /// Size of the whole text, in bytes.
    text_total: usize,
    /// See [`Capture::has_new_output`].
    has_new_output: bool,
}

pub(crate) struct CapturedOutput {
    /// The output as a terminal would show it, or its head and tail. Ends with a line feed unless
    /// it is empty.
    pub text: String,
    /// True if `text` is only the head and the tail.
    pub truncated: bool,
    /// The file with the whole output, if it is long or the capture saves all output.
    pub artifact: Option<PathBuf>,
}

impl Capture {
    /// Creates a capture. Output that is too long for the model is also written to `path`.
    pub(crate) fn new(path: PathBuf) -> Capture {
        let saved_above = limits::BASH_MODEL_BYTES_MAX;
        Capture {
            path,
            saved_above,
            file: None,
            failed: None,
            unsaved: Vec::new(),
            total: 0,
            printed: PrintedText::default(),
            head: Vec::new(),
            tail: Vec::new(),
            text_total: 0,
            has_new_output: false,
        }
    }

    /// Creates a capture that writes all output to `path`.
    pub(crate) fn saved(path: PathBuf) -> Capture {
        Capture { saved_above: 0, ..Capture::new(path) }
    }

    pub(crate) async fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.has_new_output = true;
        let before = self.total;
        self.total += bytes.len();
        if self.total <= self.saved_above {
            self.unsaved.extend_from_slice(bytes);
        } else if before < limits::BASH_OUTPUT_BYTES_MAX
            && let Err(error) = self.save(bytes, before).await
        {
            self.failed = Some(error.to_string());
        }
        let text = self.printed.push(bytes);
        self.add(text.as_bytes());
    }

    /// Adds text for the model.
    fn add(&mut self, text: &[u8]) {
        self.text_total += text.len();
        self.tail.extend_from_slice(text);
        if self.tail.len() > 4 * SIDE_BYTES {
            self.tail.drain(..self.tail.len() - SIDE_BYTES - 1);
        }
        self.head.extend_from_slice(&text[..text.len().min(limits::BASH_MODEL_BYTES_MAX - self.head.len())]);
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
                file.write_all(&std::mem::take(&mut self.unsaved)).await?;
                file
            }
        };
        let room = limits::BASH_OUTPUT_BYTES_MAX - before;
        file.write_all(&bytes[..bytes.len().min(room)]).await
    }

    /// Returns the file for output that is too long for the model.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the end of the text so far, and the size of the whole output, in bytes.
    pub(crate) fn end(&self) -> (Vec<u8>, usize) {
        ([&self.tail, self.printed.clone().finish().as_bytes()].concat(), self.total)
    }

    /// Returns whether output has arrived since the last call of [`Capture::live`].
    pub(crate) fn has_new_output(&self) -> bool {
        self.has_new_output
    }

    /// Returns the end of the output so far, and marks the output as shown.
    pub(crate) fn live(&mut self) -> String {
        self.has_new_output = false;
        let open = self.printed.clone().finish();
        let text = [&self.tail, open.as_bytes()].concat();
        let last = String::from_utf8_lossy(last_lines(&text, limits::BASH_LIVE_BYTES_MAX));
        if self.text_total + open.len() > limits::BASH_LIVE_BYTES_MAX { format!("{OMITTED}{last}") } else { last.into_owned() }
    }

    /// Completes the file and returns the captured output.
    pub(crate) async fn finish(mut self) -> CapturedOutput {
        if let Some(file) = &mut self.file
            && let Err(error) = file.flush().await
        {
            self.failed = Some(error.to_string());
        }
        let open = std::mem::take(&mut self.printed).finish();
        self.add(open.as_bytes());
        let truncated = self.text_total > limits::BASH_MODEL_BYTES_MAX;
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
        let left_out = self.text_total - head.len() - tail.len();
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
