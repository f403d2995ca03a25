//! Reads the prompts of `nuncio run` from its arguments, `--prompt` or standard input.

use std::collections::VecDeque;
use std::io::{IsTerminal, Read};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;

use crate::cli::flags::run_options::{OutputFormat, RunOptions};
use crate::cli::terminal::output::print_stderr;
use crate::error::{Error, Kind, Result};
use crate::limits;

/// How long `run` waits for the end of standard input before it prints a notice.
const INPUT_NOTICE: Duration = Duration::from_secs(2);
/// How long `run` waits for input if standard input is a silent socket. After that, `run` uses the
/// prompt that it has.
const INPUT_SOCKET: Duration = Duration::from_secs(3);

pub(crate) enum RunInput {
    /// Messages and interrupts on standard input, one per line (`--json -`).
    Lines,
    /// Prompts, in order.
    Prompts(VecDeque<String>),
    /// No prompt: the session is continued to the end of its running turn.
    Nothing,
}

/// Reads the prompts. All words on the command line form one prompt. Piped input is appended to the
/// first prompt, or is the prompt if there is no other.
pub(crate) async fn read(options: &RunOptions) -> Result<RunInput> {
    let (words, dash) = match options.words.split_last() {
        Some((last, words)) if last == "-" => (words, true),
        _ => (&options.words[..], false),
    };
    if options.format() == OutputFormat::StreamJson && dash && words.is_empty() {
        return match options.detached {
            true => Err(Error::invalid_params("--bg: needs a prompt, not JSON lines")),
            false => Ok(RunInput::Lines),
        };
    }
    let mut prompts: VecDeque<String> = options.prompts.iter().cloned().collect();
    if prompts.is_empty() {
        prompts.push_back(words.join(" "));
    }
    let first = &mut prompts[0];
    // `--bg` on a terminal has no input.
    let kind = rustix::fs::fstat(rustix::stdio::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    let has_none = options.detached && kind == Ok(FileType::CharacterDevice);
    if options.session.continues() && !dash && first.trim().is_empty() && (has_none || std::io::stdin().is_terminal()) {
        return Ok(RunInput::Nothing);
    }
    let wanted = dash || first.trim().is_empty();
    let piped = standard_input(wanted).await?;
    match (piped, first.trim().is_empty()) {
        (Some(piped), true) => *first = piped,
        (Some(piped), false) => {
            let end = if piped.ends_with('\n') { "" } else { "\n" };
            first.push_str(&format!("\n\n<stdin>\n{piped}{end}</stdin>"));
        }
        (None, true) => return Err(Error::invalid_params("the prompt on standard input is empty")),
        (None, false) => {}
    }
    Ok(RunInput::Prompts(prompts))
}

/// Reads standard input to its end. Returns `None` if the input is blank, or if standard input is a
/// terminal and input is not `wanted`. Prints a notice if reading takes longer than
/// [`INPUT_NOTICE`].
///
/// A pipe comes from the command line and may start slowly (a build, a test run), so the read
/// waits. A socket is typically inherited from a program that never closes it, so the read waits
/// for [`INPUT_SOCKET`] at most, unless input is `wanted`.
async fn standard_input(wanted: bool) -> Result<Option<String>> {
    if std::io::stdin().is_terminal() {
        return match wanted {
            true => Err(Error::invalid_params("no prompt").hint("nuncio run \"fix the failing test\"")),
            false => Ok(None),
        };
    }
    let mut reading = tokio::task::spawn_blocking(move || {
        let kind = rustix::fs::fstat(rustix::stdio::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
        if kind == Ok(FileType::Socket) && !wanted && !has_input() {
            print_stderr("nuncio: continuing without standard input: it sent nothing (to skip the wait: </dev/null)\n");
            return Ok(Vec::new());
        }
        let mut bytes = Vec::new();
        std::io::stdin().take(limits::INPUT_LINE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let read = match tokio::time::timeout(INPUT_NOTICE, &mut reading).await {
        Ok(read) => read,
        Err(_) => {
            print_stderr("nuncio: still reading standard input (to skip it: </dev/null)\n");
            reading.await
        }
    };
    let bytes = read
        .map_err(|error| Error::internal(format!("reading standard input: {error}")))?
        .map_err(|error| Error::io("reading standard input", error))?;
    if bytes.len() > limits::INPUT_LINE_BYTES_MAX {
        let message = format!("standard input is longer than {} MiB", limits::INPUT_LINE_BYTES_MAX >> 20);
        return Err(Error::new(Kind::TooLarge, message).hint("name the file in the prompt instead"));
    }
    let text = String::from_utf8(bytes).unwrap_or_else(|error| {
        print_stderr("nuncio: standard input is not UTF-8: invalid bytes are replaced\n");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// Returns true if standard input becomes readable or ends within [`INPUT_SOCKET`].
fn has_input() -> bool {
    let stdin = rustix::stdio::stdin();
    let wait = Timespec { tv_sec: INPUT_SOCKET.as_secs() as i64, tv_nsec: 0 };
    !matches!(poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&wait)), Ok(0))
}
