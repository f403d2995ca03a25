//! The response of a scripted provider to one request.

use super::Protocol;

/// The response to one request.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) pieces: Vec<Vec<u8>>,
    /// Each piece is written on its own.
    pub(super) drip: bool,
    pub(super) end: End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum End {
    Whole,
    /// The connection is closed before the end of the answer.
    Cut,
    /// The pieces are the whole response, with its head; then the connection is closed.
    Raw,
    /// Sends no further data until the caller disconnects.
    Hang,
    /// Repeats the last piece until the caller disconnects, at most [`ENDLESS_BYTES`].
    Endless,
}

/// Exceeds every limit of an answer.
pub(super) const ENDLESS_BYTES: usize = 64 << 20;

impl Exchange {
    pub fn new(status: u16, content_type: &str, pieces: Vec<String>) -> Self {
        Self::bytes(status, content_type, pieces.into_iter().map(String::into_bytes).collect())
    }

    pub fn bytes(status: u16, content_type: &str, pieces: Vec<Vec<u8>>) -> Self {
        Self { status, headers: vec![("content-type", content_type.to_owned())], pieces, drip: false, end: End::Whole }
    }

    /// A response with its head, which need not be HTTP.
    pub fn raw(response: &[u8]) -> Self {
        Self { end: End::Raw, ..Self::bytes(0, "", vec![response.to_vec()]) }
    }

    /// Events with this data, one piece each.
    pub fn events(events: &[&str]) -> Self {
        Self::new(200, "text/event-stream", events.iter().map(|data| format!("data: {data}\n\n")).collect())
    }

    /// The same events in the framing of a protocol: one line each for Ollama.
    pub(super) fn framed(mut self, protocol: Protocol) -> Self {
        let kind = self.headers.iter_mut().find(|(name, value)| *name == "content-type" && value == "text/event-stream");
        if let (Protocol::Ollama, Some((_, kind))) = (protocol, kind) {
            "application/x-ndjson".clone_into(kind);
            for piece in &mut self.pieces {
                *piece = String::from_utf8_lossy(piece).replace("data: ", "").replace("\n\n", "\n").into_bytes();
            }
        }
        self
    }

    pub fn error(status: u16, body: &str) -> Self {
        Self::new(status, "application/json", vec![body.to_owned()])
    }

    /// Returns the text of all pieces.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.pieces.concat()).into_owned()
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub fn cut(self) -> Self {
        Self { end: End::Cut, ..self }
    }

    /// Writes each piece on its own.
    pub fn drip(self) -> Self {
        Self { drip: true, ..self }
    }

    pub fn hang(self) -> Self {
        Self { end: End::Hang, ..self }
    }

    /// Repeats the last piece without end.
    pub fn endless(self) -> Self {
        Self { end: End::Endless, ..self }
    }
}
