//! Our end of a conversation with one language server: what we ask and tell, what it asks us, and the documents between us.

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

use super::documents::{Change, Documents, Known};
use super::frame::{Frames, encode};
use super::{detect, uri};
use crate::error::{Error, Kind};
use crate::limits;
use crate::process::{Input, Output};
use crate::rpc::message::{Id, Incoming, frame};
use crate::rpc::peer::Peer;

pub struct Client {
    root: PathBuf,
    peer: Peer,
    queue: mpsc::Sender<Vec<u8>>,
    documents: Mutex<Documents>,
    /// It was not told something: what it knows is not what we think, and the conversation is over.
    lost: CancellationToken,
    /// Changes with everything that the server says of a file.
    news: watch::Sender<()>,
}

/// Messages on their way to the server.
pub type Queue = mpsc::Receiver<Vec<u8>>;

impl Client {
    pub fn new(root: &Path) -> (Arc<Client>, Queue) {
        let (queue, messages) = mpsc::channel(limits::LSP_MESSAGES_QUEUED_MAX);
        let client = Client {
            root: root.into(),
            peer: Peer::default(),
            queue,
            documents: Mutex::default(),
            lost: CancellationToken::new(),
            news: watch::Sender::new(()),
        };
        (Arc::new(client), messages)
    }

    /// Carries messages both ways until the server ends, or breaks the protocol: the error says how.
    pub async fn talk(&self, mut output: Output, mut input: Input, queue: &mut Queue) -> Result<(), String> {
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
                if let Some(body) = frames.take().map_err(|error| format!("it sent {error}"))? {
                    self.hear(&body)?;
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
            () = self.lost.cancelled() => Err("it does not read what it is told".into()),
        }
    }

    fn hear(&self, body: &[u8]) -> Result<(), String> {
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
                // One that nobody waits for any more came too late.
                self.peer.answer(&id, result);
                Ok(())
            }
            Err(rejected) => {
                tracing::debug!(error = %rejected.error, "a language server sent what is no message");
                Ok(())
            }
        }
    }

    /// What a client without settings and without windows answers.
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
            other => Err(Error::new(Kind::Unsupported, format!("there is no method {other}"))),
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
        let read = diagnostics.into_iter().filter_map(|diagnostic| serde_json::from_value(diagnostic).ok()).collect();
        self.documents().say(path, version, read);
        self.news.send_replace(());
    }

    fn progressed(&self, params: &Value) {
        let kind = params["value"]["kind"].as_str();
        if let Some("begin" | "end") = kind {
            self.documents().work(params["token"].to_string(), kind == Some("begin"));
            self.news.send_replace(());
        }
    }

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
        self.ask(Initialize::METHOD, params, until).await?;
        self.tell(Initialized::METHOD, json!({}))
    }

    fn folders(&self) -> Value {
        let name = self.root.file_name().unwrap_or_default().to_string_lossy();
        json!([{ "uri": uri::of(&self.root), "name": name }])
    }

    /// The last words; the server should end after them.
    pub async fn say_goodbye(&self, until: Instant) -> Result<(), String> {
        self.ask(Shutdown::METHOD, Value::Null, until).await?;
        self.tell(Exit::METHOD, Value::Null)
    }

    /// Makes `text` the file's content for the server, and waits until it has said what it thinks of it, is quiet and has done what it
    /// began thereupon. None: it said nothing in time. It is not asked (`textDocument/diagnostic`): servers answer before they have
    /// read the project, that there is nothing, and publish when they know.
    pub async fn check(&self, path: &Path, text: &str, until: Instant) -> Result<Option<Known>, String> {
        {
            let mut documents = self.documents();
            for change in documents.show(path, text) {
                self.show(change)?;
            }
        }
        let document = json!({ "uri": uri::of(path) });
        self.tell(DidSaveTextDocument::METHOD, json!({ "textDocument": document }))?;
        Ok(self.quiet(path, until).await)
    }

    /// Has the server know a file as it is on the disk now; none: it is gone.
    pub fn refresh(&self, path: &Path, text: Option<&str>) -> Result<(), String> {
        let mut documents = self.documents();
        let changes = match text {
            Some(text) => documents.show(path, text),
            None => documents.hide(path).into_iter().collect(),
        };
        changes.into_iter().try_for_each(|change| self.show(change))
    }

    async fn quiet(&self, path: &Path, until: Instant) -> Option<Known> {
        let mut news = self.news.subscribe();
        let mut latest = None;
        let mut end = until;
        loop {
            let now = self.documents().current(path);
            if now != latest {
                latest = now;
                let working = latest.as_ref().is_some_and(|known: &Known| known.working);
                end = if working { until } else { until.min(Instant::now() + limits::LSP_QUIET) };
            }
            tokio::select! {
                () = sleep_until(end) => return latest,
                () = self.queue.closed() => return None,
                _ = news.changed() => {}
            }
        }
    }

    /// To be called with the documents held, so that changes reach the server in their order.
    fn show(&self, change: Change) -> Result<(), String> {
        match change {
            Change::Open { path, version, text } => {
                let language = detect::language(&path);
                let document = json!({ "uri": uri::of(&path), "languageId": language, "version": version, "text": &*text });
                self.tell(DidOpenTextDocument::METHOD, json!({ "textDocument": document }))
            }
            Change::Edit { path, version, text } => {
                let document = json!({ "uri": uri::of(&path), "version": version });
                let params = json!({ "textDocument": document, "contentChanges": [{ "text": &*text }] });
                self.tell(DidChangeTextDocument::METHOD, params)
            }
            Change::Close { path } => self.tell(DidCloseTextDocument::METHOD, json!({ "textDocument": { "uri": uri::of(&path) } })),
        }
    }

    pub fn documents(&self) -> MutexGuard<'_, Documents> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, method: &str, params: Value, until: Instant) -> Result<Value, String> {
        let (sender, answer) = oneshot::channel();
        let id = self.peer.ask(Box::new(move |result| drop(sender.send(result))));
        let asked = Asked { client: self, id };
        let mut message = Vec::new();
        frame::request(&asked.id, method, params, &mut message);
        self.send(&message)?;
        tokio::select! {
            answer = answer => match answer {
                Ok(Ok(result)) => Ok(result),
                Ok(Err(error)) => Err(format!("{method}: {}", error["message"].as_str().unwrap_or("an error without a message"))),
                Err(_) => Err(format!("{method}: the question was lost")),
            },
            () = self.queue.closed() => Err(format!("{method}: it ended")),
            () = sleep_until(until) => Err(format!("{method}: no answer in time")),
        }
    }

    fn tell(&self, method: &str, params: impl Serialize) -> Result<(), String> {
        let mut message = Vec::new();
        frame::notification(method, params, &mut message);
        self.send(&message)
    }

    fn send(&self, message: &[u8]) -> Result<(), String> {
        self.queue.try_send(encode(message)).map_err(|_| {
            self.lost.cancel();
            "the language server does not read what it is told".into()
        })
    }
}

/// A request of ours that waits; withdrawn when nobody waits any more.
struct Asked<'a> {
    client: &'a Client,
    id: Id,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if self.client.peer.withdraw(&self.id) {
            // A server that is gone needs no word of it.
            let _ = self.client.tell("$/cancelRequest", json!({ "id": self.id }));
        }
    }
}
