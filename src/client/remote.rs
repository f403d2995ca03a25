//! Calls methods of a nuncio server elsewhere: calls by `/rpc`, events as server-sent events.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use reqwest::{RequestBuilder, Response};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::error::{Error, Kind, Result};
use crate::event::Event;
use crate::hex::hex;
use crate::id::{Seq, SessionId, TurnId};
use crate::limits;
use crate::model::limited_body::{self, LimitedBody, MissingPart};
use crate::model::sse::Decoder;
use crate::task;
use crate::web::{Destination, HttpClients, causes, is_certificate_problem};

/// Maximum time of a call.
const CALL: Duration = Duration::from_secs(60);
/// Maximum time without a byte of an event stream, which has a comment at each heartbeat.
const EVENTS_IDLE: Duration = limits::HEARTBEAT.saturating_mul(3);
/// Maximum number of pieces of an event stream that wait to be read.
const PIECES_QUEUED_MAX: usize = 16;
/// Maximum size of the result of a call, and of the events that wait to be read, in bytes.
const ANSWER_BYTES_MAX: usize = limits::PEER_MESSAGE_BYTES_MAX;
const EVENTS_BYTES_MAX: usize = 128 << 20;
/// The delay before the next attempt to open an event stream, and the number of attempts.
const RECONNECT: Duration = Duration::from_secs(1);
const RECONNECTS_MAX: u32 = 60;

/// A server and the token of its client.
#[derive(Clone)]
pub(crate) struct RemoteServer {
    base: Arc<str>,
    token: Arc<str>,
    client: reqwest::Client,
}

impl RemoteServer {
    /// Creates a client of the server at a base URL, for example `https://host:8686`. Connects with
    /// the first call.
    pub(crate) fn new(clients: &HttpClients, url: &str, token: &str) -> Result<RemoteServer> {
        let parsed = reqwest::Url::parse(url).map_err(|error| Error::invalid_params(format!("--url: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
            return Err(Error::invalid_params("--url: expected http://HOST:PORT or https://HOST"));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() || !parsed.username().is_empty() {
            let error = Error::invalid_params("--url: must not contain a token, which other users could read");
            return Err(error.hint("set NUNCIO_TOKEN, and give the URL without the token"));
        }
        let client = clients.client(Destination::Nuncio).map_err(|error| Error::internal(causes(&error)))?;
        Ok(RemoteServer { base: url.trim_end_matches('/').into(), token: token.into(), client })
    }

    pub(crate) async fn call(&self, name: &str, params: Value) -> Result<Value> {
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": name, "params": params });
        let request = self
            .client
            .post(format!("{}/rpc", self.base))
            .bearer_auth(&self.token)
            .header("content-type", "application/json")
            .body(call.to_string());
        let mut response = self.answer(request).await?;
        match response.get("error") {
            Some(error) => Err(read_error(error)),
            None => Ok(response["result"].take()),
        }
    }

    /// Starts the turn of a prompt (`POST /v1/sessions/{sessionId}/prompt`).
    pub(crate) async fn start_turn(&self, session: &SessionId, mut params: Value) -> Result<TurnId> {
        if let Some(fields) = params.as_object_mut() {
            fields.shift_remove("sessionId");
        }
        let request = self
            .client
            .post(format!("{}/v1/sessions/{session}/prompt", self.base))
            .bearer_auth(&self.token)
            .header("content-type", "application/json")
            .header("prefer", "respond-async")
            .body(params.to_string());
        let body = self.answer(request).await?;
        match body["turnId"].as_str() {
            Some(turn) => Ok(turn.into()),
            None => Err(read_error(&body["error"])),
        }
    }

    /// Sends a request and reads the JSON of its response.
    async fn answer(&self, request: RequestBuilder) -> Result<Value> {
        let received = async {
            let response = request.send().await.map_err(|error| self.unreachable(&causes(&error)))?;
            self.body(response).await
        };
        let bytes = timeout(CALL, received).await.map_err(|_| self.unreachable("timed out"))??;
        serde_json::from_slice(&bytes).map_err(|_| self.unreachable("the answer is not JSON"))
    }

    /// Returns a name for files about a session of this server. A server can give its sessions any
    /// ids, for example `../x`.
    pub(crate) fn file_name(&self, session: &SessionId) -> String {
        let digest = digest(&SHA256, format!("{}\n{session}", self.base).as_bytes());
        format!("remote-{}", hex(&digest.as_ref()[..16]))
    }

    /// Follows the events of a session after seq `after`. `interactive` is true if a person answers
    /// permission requests.
    pub(crate) async fn follow(&self, session: &SessionId, after: Seq, interactive: bool) -> Result<RemoteEvents> {
        let mut events = RemoteEvents {
            server: self.clone(),
            session: session.clone(),
            after,
            interactive,
            stream: None,
            synced: false,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        };
        events.connect().await?;
        Ok(events)
    }

    /// Reads the body of a response, of at most [`ANSWER_BYTES_MAX`].
    async fn body(&self, response: Response) -> Result<Vec<u8>> {
        let LimitedBody { bytes, incomplete } = limited_body::read(response, ANSWER_BYTES_MAX).await;
        match incomplete {
            None => Ok(bytes),
            Some(MissingPart::TooLarge) => Err(self.too_large("an answer", ANSWER_BYTES_MAX)),
            Some(MissingPart::Failed(error)) => Err(self.unreachable(&causes(&error))),
        }
    }

    fn too_large(&self, what: &str, most: usize) -> Error {
        Error::new(Kind::TooLarge, format!("{}: {what} is larger than {} MiB", self.base, most >> 20))
    }

    fn unreachable(&self, why: &str) -> Error {
        let error = Error::new(Kind::AgentUnavailable, format!("{}: {why}", self.base));
        if is_certificate_problem(why) { error } else { error.hint("is nuncio serve running there?") }
    }
}

/// Reads an error in the format of REST or of JSON-RPC, whose message also has the hint and names
/// fields as ACP does.
fn read_error(error: &Value) -> Error {
    let data = &error["data"];
    let code = data["code"].as_str().or(error["code"].as_str());
    let hint = data["hint"].as_str().or(error["hint"].as_str());
    let message = error["message"].as_str().unwrap_or("the call failed");
    let message = message.strip_prefix("_meta.nuncio.").unwrap_or(message);
    let shown = hint.and_then(|hint| message.strip_suffix(&format!(" ({hint})")));
    let found = Error::new(code.and_then(Kind::from_code).unwrap_or(Kind::Internal), shown.unwrap_or(message));
    match hint {
        Some(hint) => found.hint(hint),
        None => found,
    }
}

/// The events of a session, in order. The stream is opened again after a disconnection.
pub(crate) struct RemoteEvents {
    server: RemoteServer,
    session: SessionId,
    /// Seq of the last event.
    after: Seq,
    interactive: bool,
    stream: Option<(mpsc::Receiver<Bytes>, Decoder)>,
    /// All events that were committed when the stream was opened have been read.
    synced: bool,
    /// Events that [`RemoteEvents::committed`] has not returned, and their size in bytes.
    waiting: VecDeque<Arc<Event>>,
    waiting_bytes: usize,
}

impl RemoteEvents {
    /// Waits for the next events. Cancel safe. Returns an error if the server cannot be reached for
    /// a minute, or if the session was deleted.
    pub(crate) async fn next(&mut self) -> Result<Vec<Arc<Event>>> {
        let mut failed = 0;
        loop {
            if !self.waiting.is_empty() {
                return Ok(self.take());
            }
            if self.stream.is_some() && self.read().await? {
                failed = 0;
                continue;
            }
            self.stream = None;
            match self.connect().await {
                Ok(()) => {}
                Err(error) if error.kind == Kind::AgentUnavailable && failed < RECONNECTS_MAX => {
                    failed += 1;
                    sleep(RECONNECT).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the events that were committed when the stream was opened.
    pub(crate) async fn committed(&mut self) -> Result<Vec<Arc<Event>>> {
        while !self.synced && self.read().await? {}
        Ok(self.take())
    }

    fn take(&mut self) -> Vec<Arc<Event>> {
        self.waiting.drain(..).collect()
    }

    async fn connect(&mut self) -> Result<()> {
        let RemoteServer { base, token, client } = &self.server;
        let url = format!("{base}/v1/sessions/{}/events?after={}&interactive={}", self.session, self.after, self.interactive);
        let sent = timeout(CALL, client.get(url).bearer_auth(token).send()).await;
        let response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.server.unreachable(&causes(&error))),
            Err(_) => return Err(self.server.unreachable("timed out")),
        };
        if !response.status().is_success() {
            let body = timeout(CALL, self.server.body(response)).await.map_err(|_| self.server.unreachable("timed out"))??;
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            return Err(read_error(&body["error"]));
        }
        let (sender, receiver) = mpsc::channel(PIECES_QUEUED_MAX);
        task::spawn(receive(response, sender));
        self.stream = Some((receiver, Decoder::default()));
        Ok(())
    }

    /// Waits for the next bytes. Returns false if the stream has ended. Fails if its data is too
    /// large.
    async fn read(&mut self) -> Result<bool> {
        let Some((stream, decoder)) = &mut self.stream else { return Ok(false) };
        let Some(piece) = stream.recv().await else { return Ok(false) };
        decoder.push(&piece);
        if self.synced && self.waiting.is_empty() {
            self.waiting_bytes = 0;
        }
        self.waiting_bytes += piece.len();
        if self.waiting_bytes > EVENTS_BYTES_MAX {
            return Err(self.server.too_large("the history of the session", EVENTS_BYTES_MAX));
        }
        loop {
            match decoder.next_event() {
                Ok(None) => return Ok(true),
                Err(_) => return Err(self.server.too_large("an event", limits::MODEL_EVENT_BYTES_MAX)),
                Ok(Some(data)) => match serde_json::from_str::<Event>(&data) {
                    Ok(event) if event.seq > self.after => {
                        self.after = event.seq;
                        self.waiting.push_back(Arc::new(event));
                    }
                    Ok(_) => {}
                    // The frame `synced`, `{"cursor": N}`, ends the history.
                    Err(_) => self.synced = true,
                },
            }
        }
    }
}

/// Passes on the pieces of an event stream until it ends, is silent, or is not read any more.
async fn receive(response: Response, pieces: mpsc::Sender<Bytes>) {
    let mut stream = response.bytes_stream();
    loop {
        let next = tokio::select! {
            next = timeout(EVENTS_IDLE, stream.next()) => next,
            () = pieces.closed() => return,
        };
        let Ok(Some(Ok(piece))) = next else { return };
        if pieces.send(piece).await.is_err() {
            return;
        }
    }
}
