//! Reports how much of a long tool call the model has written.

use std::time::Duration;

use tokio::time::Instant;

use super::answer::Chunk;

/// Size from which on a call is reported, in bytes.
pub(super) const REPORTED_BYTES: usize = 1 << 10;
/// Minimum time between two reports.
const INTERVAL: Duration = Duration::from_millis(250);
/// The names of the argument with the path of a file.
const PATH_NAMES: [&str; 4] = ["\"file_path\"", "\"path\"", "\"filePath\"", "\"file\""];

/// The call that is being received.
#[derive(Default)]
pub(super) struct CallProgress {
    reported: Option<Instant>,
}

impl CallProgress {
    /// Returns the chunk to report, if the open call (name and input so far) is long and was not
    /// reported a short time ago.
    pub(super) fn report(&mut self, open: Option<(&str, &str)>) -> Option<Chunk> {
        let Some((name, input)) = open.filter(|(_, input)| input.len() >= REPORTED_BYTES) else {
            self.reported = None;
            return None;
        };
        if self.reported.is_some_and(|reported| reported.elapsed() < INTERVAL) {
            return None;
        }
        self.reported = Some(Instant::now());
        Some(call_input(name, input))
    }
}

/// Creates the report about a call with this input so far.
pub(super) fn call_input(name: &str, input: &str) -> Chunk {
    Chunk::CallInput { name: name.to_owned(), bytes: input.len() as u64, path: path(input) }
}

/// Returns the first complete argument with the path of a file. Models write it before the content.
fn path(input: &str) -> Option<String> {
    let head = &input[..input.floor_char_boundary(REPORTED_BYTES)];
    PATH_NAMES.iter().find_map(|name| {
        let value = head[head.find(name)? + name.len()..].trim_start().strip_prefix(':')?;
        serde_json::Deserializer::from_str(value).into_iter::<String>().next()?.ok()
    })
}
