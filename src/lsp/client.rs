//! The client of one language server: sends requests and document changes, answers the server's
//! requests, and records diagnostics.

use std::future::ready;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, DidSaveTextDocument, Exit, Initialized, Notification,
    Progress, PublishDiagnostics,
};
use lsp_types::request::{Initialize, Request, Shutdown};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::documents::{DocumentChange, Documents, FileDiagnostics};
use super::language_id::language_id;
use super::uri;
use crate::error::{Error, Kind};
use crate::limits;
use crate::rpc::{
    ClosedConnection, Connection, Dialect, Framing, Handler, MessageReader, MessageWriter, OverflowPolicy, ReadError, RequestError,
};

/// How long a language server must be silent before its diagnostics count as complete.
const LSP_QUIET: Duration = Duration::from_millis(250);
/// Maximum number of messages that wait to be sent to one language server.
const LSP_MESSAGES_QUEUED_MAX: usize = 64;

/// The client of one running language server.
pub(crate) struct LanguageClient {
    root: PathBuf,
    connection: Connection<()>,
    pub(super) documents: Mutex<Documents>,
    /// Notified when the server publishes diagnostics or reports progress.
    updates: watch::Sender<()>,
}

/// The JSON-RPC dialect of LSP, over the pipes of a language server.
pub(crate) const LSP: Dialect = Dialect {
    framing: Framing::Headers,
    message_bytes_max: limits::LSP_MESSAGE_BYTES_MAX,
    messages_queued_max: LSP_MESSAGES_QUEUED_MAX,
    // End the connection: a lost message would leave the documents out of sync.
    when_full: OverflowPolicy::End,
    cancel_method: "$/cancelRequest",
    cancel_id: "id",
    rejects_invalid: false,
};

impl Handler<()> for LanguageClient {
    fn request(
        &self,
        method: String,
        params: Value,
        _: CancellationToken,
    ) -> impl Future<Output = (crate::error::Result<Value>, ())> + Send + 'static {
        ready((self.respond(&method, &params), ()))
    }

    fn notification(&self, method: String, params: Value, _: CancellationToken) -> impl Future<Output = ()> + Send + 'static {
        match method.as_str() {
            PublishDiagnostics::METHOD => self.publish(params),
            Progress::METHOD => self.update_progress(&params),
            _ => {}
        }
        ready(())
    }
}

impl LanguageClient {
    /// Creates the client of a server with this root directory.
    pub(crate) fn new(root: &Path, connection: Connection<()>) -> LanguageClient {
        LanguageClient { root: root.into(), connection, documents: Mutex::default(), updates: watch::Sender::new(()) }
    }

    /// Transfers messages in both directions until the server exits or violates the protocol. The
    /// error describes the violation.
    pub(crate) async fn run(
        &self,
        output: impl AsyncRead + Unpin,
        input: impl AsyncWrite + Unpin + Send + 'static,
        reader: &MessageReader<()>,
        writer: &mut MessageWriter<()>,
    ) -> Result<(), String> {
        let read = tokio::select! {
            read = reader.run(output, self) => read,
            _ = writer.run(input, ()) => return Ok(()),
        };
        match read {
            Err(ReadError::Input(error)) if error.kind() == io::ErrorKind::InvalidData => Err(format!("invalid output: {error}")),
            Ok(()) | Err(ReadError::Input(_)) => Ok(()),
            Err(ReadError::PeerNotReading) => Err("it does not read its input".into()),
        }
    }

    /// Answers a request from the server, as a client that has neither settings nor a user
    /// interface.
    fn respond(&self, method: &str, params: &Value) -> crate::error::Result<Value> {
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

    fn publish(&self, params: Value) {
        #[derive(Deserialize)]
        struct PublishParams {
            uri: String,
            version: Option<i32>,
            diagnostics: Vec<Value>,
        }
        let Ok(PublishParams { uri, version, diagnostics }) = PublishParams::deserialize(params) else { return };
        let Some(path) = uri::path(&uri) else { return };
        let parsed = diagnostics.into_iter().filter_map(|diagnostic| serde_json::from_value(diagnostic).ok()).collect();
        self.documents.lock().publish(path, version, parsed);
        self.updates.send_replace(());
    }

    fn update_progress(&self, params: &Value) {
        let kind = params["value"]["kind"].as_str();
        if let Some("begin" | "end") = kind {
            self.documents.lock().progress(params["token"].to_string(), kind == Some("begin"));
            self.updates.send_replace(());
        }
    }

    pub(crate) async fn initialize(&self, until: Instant) -> Result<(), String> {
        let document = json!({
            "synchronization": { "didSave": true },
            "publishDiagnostics": { "versionSupport": true, "relatedInformation": false },
        });
        let params = json!({
            // Many servers end when they cannot send a signal to this process, which the sandbox
            // forbids. The supervisor ends them if nuncio dies.
            "processId": Value::Null,
            "clientInfo": { "name": "nuncio", "version": env!("CARGO_PKG_VERSION") },
            "rootUri": uri::from_path(&self.root),
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
        json!([{ "uri": uri::from_path(&self.root), "name": name }])
    }

    /// Sends `shutdown` and `exit`. The server should exit afterwards.
    pub(crate) async fn shutdown(&self, until: Instant) -> Result<(), String> {
        self.request(Shutdown::METHOD, Value::Null, until).await?;
        self.notify(Exit::METHOD, Value::Null)
    }

    /// Sends `text` as the content of the file, and waits for the file's diagnostics until the
    /// server is quiet and has finished the work that it started. Returns `None` if the server
    /// published nothing in time. Does not use `textDocument/diagnostic`: servers return an empty
    /// result before they have loaded the project, and publish the diagnostics later.
    pub(crate) async fn check(&self, path: &Path, text: &str, until: Instant) -> Result<Option<FileDiagnostics>, String> {
        {
            let mut documents = self.documents.lock();
            for change in documents.set_content(path, text) {
                self.send_change(change)?;
            }
        }
        let document = json!({ "uri": uri::from_path(path) });
        self.notify(DidSaveTextDocument::METHOD, json!({ "textDocument": document }))?;
        Ok(self.wait_until_quiet(path, until).await)
    }

    /// Sends the content of a file on the disk, or closes the document if `text` is `None`.
    pub(crate) fn refresh(&self, path: &Path, text: Option<&str>) -> Result<(), String> {
        let mut documents = self.documents.lock();
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
            let now = self.documents.lock().current(path);
            if now != latest {
                latest = now;
                let working = latest.as_ref().is_some_and(|known: &FileDiagnostics| known.working);
                end = if working { until } else { until.min(Instant::now() + LSP_QUIET) };
            }
            tokio::select! {
                () = sleep_until(end) => return latest,
                () = self.connection.closed() => return None,
                _ = updates.changed() => {}
            }
        }
    }

    /// Notifies the server of a change. Must be called with the documents locked, so that changes
    /// are sent in order.
    fn send_change(&self, change: DocumentChange) -> Result<(), String> {
        match change {
            DocumentChange::Open { path, version, text } => {
                let language = language_id(&path);
                let document = json!({ "uri": uri::from_path(&path), "languageId": language, "version": version, "text": &*text });
                self.notify(DidOpenTextDocument::METHOD, json!({ "textDocument": document }))
            }
            DocumentChange::Edit { path, version, text } => {
                let document = json!({ "uri": uri::from_path(&path), "version": version });
                let params = json!({ "textDocument": document, "contentChanges": [{ "text": &*text }] });
                self.notify(DidChangeTextDocument::METHOD, params)
            }
            DocumentChange::Close { path } => {
                self.notify(DidCloseTextDocument::METHOD, json!({ "textDocument": { "uri": uri::from_path(&path) } }))
            }
        }
    }

    /// Sends a request and ignores its result.
    async fn request(&self, method: &str, params: Value, until: Instant) -> Result<(), String> {
        let requested = timeout_at(until, self.connection.request::<Value>(method, params, ())).await;
        match requested.map_err(|_| format!("{method}: timed out"))? {
            Ok(_) => Ok(()),
            Err(RequestError::Refused(error)) => {
                Err(format!("{method}: {}", error["message"].as_str().unwrap_or("an error without a message")))
            }
            Err(RequestError::Invalid(error)) => Err(format!("{method}: {error}")),
            Err(RequestError::Closed) => Err(format!("{method}: the language server exited")),
        }
    }

    fn notify(&self, method: &str, params: impl Serialize) -> Result<(), String> {
        self.connection.notify(method, params).map_err(|ClosedConnection| "the language server does not read its input".into())
    }
}
