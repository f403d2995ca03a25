//! A web site on loopback that answers each path with the bytes set for that path.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Site {
    /// `127.0.0.1:PORT`
    pub host: String,
    shared: Arc<SiteState>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct SiteState {
    pages: Mutex<HashMap<String, Vec<u8>>>,
    /// The heads of the received requests.
    asked: Mutex<Vec<String>>,
    came: tokio::sync::Notify,
    /// No request is answered.
    held: watch::Sender<bool>,
}

impl Site {
    pub async fn start() -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let shared: Arc<SiteState> = Arc::default();
        let served = shared.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, served.clone()));
            }
        });
        Site { host, shared, accepting }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host)
    }

    /// Sets the answer of a path. `head` is the status line and the headers, one per line. The
    /// answer ends with the connection.
    pub fn page(&self, path: &str, head: &str, body: impl AsRef<[u8]>) {
        let head = format!("HTTP/1.1 {}\r\nconnection: close\r\n\r\n", head.replace('\n', "\r\n"));
        self.shared.pages.lock().unwrap().insert(path.into(), [head.as_bytes(), body.as_ref()].concat());
    }

    pub fn redirect(&self, path: &str, to: &str) {
        self.page(path, &format!("302 Found\nlocation: {to}"), "");
    }

    /// The heads of the requests received so far.
    pub fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Holds all answers back, until `held` is false again.
    pub fn hold(&self, held: bool) {
        self.shared.held.send_replace(held);
    }

    /// Waits for the next request. A request to a path without a page gets no answer.
    pub async fn came(&self) {
        self.shared.came.notified().await;
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(stream: TcpStream, shared: Arc<SiteState>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let path = head.split(' ').nth(1).unwrap().to_string();
    shared.asked.lock().unwrap().push(head);
    shared.came.notify_one();
    shared.held.subscribe().wait_for(|held| !held).await.unwrap();
    let page = shared.pages.lock().unwrap().get(&path).cloned();
    match page {
        Some(page) => stream.get_mut().write_all(&page).await,
        None => std::future::pending().await,
    }
}
