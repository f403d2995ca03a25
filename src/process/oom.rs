//! Makes the kernel kill a command before nuncio and its supervisor when memory runs out (proc(5),
//! oom_score_adj).

use std::fs::File;
use std::io::{Read, Seek, Write};

/// Lowest `oom_score_adj` of a command (proc(5)), so that the kernel kills commands before nuncio.
const COMMAND_OOM_SCORE: i32 = 500;

/// The OOM score adjustment of this process. Its file is opened before the sandbox prevents access.
pub(super) struct OomScore {
    file: File,
    own: i32,
}

/// Makes the kernel kill this process before nuncio, as it does with commands.
pub(super) fn raise_score() {
    if let Some(mut score) = OomScore::open() {
        score.set(COMMAND_OOM_SCORE.max(score.own));
    }
}

impl OomScore {
    /// Opens the file of the score. Returns `None` if the system has no OOM scores.
    pub(crate) fn open() -> Option<OomScore> {
        let mut file = File::options().read(true).write(true).open("/proc/self/oom_score_adj").ok()?;
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        Some(OomScore { file, own: text.trim().parse().ok()? })
    }

    /// Runs `fork` with a raised score, which the child inherits. Raising the score and restoring
    /// it are always permitted.
    pub(crate) fn raised<T>(score: &mut Option<OomScore>, fork: impl FnOnce() -> T) -> T {
        score.iter_mut().for_each(|score| score.set(COMMAND_OOM_SCORE.max(score.own)));
        let forked = fork();
        score.iter_mut().for_each(|score| score.set(score.own));
        forked
    }

    /// Sets the score of this process. On failure, a command keeps nuncio's score.
    fn set(&mut self, value: i32) {
        let _ = self.file.rewind().and_then(|()| self.file.write_all(value.to_string().as_bytes()));
    }
}
