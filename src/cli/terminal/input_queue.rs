//! The input of `nuncio run --json -`: messages and interrupts as JSON lines on standard input.

use std::collections::VecDeque;

use serde::Deserialize;
use tokio::sync::mpsc;

use crate::error::{Error, Kind, Result};
use crate::json;
use crate::limits;
use crate::rpc::lines::{Line, LineReader};

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum InputLine {
    Message { content: String },
    Interrupt {},
}

/// The lines of the input, and the messages that arrived during a turn.
pub(crate) struct InputQueue {
    /// None at the end of the input.
    lines: Option<mpsc::Receiver<Result<InputLine>>>,
    messages: VecDeque<String>,
}

impl InputQueue {
    /// Creates a queue without input.
    pub(crate) fn closed() -> InputQueue {
        InputQueue { lines: None, messages: VecDeque::new() }
    }

    /// Creates a queue that reads standard input.
    pub(crate) fn open() -> InputQueue {
        let (sender, receiver) = mpsc::channel(16);
        crate::task::spawn(read(sender));
        InputQueue { lines: Some(receiver), ..InputQueue::closed() }
    }

    /// Queues a message that arrived during a turn.
    pub(crate) fn push(&mut self, message: String) {
        self.messages.push_back(message);
    }

    /// Returns the next message, between turns; interrupts are ignored. Returns `None` at the end
    /// of the input.
    pub(crate) async fn message(&mut self) -> Option<Result<String>> {
        if let Some(message) = self.messages.pop_front() {
            return Some(Ok(message));
        }
        loop {
            match self.lines.as_mut()?.recv().await? {
                Ok(InputLine::Interrupt {}) => {}
                Ok(InputLine::Message { content }) => return Some(Ok(content)),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Returns the next line, during a turn. After the end of the input, waits forever.
    pub(crate) async fn line(&mut self) -> Result<InputLine> {
        if let Some(lines) = &mut self.lines
            && let Some(line) = lines.recv().await
        {
            return line;
        }
        self.lines = None;
        std::future::pending().await
    }
}

async fn read(lines: mpsc::Sender<Result<InputLine>>) {
    let mut reader = LineReader::new(tokio::io::stdin(), limits::INPUT_LINE_BYTES_MAX);
    let mut number = 0;
    loop {
        number += 1;
        let bad = |problem: String| Err(Error::new(Kind::InvalidParams, format!("standard input, line {number}: {problem}")));
        let line = match reader.next().await {
            Ok(None) => return,
            Ok(Some(Line::Text(line))) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some(Line::Text(line))) => json::from_slice(&line).or_else(|error| bad(error.to_string())),
            Ok(Some(Line::TooLong(_))) => bad("too long".into()),
            Err(error) => bad(error.to_string()),
        };
        if lines.send(line).await.is_err() {
            return;
        }
    }
}
