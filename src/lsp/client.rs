//! The client of one language server: sends requests and document changes, answers the requests of
//! the server, and records diagnostics.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, DidSaveTextDocument, Exit, Initialized, Notification,
    Progress, PublishDiagnostics,
};
use lsp_types::request::{Initialize, Request, Shutdown};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::documents::{Change, Documents, FileDiagnostics};
use super::frame::{Frames, encode};
use super::{detect, uri};
use crate::error::{Error, Kind};
use crate::limits;
use crate::process::{Input, Output};
use crate::rpc::message::{Id, Incoming, frame};
use crate::rpc::peer::Peer;

/// The client of one running language server.
pub struct Client {
    root: PathBuf,
    peer: Peer,
    queue: mpsc::Sender<Vec<u8>>,
    documents: Mutex<Documents>,
    /// Cancelled when a message could not be queued: the documents are out of sync, so the
    /// connection must end.
    desynchronized: CancellationToken,
    /// Notified when the server publishes diagnostics or reports progress.
    updates: watch::Sender<()>,
}

/// Messages to be written to the server.
pub type Queue = mpsc::Receiver<Vec<u8>>;

impl Client {
    pub fn new(root: &Path) -> (Arc<Client>, Queue) {
        let (queue, messages) = mpsc::channel(limits::LSP_MESSAGES_QUEUED_MAX);
        let client = Client {
            root: root.into(),
            peer: Peer::default(),
            queue,
            documents: Mutex::default(),
            desynchronized: CancellationToken::new(),
            updates: watch::Sender::new(()),
        };
        (Arc::new(client), messages)
    }

    /// Transfers messages in both directions until the server ends or violates the protocol. The
    /// error describes the violation.
    pub async fn run(&self, mut output: Output, mut input: Input, queue: &mut Queue) -> Result<(), String> {
        let write = async {
            while let Some(message) = queue.recv().await {
                if input.write(&message).await.is_err() {
                    return Ok(());
                }
            }
            Ok(())
        };
        let read = async {
            let mut frames = Frames::default();
            loop {
                if let Some(body) = frames.take().map_err(|error| format!("invalid output: {error}"))? {
                    self.handle(&body)?;
                    continue;
                }
                frames.buffer.reserve(limits::PIPE_BYTES);
                if output.read(&mut frames.buffer).await.unwrap_or(0) == 0 {
                    return Ok(());
                }
            }
        };
        tokio::select! {
            ended = read => ended,
            ended = write => ended,
            () = self.desynchronized.cancelled() => Err("it does not read its input".into()),
        }
    }

    fn handle(&self, body: &[u8]) -> Result<(), String> {
        match Incoming::parse(body) {
            Ok(Incoming::Request { id, method, params }) => self.send(&frame::response(&id, &self.reply(&method, &params))),
            Ok(Incoming::Notification { method, params }) => {
                match method.as_str() {
                    PublishDiagnostics::METHOD => self.published(params),
                    Progress::METHOD => self.progressed(&params),
                    _ => {}
                }
                Ok(())
            }
            Ok(Incoming::Response { id, result }) => {
                // The peer ignores a response to a withdrawn request.
                self.peer.answer(&id, result);
                Ok(())
            }
            Err(rejected) => {
                tracing::debug!(error = %rejected.error, "invalid message from a language server");
                Ok(())
            }
        }
    }

    /// Answers a request of the server as a client without settings and without a user interface.
    fn reply(&self, method: &str, params: &Value) -> crate::error::Result<Value> {
        match method {
            "workspace/configuration" => {
                let items = params["items"].as_array().map_or(0, Vec::len);
                Ok(Value::Array(vec![Value::Null; items]))
            }
            "workspace/workspaceFolders" => Ok(self.folders()),
            "workspace/applyEdit" => Ok(json!({ "applied": false, "failureReason": "not asked for" })),
            "window/showDocument" => Ok(json!({ "success": false })),
            "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "client/registerCapability"
            | "client/unregisterCapability" => Ok(Value::Null),
            refresh if refresh.starts_with("workspace/") && refresh.ends_with("/refresh") => Ok(Value::Null),
            other => Err(Error::new(Kind::Unsupported, format!("unknown method {other}"))),
        }
    }

    fn published(&self, params: Value) {
        #[derive(Deserialize)]
        struct Published {
            uri: String,
            #[serde(default)]
            version: Option<i32>,
            diagnostics: Vec<Value>,
        }
        let Ok(Published { uri, version, diagnostics }) = Published::deserialize(params) else { return };
        let Some(path) = uri::path(&uri) else { return };
        let parsed = diagnostics.into_iter().filter_map(|diagnostic| serde_json::from_value(diagnostic).ok()).collect();
        self.documents().publish(path, version, parsed);
        self.updates.send_replace(());
    }

    fn progressed(&self, params: &Value) {
        let kind = params["value"]["kind"].as_str();
        if let Some("begin" | "end") = kind {
            self.documents().progress(params["token"].to_string(), kind == Some("begin"));
            self.updates.send_replace(());
        }
    }

    /// Performs the `initialize` handshake.
    pub async fn initialize(&self, until: Instant) -> Result<(), String> {
        let document = json!({
            "synchronization": { "didSave": true },
            "publishDiagnostics": { "versionSupport": true, "relatedInformation": false },
        });
        let params = json!({
            "processId": std::process::id(),
            "clientInfo": { "name": "nuncio", "version": env!("CARGO_PKG_VERSION") },
            "rootUri": uri::of(&self.root),
            "workspaceFolders": self.folders(),
            "capabilities": {
                "general": { "positionEncodings": ["utf-16"] },
                "workspace": { "configuration": true, "workspaceFolders": true },
                "window": { "workDoneProgress": true },
                "textDocument": document,
            },
        });
        self.request(Initialize::METHOD, params, until).await?;
        self.notify(Initialized::METHOD, json!({}))
    }

    fn folders(&self) -> Value {
        let name = self.root.file_name().unwrap_or_default().to_string_lossy();
        json!([{ "uri": uri::of(&self.root), "name": name }])
    }

    /// Sends `shutdown` and `exit`. The server should end afterwards.
    pub async fn shut_down(&self, until: Instant) -> Result<(), String> {
        self.request(Shutdown::METHOD, Value::Null, until).await?;
        self.notify(Exit::METHOD, Value::Null)
    }

    /// Sends `text` as the content of the file and waits for its diagnostics, until the server is
    /// quiet and has finished the work that it started. Returns `None` if it published nothing in
    /// time. Does not use `textDocument/diagnostic`: servers return an empty result before they
    /// have loaded the project, and publish the diagnostics later.
    pub async fn check(&self, path: &Path, text: &str, until: Instant) -> Result<Option<FileDiagnostics>, String> {
        {
            let mut documents = self.documents();
            for change in documents.set_content(path, text) {
                self.send_change(change)?;
            }
        }
        let document = json!({ "uri": uri::of(path) });
        self.notify(DidSaveTextDocument::METHOD, json!({ "textDocument": document }))?;
        Ok(self.wait_until_quiet(path, until).await)
    }

    /// Sends the content of a file on the disk, or closes the document if `text` is `None`.
    pub fn refresh(&self, path: &Path, text: Option<&str>) -> Result<(), String> {
        let mut documents = self.documents();
        let changes = match text {
            Some(text) => documents.set_content(path, text),
            None => documents.close(path).into_iter().collect(),
        };
        changes.into_iter().try_for_each(|change| self.send_change(change))
    }

    async fn wait_until_quiet(&self, path: &Path, until: Instant) -> Option<FileDiagnostics> {
        let mut updates = self.updates.subscribe();
        let mut latest = None;
        let mut end = until;
        loop {
            let now = self.documents().current(path);
            if now != latest {
                latest = now;
                let working = latest.as_ref().is_some_and(|known: &FileDiagnostics| known.working);
                end = if working { until } else { until.min(Instant::now() + limits::LSP_QUIET) };
            }
            tokio::select! {
                () = sleep_until(end) => return latest,
                () = self.queue.closed() => return None,
                _ = updates.changed() => {}
            }
        }
    }

    /// Must be called with the documents locked, so that changes are sent in order.
    fn send_change(&self, change: Change) -> Result<(), String> {
        match change {
            Change::Open { path, version, text } => {
                let language = detect::language(&path);
                let document = json!({ "uri": uri::of(&path), "languageId": language, "version": version, "text": &*text });
                self.notify(DidOpenTextDocument::METHOD, json!({ "textDocument": document }))
            }
            Change::Edit { path, version, text } => {
                let document = json!({ "uri": uri::of(&path), "version": version });
                let params = json!({ "textDocument": document, "contentChanges": [{ "text": &*text }] });
                self.notify(DidChangeTextDocument::METHOD, params)
            }
            Change::Close { path } => {
                self.notify(DidCloseTextDocument::METHOD, json!({ "textDocument": { "uri": uri::of(&path) } }))
            }
        }
    }

    pub fn documents(&self) -> MutexGuard<'_, Documents> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn request(&self, method: &str, params: Value, until: Instant) -> Result<Value, String> {
        let (sender, answer) = oneshot::channel();
        let id = self.peer.ask(Box::new(move |result| drop(sender.send(result))));
        let pending = PendingRequest { client: self, id };
        let mut message = Vec::new();
        frame::request(&pending.id, method, params, &mut message);
        self.send(&message)?;
        tokio::select! {
            answer = answer => match answer {
                Ok(Ok(result)) => Ok(result),
                Ok(Err(error)) => Err(format!("{method}: {}", error["message"].as_str().unwrap_or("an error without a message"))),
                Err(_) => Err(format!("{method}: the request was dropped")),
            },
            () = self.queue.closed() => Err(format!("{method}: the server ended")),
            () = sleep_until(until) => Err(format!("{method}: timed out")),
        }
    }

    fn notify(&self, method: &str, params: impl Serialize) -> Result<(), String> {
        let mut message = Vec::new();
        frame::notification(method, params, &mut message);
        self.send(&message)
    }

    fn send(&self, message: &[u8]) -> Result<(), String> {
        self.queue.try_send(encode(message)).map_err(|_| {
            self.desynchronized.cancel();
            "the language server does not read its input".into()
        })
    }
}

/// A request without a response so far. Dropping it withdraws the request.
struct PendingRequest<'a> {
    client: &'a Client,
    id: Id,
}

impl Drop for PendingRequest<'_> {
    fn drop(&mut self) {
        if self.client.peer.withdraw(&self.id) {
            // A failed send ends the connection, so there is nothing left to cancel.
            let _ = self.client.notify("$/cancelRequest", json!({ "id": self.id }));
        }
    }
}
