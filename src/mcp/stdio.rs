//! The transport over the standard streams of a server's process.

use std::sync::Arc;

use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite, Empty, empty};
use tokio::sync::watch;

use super::message::{self, ServerText};
use crate::error::{Error, Kind};
use crate::limits;
use crate::rpc::lines::{Line, LineReader};
use crate::rpc::message::InvalidMessage;

/// Messages as lines. Other lines are skipped.
pub(super) struct StdioTransport<R, W: AsyncWrite> {
    lines: LineReader<R>,
    /// Used only for writing.
    writer: AsyncRwTransport<RoleClient, Empty, W>,
    garbage: Arc<Garbage>,
}

/// The first line that a server wrote instead of a message.
pub(super) struct Garbage(watch::Sender<Option<String>>);

impl Garbage {
    pub(super) fn new() -> Arc<Garbage> {
        Arc::new(Garbage(watch::Sender::new(None)))
    }

    /// Waits for the first line that is not a message, and returns it.
    pub(super) async fn line(&self) -> String {
        let mut lines = self.0.subscribe();
        // Cannot fail: `self` holds the sender.
        lines.wait_for(Option::is_some).await.map_or_else(|_| String::new(), |line| line.clone().unwrap_or_default())
    }

    /// Describes the first line that is not a message, if any.
    pub(super) fn describe_first(&self) -> Option<String> {
        self.0.borrow().as_deref().map(describe_line)
    }

    fn keep(&self, line: String) {
        tracing::debug!(line, "a line of an MCP server is not a message");
        self.0.send_if_modified(|kept| {
            let is_first = kept.is_none();
            if is_first {
                *kept = Some(line);
            }
            is_first
        });
    }
}

/// Describes a line that is not a message.
pub(super) fn describe_line(line: &str) -> String {
    format!("its standard output is not a message of MCP: \"{line}\"; is the command that of an MCP server?")
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> StdioTransport<R, W> {
    pub(super) fn new(output: R, input: W, garbage: Arc<Garbage>) -> StdioTransport<R, W> {
        let lines = LineReader::new(output, limits::MCP_MESSAGE_BYTES_MAX);
        StdioTransport { lines, writer: AsyncRwTransport::new_client(empty(), input), garbage }
    }
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Transport<RoleClient> for StdioTransport<R, W> {
    type Error = std::io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = std::io::Result<()>> + Send + 'static {
        self.writer.send(item)
    }

    /// Receives the next message. Cancel safe.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let received = match self.lines.next().await.ok()?? {
                Line::Text(text) => message::read(&text),
                Line::TooLong(start) => {
                    let error = format!("it has more than {} bytes", limits::MCP_MESSAGE_BYTES_MAX);
                    message::unreadable(&start, InvalidMessage::unreadable(&start, Error::new(Kind::ParseError, error)))
                }
            };
            match received {
                ServerText::Message(message) => return Some(*message),
                ServerText::Nothing => {}
                ServerText::Garbage(line) => self.garbage.keep(line),
            }
        }
    }

    async fn close(&mut self) -> std::io::Result<()> {
        self.writer.close().await
    }
}
