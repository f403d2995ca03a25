//! The client's files and terminals, used through ACP requests to the client (`fs/*`,
//! `terminal/*`). If the client lacks a method or does not answer a file request in time, the user
//! is notified once and the local disk or shell is used. If the client refuses to read or write a
//! file, the file is not read or written.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::barrier::AcpConnection;
use super::client_forms;
use super::client_requests::{ClientRequests, RequestFailure};
use super::client_terminal;
use super::project::nuncio_capability;
use crate::api::Client;
use crate::content::{Form, FormAnswer};
use crate::error::Kind;
use crate::event::{Body, Severity};
use crate::id::ToolCallId;
use crate::protocol::acp;
use crate::session::SessionLog;
use crate::toolkit::{ClientAccess, ClientRefusal, ClientTerminal, TerminalCommand};

/// How long a client may take to read or write a file.
const CLIENT_FILE: Duration = Duration::from_secs(5);

/// Files and terminals of a client, for one session.
pub(crate) struct AcpClient {
    requests: ClientRequests,
    /// Files whose unsaved text the client returned.
    unsaved: Mutex<HashSet<PathBuf>>,
}

impl AcpClient {
    /// Creates the access to the files and terminals of `client`, for the session of `log`.
    pub(crate) fn new(client: Arc<Client>, connection: AcpConnection, log: Arc<SessionLog>) -> AcpClient {
        AcpClient { requests: ClientRequests::new(client, connection, log), unsaved: Mutex::default() }
    }

    /// Decides whether to use the file on the disk after a failed request; see
    /// [`ClientRequests::fall_back`]. A file with unsaved text is left to the client, which may
    /// start again.
    fn fall_back(&self, method: &str, path: &Path, failure: RequestFailure) -> Result<(), ClientRefusal> {
        match failure {
            RequestFailure::Gone if self.unsaved.lock().contains(path) => {
                Err(ClientRefusal("the editor with its unsaved text was closed: do not change this file".into()))
            }
            failure => self.requests.fall_back(method, failure),
        }
    }
}

impl ClientAccess for AcpClient {
    fn has_files(&self) -> bool {
        let (fs, requests) = (self.requests.client.capabilities().fs, &self.requests);
        let unused = requests.slow.load(Ordering::Relaxed) || requests.distrusted.load(Ordering::Relaxed);
        (fs.read_text_file || fs.write_text_file) && !unused
    }

    fn has_exact_texts(&self) -> bool {
        nuncio_capability(&self.requests.client.capabilities(), "exactText") == Some(true)
    }

    fn read_text<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Option<String>, ClientRefusal>> {
        const METHOD: &str = "fs/read_text_file";
        async move {
            let requests = &self.requests;
            if !self.has_files() || !requests.client.capabilities().fs.read_text_file {
                return Ok(None);
            }
            let params = acp::ReadTextFileRequest::new(requests.session(), path);
            match requests.call(METHOD, params, CLIENT_FILE).await {
                Ok(acp::ReadTextFileResponse { content, .. }) => Ok(Some(content)),
                // The client has no unsaved buffer of this file: use the file on disk.
                Err(failure) if failure.has_kind(Kind::NotFound) => Ok(None),
                Err(failure) => self.fall_back(METHOD, path, failure).map(|()| None),
            }
        }
        .boxed()
    }

    fn write_text<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Result<bool, ClientRefusal>> {
        const METHOD: &str = "fs/write_text_file";
        async move {
            let requests = &self.requests;
            if !self.has_files() || !requests.client.capabilities().fs.write_text_file {
                return Ok(false);
            }
            let params = acp::WriteTextFileRequest::new(requests.session(), path, text);
            requests.writing.lock().insert(path.to_owned());
            let (later, own) = (requests.clone(), path.to_owned());
            let answered = move |_| {
                later.writing.lock().remove(&own);
            };
            let written: Result<Option<acp::WriteTextFileResponse>, _> =
                requests.call_with_effect(METHOD, params, CLIENT_FILE, answered).await;
            if !matches!(written, Err(RequestFailure::TimedOut(_))) {
                requests.writing.lock().remove(path);
            }
            written.map(|_| true).or_else(|failure| self.fall_back(METHOD, path, failure).map(|()| false))
        }
        .boxed()
    }

    fn note_unsaved(&self, path: &Path, unsaved: bool) {
        let mut files = self.unsaved.lock();
        if unsaved {
            files.insert(path.to_owned());
        } else {
            files.remove(path);
        }
    }

    fn may_write(&self, path: &Path) -> bool {
        self.requests.writing.lock().contains(path)
    }

    fn has_written(&self, path: &Path) {
        self.requests.writing.lock().remove(path);
    }

    fn distrust(&self, path: &Path) {
        if self.requests.distrusted.swap(true, Ordering::Relaxed) {
            return;
        }
        let description = format!(
            "after fs/write_text_file, {} does not have the text that was sent; nuncio uses files on the local disk from now on",
            path.display()
        );
        tracing::warn!(session = %self.requests.log.id, description, "client files are not used");
        self.requests.log.try_emit(None, Body::notice(Severity::Warning, "The client's files are not used", description));
    }

    fn fill<'a>(&'a self, form: &'a Form, call: &'a ToolCallId) -> BoxFuture<'a, Option<FormAnswer>> {
        client_forms::fill(&self.requests, form, call).boxed()
    }

    fn start<'a>(&'a self, command: &'a TerminalCommand) -> BoxFuture<'a, Result<Option<Box<dyn ClientTerminal>>, String>> {
        client_terminal::create(&self.requests, command).boxed()
    }
}
