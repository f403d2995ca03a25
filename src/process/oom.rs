//! Whom the kernel ends first when memory ends: a command before nuncio and its supervisor (proc(5), oom_score_adj).

use std::fs::File;
use std::io::{Read, Seek, Write};

use crate::limits;

/// The score of this process, opened while the sandbox does not prevent it yet.
pub(super) struct OomScore {
    file: File,
    own: i32,
}

impl OomScore {
    /// `None` where the system has no scores.
    pub fn open() -> Option<OomScore> {
        let mut file = File::options().read(true).write(true).open("/proc/self/oom_score_adj").ok()?;
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        Some(OomScore { file, own: text.trim().parse().ok()? })
    }

    /// Runs `fork` while the score is raised, which a child inherits. To raise it, and to take that back, is always allowed.
    pub fn raised<T>(score: &mut Option<OomScore>, fork: impl FnOnce() -> T) -> T {
        let mut set = |raise: bool| {
            if let Some(OomScore { file, own }) = score {
                let value = if raise { limits::COMMAND_OOM_SCORE.max(*own) } else { *own };
                // Without it commands are no worse off than nuncio.
                let _ = file.rewind().and_then(|()| file.write_all(value.to_string().as_bytes()));
            }
        };
        set(true);
        let forked = fork();
        set(false);
        forked
    }
}
