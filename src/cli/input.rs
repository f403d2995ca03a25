//! Where `nuncio run` takes its prompts from: words, `--prompt`, standard input.

use std::collections::VecDeque;
use std::io::{IsTerminal, Read};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;

use super::flags::RunOptions;
use crate::error::{Error, Kind, Result};
use crate::limits;

/// What `run` works on.
pub enum Input {
    /// Messages and interrupts on standard input, a line each (`--json -`).
    Lines,
    Prompts(VecDeque<String>),
}

/// Words are one prompt. Piped input is appended to the first prompt, or is the prompt where there is no other.
pub async fn read(options: &RunOptions) -> Result<Input> {
    let (words, dash) = match options.words.split_last() {
        Some((last, words)) if last == "-" => (words, true),
        _ => (&options.words[..], false),
    };
    if options.json && dash && words.is_empty() {
        return Ok(Input::Lines);
    }
    let mut prompts: VecDeque<String> = options.prompts.iter().cloned().collect();
    if prompts.is_empty() {
        prompts.push_back(words.join(" "));
    }
    let first = &mut prompts[0];
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
    Ok(Input::Prompts(prompts))
}

/// Standard input to its end; none where it is blank, or a terminal that is not `wanted`. Says so where that takes long.
///
/// A pipe belongs to whoever wrote the command line, and may be slow to begin (a build, a test run): it is waited for. A socket is what
/// programs give to their children, often without ever closing it: it is waited for a moment only, unless it is `wanted`.
async fn standard_input(wanted: bool) -> Result<Option<String>> {
    if std::io::stdin().is_terminal() {
        return match wanted {
            true => Err(Error::invalid_params("no prompt").hint("nuncio run \"fix the failing test\"")),
            false => Ok(None),
        };
    }
    let mut reading = tokio::task::spawn_blocking(move || {
        let kind = rustix::fs::fstat(rustix::stdio::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
        if kind == Ok(FileType::Socket) && !wanted && !begins() {
            eprintln!("nuncio: going on without standard input: nothing came from it (to skip it at once: </dev/null)");
            return Ok(Vec::new());
        }
        let mut bytes = Vec::new();
        std::io::stdin().take(limits::INPUT_LINE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let read = match tokio::time::timeout(limits::INPUT_NOTICE, &mut reading).await {
        Ok(read) => read,
        Err(_) => {
            eprintln!("nuncio: reading standard input, which has not ended yet (to skip it: </dev/null)");
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
        eprintln!("nuncio: standard input is not UTF-8: what is not is replaced");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// Whether something comes from standard input, or its end, within [`limits::INPUT_SOCKET`].
fn begins() -> bool {
    let stdin = rustix::stdio::stdin();
    let wait = Timespec { tv_sec: limits::INPUT_SOCKET.as_secs() as i64, tv_nsec: 0 };
    !matches!(poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&wait)), Ok(0))
}
