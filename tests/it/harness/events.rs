//! A reader of server-sent events. The reader may be dropped at any time. The reader asserts that
//! ids increase and that `synced` comes once.

use std::collections::VecDeque;
use std::io;

use serde_json::Value;

use super::bounded;
use super::http::{Connection, Head, Rest};

/// One event of a stream, with its cursor.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamEvent {
    pub id: u64,
    pub event: Value,
}

impl StreamEvent {
    pub fn kind(&self) -> &str {
        self.event["body"]["type"].as_str().unwrap()
    }
}

#[derive(Debug)]
pub enum Frame {
    Event(StreamEvent),
    /// The history is complete up to this cursor.
    Synced(u64),
    /// The status of agents.
    Status(Value),
}

pub struct Events {
    connection: Connection,
    pub head: Head,
    rest: Rest,
    text: Vec<u8>,
    /// Length of the leading text that contains no end of a frame.
    looked: usize,
    ready: VecDeque<Frame>,
    /// The last id.
    pub last: u64,
    pub synced: Option<u64>,
}

impl Events {
    pub fn new(connection: Connection, head: Head) -> Events {
        let rest = Rest::from_head(&head);
        assert!(matches!(rest, Rest::Chunked), "{head:?}");
        Events { connection, head, rest, text: Vec::new(), looked: 0, ready: VecDeque::new(), last: 0, synced: None }
    }

    /// The next frame; none at the end of the stream, an error if the connection breaks.
    pub async fn try_frame(&mut self) -> io::Result<Option<Frame>> {
        while self.ready.is_empty() {
            if !self.connection.piece(&mut self.rest, &mut self.text).await? {
                assert!(self.text.is_empty(), "half a frame: {}", String::from_utf8_lossy(&self.text));
                return Ok(None);
            }
            self.parse();
        }
        let frame = self.ready.pop_front().unwrap();
        match &frame {
            Frame::Event(StreamEvent { id, .. }) => {
                assert!(*id > self.last, "{id} after {}", self.last);
                self.last = *id;
            }
            Frame::Synced(cursor) => assert_eq!(self.synced.replace(*cursor), None, "synced twice"),
            Frame::Status(_) => {}
        }
        Ok(Some(frame))
    }

    pub async fn frame(&mut self) -> Option<Frame> {
        bounded("a frame", self.try_frame()).await.expect("the stream goes on, or ends properly")
    }

    /// The next event; none at the end.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            match self.frame().await? {
                Frame::Event(shown) => return Some(shown),
                Frame::Synced(_) | Frame::Status(_) => {}
            }
        }
    }

    /// The next `agent.status`.
    pub async fn status(&mut self) -> Value {
        loop {
            match self.frame().await.expect("the stream goes on") {
                Frame::Status(status) => return status,
                Frame::Event(_) | Frame::Synced(_) => {}
            }
        }
    }

    /// All events up to the first of this type.
    pub async fn until(&mut self, kind: &str) -> Vec<StreamEvent> {
        let mut seen = Vec::new();
        loop {
            let Some(shown) = self.next().await else { panic!("the stream ended before {kind}: {seen:#?}") };
            seen.push(shown);
            if seen.last().unwrap().kind() == kind {
                return seen;
            }
        }
    }

    /// All events of the history.
    pub async fn history(&mut self) -> Vec<StreamEvent> {
        let mut seen = Vec::new();
        while let Some(frame) = self.frame().await {
            match frame {
                Frame::Event(shown) => seen.push(shown),
                Frame::Synced(_) => return seen,
                Frame::Status(_) => {}
            }
        }
        panic!("it ended before it was synced: {seen:#?}")
    }

    /// All events up to the end of the stream.
    pub async fn rest(&mut self) -> Vec<StreamEvent> {
        let mut seen = Vec::new();
        while let Some(shown) = self.next().await {
            seen.push(shown);
        }
        seen
    }

    fn parse(&mut self) {
        let mut from = 0;
        while let Some(end) = memchr::memmem::find(&self.text[self.looked..], b"\n\n").map(|end| self.looked + end) {
            let frame = std::str::from_utf8(&self.text[from..end]).unwrap();
            from = end + 2;
            self.looked = from;
            let (mut id, mut name, mut data) = (None, None, None);
            for line in frame.lines() {
                match line.split_once(": ") {
                    Some(("", _)) => {}
                    Some(("id", value)) => id = Some(value.parse().unwrap()),
                    Some(("event", value)) => name = Some(value),
                    Some(("data", value)) => data = Some(serde_json::from_str::<Value>(value).unwrap()),
                    _ => panic!("not a line of a stream: {line:?}"),
                }
            }
            match (id, name, data) {
                (Some(id), None, Some(event)) => self.ready.push_back(Frame::Event(StreamEvent { id, event })),
                (None, Some("synced"), Some(data)) => self.ready.push_back(Frame::Synced(data["cursor"].as_u64().unwrap())),
                (None, Some("agent.status"), Some(data)) => self.ready.push_back(Frame::Status(data)),
                (None, None, None) => {}
                _ => panic!("not a frame of a stream: {frame:?}"),
            }
        }
        self.text.drain(..from);
        self.looked = self.text.len().saturating_sub(1);
    }
}
