//! JSON-RPC over a WebSocket to `/rpc`. Notifications received during a request are kept for
//! [`Socket::told`].

use std::collections::VecDeque;

use serde_json::{Value, json};
use soketto::handshake::client::{Client, Header, ServerResponse};
use soketto::{Receiver, Sender};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncReadCompatExt};

use super::{Bridge, bounded};

pub struct Socket {
    sender: Sender<Compat<TcpStream>>,
    receiver: Receiver<Compat<TcpStream>>,
    next_id: u64,
    /// Notifications that [`Socket::told`] has not returned yet.
    told: VecDeque<Value>,
}

impl Bridge {
    pub async fn socket(&self) -> Socket {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (host, token) = (self.address.to_string(), format!("Bearer {}", self.token));
        let headers = [Header { name: "authorization", value: token.as_bytes() }];
        let mut client = Client::new(stream.compat(), &host, "/rpc");
        client.set_headers(&headers);
        let said = bounded("the upgrade", client.handshake()).await.unwrap();
        assert!(matches!(said, ServerResponse::Accepted { .. }), "{said:?}");
        let (sender, receiver) = client.into_builder().finish();
        Socket { sender, receiver, next_id: 0, told: VecDeque::new() }
    }
}

impl Socket {
    pub async fn raw(&mut self, text: &str) {
        bounded("writing to a socket", async {
            self.sender.send_text(text).await.unwrap();
            self.sender.flush().await.unwrap();
        })
        .await;
    }

    /// The next message; none if the server has closed the connection.
    pub async fn message(&mut self) -> Option<Value> {
        let mut bytes = Vec::new();
        bounded("a message", self.receiver.receive_data(&mut bytes)).await.ok()?;
        Some(serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes))))
    }

    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next_id += 1;
        self.raw(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}).to_string()).await;
        loop {
            let message = self.message().await.unwrap_or_else(|| panic!("{method}: closed"));
            if message["id"] == json!(self.next_id) {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].clone()),
                };
            }
            assert!(message.get("id").is_none(), "an answer to nothing: {message}");
            self.told.push_back(message);
        }
    }

    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        self.request(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// The next result of a subscription; none if the connection is closed.
    pub async fn told(&mut self, method: &str, subscription: &Value) -> Option<Value> {
        let message = match self.told.pop_front() {
            Some(message) => message,
            None => self.message().await?,
        };
        assert_eq!((message["method"].as_str(), &message["params"]["subscription"]), (Some(method), subscription), "{message}");
        Some(message["params"]["result"].clone())
    }
}
