//! The greeting of nodes, by a client that knows the protocol: only a proof for this connection
//! is accepted.

use std::net::SocketAddr;
use std::sync::Arc;

use ring::{digest, hmac};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, crypto};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{SECRET, certificate, configure};
use harness::{Home, Server, bounded, hex, on_postgres};

/// A connection to a node, before the greeting.
pub(super) struct Caller {
    stream: BufReader<TlsStream<TcpStream>>,
    /// SHA-256 of the node's certificate, in hexadecimal.
    certificate: String,
}

impl Caller {
    async fn connect(address: SocketAddr, certificate: &CertificateDer<'static>) -> Caller {
        Caller::speaking("nuncio-peer", address, certificate).await
    }

    /// Connects with a protocol of ALPN.
    pub(super) async fn speaking(protocol: &str, address: SocketAddr, certificate: &CertificateDer<'static>) -> Caller {
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![protocol.into()];
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = bounded("a handshake", TlsConnector::from(Arc::new(config)).connect(name, stream)).await.unwrap();
        Caller { stream: BufReader::new(stream), certificate: hex(digest::digest(&digest::SHA256, certificate).as_ref()) }
    }

    pub(super) async fn send(&mut self, line: &str) {
        // The node may have closed the connection.
        let _ = self.stream.write_all(format!("{line}\n").as_bytes()).await;
        let _ = self.stream.flush().await;
    }

    /// Returns the next line, or nothing after the connection has ended.
    pub(super) async fn line(&mut self) -> String {
        let mut line = String::new();
        let _ = bounded("a line", self.stream.read_line(&mut line)).await;
        line
    }

    /// Returns the next message of the node, or `Value::Null` after the connection has ended.
    async fn receive(&mut self) -> Value {
        serde_json::from_str(&self.line().await).unwrap_or(Value::Null)
    }

    /// Returns the proof of one side for this connection.
    fn proof(&self, side: &str, caller: &Value, answerer: &Value, secret: &str) -> Value {
        let parts =
            json!(["nuncio-peer", side, caller["name"], caller["nonce"], answerer["name"], answerer["nonce"], self.certificate]);
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        json!({"proof": hex(hmac::sign(&key, parts.to_string().as_bytes()).as_ref())})
    }
}

/// Starts a server that other nodes can call. Returns its certificate, too. `None` if the store is
/// SQLite.
pub(super) async fn called_node(home: &Home) -> Option<(Server, CertificateDer<'static>)> {
    if !on_postgres() {
        eprintln!("skipped: {}: an SQLite store has no nodes", module_path!());
        return None;
    }
    let settings = certificate(&home.data());
    configure(home, SECRET, &format!("name = \"first\"\naddress = \"https://127.0.0.1\"\n{settings}"));
    let certificate = CertificateDer::from_pem_file(home.data().join("chain.pem")).unwrap();
    Some((home.serve_script(json!([]), &[]).await, certificate))
}

/// A connection is passed on to a socket of this user in the directory of the sockets, after the
/// proof.
#[tokio::test]
async fn only_sockets_of_the_data_directory_are_reached() {
    let home = Home::new();
    let Some((server, certificate)) = called_node(&home).await else { return };
    let mut editor = home.start(&["--model", &home.script(json!([]))]).await;
    editor.call("initialize", json!({"protocolVersion": 1})).await;
    editor.new_session(&home).await;
    let sockets = home.data().join("run");
    let own = std::fs::read_dir(&sockets).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let own = own.into_iter().find(|name| name.starts_with(&format!("{}-", editor.pid))).unwrap();
    let outside = home.data().join("outside.sock");
    let listener = std::os::unix::net::UnixListener::bind(&outside).unwrap();
    listener.set_nonblocking(true).unwrap();
    std::os::unix::fs::symlink(&outside, sockets.join("link.sock")).unwrap();
    std::fs::write(sockets.join("file.sock"), "").unwrap();
    let (outside, absolute) = (outside.to_str().unwrap(), sockets.join(&own));
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"version":3,"pid":1}}"#;
    for socket in [&*own, "../outside.sock", outside, absolute.to_str().unwrap(), "link.sock", "file.sock", "none.sock", ""] {
        for secret in [SECRET, super::NEW_SECRET] {
            let mut caller = Caller::connect(server.address, &certificate).await;
            let introduction = json!({"name": "second", "nonce": "00".repeat(32), "socket": socket});
            caller.send(&introduction.to_string()).await;
            let (answerer, _) = (caller.receive().await, caller.receive().await);
            caller.send(&caller.proof("caller", &introduction, &answerer, secret).to_string()).await;
            caller.receive().await;
            caller.send(hello).await;
            let reached = socket == own && secret == SECRET;
            let expected = if reached { json!(editor.pid) } else { Value::Null };
            assert_eq!(caller.receive().await["result"]["pid"], expected, "{socket}");
        }
    }
    assert!(listener.accept().is_err(), "a socket elsewhere was connected to");
    editor.finish().await;
    server.stop().await;
}

#[tokio::test]
async fn only_a_proof_for_this_connection_is_accepted() {
    let home = Home::new();
    let Some((server, certificate)) = called_node(&home).await else { return };
    let introduction = json!({"name": "second", "nonce": "00".repeat(32)});
    let mut recorded = None;
    for case in ["correct", "repeated", "another secret", "own proof of the node", "proof of the other side"] {
        let mut caller = Caller::connect(server.address, &certificate).await;
        caller.send(&introduction.to_string()).await;
        let (answerer, proof) = (caller.receive().await, caller.receive().await);
        assert_eq!(answerer["name"], "first", "{case}");
        assert_eq!(proof, caller.proof("answerer", &introduction, &answerer, SECRET), "{case}");
        let sent = match case {
            "correct" => recorded.insert(caller.proof("caller", &introduction, &answerer, SECRET)).clone(),
            "repeated" => recorded.take().unwrap(),
            "another secret" => caller.proof("caller", &introduction, &answerer, super::NEW_SECRET),
            "own proof of the node" => proof,
            _ => caller.proof("answerer", &answerer, &introduction, SECRET),
        };
        caller.send(&sent.to_string()).await;
        assert_eq!(caller.receive().await, json!({"accepted": case == "correct"}), "{case}");
        if case != "correct" {
            assert_eq!(caller.receive().await, Value::Null, "{case}: the connection is still open");
        }
    }
    for line in ["", "{", "GET / HTTP/1.1", r#"{"name": 1, "nonce": "00"}"#, &"x".repeat(2000)] {
        let mut caller = Caller::connect(server.address, &certificate).await;
        caller.send(line).await;
        assert_eq!(caller.receive().await, Value::Null, "{line}");
    }
    let log = server.stop().await;
    assert_eq!(log.matches("it has another cluster secret").count(), 4, "{log}");
    assert_eq!(log.matches("the greeting is").count(), 5, "{log}");
}
