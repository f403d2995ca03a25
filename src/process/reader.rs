//! A reader: a process, forked by the fork server, that reads one document. It has no files, no
//! network and no other processes, and its memory, time and stack are limited, so a hostile
//! document can end only the reader. Its stdin is the document, its stdout the text or the image.
//! The fork server reports how it ended.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::panic::catch_unwind;

use rustix::process::Resource;

use super::oom;
use super::os::{self, CommandMark};
use super::resource_limits::lower;
use super::signals;
use super::supervisor::FAILED;
use crate::documents::{self, DocumentKind};
use crate::limits;

/// Stack of a reader, in bytes, a part of its memory. Parsers use stack for each level of nesting.
const READER_STACK_BYTES: usize = 64 << 20;

/// Exit code of a reader that wrote the reason why there is no text.
pub(super) const NO_TEXT: i32 = 1;
/// Exit code of a reader whose parser panicked.
pub(super) const PANICKED: i32 = 2;

/// Reads a document of this kind from `input`, writes what it reads to `output`, and exits.
pub(super) fn reader_main(kind: DocumentKind, input: OwnedFd, output: OwnedFd, mark: CommandMark) -> ! {
    let ended = prepare(input, output, mark).and_then(|()| {
        // A stack that is bounded in the same way on all systems.
        let thread = std::thread::Builder::new().stack_size(READER_STACK_BYTES).spawn(move || -> i32 {
            std::process::exit(work(kind));
        })?;
        thread.join().map_err(|_| io::ErrorKind::Other.into())
    });
    std::process::exit(ended.unwrap_or(FAILED))
}

/// Leaves the reader nothing but its pipes and its limits.
fn prepare(input: OwnedFd, output: OwnedFd, mark: CommandMark) -> io::Result<()> {
    rustix::stdio::dup2_stdin(&input)?;
    rustix::stdio::dup2_stdout(&output)?;
    rustix::stdio::dup2_stderr(File::options().write(true).open("/dev/null")?)?;
    drop((input, output));
    os::keep_only(None, mark);
    signals::reset();
    oom::raise_score();
    os::limit_memory(limits::READER_BYTES_MAX);
    os::confine_reader().map_err(io::Error::other)?;
    // nuncio ends the reader earlier, unless it hangs.
    let seconds = limits::READER_TIME_MAX.as_secs() + 1;
    // Without a number for another descriptor, nothing can be opened.
    lower(&[(Resource::Cpu, seconds), (Resource::Core, 0), (Resource::Fsize, 0), (Resource::Nofile, 0)]);
    Ok(())
}

/// Returns the exit code.
fn work(kind: DocumentKind) -> i32 {
    let read = || {
        os::confine_reader_calls().map_err(|why| format!("its reader cannot be confined: {why}"))?;
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        documents::read(kind, &bytes)
    };
    let (code, output) = match catch_unwind(read) {
        Ok(Ok(output)) => (0, output),
        Ok(Err(why)) => (NO_TEXT, why.into_bytes()),
        Err(_) => return PANICKED,
    };
    let written = io::stdout().lock().write_all(&output).and_then(|()| io::stdout().flush());
    if written.is_ok() { code } else { FAILED }
}
