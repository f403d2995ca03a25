//! The HTTP server with its own TLS certificate.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use harness::{Home, bounded};

#[tokio::test]
async fn server_with_certificate_accepts_only_tls() {
    let home = Home::new();
    let made = rcgen::generate_simple_self_signed(["localhost".to_string()]).unwrap();
    let (certificate, key) = (home.data().join("chain.pem"), home.data().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    home.config(&format!("[http]\ntls_certificate = {certificate:?}\ntls_key = {key:?}\n"));
    let server = home.serve(&[]).await;

    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let connector = TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()));
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = bounded("a handshake", connector.connect(name, stream)).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    bounded("an answer", stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("{\"status\":\"ok\"}"), "{answer}");

    // A plaintext request gets no HTTP answer.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = bounded("the end", stream.read_to_end(&mut answer)).await;
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1"), "{answer:?}");
    server.stop().await;

    home.config(&format!("[http]\ntls_certificate = {certificate:?}\n"));
    let ran = home.run(&["serve", "--http", "127.0.0.1:0"], "").await;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("tls_key"), "{ran:?}");
}
