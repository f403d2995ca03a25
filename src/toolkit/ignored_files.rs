//! Counts the files that a search without result would have found if ignore files (such as
//! `.gitignore`) did not exclude them.

use std::io::{self, Read};
use std::time::{Duration, Instant};

/// Maximum time for a search of files that are ignored.
const IGNORED_TIME: Duration = Duration::from_millis(200);

/// The ignored files that a search would have found.
pub(crate) struct IgnoredFiles {
    count: usize,
    /// The displayed path of the first one.
    first: Option<String>,
    /// True if the search ended before it had seen all ignored files.
    is_incomplete: bool,
}

impl IgnoredFiles {
    /// Returns the time at which a search that starts now must end.
    pub(crate) fn deadline() -> Instant {
        Instant::now() + IGNORED_TIME
    }

    /// Counts `files`, displayed paths that a search found until `deadline`.
    pub(crate) fn new(files: impl Iterator<Item = String>, deadline: Instant) -> IgnoredFiles {
        let mut files: Vec<String> = files.collect();
        files.sort();
        IgnoredFiles { count: files.len(), first: files.into_iter().next(), is_incomplete: Instant::now() >= deadline }
    }

    /// Returns the note for the model, or `None` if there are no such files. `verb` says in the
    /// plural what the files do.
    pub(crate) fn note(&self, verb: &str) -> Option<String> {
        let first = self.first.as_ref()?;
        let least = if self.is_incomplete { "at least " } else { "" };
        let files = match self.count {
            1 => format!("{least}1 ignored file {}", verb.replacen("contain", "contains", 1).replacen("match", "matches", 1)),
            count => format!("{least}{count} ignored files {verb}"),
        };
        Some(format!("[{files}, such as {first}]\n"))
    }
}

/// A file that seems to end at a deadline.
pub(crate) struct UntilDeadline<R> {
    pub(crate) reader: R,
    pub(crate) deadline: Instant,
}

impl<R: Read> Read for UntilDeadline<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.deadline { Ok(0) } else { self.reader.read(buffer) }
    }
}
