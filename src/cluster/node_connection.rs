//! Connects to other nodes.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::greeting::greet;
use super::{Cluster, PROTOCOL, fingerprint};
use crate::error::{Error, Kind, Result};
use crate::store::NodeAddress;
use crate::web::LaxVerifier;

/// Connects to the node at `address` and greets it, which passes the connection on to `socket` if
/// one is given. Fails if it has another certificate or secret.
pub(crate) async fn connect(cluster: &Cluster, address: &NodeAddress, socket: Option<String>) -> Result<TlsStream<TcpStream>> {
    let failed = |error: std::io::Error| {
        Error::new(Kind::SessionBusy, format!("connecting to {}: {error}", address.host))
            .hint("retry when the node runs")
            .source(error)
    };
    let stream = TcpStream::connect(&address.host).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::internal(format!("TLS: {error}")))?
        .dangerous()
        // The certificate of the node is known from the store, and its secret is checked.
        .with_custom_certificate_verifier(Arc::new(LaxVerifier::of_any_certificate()))
        .with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    let name = ServerName::from(stream.peer_addr().map_err(failed)?.ip());
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(failed)?;
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()).map(|leaf| fingerprint(leaf));
    if certificate.as_ref() != Some(&address.certificate) {
        return Err(Error::new(Kind::SessionBusy, format!("{} has another certificate than the node", address.host)));
    }
    greet(&mut stream, cluster, &address.certificate, socket).await?;
    Ok(stream)
}
