//! The calls of the chat to the process that serves its sessions.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::api::{self, App};
use crate::cli::flags::run_options::SessionOptions;
use crate::cli::sessions::session_id::resolve;
use crate::config::Overrides;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id::{Seq, SessionId};
use crate::local::{LocalClient, LocalEvents};
use crate::options::Mode;
use crate::remote::{RemoteEvents, RemoteServer};
use crate::session::permissions::broker::Responder;

/// Maximum number of pages of a list that are read.
const PAGES_MAX: usize = 1000;
/// Maximum length of the id of a session.
const ID_BYTES_MAX: usize = 128;

/// Calls methods of the method table, with params and results as JSON.
#[derive(Clone)]
pub(crate) struct ChatClient {
    local: LocalClient,
    /// The server that is called instead of this process.
    remote: Option<RemoteServer>,
}

impl ChatClient {
    /// Creates a client of this process, or of a server elsewhere.
    pub(crate) fn new(local: LocalClient, remote: Option<RemoteServer>) -> ChatClient {
        ChatClient { local, remote }
    }

    /// Returns the application of this process.
    pub(crate) fn app(&self) -> &Arc<App> {
        self.local.app()
    }

    /// Returns whether the sessions are on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.remote.is_none()
    }

    pub(crate) fn draft_directory(&self, session: &SessionId) -> PathBuf {
        let name = self.remote.as_ref().map(|remote| remote.file_name(session));
        self.app().places.data.join("drafts").join(name.as_deref().unwrap_or(session.as_str()))
    }

    /// Returns an error if the sessions are on a server elsewhere, where `what` is not possible.
    pub(crate) fn require_local(&self, what: &str) -> Result<()> {
        match self.is_local() {
            true => Ok(()),
            false => Err(Error::invalid_params(format!("{what}: not available with --url"))),
        }
    }

    pub(crate) async fn call(&self, name: &str, params: Value) -> Result<Value> {
        if let Some(remote) = &self.remote {
            return remote.call(name, params).await;
        }
        let row = api::method(name).ok_or_else(|| Error::internal(format!("{name} is not in the method table")))?;
        self.local.call_row(row, params, CancellationToken::new()).await
    }

    pub(crate) async fn follow(&self, id: &SessionId, after: Seq) -> Result<ChatEvents> {
        match &self.remote {
            Some(remote) => remote.follow(id, after).await.map(ChatEvents::Remote),
            None => self.local.follow(id, after, Some(Responder::Person)).await.map(ChatEvents::Local),
        }
    }

    /// Begins a session with the fields of `_meta.nuncio`, for example the agent. Returns its id.
    pub(crate) async fn begin(&self, directory: &str, fields: Value) -> Result<SessionId> {
        let params = json!({ "cwd": directory, "mcpServers": [], "_meta": { "nuncio": fields } });
        session_id(&self.call("session/new", params).await?)
    }

    /// Opens the session of the options on a server elsewhere, or begins one in its directory.
    pub(crate) async fn open_remote(&self, options: &SessionOptions, overrides: &Overrides) -> Result<SessionId> {
        match (&options.resume, options.last) {
            (Some(id), _) => self.resume(id).await,
            (None, true) => self.resume("").await,
            (None, false) => {
                let status = self.call("_nuncio/status", json!({})).await?;
                let directory = status["cwd"].as_str().ok_or_else(|| {
                    Error::invalid_params("the token has no access to the directory of the server").hint("nuncio chat --resume ID")
                })?;
                let fields = json!({
                    "title": options.title, "model": overrides.model, "agent": overrides.agents.first(),
                    "mode": overrides.mode.map(Mode::id),
                });
                let given = fields.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
                self.begin(directory, given.map(|(name, value)| (name.clone(), value.clone())).collect()).await
            }
        }
    }

    /// Finds the newest session whose id begins with `start` on a server elsewhere.
    async fn find_remote(&self, start: &str) -> Result<SessionId> {
        let mut cursor = Value::Null;
        for _ in 0..PAGES_MAX {
            let page = self.call("session/list", json!({ "cursor": cursor })).await?;
            let mut ids = page["sessions"].as_array().into_iter().flatten().filter_map(|session| session["sessionId"].as_str());
            if let Some(id) = ids.find(|id| id.starts_with(start)) {
                return checked_id(id);
            }
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        Err(Error::not_found(format!("session {start} not found")))
    }

    /// Opens a session to continue it. `id` can be a unique start of its id. Returns its id.
    pub(crate) async fn resume(&self, id: &str) -> Result<SessionId> {
        let id = match &self.remote {
            Some(_) => self.find_remote(id).await?,
            None => resolve(self.app().sessions().await?, id).await?,
        };
        self.call("session/resume", json!({ "sessionId": id, "cwd": "" })).await?;
        Ok(id)
    }

    /// Returns the seq before the first event of the last turns of a session, and the number of
    /// turns before them.
    pub(crate) async fn before_last_turns(&self, id: &SessionId, turns_max: usize) -> Result<(Seq, usize)> {
        let (mut firsts, mut cursor) = (Vec::new(), Value::Null);
        for _ in 0..PAGES_MAX {
            let mut params = json!({ "sessionId": id, "limit": 200 });
            if !cursor.is_null() {
                params["cursor"] = cursor;
            }
            let page = self.call("_nuncio/session/turns", params).await?;
            firsts.extend(page["turns"].as_array().into_iter().flatten().filter_map(|turn| turn["firstSeq"].as_u64()));
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        let hidden = firsts.len().saturating_sub(turns_max);
        Ok((firsts.get(hidden).map_or(0, |first| first.saturating_sub(1)), hidden))
    }
}

/// Reads the id of a session that a call created.
pub(crate) fn session_id(result: &Value) -> Result<SessionId> {
    checked_id(result["sessionId"].as_str().ok_or_else(|| Error::internal("the result has no sessionId"))?)
}

/// Checks an id from a server elsewhere, because it becomes part of URLs and names of files.
fn checked_id(id: &str) -> Result<SessionId> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    match id.len() <= ID_BYTES_MAX && !id.is_empty() && id.chars().all(is_plain) {
        true => Ok(id.into()),
        false => Err(Error::internal(format!("the server sent {id:?}, which is not the id of a session"))),
    }
}

/// The events of a session, in order.
pub(crate) enum ChatEvents {
    Local(LocalEvents),
    Remote(RemoteEvents),
}

impl ChatEvents {
    /// Waits for the next events. Cancel safe. Returns an error if the session was deleted.
    pub(crate) async fn next(&mut self) -> Result<Vec<Arc<Event>>> {
        match self {
            ChatEvents::Local(events) => events.next().await,
            ChatEvents::Remote(events) => events.next().await,
        }
    }

    /// Returns the committed events without waiting for more.
    pub(crate) async fn committed(&mut self) -> Result<Vec<Arc<Event>>> {
        match self {
            ChatEvents::Local(events) => events.committed().await,
            ChatEvents::Remote(events) => events.committed().await,
        }
    }
}
