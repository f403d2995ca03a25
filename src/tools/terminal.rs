//! `bash` in a terminal of the client, where the user sees it run. What runs there is the client's child: no sandbox of ours holds it, and when
//! it has ended is the client's word.

use std::time::Duration;

use tokio::time::sleep;

use super::capture::Capture;
use super::client::{ClientTerminal, TerminalCommand};
use super::follow::End;
use super::{ToolContext, ToolError};
use crate::content::ToolContent;
use crate::limits;
use crate::process::{Command, ExitStatus, What};

/// Runs a shell command until it ends, and shows its terminal meanwhile. None: the client has no terminal for it, or it has to be
/// confined.
pub async fn run(
    command: &Command,
    timeout: Duration,
    capture: &mut Capture,
    context: &ToolContext,
) -> Result<Option<(End, ToolContent)>, ToolError> {
    let Some((client, command)) = context.client.as_ref().filter(|_| context.client_terminal).zip(terminal_command(command)) else {
        return Ok(None);
    };
    let started = tokio::select! {
        biased;
        () = context.cancel.cancelled() => return Err(ToolError::cancelled()),
        started = client.start(&command) => started,
    };
    let unknown =
        |why| ToolError(format!("the client was told to run it and did not answer ({why}): whether it runs is not known"));
    let Some(terminal) = started.map_err(unknown)? else { return Ok(None) };
    (context.progress)(vec![terminal.shown(String::new())]);
    let end = tokio::select! {
        biased;
        () = context.cancel.cancelled() => End::Cancelled,
        () = sleep(timeout) => End::TimedOut,
        ended = terminal.ended() => match ended {
            Some(code) => End::Itself(ExitStatus::of(code)),
            None => End::Failed(ToolError::new("the client lost its terminal; whether the command ended is not known")),
        },
    };
    if !matches!(end, End::Itself(_)) {
        terminal.kill().await;
    }
    Ok(Some((end, shown(&*terminal, capture).await)))
}

async fn shown(terminal: &dyn ClientTerminal, capture: &mut Capture) -> ToolContent {
    let (mut output, truncated) = terminal.output().await.unwrap_or_default();
    if truncated {
        output.insert_str(0, "[the client kept only the end]\n");
    }
    capture.push(output.as_bytes()).await;
    terminal.shown(capture.live())
}

/// None: it is no shell command, or is to be confined, which only our own children are.
fn terminal_command(command: &Command) -> Option<TerminalCommand> {
    let (What::Shell(line), None) = (&command.what, &command.sandbox) else { return None };
    let text = |text: &std::ffi::OsString| text.to_str().map(str::to_owned);
    let unset = command.env_removed.iter().map(text).collect::<Option<Vec<String>>>()?;
    let unset = unset.into_iter().flat_map(|name| ["-u".to_owned(), name]);
    Some(TerminalCommand {
        program: "env".into(),
        arguments: unset.chain(["bash", "-c", line].map(str::to_owned)).collect(),
        environment: command.env_set.iter().map(|(name, value)| Some((text(name)?, text(value)?))).collect::<Option<_>>()?,
        cwd: command.cwd.clone(),
        output_bytes_max: limits::CLIENT_TERMINAL_BYTES_MAX,
    })
}
