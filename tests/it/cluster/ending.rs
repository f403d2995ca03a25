//! The end of a node that a reverse proxy uses.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::net::TcpStream;

use super::greeting::{Caller, called_node};
use harness::{Home, bounded};

/// A proxy that keeps a connection may have sent a request when it learns that the node ends.
#[tokio::test]
async fn kept_connection_is_answered_until_the_proxy_knows_that_the_node_ends() {
    let home = Home::new();
    let Some((server, certificate)) = called_node(&home).await else { return };
    let mut kept = Caller::speaking("http/1.1", server.address, &certificate).await;
    let ask = "GET /ready HTTP/1.1\r\nHost: localhost\r\n\r";
    kept.send(ask).await;
    assert_eq!(kept.line().await, "HTTP/1.1 200 OK\r\n");
    while kept.line().await != "\r\n" {}
    let began = Instant::now();
    server.signal(Signal::TERM);
    bounded("a refused connection", async { while TcpStream::connect(server.address).await.is_ok() {} }).await;
    kept.send(ask).await;
    // The body of the first answer ends without a line break.
    let answer = kept.line().await;
    assert!(answer.ends_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer:?}");
    // The health checks of a proxy come once in a while.
    while !kept.line().await.is_empty() {}
    assert!(began.elapsed() >= Duration::from_millis(1500), "closed after {:?}", began.elapsed());
    server.end().await;
}
