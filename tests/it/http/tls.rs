//! The HTTP server with its own TLS certificate.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
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

/// Errors of certificates are told in words, with the remedy, and without the hint that the server
/// may not run.
#[tokio::test]
async fn refused_certificates_are_explained() {
    let certificate = |names: &[&str], change: fn(&mut CertificateParams)| {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        change(&mut params);
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    };
    let authority = |params: &mut CertificateParams| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let expired = |params: &mut CertificateParams| params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let cases = [
        (certificate(&["localhost"], authority), true, "is a CA certificate", "basicConstraints=CA:FALSE"),
        (certificate(&["localhost"], |_| ()), false, "is not signed by an authority that is trusted here", "SSL_CERT_FILE"),
        (certificate(&["other.example"], |_| ()), true, "is for another name", "in the certificate"),
        (certificate(&["localhost"], expired), true, "has expired", "renew it"),
    ];
    for ((pem, key), trusted, words, remedy) in cases {
        let home = Home::new();
        let files = ["chain.pem", "key.pem"].map(|name| home.data().join(name));
        std::fs::write(&files[0], pem).unwrap();
        std::fs::write(&files[1], key).unwrap();
        home.config(&format!("[http]\ntls_certificate = {:?}\ntls_key = {:?}\n", files[0], files[1]));
        let server = home.serve(&[]).await;
        let other = Home::new();
        if trusted {
            other.env("SSL_CERT_FILE", files[0].to_str().unwrap());
        }
        other.env("NUNCIO_TOKEN", &home.token());
        let url = format!("https://localhost:{}", server.address.port());
        let (code, shown) = other.terminal(&["chat", "--plain", "--url", &url]).end().await;
        assert!(code != 0 && shown.contains(words) && shown.contains(remedy), "{words}: {code} {shown}");
        assert!(!shown.contains("is nuncio serve running"), "{words}: {shown}");
        server.stop().await;
    }
}
