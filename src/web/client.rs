//! Creates HTTP clients, and extracts the causes of their errors.

use std::error::Error;
use std::sync::Arc;

/// A client that trusts the certificates of the system, or Mozilla's root certificates if the
/// system has none. Takes about 2 ms.
pub(crate) fn client(builder: impl Fn() -> reqwest::ClientBuilder) -> Result<reqwest::Client, reqwest::Error> {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    // Fails if a provider is installed already, which serves as well.
    let _ = rustls::crypto::CryptoProvider::install_default(ring.as_ref().clone());
    builder().build().or_else(|error| {
        let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let Ok(config) = rustls::ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions() else {
            return Err(error);
        };
        builder().tls_backend_preconfigured(config.with_root_certificates(roots).with_no_client_auth()).build()
    })
}

/// The sources of an error, from the outermost to the innermost.
pub(crate) fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |error: &&(dyn Error + 'static)| (*error).source())
}

/// The message of the innermost source, which names the actual reason; `timed out` for a timeout.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    chain(error).last().map_or_else(|| error.to_string(), |error| error.to_string())
}
