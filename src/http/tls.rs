//! TLS for the HTTP server, with the certificate and the key from the settings.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::cluster;
use crate::config::HttpSettings;
use crate::error::{Error, Result};

pub(crate) struct ServerTls {
    pub acceptor: TlsAcceptor,
    pub certificate: CertificateDer<'static>,
}

/// Creates the TLS acceptor. With `nodes`, it also accepts connections of other nodes. Returns
/// `None` if the settings name no certificate.
pub(crate) fn acceptor(settings: &HttpSettings, nodes: bool) -> Result<Option<ServerTls>> {
    let (certificate, key) = match (&settings.tls_certificate, &settings.tls_key) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate, key),
        _ => return Err(Error::invalid_params("http.tls_certificate and http.tls_key must be set together")),
    };
    let wrong = |setting: &str, error: &dyn std::fmt::Display| Error::invalid_params(format!("http.{setting}: {error}"));
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect).map_err(|error| wrong("tls_certificate", &error))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong("tls_key", &error))?;
    let leaf = chain.first().ok_or_else(|| wrong("tls_certificate", &"it has no certificate"))?.clone();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_no_client_auth())
        .and_then(|builder| builder.with_single_cert(chain, key))
        .map_err(|error| wrong("tls_certificate", &error))?;
    if nodes {
        config.alpn_protocols = vec![b"http/1.1".to_vec(), cluster::PROTOCOL.to_vec()];
    }
    Ok(Some(ServerTls { acceptor: Arc::new(config).into(), certificate: leaf }))
}
