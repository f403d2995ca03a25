//! Terminals of the client (ACP `terminal/*`).

use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::client_requests::{ClientRequests, RequestFailure};
use crate::content::ToolContent;
use crate::limits;
use crate::protocol::acp;
use crate::toolkit::{ClientTerminal, TerminalCommand};

/// How long a client may take to start or end a terminal, or to return its output.
const CLIENT_TERMINAL: Duration = Duration::from_secs(10);

/// Starts a command in a terminal of the client: see [`crate::toolkit::ClientAccess::start`].
pub(crate) async fn create(
    requests: &ClientRequests,
    command: &TerminalCommand,
) -> Result<Option<Box<dyn ClientTerminal>>, String> {
    const METHOD: &str = "terminal/create";
    if !requests.client.capabilities().terminal || requests.slow.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let environment = command.environment.iter().map(|(name, value)| acp::EnvVariable::new(name, value)).collect();
    let params = acp::CreateTerminalRequest::new(requests.session(), &command.program)
        .args(command.arguments.clone())
        .env(environment)
        .cwd(command.cwd.clone())
        .output_byte_limit(command.output_bytes_max);
    let later = requests.clone();
    // A terminal that the client creates after the timeout is released, which kills its command.
    let late = move |result: Result<acp::CreateTerminalResponse, RequestFailure>| {
        drop(result.map(|made| AcpTerminal { requests: later, id: made.terminal_id }));
    };
    match requests.call_with_effect(METHOD, params, CLIENT_TERMINAL, late).await {
        Ok(acp::CreateTerminalResponse { terminal_id, .. }) => {
            Ok(Some(Box::new(AcpTerminal { requests: requests.clone(), id: terminal_id }) as Box<dyn ClientTerminal>))
        }
        Err(RequestFailure::TimedOut(why)) => Err(format!("{METHOD}: {why}")),
        Err(failure) => {
            requests.notify(METHOD, &failure);
            Ok(None)
        }
    }
}

struct AcpTerminal {
    requests: ClientRequests,
    id: acp::TerminalId,
}

impl ClientTerminal for AcpTerminal {
    fn shown(&self, output: String) -> ToolContent {
        ToolContent::Terminal { client: self.requests.client.id.clone(), terminal_id: self.id.0.to_string(), output }
    }

    fn ended(&self) -> BoxFuture<'_, Option<i32>> {
        async move {
            let params = acp::WaitForTerminalExitRequest::new(self.requests.session(), self.id.clone());
            // This timeout is only an upper bound: the caller enforces the timeout of the command.
            let timeout = Duration::from_millis(limits::BASH_TIMEOUT_MS_MAX) + CLIENT_TERMINAL;
            let ended: Result<acp::WaitForTerminalExitResponse, RequestFailure> =
                self.requests.call("terminal/wait_for_exit", params, timeout).await;
            let status = ended.ok()?.exit_status;
            status.exit_code.and_then(|code| i32::try_from(code).ok()).or_else(|| Some(128 + signal(status.signal.as_deref()?)))
        }
        .boxed()
    }

    fn output(&self) -> BoxFuture<'_, Option<(String, bool)>> {
        async move {
            let params = acp::TerminalOutputRequest::new(self.requests.session(), self.id.clone());
            let result: Result<acp::TerminalOutputResponse, RequestFailure> =
                self.requests.call("terminal/output", params, CLIENT_TERMINAL).await;
            result.ok().map(|response| (response.output, response.truncated))
        }
        .boxed()
    }

    fn kill(&self) -> BoxFuture<'_, ()> {
        async move {
            let params = acp::KillTerminalRequest::new(self.requests.session(), self.id.clone());
            let killed: Result<Option<acp::KillTerminalResponse>, RequestFailure> =
                self.requests.call("terminal/kill", params, CLIENT_TERMINAL).await;
            if let Err(why) = killed {
                self.requests.notify("terminal/kill", &why);
            }
        }
        .boxed()
    }
}

impl Drop for AcpTerminal {
    fn drop(&mut self) {
        let params = acp::ReleaseTerminalRequest::new(self.requests.session(), self.id.clone());
        // The error is ignored: without a connection there is no terminal to release.
        let _ = self.requests.connection.request_without_response("terminal/release", params);
    }
}

/// Returns the number of the signal with this name, with or without `SIG`; 9 (KILL) for unknown
/// names.
fn signal(name: &str) -> i32 {
    match name.trim_start_matches("SIG") {
        "HUP" => 1,
        "INT" => 2,
        "QUIT" => 3,
        "ABRT" => 6,
        "SEGV" => 11,
        "PIPE" => 13,
        "TERM" => 15,
        _ => 9,
    }
}
