//! A minimal HTTP/1.1 client that can send arbitrary requests: requests are text, answers have a
//! length or are chunked.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::{Events, bounded};

/// The address of a bridge, and a token.
#[derive(Clone, Debug)]
pub struct Bridge {
    pub address: SocketAddr,
    pub token: String,
}

impl Bridge {
    pub fn ask(&self, method: &str, path: &str) -> Ask {
        let headers = [("host", self.address.to_string()), ("authorization", format!("Bearer {}", self.token))];
        let headers = headers.map(|(name, value)| (name.to_string(), value)).into();
        Ask { address: self.address, method: method.into(), path: path.into(), headers, body: Vec::new() }
    }

    pub fn get(&self, path: &str) -> Ask {
        self.ask("GET", path)
    }

    pub fn post(&self, path: &str, body: &Value) -> Ask {
        self.ask("POST", path).json(body)
    }

    /// A client of this server with another token.
    pub fn with_token(&self, token: &str) -> Bridge {
        Bridge { token: token.into(), ..self.clone() }
    }
}

/// A request builder.
#[derive(Clone, Debug)]
pub struct Ask {
    address: SocketAddr,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    /// Sets a header. A header of the same name is replaced.
    pub fn header(self, name: &str, value: &str) -> Ask {
        self.without(name).also(name, value)
    }

    pub fn also(mut self, name: &str, value: &str) -> Ask {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn without(mut self, name: &str) -> Ask {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub fn json(self, body: &Value) -> Ask {
        self.header("content-type", "application/json").body(body.to_string())
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Ask {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.header("content-length", &length)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            text += &format!("{name}: {value}\r\n");
        }
        [text.as_bytes(), b"\r\n", &self.body].concat()
    }

    /// Sends the request and leaves the answer unread.
    pub async fn open(&self) -> Connection {
        let mut connection = Connection::open(self.address).await.unwrap();
        connection.write(&self.bytes()).await.unwrap();
        connection
    }

    /// Like `open`, with a small receive buffer.
    pub async fn open_narrow(&self) -> Connection {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let stream = socket.connect(self.address).await.unwrap();
        let mut connection = Connection { stream, buffer: Vec::new(), used: 0 };
        connection.write(&self.bytes()).await.unwrap();
        connection
    }

    /// Sends the request on an open connection.
    pub async fn over(&self, connection: &mut Connection) -> Answer {
        connection.write(&self.bytes()).await.unwrap();
        connection.answer(&self.method).await
    }

    pub async fn send(&self) -> Answer {
        self.try_send().await.unwrap_or_else(|error| panic!("{} {}: {error}", self.method, self.path))
    }

    /// Like `send`, for a server that may have ended or may refuse the request.
    pub async fn try_send(&self) -> io::Result<Answer> {
        let exchange = async {
            let mut connection = Connection::open(self.address).await?;
            // A server that refuses a body may answer without reading the body.
            let _ = connection.write(&self.bytes()).await;
            connection.try_answer(&self.method).await
        };
        bounded(&format!("{} {}", self.method, self.path), exchange).await
    }

    /// The answer as JSON. Asserts the status.
    pub async fn expect(&self, status: u16) -> Value {
        let answer = self.send().await;
        assert_eq!(answer.status, status, "{} {}: {answer:?}", self.method, self.path);
        answer.json()
    }

    /// The answer as a stream of events.
    pub async fn events(&self) -> Events {
        let opened = bounded(&format!("the head of {}", self.path), self.try_events()).await;
        opened.unwrap_or_else(|error| panic!("{} {}: {error}", self.method, self.path))
    }

    pub async fn try_events(&self) -> io::Result<Events> {
        let mut connection = Connection::open(self.address).await?;
        connection.write(&self.bytes()).await?;
        let head = connection.head().await?;
        if (head.status, head.header("content-type")) != (200, Some("text/event-stream")) {
            return Err(io::Error::other(format!("no stream: {head:?} {:?}", connection.answer_of(head.clone(), "GET").await)));
        }
        Ok(Events::new(connection, head))
    }
}

/// Status and headers of an answer.
#[derive(Clone, Debug)]
pub struct Head {
    pub status: u16,
    pub headers: Vec<(String, String)>,
}

impl Head {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: Head,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    pub fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Status and code of an error. Asserts the error envelope.
    pub fn error(&self) -> (u16, String) {
        let error = &self.json()["error"];
        assert_eq!(error["requestId"].as_str(), self.header("x-request-id"), "{self:?}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{self:?}");
        (self.status, error["code"].as_str().unwrap_or_else(|| panic!("no code: {self:?}")).to_string())
    }
}

/// The unread part of an answer's body.
#[derive(Debug)]
pub enum Rest {
    Length(usize),
    Chunked,
    Over,
}

/// A connection to a server, with a buffer of received bytes.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    used: usize,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> io::Result<Connection> {
        Ok(Connection { stream: TcpStream::connect(address).await?, buffer: Vec::new(), used: 0 })
    }

    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Shuts down the write side of the connection.
    pub async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Waits for bytes or the end of the connection. True if the server has closed the connection.
    pub async fn closed(&mut self) -> bool {
        bounded("the end of a connection", self.fill()).await.is_err()
    }

    pub async fn answer(&mut self, method: &str) -> Answer {
        bounded("an answer", self.try_answer(method)).await.unwrap()
    }

    pub async fn try_answer(&mut self, method: &str) -> io::Result<Answer> {
        let head = self.head().await?;
        self.answer_of(head, method).await
    }

    async fn answer_of(&mut self, head: Head, method: &str) -> io::Result<Answer> {
        let mut rest = if method == "HEAD" { Rest::Over } else { Rest::from_head(&head) };
        let mut body = Vec::new();
        while self.piece(&mut rest, &mut body).await? {}
        let packed = head.headers.iter().any(|(name, _)| name == "content-encoding");
        let body =
            if packed { String::from_utf8_lossy(&body).into() } else { String::from_utf8(body).map_err(io::Error::other)? };
        Ok(Answer { status: head.status, head, body })
    }

    pub async fn head(&mut self) -> io::Result<Head> {
        let line = self.line().await?;
        let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
        }
        Ok(Head { status, headers })
    }

    /// Reads more of a body; false at the end of the body. An error if the connection ends earlier.
    pub async fn piece(&mut self, rest: &mut Rest, into: &mut Vec<u8>) -> io::Result<bool> {
        let size = match rest {
            Rest::Over | Rest::Length(0) => return Ok(false),
            Rest::Length(size) => *size,
            Rest::Chunked => {
                let line = self.line().await?;
                usize::from_str_radix(line.trim(), 16).map_err(|_| io::Error::other(format!("no chunk: {line:?}")))?
            }
        };
        while self.buffer.len() - self.used < size {
            self.fill().await?;
        }
        into.extend_from_slice(&self.buffer[self.used..self.used + size]);
        self.used += size;
        if let Rest::Chunked = rest {
            assert_eq!(self.line().await?, "", "behind a chunk");
        }
        if size == 0 || matches!(rest, Rest::Length(_)) {
            *rest = Rest::Over;
        }
        Ok(size > 0)
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = memchr::memmem::find(&self.buffer[self.used..], b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[self.used..self.used + end]).into_owned();
                self.used += end + 2;
                return Ok(line);
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..std::mem::take(&mut self.used));
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

impl Rest {
    pub fn from_head(head: &Head) -> Rest {
        if head.header("transfer-encoding") == Some("chunked") {
            return Rest::Chunked;
        }
        let length = head.header("content-length").and_then(|length| length.parse().ok());
        length.map_or(Rest::Over, Rest::Length)
    }
}
