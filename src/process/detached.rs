//! A program that outlives this process: another nuncio, which reports that it has started.

use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;

/// How long the last output of a program that has ended is awaited.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// Maximum length of the first line, in bytes.
const LINE_BYTES_MAX: usize = 4 << 10;

/// How a detached program began.
pub(crate) enum DetachedStart {
    /// It continues. The first line of its output.
    Started(String),
    /// It ended before a line of output, with this exit code.
    Ended(u8),
}

/// Starts a program of the user that is independent of this process, without its streams.
pub(crate) fn start_program(program: &str, argument: &str) -> io::Result<()> {
    let mut command = Command::new(program);
    let streams = command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = streams.process_group(0).spawn()?;
    // Until it ends, it would be a zombie otherwise.
    std::thread::Builder::new().name("program".into()).spawn(move || drop(child.wait()))?;
    Ok(())
}

/// Starts a program that leaves the session of the terminal by itself, and waits for the first line
/// of its output. Its errors until then are copied to standard error. It reads the standard input
/// of this process, unless that is a terminal.
pub(crate) fn start_detached(program: &Path, arguments: &[std::ffi::OsString]) -> io::Result<DetachedStart> {
    let input = if io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() };
    let mut command = Command::new(program);
    let mut child = command.args(arguments).stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let line = first_line(&mut child, None)?;
    if line.ends_with('\n') {
        return Ok(DetachedStart::Started(line.trim_end().to_owned()));
    }
    let status = child.wait()?;
    // A process of the program may still hold the pipe open.
    first_line(&mut child, Some(LAST_OUTPUT))?;
    Ok(DetachedStart::Ended(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Reads the output until the end of a line, its end or a pause of `patience`, and copies errors.
fn first_line(child: &mut Child, patience: Option<Duration>) -> io::Result<String> {
    let (Some(output), Some(errors)) = (&mut child.stdout, &mut child.stderr) else { return Ok(String::new()) };
    let mut line = Vec::new();
    let (mut byte, mut chunk) = ([0], [0; 4096]);
    let mut has_errors = true;
    let patience = patience.map(|patience| Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) });
    while line.len() < LINE_BYTES_MAX {
        let mut ready = vec![PollFd::new(&*output, PollFlags::IN)];
        if has_errors {
            ready.push(PollFd::new(&*errors, PollFlags::IN));
        }
        if poll(&mut ready, patience.as_ref())? == 0 {
            break;
        }
        let is_ready: Vec<bool> = ready.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(ready);
        if is_ready.get(1) == Some(&true) {
            let read = errors.read(&mut chunk)?;
            has_errors = read > 0;
            io::stderr().write_all(&chunk[..read])?;
        } else if is_ready[0] {
            if output.read(&mut byte)? == 0 {
                break;
            }
            line.push(byte[0]);
            if byte[0] == b'\n' {
                break;
            }
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Leaves the session of the terminal, whose end then does not end this process.
pub(crate) fn leave_terminal() {
    // Fails for the leader of a process group, which leads a session or is one of its jobs.
    let _ = rustix::process::setsid();
}

/// Prints `line` as the last output: later output is discarded.
pub(crate) fn detach_output(line: &str) -> io::Result<()> {
    io::stdout().write_all(line.as_bytes())?;
    io::stdout().flush()?;
    leave_streams()
}

/// Closes the standard streams: later output is discarded, unless standard error is a file.
pub(crate) fn leave_streams() -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    let errors = rustix::fs::fstat(rustix::stdio::stderr())?;
    if FileType::from_raw_mode(errors.st_mode) != FileType::RegularFile {
        rustix::stdio::dup2_stderr(&null)?;
    }
    Ok(())
}
