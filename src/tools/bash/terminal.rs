//! Runs `bash` commands in a client terminal, visible to the user. The command is a child process
//! of the client, so it cannot be sandboxed, and the client reports when the command ends.

use std::time::Duration;

use tokio::time::sleep;

use crate::content::ToolContent;
use crate::permission::shell::assignment;
use crate::process::{Command, CommandKind, ExitStatus};
use crate::toolkit::capture::Capture;
use crate::toolkit::follow::CommandEnd;
use crate::toolkit::{ClientTerminal, TerminalCommand, ToolContext, ToolError};

/// Maximum size of the output that a client's terminal keeps, in bytes.
const CLIENT_TERMINAL_BYTES_MAX: u64 = 4 << 20;

/// Runs a shell command in a client's terminal until it ends, and shows the terminal. `None` if the
/// client has no terminal or the command must be sandboxed.
pub(crate) async fn run(
    command: &Command,
    timeout: Duration,
    capture: &mut Capture,
    context: &ToolContext,
) -> Result<Option<(CommandEnd, ToolContent)>, ToolError> {
    let Some((client, command)) = context.client.as_ref().filter(|_| context.client_terminal).zip(terminal_command(command)) else {
        return Ok(None);
    };
    let started = context.unless_cancelled(client.start(&command)).await?;
    let unknown = |why| ToolError(format!("the client did not answer the request to run the command ({why}): it may be running"));
    let Some(terminal) = started.map_err(unknown)? else { return Ok(None) };
    (context.progress)(vec![terminal.shown(String::new())]);
    let end = tokio::select! {
        biased;
        () = context.cancel.cancelled() => CommandEnd::Cancelled,
        () = sleep(timeout) => CommandEnd::TimedOut,
        ended = terminal.ended() => match ended {
            Some(code) => CommandEnd::Exited(ExitStatus::from_code(code)),
            None => CommandEnd::Failed(ToolError::new("the client lost the terminal; the command may still be running")),
        },
    };
    if !matches!(end, CommandEnd::Exited(_)) {
        terminal.kill().await;
    }
    Ok(Some((end, shown(&*terminal, capture).await)))
}

/// Captures the output of the terminal and returns the content for users.
async fn shown(terminal: &dyn ClientTerminal, capture: &mut Capture) -> ToolContent {
    let (mut output, truncated) = terminal.output().await.unwrap_or_default();
    if truncated {
        output.insert_str(0, "[the client kept only the end of the output]\n");
    }
    capture.push(output.as_bytes()).await;
    terminal.shown(capture.live())
}

/// Converts the command for a client's terminal. `None` if it is not a shell command or must be
/// sandboxed, which is only possible for child processes of nuncio.
fn terminal_command(command: &Command) -> Option<TerminalCommand> {
    let (CommandKind::Shell(line), None) = (&command.kind, &command.sandbox) else { return None };
    let text = |text: &std::ffi::OsString| text.to_str().map(str::to_owned);
    let unset = command.env_removed.iter().map(text).collect::<Option<Vec<String>>>()?;
    let unset = unset.into_iter().flat_map(|name| ["-u".to_owned(), name]);
    let mut environment: Vec<(String, String)> =
        command.env_set.iter().map(|(name, value)| Some((text(name)?, text(value)?))).collect::<Option<_>>()?;
    // The command's PATH applies to the programs in its line, not to its shell.
    let path: String =
        environment.extract_if(.., |(name, _)| name == "PATH").map(|(name, value)| assignment(&name, &value) + "; ").collect();
    Some(TerminalCommand {
        program: "env".into(),
        arguments: unset.chain(["bash", "-c", &(path + line)].map(str::to_owned)).collect(),
        environment,
        cwd: command.cwd.clone(),
        output_bytes_max: CLIENT_TERMINAL_BYTES_MAX,
    })
}
