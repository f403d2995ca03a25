//! The user's command whose output stands above the status row.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::state::Chat;
use super::updates::ChatUpdate;
use super::view::ChatView;
use crate::error::{Error, Result};
use crate::process::{Command, ProcessLauncher};
use crate::task;
use crate::terminal_text::output_line;

/// Time limit of the command.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of its output that is read, in bytes.
const OUTPUT_BYTES_MAX: u64 = 4 << 10;

impl Chat {
    /// Runs the user's command, if the state has changed since it ran last.
    pub(super) fn run_status_command(&mut self) {
        if self.status.arguments.is_empty() || self.status.is_running || self.view.plain {
            return;
        }
        let state = self.view.state_for_programs();
        if state == self.status.shown {
            return;
        }
        (self.status.shown, self.status.is_running) = (state.clone(), true);
        let app = self.session.client.app();
        let (launcher, updates) = (app.services.launcher.clone(), self.tasks.updates.clone());
        let command = Command::program(self.status.arguments.clone(), app.cwd.clone());
        task::spawn(async move {
            let ran = tokio::time::timeout(TIMEOUT, run(&launcher, &command, &state)).await;
            let text = match ran {
                Ok(Ok(text)) => text,
                Ok(Err(error)) => format!("status_command: {error}"),
                Err(_) => format!("status_command: no end within {} s", TIMEOUT.as_secs()),
            };
            // Fails when the chat has ended.
            let _ = updates.send(ChatUpdate::StatusText(output_line(&text))).await;
        });
    }
}

/// Runs the command, and returns the first line of its output.
async fn run(launcher: &ProcessLauncher, command: &Command, state: &Value) -> Result<String> {
    let (mut child, mut input) = launcher.spawn_piped(command)?;
    let text = format!("{state}\n");
    let mut output = Vec::new();
    let mut limited = (&mut child.output).take(OUTPUT_BYTES_MAX);
    let write = async {
        // A command that does not read its input has closed it.
        let _ = input.write_all(text.as_bytes()).await;
        drop(input);
    };
    let (read, ()) = tokio::join!(limited.read_to_end(&mut output), write);
    read.map_err(|error| Error::io("reading the output", error))?;
    Ok(String::from_utf8_lossy(&output).lines().next().unwrap_or_default().to_owned())
}

impl ChatView {
    /// Returns the state of the program for the terminal (OSC 7501).
    pub(super) fn program_state(&self) -> &'static str {
        match (self.questions.is_empty(), self.form.is_some(), self.busy, self.failed) {
            (false, ..) => "blocked:kind=permission",
            (true, true, ..) => "blocked:kind=question",
            (true, false, true, _) => "working",
            (true, false, false, None) => "idle",
            (true, false, false, Some(true)) => "error",
            (true, false, false, Some(false)) => "done",
        }
    }

    /// Returns the state that the user's command reads.
    fn state_for_programs(&self) -> Value {
        let (used, window) = self.context;
        json!({
            "sessionId": self.info.session_id,
            "cwd": self.info.cwd,
            "title": self.info.title,
            "model": self.info.model,
            "agent": self.info.agent,
            "mode": self.info.mode,
            "branch": self.branch,
            "state": self.program_state().split(':').next(),
            "contextTokens": used,
            "contextWindow": window,
            "cost": self.cost,
            "jobs": self.jobs.len(),
        })
    }
}
