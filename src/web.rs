//! HTTP to hosts: how a client is made, and pages of the public web for those who may only go there.

mod address;
mod get;

use std::error::Error;
use std::sync::Arc;

pub use address::{Address, is_public};
pub use get::{Answer, Web};

/// A client with the system's certificates, or on a machine that has none, with Mozilla's. Takes about 2 ms.
pub fn client(builder: impl Fn() -> reqwest::ClientBuilder) -> Result<reqwest::Client, reqwest::Error> {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    // Somebody else may have installed one: theirs serves as well.
    let _ = rustls::crypto::CryptoProvider::install_default(ring.as_ref().clone());
    builder().build().or_else(|error| {
        let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let Ok(config) = rustls::ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions() else {
            return Err(error);
        };
        builder().tls_backend_preconfigured(config.with_root_certificates(roots).with_no_client_auth()).build()
    })
}

/// What caused an error, from the outermost to the innermost.
pub fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |error: &&(dyn Error + 'static)| (*error).source())
}

/// The innermost reason, which is the one that says something.
pub fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    chain(error).last().map_or_else(|| error.to_string(), |error| error.to_string())
}
