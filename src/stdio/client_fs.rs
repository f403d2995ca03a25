//! Client-side files and terminals: requests of ACP to the client (`fs/*`, `terminal/*`). If the
//! client lacks a method or does not answer in time, the user is notified once and the local disk
//! or shell is used; a file that the client refuses to read or write is not read or written.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::barrier::{AcpConnection, Barrier};
use crate::api::Client;
use crate::content::ToolContent;
use crate::error::Kind;
use crate::event::{Body, Severity};
use crate::limits;
use crate::protocol::acp;
use crate::rpc::RequestError;
use crate::session::SessionLog;
use crate::toolkit::{ClientHands, ClientTerminal, Refused, TerminalCommand};

/// Files and terminals of a client, for one session.
pub struct ClientAccess {
    link: Link,
}

#[derive(Clone)]
struct Link {
    client: Arc<Client>,
    connection: AcpConnection,
    log: Arc<SessionLog>,
    /// A request timed out: files and terminals of the client are no longer used.
    slow: Arc<AtomicBool>,
    /// The user was notified of the fallback.
    notified: Arc<AtomicBool>,
    /// The client returned other content than it was given to write: its files are no longer used.
    distrusted: Arc<AtomicBool>,
    /// Files with an outstanding write request.
    writing: Arc<Mutex<HashSet<PathBuf>>>,
}

/// Why a request to the client has no result.
#[derive(Debug)]
enum Failure {
    /// The client answered with an error.
    Refused { code: i64, message: String },
    /// The client is gone, or its answer is not what the method returns.
    Unusable(String),
    /// No answer in time. The client may still carry out the request.
    TimedOut(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Failure::Refused { message: why, .. } | Failure::Unusable(why) | Failure::TimedOut(why)) = self;
        formatter.write_str(why)
    }
}

impl Failure {
    fn from_error(error: &serde_json::Value) -> Failure {
        let message = error["message"].as_str().unwrap_or("an error without a message").to_owned();
        let code = error["code"].as_i64().unwrap_or(Kind::Internal.row().rpc.into());
        Failure::Refused { code, message: reason(error).map_or(message.clone(), |reason| format!("{message}: {reason}")) }
    }

    /// Returns whether the client answered with the JSON-RPC code of this kind.
    fn is(&self, kind: Kind) -> bool {
        matches!(self, Failure::Refused { code, .. } if *code == i64::from(kind.row().rpc))
    }
}

/// The cause in an error's data: `data` or `data.details`, where SDKs put it for internal errors.
fn reason(error: &serde_json::Value) -> Option<&str> {
    error["data"].as_str().or_else(|| error["data"]["details"].as_str())
}

impl ClientAccess {
    /// The files and terminals of `client` for the session of `log`.
    pub fn new(client: Arc<Client>, connection: AcpConnection, log: Arc<SessionLog>) -> ClientAccess {
        let (slow, notified, distrusted) = (Arc::default(), Arc::default(), Arc::default());
        ClientAccess { link: Link { client, connection, log, slow, notified, distrusted, writing: Arc::default() } }
    }
}

impl Link {
    fn session(&self) -> acp::SessionId {
        acp::SessionId::new(self.log.id.as_str())
    }

    async fn call<R: DeserializeOwned>(&self, method: &str, params: impl Serialize, timeout: Duration) -> Result<R, Failure> {
        let requested = self.connection.request(method, params, Barrier::after(self.log.id.clone(), self.log.head()));
        let result = tokio::time::timeout(timeout, requested).await.map_err(|_| self.timed_out(timeout))?;
        result.map_err(|error| match error {
            RequestError::Invalid(error) => Failure::Unusable(error.to_string()),
            RequestError::Refused(error) => Failure::from_error(&error),
            RequestError::Closed => Failure::Unusable("the client is gone".into()),
        })
    }

    fn timed_out(&self, timeout: Duration) -> Failure {
        self.slow.store(true, Ordering::Relaxed);
        Failure::TimedOut(format!("no answer within {} s", timeout.as_secs()))
    }

    /// Sends a request that the client may still carry out after the timeout. `late` receives a
    /// result that arrives after the timeout or after the returned future was dropped.
    async fn call_with_effect<R: DeserializeOwned + Send + 'static>(
        &self,
        method: &'static str,
        params: impl Serialize + Send + 'static,
        timeout: Duration,
        late: impl FnOnce(Result<R, Failure>) + Send + 'static,
    ) -> Result<R, Failure> {
        let (link, (answer, answered)) = (self.clone(), oneshot::channel());
        tokio::spawn(async move {
            let result = link.call(method, params, limits::STALLED).await;
            if let Err(result) = answer.send(result) {
                late(result);
            }
        });
        match tokio::time::timeout(timeout, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(self.timed_out(timeout)),
        }
    }

    /// Returns the refusal if the client refused. For other failures, notifies the user and returns
    /// `Ok`: the caller uses the local disk.
    fn fall_back(&self, method: &str, failure: Failure) -> Result<(), Refused> {
        match failure {
            Failure::Refused { ref message, .. } if !failure.is(Kind::Unsupported) => Err(Refused(message.clone())),
            failure => {
                self.notify(method, &failure);
                Ok(())
            }
        }
    }

    fn writing(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies the user once that nuncio continues without the client.
    fn notify(&self, method: &str, why: &Failure) {
        tracing::info!(session = %self.log.id, method, %why, "request to the client failed");
        if !self.notified.swap(true, Ordering::Relaxed) {
            let description = format!("{method}: {why}; nuncio continues without the client");
            self.log.try_emit(None, Body::notice(Severity::Warning, "A request to the client failed", description));
        }
    }
}

impl ClientHands for ClientAccess {
    fn has_files(&self) -> bool {
        let (fs, link) = (self.link.client.capabilities().fs, &self.link);
        let unused = link.slow.load(Ordering::Relaxed) || link.distrusted.load(Ordering::Relaxed);
        (fs.read_text_file || fs.write_text_file) && !unused
    }

    fn read_text<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Option<String>, Refused>> {
        const METHOD: &str = "fs/read_text_file";
        async move {
            let link = &self.link;
            if !self.has_files() || !link.client.capabilities().fs.read_text_file {
                return Ok(None);
            }
            let params = acp::ReadTextFileRequest::new(link.session(), path);
            match link.call(METHOD, params, limits::CLIENT_FILE).await {
                Ok(acp::ReadTextFileResponse { content, .. }) => Ok(Some(content)),
                // The client has no unsaved buffer of this file: read the disk.
                Err(failure) if failure.is(Kind::NotFound) => Ok(None),
                Err(failure) => link.fall_back(METHOD, failure).map(|()| None),
            }
        }
        .boxed()
    }

    fn write_text<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Result<bool, Refused>> {
        const METHOD: &str = "fs/write_text_file";
        async move {
            let link = &self.link;
            if !self.has_files() || !link.client.capabilities().fs.write_text_file {
                return Ok(false);
            }
            let params = acp::WriteTextFileRequest::new(link.session(), path, text);
            link.writing().insert(path.to_owned());
            let (later, own) = (link.clone(), path.to_owned());
            let answered = move |_| {
                later.writing().remove(&own);
            };
            let written: Result<Option<acp::WriteTextFileResponse>, _> =
                link.call_with_effect(METHOD, params, limits::CLIENT_FILE, answered).await;
            if !matches!(written, Err(Failure::TimedOut(_))) {
                link.writing().remove(path);
            }
            written.map(|_| true).or_else(|failure| link.fall_back(METHOD, failure).map(|()| false))
        }
        .boxed()
    }

    fn may_write(&self, path: &Path) -> bool {
        self.link.writing().contains(path)
    }

    fn has_written(&self, path: &Path) {
        self.link.writing().remove(path);
    }

    fn distrust(&self, path: &Path) {
        if self.link.distrusted.swap(true, Ordering::Relaxed) {
            return;
        }
        let description = format!(
            "after fs/write_text_file, {} differs from the text that was sent; nuncio uses files on the local disk from now on",
            path.display()
        );
        tracing::warn!(session = %self.link.log.id, description, "client files are not used");
        self.link.log.try_emit(None, Body::notice(Severity::Warning, "The client's files are not used", description));
    }

    fn start<'a>(&'a self, command: &'a TerminalCommand) -> BoxFuture<'a, Result<Option<Box<dyn ClientTerminal>>, String>> {
        const METHOD: &str = "terminal/create";
        async move {
            let link = &self.link;
            if !link.client.capabilities().terminal || link.slow.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let environment = command.environment.iter().map(|(name, value)| acp::EnvVariable::new(name, value)).collect();
            let params = acp::CreateTerminalRequest::new(link.session(), &command.program)
                .args(command.arguments.clone())
                .env(environment)
                .cwd(command.cwd.clone())
                .output_byte_limit(command.output_bytes_max);
            let later = link.clone();
            // A terminal that is created too late is released, which ends its command.
            let late = move |result: Result<acp::CreateTerminalResponse, Failure>| {
                drop(result.map(|made| Terminal { link: later, id: made.terminal_id }));
            };
            match link.call_with_effect(METHOD, params, limits::CLIENT_TERMINAL, late).await {
                Ok(acp::CreateTerminalResponse { terminal_id, .. }) => {
                    Ok(Some(Box::new(Terminal { link: link.clone(), id: terminal_id }) as Box<dyn ClientTerminal>))
                }
                Err(Failure::TimedOut(why)) => Err(format!("{METHOD}: {why}")),
                Err(failure) => {
                    link.notify(METHOD, &failure);
                    Ok(None)
                }
            }
        }
        .boxed()
    }
}

struct Terminal {
    link: Link,
    id: acp::TerminalId,
}

impl ClientTerminal for Terminal {
    fn shown(&self, output: String) -> ToolContent {
        ToolContent::Terminal { client: self.link.client.id.clone(), terminal_id: self.id.0.to_string(), output }
    }

    fn ended(&self) -> BoxFuture<'_, Option<i32>> {
        async move {
            let params = acp::WaitForTerminalExitRequest::new(self.link.session(), self.id.clone());
            // An upper bound: the caller enforces the timeout of the command.
            let timeout = Duration::from_millis(limits::BASH_TIMEOUT_MS_MAX) + limits::CLIENT_TERMINAL;
            let ended: Result<acp::WaitForTerminalExitResponse, Failure> =
                self.link.call("terminal/wait_for_exit", params, timeout).await;
            let status = ended.ok()?.exit_status;
            status.exit_code.and_then(|code| i32::try_from(code).ok()).or_else(|| Some(128 + signal(status.signal.as_deref()?)))
        }
        .boxed()
    }

    fn output(&self) -> BoxFuture<'_, Option<(String, bool)>> {
        async move {
            let params = acp::TerminalOutputRequest::new(self.link.session(), self.id.clone());
            let result: Result<acp::TerminalOutputResponse, Failure> =
                self.link.call("terminal/output", params, limits::CLIENT_TERMINAL).await;
            result.ok().map(|response| (response.output, response.truncated))
        }
        .boxed()
    }

    fn kill(&self) -> BoxFuture<'_, ()> {
        async move {
            let params = acp::KillTerminalRequest::new(self.link.session(), self.id.clone());
            let killed: Result<Option<acp::KillTerminalResponse>, Failure> =
                self.link.call("terminal/kill", params, limits::CLIENT_TERMINAL).await;
            if let Err(why) = killed {
                self.link.notify("terminal/kill", &why);
            }
        }
        .boxed()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let params = acp::ReleaseTerminalRequest::new(self.link.session(), self.id.clone());
        // Without a connection there is no terminal to release.
        let _ = self.link.connection.request_without_response("terminal/release", params);
    }
}

/// The number of a signal by its name, with or without `SIG`; 9 (KILL) for unknown names.
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
