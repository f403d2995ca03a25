//! A client's hands: reverse calls of ACP for files (`fs/*`) and terminals (`terminal/*`). A client that cannot, errs or is slow is said to, once,
//! and our own hands do the work.

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
use crate::event::{Body, Severity};
use crate::limits;
use crate::protocol::acp;
use crate::session::SessionLog;
use crate::tools::{ClientHands, ClientTerminal, TerminalCommand};

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
    /// Files that it was told to write, as long as it has not answered.
    writing: Arc<Mutex<HashSet<PathBuf>>>,
}

/// What came instead of what was asked for.
enum Failure {
    /// An error: the client has done nothing.
    Refused(String),
    /// Nothing: it may still do it.
    Silent(String),
}

impl Hands {
    pub fn new(caller: Caller, log: Arc<SessionLog>) -> Hands {
        Hands { link: Link { caller, log, slow: Arc::default(), told: Arc::default(), writing: Arc::default() } }
    }
}

impl Link {
    fn session(&self) -> acp::SessionId {
        acp::SessionId::new(self.log.id.as_str())
    }

    /// None: it did not answer in time, or with what it should; `why` has it.
    async fn call<R: DeserializeOwned>(&self, method: &str, params: impl Serialize, patience: Duration) -> Result<R, String> {
        let asked = self.caller.call(method, params, Some((self.log.id.clone(), self.log.head())));
        match tokio::time::timeout(patience, asked).await {
            Ok(Some(Ok(value))) => serde_json::from_value(value).map_err(|error| error.to_string()),
            Ok(Some(Err(error))) => {
                Err(error.get("message").and_then(serde_json::Value::as_str).unwrap_or("an error without a message").to_owned())
            }
            Ok(None) => Err("the client is gone".into()),
            Err(_) => {
                self.slow.store(true, Ordering::Relaxed);
                Err(format!("no answer within {} s", patience.as_secs()))
            }
        }
    }

    /// Asks for something that the client may still do when nobody waits for it any more: `late` gets what it says then.
    async fn call_to_do<R: DeserializeOwned + Send + 'static>(
        &self,
        method: &'static str,
        params: impl Serialize + Send + 'static,
        patience: Duration,
        late: impl FnOnce(Result<R, String>) + Send + 'static,
    ) -> Result<R, Failure> {
        let (link, (answer, answered)) = (self.clone(), oneshot::channel());
        tokio::spawn(async move {
            let said = link.call(method, params, limits::STALLED).await;
            if let Err(said) = answer.send(said) {
                late(said);
            }
        });
        match tokio::time::timeout(patience, answered).await {
            Ok(Ok(said)) => said.map_err(Failure::Refused),
            Ok(Err(_)) | Err(_) => {
                self.slow.store(true, Ordering::Relaxed);
                Err(Failure::Silent(format!("no answer within {} s", patience.as_secs())))
            }
        }
    }

    fn writing(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says once that the client's hands are not used.
    fn tell(&self, method: &str, why: &str) {
        tracing::info!(session = %self.log.id, method, why, "the client could not");
        if !self.told.swap(true, Ordering::Relaxed) {
            let description = format!("{method}: {why}; nuncio does it itself");
            self.log.try_emit(None, Body::notice(Severity::Warning, "The client could not do it", description));
        }
    }
}

impl ClientHands for Hands {
    fn has_files(&self) -> bool {
        let fs = self.link.caller.capabilities().fs;
        (fs.read_text_file || fs.write_text_file) && !self.link.slow.load(Ordering::Relaxed)
    }

    fn read_text<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>> {
        const METHOD: &str = "fs/read_text_file";
        async move {
            let link = &self.link;
            if link.slow.load(Ordering::Relaxed) || !link.caller.capabilities().fs.read_text_file {
                return None;
            }
            let params = acp::ReadTextFileRequest::new(link.session(), path);
            match link.call(METHOD, params, limits::CLIENT_FILE).await {
                Ok(acp::ReadTextFileResponse { content, .. }) => Some(content),
                Err(why) => {
                    // A file that is not there is no failure of the client.
                    if path.exists() {
                        link.tell(METHOD, &why);
                    }
                    None
                }
            }
        }
        .boxed()
    }

    fn write_text<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, bool> {
        const METHOD: &str = "fs/write_text_file";
        async move {
            let link = &self.link;
            if link.slow.load(Ordering::Relaxed) || !link.caller.capabilities().fs.write_text_file {
                return false;
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
            if let Err(Failure::Refused(why) | Failure::Silent(why)) = &written {
                link.tell(METHOD, why);
            }
            written.is_ok()
        }
        .boxed()
    }

    fn may_write(&self, path: &Path) -> bool {
        self.link.writing().contains(path)
    }

    fn lost(&self, path: &Path) {
        self.link.tell("fs/write_text_file", &format!("{} is as it was before", path.display()));
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
            let late = move |said: Result<acp::CreateTerminalResponse, String>| {
                drop(said.map(|made| Terminal { link: later, id: made.terminal_id }));
            };
            match link.call_to_do(METHOD, params, limits::CLIENT_TERMINAL, late).await {
                Ok(acp::CreateTerminalResponse { terminal_id, .. }) => {
                    Ok(Some(Box::new(Terminal { link: link.clone(), id: terminal_id }) as Box<dyn ClientTerminal>))
                }
                Err(Failure::Refused(why)) => {
                    link.tell(METHOD, &why);
                    Ok(None)
                }
                Err(Failure::Silent(why)) => Err(format!("{METHOD}: {why}")),
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
            let ended: Result<acp::WaitForTerminalExitResponse, String> =
                self.link.call("terminal/wait_for_exit", params, patience).await;
            let status = ended.ok()?.exit_status;
            status.exit_code.and_then(|code| i32::try_from(code).ok()).or_else(|| Some(128 + signal(status.signal.as_deref()?)))
        }
        .boxed()
    }

    fn output(&self) -> BoxFuture<'_, Option<(String, bool)>> {
        async move {
            let params = acp::TerminalOutputRequest::new(self.link.session(), self.id.clone());
            let said: Result<acp::TerminalOutputResponse, String> =
                self.link.call("terminal/output", params, limits::CLIENT_TERMINAL).await;
            said.ok().map(|said| (said.output, said.truncated))
        }
        .boxed()
    }

    fn kill(&self) -> BoxFuture<'_, ()> {
        async move {
            let params = acp::KillTerminalRequest::new(self.link.session(), self.id.clone());
            let killed: Result<Option<acp::KillTerminalResponse>, String> =
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
