//! Starts commands under the helper, and knows which children are ours, so that orphans can be told from them.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use super::helper::{HELPER, PROGRAM, SHELL};
use super::{Child, Command, What, tree};
use crate::error::{Error, Result};
use crate::limits;

/// The one who spawns; clones share what they know. There is one for a process.
#[derive(Clone, Debug)]
pub struct Supervisor {
    exe: PathBuf,
    open_files: u64,
    children: Arc<Mutex<HashSet<u32>>>,
}

impl Supervisor {
    /// `exe` is a nuncio binary; see [`Supervisor::of_this_binary`].
    pub fn new(exe: impl Into<PathBuf>) -> Supervisor {
        Supervisor { exe: exe.into(), open_files: limits::CHILD_OPEN_FILES, children: Arc::default() }
    }

    /// The binary that runs now, also when its file was replaced meanwhile.
    pub fn of_this_binary() -> Supervisor {
        Supervisor::new("/proc/self/exe")
    }

    /// The soft limit of open files (RLIMIT_NOFILE) that commands get: what it was before we raised ours.
    pub fn open_files(mut self, soft: u64) -> Supervisor {
        self.open_files = soft;
        self
    }

    /// Starts `command`. It runs until it ends, or until the [`Child`] is ended or dropped. Must be called within a tokio runtime.
    pub fn spawn(&self, command: &Command) -> Result<Child> {
        let doing = || match &command.what {
            What::Shell(_) => "starting a shell".to_owned(),
            What::Program(arguments) => {
                format!("starting {}", arguments.first().map_or("nothing".into(), |name| name.to_string_lossy()))
            }
        };
        let fail = |error: io::Error| Error::io(doing(), error);
        let (lifeline, theirs) = UnixStream::pair().map_err(fail)?;
        let (output, writer) = io::pipe().map_err(fail)?;
        let output = tokio::net::unix::pipe::Receiver::from_owned_fd(OwnedFd::from(output)).map_err(fail)?;

        let mut helper = tokio::process::Command::new(&self.exe);
        helper.arg0("nuncio").arg(HELPER).arg(self.open_files.to_string());
        match &command.what {
            What::Shell(line) => helper.arg(SHELL).arg(line),
            What::Program(arguments) => helper.arg(PROGRAM).args(arguments),
        };
        helper.current_dir(&command.cwd).process_group(0).kill_on_drop(false);
        helper.envs(command.env_set.iter().map(|(name, value)| (name, value)));
        for name in &command.env_removed {
            helper.env_remove(name);
        }
        helper.stdin(OwnedFd::from(theirs)).stdout(writer.try_clone().map_err(fail)?).stderr(Stdio::from(writer));

        let mut children = self.children();
        let child = helper.spawn().map_err(fail)?;
        let pid = child.id().expect("a child that was not awaited yet has its id");
        children.insert(pid);
        drop(children);
        Ok(Child::new(child, pid, lifeline, output, self.clone()))
    }

    pub(super) fn forget(&self, pid: u32) {
        self.children().remove(&pid);
    }

    /// Kills and reaps what came to us from a helper that did not do its work. Blocks for as long as that takes, a few
    /// milliseconds. Does nothing unless [`super::adopt_orphans`] was called: else nothing could have come to us.
    pub(super) fn sweep(&self) {
        if !matches!(rustix::process::child_subreaper(), Ok(Some(_))) {
            return;
        }
        let children = self.children();
        tree::kill_orphans(|pid| children.contains(&pid));
    }

    fn children(&self) -> std::sync::MutexGuard<'_, HashSet<u32>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
