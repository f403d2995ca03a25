//! The events of an OpenCode server. The stream is reopened after a disconnection. The server does
//! not repeat events, so the reader must then read the state.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use crate::error::Result;
use crate::hub::opencode_server::OpencodeServer;
use crate::hub::process::unavailable;
use crate::json;
use crate::limits;
use crate::model::sse::Decoder;

/// Maximum time without a byte of an agent's event stream, which has an event every 10 s.
const AGENT_EVENTS_IDLE: Duration = Duration::from_secs(30);

/// The events of a directory.
pub(super) struct ServerEvents {
    server: Arc<OpencodeServer>,
    connection: Option<Connection>,
    /// Time of the disconnection.
    cut: Option<Instant>,
}

struct Connection {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    decoder: Decoder,
}

/// An item of [`ServerEvents`].
pub(super) enum ServerItem {
    Event(Value),
    /// The stream was reopened; events may be missing.
    Reopened,
}

/// The state of a server: its responses to requests for the state.
pub(super) struct ServerState {
    pub statuses: Value,
    pub messages: Value,
    /// The sessions of subagents, each after its parent.
    pub subagents: Vec<Value>,
    pub permissions: Value,
    pub questions: Value,
}

impl ServerEvents {
    /// Opens the stream. Events that happen later are in it.
    pub(super) async fn open(server: Arc<OpencodeServer>) -> Result<ServerEvents> {
        let mut stream = ServerEvents { server, connection: None, cut: Some(Instant::now()) };
        while !matches!(stream.next().await?, ServerItem::Reopened) {}
        Ok(stream)
    }

    /// Waits for the next item. Cancel-safe. Fails if the stream cannot be opened for
    /// [`limits::AGENT_REQUEST`].
    pub(super) async fn next(&mut self) -> Result<ServerItem> {
        loop {
            let Some(connection) = &mut self.connection else {
                self.connect().await?;
                continue;
            };
            match connection.next().await {
                None => {
                    self.connection = None;
                    self.pause("the stream was closed").await?;
                }
                Some(event) if event["type"] == "server.connected" => {
                    let process = self.server.process();
                    if process.has_ended() {
                        return Err(process.ended_error(process.ended().await));
                    }
                    if self.cut.take().is_some() {
                        return Ok(ServerItem::Reopened);
                    }
                }
                Some(event) => return Ok(ServerItem::Event(event)),
            }
        }
    }

    async fn connect(&mut self) -> Result<()> {
        match self.server.events().await {
            Ok(response) => {
                self.connection = Some(Connection { bytes: response.bytes_stream().boxed(), decoder: Decoder::default() });
                Ok(())
            }
            Err(error) => self.pause(&error.message).await,
        }
    }

    /// Waits before the next attempt to open the stream.
    async fn pause(&mut self, why: &str) -> Result<()> {
        if self.cut.get_or_insert_with(Instant::now).elapsed() > limits::AGENT_REQUEST {
            return Err(unavailable(self.server.name(), format_args!("its events cannot be read: {why}")));
        }
        sleep(limits::AGENT_RECONNECT).await;
        Ok(())
    }
}

impl Connection {
    /// Waits for the next event that is a JSON object. Returns `None` if the stream was
    /// disconnected or sent nothing for [`AGENT_EVENTS_IDLE`].
    async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some(data) = self.decoder.next_event().ok()? {
                match json::from_str(&data) {
                    Ok(event @ Value::Object(_)) => return Some(event),
                    Ok(_) | Err(_) => tracing::debug!("an event of OpenCode is not an object"),
                }
            }
            let piece = timeout(AGENT_EVENTS_IDLE, self.bytes.next()).await.ok()??.ok()?;
            self.decoder.push(&piece);
        }
    }
}
