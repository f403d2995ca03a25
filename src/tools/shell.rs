//! What a session's commands share: the directory in which the next one starts.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The directory of a session's shell. Each command starts where the last one that ended by itself went.
#[derive(Debug)]
pub struct Shell {
    cwd: Mutex<PathBuf>,
}

impl Shell {
    pub fn new(cwd: PathBuf) -> Shell {
        Shell { cwd: Mutex::new(cwd) }
    }

    pub fn cwd(&self) -> PathBuf {
        self.cwd.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_cwd(&self, cwd: PathBuf) {
        *self.cwd.lock().unwrap_or_else(PoisonError::into_inner) = cwd;
    }
}
