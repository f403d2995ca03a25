//! Errors of connections: a request without a response, and a response that breaks off.

use std::error::Error;
use std::io;

use super::error::{Cause, ModelError, Retry};
use super::wire::interrupted;
use crate::web::{causes, is_loopback, is_public};

/// Creates the error for a request without a response: the connection failed or timed out, or the
/// URL or the response is invalid.
pub(super) fn send_error(url: &str, error: &reqwest::Error) -> ModelError {
    if error.is_builder() {
        return ModelError::new(Retry::Never, format!("invalid URL {url}: {}", causes(error))).hint("check base_url").unreachable();
    }
    let host = reqwest::Url::parse(url).map(|url| url.authority().to_owned()).unwrap_or_default();
    if let Some(hint) = tls_hint(url, error).filter(|_| error.is_connect()) {
        let message = format!("connecting to {host} with TLS: {}", causes(error));
        return ModelError::new(Retry::Never, message).hint(hint).unreachable();
    }
    if !error.is_connect() {
        if sources(error).any(|error| error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse)) {
            let message = format!("{host} sent no HTTP response: {}", causes(error));
            return ModelError::from_cause(Cause::InvalidAnswer, message).hint("check base_url: the server may require https://");
        }
        return ModelError::new(Retry::Backoff, format!("waiting for {host}: {}", causes(error)));
    }
    let message = format!("connecting to {host}: {}", causes(error));
    match is_loopback(url) {
        true => ModelError::new(if is_refused(error) { Retry::Refused } else { Retry::Backoff }, message)
            .hint("is the server running? start it, or choose another model with --model"),
        false => ModelError::new(Retry::Backoff, message).hint("check the network and base_url"),
    }
    .unreachable()
}

/// Creates the error for a body that ended early: the connection was interrupted or timed out, or
/// the body cannot be decompressed.
pub(super) fn body_error(error: &reqwest::Error) -> ModelError {
    let interrupts =
        |error: &(dyn Error + 'static)| error.is::<hyper::Error>() || kind(error) == Some(io::ErrorKind::UnexpectedEof);
    if error.is_timeout() || sources(error).any(interrupts) {
        return interrupted(causes(error));
    }
    let message = format!("the answer cannot be decompressed: {}", causes(error));
    ModelError::from_cause(Cause::InvalidAnswer, message).hint("disable the compression in the server or proxy")
}

fn is_refused(error: &reqwest::Error) -> bool {
    sources(error).any(|error| kind(error) == Some(io::ErrorKind::ConnectionRefused))
}

fn kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    error.downcast_ref::<io::Error>().map(io::Error::kind)
}

/// Returns the hint for a failed TLS handshake, or `None` if the handshake is not the reason for
/// the failure.
fn tls_hint(url: &str, error: &reqwest::Error) -> Option<&'static str> {
    const HTTP: &str = "use http:// in base_url if the server does not support TLS";
    match sources(error).find_map(|error| error.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidMessage(_)) => return Some(HTTP),
        Some(rustls::Error::InvalidCertificate(_)) => {
            return Some("check base_url, and whether this machine trusts the certificate");
        }
        // The server refused the handshake, maybe temporarily. Without a hint, the request is
        // retried.
        Some(rustls::Error::AlertReceived(_)) | None => {}
        Some(_) => return Some("check base_url"),
    }
    // A server without TLS may wait for more of the request, or close the connection.
    let url = reqwest::Url::parse(url).ok().filter(|url| url.scheme() == "https" && error.is_connect())?;
    let address = url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse();
    let local = is_loopback(url.as_str()) || address.is_ok_and(|address| !is_public(address));
    let handshake =
        |error: &(dyn Error + 'static)| matches!(kind(error), Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset));
    (local && (error.is_timeout() || sources(error).any(handshake))).then_some(HTTP)
}

/// Returns the error and its sources. The source of an `io::Error` is the error that it contains,
/// unlike in [`Error::source`].
fn sources<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'a (dyn Error + 'static) = *error;
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
    })
}
