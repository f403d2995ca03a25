//! Sends one model request: encodes it for the protocol of its endpoint, adds the credentials, and
//! checks the head of the response.

use std::time::Instant;

use super::answer_stream::AnswerStream;
use super::authorize::{authorize, discard_token};
use super::connect_error::send_error;
use super::endpoint::Endpoint;
use super::error::{Cause, ModelError};
use super::kept_encoding::KeptEncoding;
use super::provider_error::response_error;
use super::reported::Properties;
use super::request::Request;
use super::request_form::RefusedParts;
use super::wire::EncodedRequest;
use super::wire_formats::wire_format;
use super::{extra_fields, limited_body, listing, single_calls};
use crate::limits::MODEL_ERROR_BYTES_MAX;
use crate::web::HttpClients;
use futures_util::StreamExt;
use reqwest::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use reqwest::{StatusCode, Url};

/// A request that failed before its answer began.
#[derive(Debug)]
pub(super) struct SendError {
    pub error: ModelError,
    /// The server does not have the path of the protocol, as far as its response shows.
    pub lacks_path: bool,
    /// The status and the body of the response.
    pub status: u16,
    pub body: String,
}

impl SendError {
    /// Creates the error for an answer that failed before any output.
    pub(super) fn in_answer(error: &ModelError) -> SendError {
        SendError { status: StatusCode::BAD_REQUEST.as_u16(), ..error.clone().into() }
    }
}

impl From<ModelError> for SendError {
    fn from(error: ModelError) -> SendError {
        SendError { error, lacks_path: false, status: 0, body: String::new() }
    }
}

/// A request to a model, adapted to its provider.
pub(super) struct OutgoingRequest {
    pub request: Request,
    pub refused: RefusedParts,
}

/// Headers of each request. A server that compresses events may hold them back.
pub(super) const HEADERS: &[(&str, &str)] = &[("content-type", "application/json"), ("accept-encoding", "identity")];

/// Encodes a request. `single`: each message has at most one call. `kept` is of the last request.
pub(super) fn encode(
    endpoint: &Endpoint,
    reported: &Properties,
    outgoing: &OutgoingRequest,
    kept: &KeptEncoding,
    single: bool,
) -> Result<EncodedRequest, ModelError> {
    let write = wire_format(endpoint.protocol).write;
    let window = endpoint.window(reported.context_window);
    let encoded = match single {
        true => {
            let messages = single_calls::split(&outgoing.request.messages);
            write(endpoint, &Request { messages, ..outgoing.request.clone() }, kept, window, reported.thinking)?
        }
        false => write(endpoint, &outgoing.request, kept, window, reported.thinking)?,
    };
    let body = extra_fields::merge(encoded.body, &endpoint.body)?;
    Ok(EncodedRequest { body: extra_fields::remove(body, &outgoing.refused.fields)?, ..encoded })
}

/// Sends a request to `endpoint` and checks the head of the response.
pub(super) async fn send(
    endpoint: &Endpoint,
    reported: &Properties,
    clients: &HttpClients,
    outgoing: &OutgoingRequest,
    kept: &KeptEncoding,
    single: bool,
) -> Result<AnswerStream, SendError> {
    let encoded = encode(endpoint, reported, outgoing, kept, single)?;
    let format = wire_format(endpoint.protocol);
    let reader = (format.reader)(endpoint, &outgoing.request);
    let client = endpoint.client(clients)?;
    let mut post = client.post(&encoded.url).body(encoded.body);
    for (name, value) in HEADERS.iter().chain(&encoded.headers) {
        post = post.header(*name, *value);
    }
    for (name, value) in &endpoint.headers {
        post = post.header(name, value);
    }
    let request = post.build().map_err(|error| send_error(&encoded.url, &error))?;
    let (place, bytes) = (request.url().clone(), encoded_bytes(&request));
    let started = Instant::now();
    let response = execute(endpoint, clients, &client, request).await;
    log(endpoint, &place, bytes, started, &response);
    let response = response?;
    if !response.status().is_success() {
        let status = response.status().as_u16();
        let lacks_path = matches!(status, 404 | 405 | 501);
        let (error, body) = error_response(endpoint, clients, response).await;
        return Err(SendError { lacks_path: lacks_path && error.cause != Cause::UnknownModel, error, status, body });
    }
    let header = |name: HeaderName| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (content_type, encoding) = (header(CONTENT_TYPE), header(CONTENT_ENCODING));
    if !matches!(encoding.as_str(), "" | "identity") {
        let message = format!("the answer is compressed with {encoding}, which is not supported");
        return Err(ModelError::from_cause(Cause::InvalidAnswer, message)
            .hint("disable the compression in the server or proxy")
            .into());
    }
    Ok(AnswerStream::new(response.bytes_stream().boxed(), (format.frames)(), content_type, reader))
}

fn encoded_bytes(request: &reqwest::Request) -> usize {
    request.body().and_then(reqwest::Body::as_bytes).map_or(0, <[u8]>::len)
}

/// Logs a request, without content and credentials.
fn log(endpoint: &Endpoint, url: &Url, bytes: usize, started: Instant, response: &Result<reqwest::Response, ModelError>) {
    let (host, path) = (url.host_str().unwrap_or_default(), url.path());
    let (model, ms) = (&endpoint.id, started.elapsed().as_millis() as u64);
    match response {
        Ok(response) => tracing::debug!(model, host, path, bytes, ms, status = response.status().as_u16(), "model request"),
        Err(error) => tracing::debug!(model, host, path, bytes, ms, cause = ?error.cause, "model request failed"),
    }
}

/// Sends a request with the credentials of `endpoint`. If the provider refuses an access token, the
/// request is sent once more with a new one.
async fn execute(
    endpoint: &Endpoint,
    clients: &HttpClients,
    client: &reqwest::Client,
    mut request: reqwest::Request,
) -> Result<reqwest::Response, ModelError> {
    let url = request.url().to_string();
    let repeated = request.try_clone();
    authorize(endpoint, clients, &mut request).await?;
    let sent = request.headers().get(AUTHORIZATION).cloned();
    let response = client.execute(request).await.map_err(|error| send_error(&url, &error))?;
    let Some(mut request) = repeated.filter(|_| response.status() == StatusCode::UNAUTHORIZED) else { return Ok(response) };
    if !discard_token(endpoint, sent.as_ref()) {
        return Ok(response);
    }
    authorize(endpoint, clients, &mut request).await?;
    client.execute(request).await.map_err(|error| send_error(&url, &error))
}

/// Returns the error for a response that is not a stream, and the body of the response.
async fn error_response(endpoint: &Endpoint, clients: &HttpClients, response: reqwest::Response) -> (ModelError, String) {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = limited_body::read(response, MODEL_ERROR_BYTES_MAX).await;
    let body = String::from_utf8_lossy(&body.bytes).into_owned();
    let error = response_error(endpoint, status, &headers, &body);
    if error.cause != Cause::UnknownModel {
        return (error, body);
    }
    let error = match listing::similar(endpoint, clients).await.as_slice() {
        [] => error,
        names => error.hint(format!("choose a model that the provider offers, such as {}", names.join(", "))),
    };
    (error, body)
}
