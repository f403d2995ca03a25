//! TLS for connections to PostgreSQL.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client;

use super::address::{DatabaseAddress, TlsMode};
use crate::error::{Error, Result};
use crate::web::LaxVerifier;

/// Creates the TLS sessions of an address.
#[derive(Clone)]
pub(super) struct Connector(TlsConnector);

impl Connector {
    /// Creates the connector. Fails if the certificates of the address cannot be read.
    pub(super) fn new(address: &DatabaseAddress) -> Result<Connector> {
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match address.tls {
            TlsMode::Disabled | TlsMode::Encrypted => Arc::new(LaxVerifier::of_any_certificate()),
            TlsMode::Signed => Arc::new(LaxVerifier::of_any_name(authorities(address, &ring)?)),
            TlsMode::Full => authorities(address, &ring)?,
        };
        let config = ClientConfig::builder_with_provider(ring)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::internal(format!("TLS: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Connector(TlsConnector::from(Arc::new(config))))
    }
}

/// Returns the verifier for the authorities of the address, or of the system.
fn authorities(address: &DatabaseAddress, ring: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>> {
    let Some(file) = &address.root_certificates else {
        let verifier =
            Verifier::new(ring.clone()).map_err(|error| Error::invalid_params(format!("certificates of the system: {error}")))?;
        return Ok(Arc::new(verifier));
    };
    let wrong = |error: &dyn std::fmt::Display| Error::invalid_params(format!("sslrootcert: {}: {error}", file.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))? {
        roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), ring.clone()).build();
    Ok(verifier.map_err(|error| wrong(&error))?)
}

/// The handshake with one host.
pub(super) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Connector {
    type Stream = EncryptedStream<S>;
    type TlsConnect = Handshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> std::result::Result<Handshake, Self::Error> {
        // A unix socket has no name, and its connections are not encrypted.
        let host = if host.is_empty() { "localhost" } else { host };
        Ok(Handshake { connector: self.0.clone(), name: ServerName::try_from(host.to_owned())? })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = EncryptedStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { self.connector.connect(self.name, stream).await.map(|stream| EncryptedStream(Box::new(stream))) })
    }
}

/// An encrypted connection. Passwords are not bound to it: the certificate is checked instead.
pub(super) struct EncryptedStream<S>(Box<client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for EncryptedStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}
