//! Sends one model request: encodes it for the protocol of its endpoint, adds the credentials, and
//! checks the head of the response.

use futures_util::StreamExt;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName};

use super::answer_stream::AnswerStream;
use super::authorize::{authorize, discard_token};
use super::connect_error::send_error;
use super::endpoint::Endpoint;
use super::error::{Cause, ModelError};
use super::local::Properties;
use super::provider_error::response_error;
use super::request::Request;
use super::wire_formats::wire_format;
use super::{extra_fields, limited_body, listing, single_calls};
use crate::limits::MODEL_ERROR_BYTES_MAX;
use crate::web::HttpClients;

/// A request that failed before its answer began.
#[derive(Debug)]
pub(super) struct SendError {
    pub error: ModelError,
    /// The server does not have the path of the protocol, as far as its response shows.
    pub lacks_path: bool,
}

impl From<ModelError> for SendError {
    fn from(error: ModelError) -> SendError {
        SendError { error, lacks_path: false }
    }
}

/// Sends a request to `endpoint` and checks the head of the response.
pub(super) async fn send(
    endpoint: &Endpoint,
    reported: &Properties,
    clients: &HttpClients,
    mut request: Request,
    single: bool,
) -> Result<AnswerStream, SendError> {
    if single {
        request.messages = single_calls::split(request.messages);
    }
    let format = wire_format(endpoint.protocol);
    let encoded = (format.write)(endpoint, &request, endpoint.window(reported.context_window), reported.thinking)?;
    let reader = (format.reader)(endpoint, &request);
    drop(request);
    let body = extra_fields::merge(encoded.body, &endpoint.body)?;
    let client = endpoint.client(clients)?;
    let mut post = client.post(&encoded.url).header(CONTENT_TYPE, "application/json").body(body);
    // A server that compresses events may hold them back.
    post = post.header(ACCEPT_ENCODING, "identity");
    for (name, value) in &encoded.headers {
        post = post.header(*name, *value);
    }
    for (name, value) in &endpoint.headers {
        post = post.header(name, value);
    }
    let request = post.build().map_err(|error| send_error(&encoded.url, &error))?;
    let response = execute(endpoint, clients, &client, request).await?;
    if !response.status().is_success() {
        let lacks_path = matches!(response.status().as_u16(), 404 | 405 | 501);
        let error = error_response(endpoint, clients, response).await;
        return Err(SendError { lacks_path: lacks_path && error.cause != Cause::UnknownModel, error });
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

/// Returns the error for a response that is not a stream.
async fn error_response(endpoint: &Endpoint, clients: &HttpClients, response: reqwest::Response) -> ModelError {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = limited_body::read(response, MODEL_ERROR_BYTES_MAX).await;
    let error = response_error(endpoint, status, &headers, &String::from_utf8_lossy(&body.bytes));
    if error.cause != Cause::UnknownModel {
        return error;
    }
    match listing::similar(endpoint, clients).await.as_slice() {
        [] => error,
        names => error.hint(format!("choose a model that the provider offers, such as {}", names.join(", "))),
    }
}
