//! Client-side files and terminals: requests of ACP to the client (`fs/*`, `terminal/*`). If the client
//! lacks a method or does not answer in time, the user is notified once and the local disk or shell is
//! used; a file that the client refuses to read or write is not read or written.

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

use super::Caller;
use crate::content::ToolContent;
use crate::error::Kind;
use crate::event::{Body, Severity};
use crate::limits;
use crate::protocol::acp;
use crate::session::SessionLog;
use crate::tools::{ClientHands, ClientTerminal, Refused, TerminalCommand};

/// What a client lends to one session.
pub struct Hands {
    link: Link,
}

#[derive(Clone)]
struct Link {
    caller: Caller,
    log: Arc<SessionLog>,
    /// It did not answer in time: it is not asked for files again.
    slow: Arc<AtomicBool>,
    told: Arc<AtomicBool>,
    /// It does not return what it was given to write: its files are not used.
    distrusted: Arc<AtomicBool>,
    /// Files that it was told to write, as long as it has not answered.
    writing: Arc<Mutex<HashSet<PathBuf>>>,
}

/// Why a request to the client has no result.
#[derive(Debug)]
enum Failure {
    /// The client answered with an error.
    Refused { code: i64, message: String },
    /// The client is gone, or its answer is not what the method returns.
    Unusable(String),
    /// No answer in time: the client may still do what it was asked for.
    Silent(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Failure::Refused { message: why, .. } | Failure::Unusable(why) | Failure::Silent(why)) = self;
        formatter.write_str(why)
    }
}

impl Failure {
    fn from_error(error: &serde_json::Value) -> Failure {
        let message = error["message"].as_str().unwrap_or("an error without a message").to_owned();
        let code = error["code"].as_i64().unwrap_or(Kind::Internal.row().rpc.into());
        Failure::Refused { code, message: reason(error).map_or(message.clone(), |reason| format!("{message}: {reason}")) }
    }

    /// An error of this kind, by its JSON-RPC code.
    fn is(&self, kind: Kind) -> bool {
        matches!(self, Failure::Refused { code, .. } if *code == i64::from(kind.row().rpc))
    }
}

/// SDKs put the cause of an internal error into `data.details`.
fn reason(error: &serde_json::Value) -> Option<&str> {
    error["data"].as_str().or_else(|| error["data"]["details"].as_str())
}

impl Hands {
    pub fn new(caller: Caller, log: Arc<SessionLog>) -> Hands {
        let (slow, told, distrusted) = (Arc::default(), Arc::default(), Arc::default());
        Hands { link: Link { caller, log, slow, told, distrusted, writing: Arc::default() } }
    }
}

impl Link {
    fn session(&self) -> acp::SessionId {
        acp::SessionId::new(self.log.id.as_str())
    }

    async fn call<R: DeserializeOwned>(&self, method: &str, params: impl Serialize, patience: Duration) -> Result<R, Failure> {
        let asked = self.caller.call(method, params, Some((self.log.id.clone(), self.log.head())));
        match tokio::time::timeout(patience, asked).await {
            Ok(Some(Ok(value))) => serde_json::from_value(value).map_err(|error| Failure::Unusable(error.to_string())),
            Ok(Some(Err(error))) => Err(Failure::from_error(&error)),
            Ok(None) => Err(Failure::Unusable("the client is gone".into())),
            Err(_) => Err(self.silent(patience)),
        }
    }

    fn silent(&self, patience: Duration) -> Failure {
        self.slow.store(true, Ordering::Relaxed);
        Failure::Silent(format!("no answer within {} s", patience.as_secs()))
    }

    /// Asks for something that the client may still do when nobody waits for it any more: `late` gets what it says then.
    async fn call_to_do<R: DeserializeOwned + Send + 'static>(
        &self,
        method: &'static str,
        params: impl Serialize + Send + 'static,
        patience: Duration,
        late: impl FnOnce(Result<R, Failure>) + Send + 'static,
    ) -> Result<R, Failure> {
        let (link, (answer, answered)) = (self.clone(), oneshot::channel());
        tokio::spawn(async move {
            let said = link.call(method, params, limits::STALLED).await;
            if let Err(said) = answer.send(said) {
                late(said);
            }
        });
        match tokio::time::timeout(patience, answered).await {
            Ok(Ok(said)) => said,
            Ok(Err(_)) | Err(_) => Err(self.silent(patience)),
        }
    }

    /// Notifies the user that the disk is used instead of the client, unless the client refused.
    fn fall_back(&self, method: &str, failure: Failure) -> Result<(), Refused> {
        match failure {
            Failure::Refused { ref message, .. } if !failure.is(Kind::Unsupported) => Err(Refused(message.clone())),
            failure => {
                self.tell(method, &failure);
                Ok(())
            }
        }
    }

    fn writing(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says once that the client's hands are not used.
    fn tell(&self, method: &str, why: &Failure) {
        tracing::info!(session = %self.log.id, method, %why, "the client could not");
        if !self.told.swap(true, Ordering::Relaxed) {
            let description = format!("{method}: {why}; nuncio does it itself");
            self.log.try_emit(None, Body::notice(Severity::Warning, "The client could not do it", description));
        }
    }
}

impl ClientHands for Hands {
    fn has_files(&self) -> bool {
        let (fs, link) = (self.link.caller.capabilities().fs, &self.link);
        let unused = link.slow.load(Ordering::Relaxed) || link.distrusted.load(Ordering::Relaxed);
        (fs.read_text_file || fs.write_text_file) && !unused
    }

    fn read_text<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Option<String>, Refused>> {
        const METHOD: &str = "fs/read_text_file";
        async move {
            let link = &self.link;
            if !self.has_files() || !link.caller.capabilities().fs.read_text_file {
                return Ok(None);
            }
            let params = acp::ReadTextFileRequest::new(link.session(), path);
            match link.call(METHOD, params, limits::CLIENT_FILE).await {
                Ok(acp::ReadTextFileResponse { content, .. }) => Ok(Some(content)),
                // The client has nothing that the disk has not.
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
            if !self.has_files() || !link.caller.capabilities().fs.write_text_file {
                return Ok(false);
            }
            let params = acp::WriteTextFileRequest::new(link.session(), path, text);
            link.writing().insert(path.to_owned());
            let (later, own) = (link.clone(), path.to_owned());
            let answered = move |_| {
                later.writing().remove(&own);
            };
            let written: Result<Option<acp::WriteTextFileResponse>, _> =
                link.call_to_do(METHOD, params, limits::CLIENT_FILE, answered).await;
            if !matches!(written, Err(Failure::Silent(_))) {
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
            "after fs/write_text_file, {} is not what the client was given; nuncio reads and writes files on the disk from here on",
            path.display()
        );
        tracing::warn!(session = %self.link.log.id, description, "client files are not used");
        self.link.log.try_emit(None, Body::notice(Severity::Warning, "The client's files are not used", description));
    }

    fn start<'a>(&'a self, command: &'a TerminalCommand) -> BoxFuture<'a, Result<Option<Box<dyn ClientTerminal>>, String>> {
        const METHOD: &str = "terminal/create";
        async move {
            let link = &self.link;
            if !link.caller.capabilities().terminal || link.slow.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let environment = command.environment.iter().map(|(name, value)| acp::EnvVariable::new(name, value)).collect();
            let params = acp::CreateTerminalRequest::new(link.session(), &command.program)
                .args(command.arguments.clone())
                .env(environment)
                .cwd(command.cwd.clone())
                .output_byte_limit(command.output_bytes_max);
            let later = link.clone();
            // What begins when nobody waits for it is ended: that is what the release does.
            let late = move |said: Result<acp::CreateTerminalResponse, Failure>| {
                drop(said.map(|made| Terminal { link: later, id: made.terminal_id }));
            };
            match link.call_to_do(METHOD, params, limits::CLIENT_TERMINAL, late).await {
                Ok(acp::CreateTerminalResponse { terminal_id, .. }) => {
                    Ok(Some(Box::new(Terminal { link: link.clone(), id: terminal_id }) as Box<dyn ClientTerminal>))
                }
                Err(Failure::Silent(why)) => Err(format!("{METHOD}: {why}")),
                Err(failure) => {
                    link.tell(METHOD, &failure);
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
        ToolContent::Terminal { client: self.link.caller.client_id().into(), terminal_id: self.id.0.to_string(), output }
    }

    fn ended(&self) -> BoxFuture<'_, Option<i32>> {
        async move {
            let params = acp::WaitForTerminalExitRequest::new(self.link.session(), self.id.clone());
            // The caller knows how long the command may take.
            let patience = Duration::from_millis(limits::BASH_TIMEOUT_MS_MAX) + limits::CLIENT_TERMINAL;
            let ended: Result<acp::WaitForTerminalExitResponse, Failure> =
                self.link.call("terminal/wait_for_exit", params, patience).await;
            let status = ended.ok()?.exit_status;
            status.exit_code.and_then(|code| i32::try_from(code).ok()).or_else(|| Some(128 + signal(status.signal.as_deref()?)))
        }
        .boxed()
    }

    fn output(&self) -> BoxFuture<'_, Option<(String, bool)>> {
        async move {
            let params = acp::TerminalOutputRequest::new(self.link.session(), self.id.clone());
            let said: Result<acp::TerminalOutputResponse, Failure> =
                self.link.call("terminal/output", params, limits::CLIENT_TERMINAL).await;
            said.ok().map(|said| (said.output, said.truncated))
        }
        .boxed()
    }

    fn kill(&self) -> BoxFuture<'_, ()> {
        async move {
            let params = acp::KillTerminalRequest::new(self.link.session(), self.id.clone());
            let killed: Result<Option<acp::KillTerminalResponse>, Failure> =
                self.link.call("terminal/kill", params, limits::CLIENT_TERMINAL).await;
            if let Err(why) = killed {
                self.link.tell("terminal/kill", &why);
            }
        }
        .boxed()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let params = acp::ReleaseTerminalRequest::new(self.link.session(), self.id.clone());
        self.link.caller.tell("terminal/release", params);
    }
}

/// The number of a signal by its name, with or without `SIG`; what is unknown is taken for KILL.
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
