//! One attempt at a model request over HTTP: sends the request, decodes the events of the answer,
//! and classifies errors.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use serde::de::IgnoredAny;

use super::allowance::Allowance;
use super::answer::{Chunk, ChunkStream, Model};
use super::authorize::{authorize, discard_token};
use super::connect_error::{body_error, send_error};
use super::endpoint::{Endpoint, Protocol};
use super::error::{Cause, ModelError, Retry};
use super::frames::Frames;
use super::local::{LocalServers, Properties};
use super::media::Media;
use super::provider_error::response_error;
use super::request::Request;
use super::retry::Retrying;
use super::wire::{DecodedChunks, EncodedRequest, EventReader, interrupted};
use super::{
    anthropic, bedrock, document, extra_fields, gemini, limited_body, listing, ollama, openai_chat, openai_responses, output_limit,
    single_calls,
};
use crate::content::{StopReason, Usage};
use crate::json;
use crate::limits::{MODEL_ERROR_BYTES_MAX, MODEL_EVENT_BYTES_MAX};
use crate::web::HttpClients;

/// Opens a model that retries failed requests. `servers` keeps what local servers report.
pub fn open(endpoint: Endpoint, clients: &HttpClients, servers: &LocalServers) -> Arc<dyn Model> {
    let wait = endpoint.wait;
    Arc::new(Retrying::new(HttpModel::new(endpoint, clients, servers), wait))
}

/// The model of an endpoint, without retries: each stream is one attempt.
struct HttpModel {
    endpoint: Arc<Endpoint>,
    clients: HttpClients,
    servers: LocalServers,
    /// Send at most one tool call per message.
    single_calls: Arc<AtomicBool>,
    /// Send no default output limit, because the server refused it.
    unlimited: Arc<AtomicBool>,
}

impl HttpModel {
    fn new(endpoint: Endpoint, clients: &HttpClients, servers: &LocalServers) -> HttpModel {
        let single_calls = Arc::new(AtomicBool::new(!endpoint.parallel_tool_calls));
        HttpModel {
            endpoint: Arc::new(endpoint),
            clients: clients.clone(),
            servers: servers.clone(),
            single_calls,
            unlimited: Arc::default(),
        }
    }
}

impl Model for HttpModel {
    fn id(&self) -> &str {
        &self.endpoint.id
    }

    fn context_window(&self) -> u64 {
        self.endpoint.window(self.servers.properties(&self.endpoint).context_window)
    }

    fn supports_tools(&self) -> bool {
        self.endpoint.tools.or(self.servers.properties(&self.endpoint).tools) != Some(false)
    }

    fn media(&self) -> Media {
        self.endpoint.media
    }

    fn prepare(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.servers.ask(&self.clients, &self.endpoint, true).await;
        })
    }

    fn stream(&self, mut request: Request) -> ChunkStream {
        let (endpoint, clients, servers) = (self.endpoint.clone(), self.clients.clone(), self.servers.clone());
        let masking = endpoint.clone();
        let (single_calls, unlimited) = (self.single_calls.clone(), self.unlimited.clone());
        endpoint.media.fit(&mut request.messages);
        let answer = async move {
            let reported = servers.ask(&clients, &endpoint, false).await;
            if endpoint.tools.or(reported.tools) == Some(false) {
                request.tools = Arc::new([]);
            }
            let single = single_calls.load(Ordering::Relaxed);
            let limited = output_limit::with_default(&endpoint, endpoint.window(reported.context_window));
            let limited = limited.filter(|_| !unlimited.load(Ordering::Relaxed));
            let mut used = limited.as_ref().unwrap_or(&endpoint);
            let mut sent = send(used, &reported, &clients, request.clone(), single).await;
            if limited.is_some() && sent.as_ref().is_err_and(output_limit::is_refused) {
                used = &endpoint;
                sent = send(used, &reported, &clients, request.clone(), single).await;
                unlimited.store(sent.is_ok(), Ordering::Relaxed);
            }
            if !single && sent.as_ref().is_err_and(|error| error.message.contains(single_calls::REFUSAL)) {
                single_calls.store(true, Ordering::Relaxed);
                sent = send(used, &reported, &clients, request, true).await;
            }
            if sent.as_ref().is_err_and(|error| error.retry == Retry::Refused) {
                servers.forget(&endpoint);
            }
            sent.map(AnswerStream::stream)
        };
        stream::once(answer)
            .try_flatten()
            .map_err(move |error| {
                let message = masking.masked(&format!("{}: {}", masking.id, error.message));
                ModelError { message, hint: error.hint.map(|hint| masking.masked(&hint)), ..error }
            })
            .boxed()
    }
}

async fn send(
    endpoint: &Endpoint,
    reported: &Properties,
    clients: &HttpClients,
    mut request: Request,
    single: bool,
) -> Result<AnswerStream, ModelError> {
    if single {
        request.messages = single_calls::split(request.messages);
    }
    let (encoded, reader): (EncodedRequest, Box<dyn EventReader>) = match endpoint.protocol {
        Protocol::Anthropic => (anthropic::write(endpoint, &request)?, Box::new(anthropic::AnthropicReader::default())),
        Protocol::OpenaiChat => {
            (openai_chat::write(endpoint, &request)?, Box::new(openai_chat::OpenaiChatReader::new(endpoint, request.tools.clone())))
        }
        Protocol::OpenaiResponses => {
            (openai_responses::write(endpoint, &request)?, Box::new(openai_responses::OpenaiResponsesReader::default()))
        }
        Protocol::Gemini => (gemini::write(endpoint, &request)?, Box::new(gemini::GeminiReader::default())),
        Protocol::Ollama => {
            let window = endpoint.window(reported.context_window);
            (ollama::write(endpoint, window, reported.thinking, &request)?, Box::new(ollama::OllamaReader::default()))
        }
        Protocol::Bedrock => (bedrock::write(endpoint, &request)?, Box::new(bedrock::BedrockReader::default())),
    };
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
        return Err(error_response(endpoint, clients, response).await);
    }
    let header = |name: HeaderName| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (content_type, encoding) = (header(CONTENT_TYPE), header(CONTENT_ENCODING));
    if !matches!(encoding.as_str(), "" | "identity") {
        let message = format!("the answer is compressed with {encoding}, which is not supported");
        return Err(ModelError::of(Cause::InvalidAnswer, message).hint("disable the compression in the server or proxy"));
    }
    Ok(AnswerStream {
        bytes: response.bytes_stream().boxed(),
        decoder: Frames::of(endpoint.protocol),
        document: Some(Vec::new()),
        content_type,
        reader,
        out: VecDeque::new(),
        usage: None,
        allowance: Allowance::default(),
        emitted: false,
        failed: None,
        over: false,
    })
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

/// State of an answer that is being read.
struct AnswerStream {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    decoder: Frames,
    /// The received bytes until the first event, because a server that does not stream sends a
    /// document.
    document: Option<Vec<u8>>,
    content_type: String,
    reader: Box<dyn EventReader>,
    out: DecodedChunks,
    allowance: Allowance,
    /// The last reported [`Chunk::UsageSoFar`].
    usage: Option<Usage>,
    /// A chunk was returned.
    emitted: bool,
    /// Error to return after the chunks in `out`.
    failed: Option<ModelError>,
    over: bool,
}

impl AnswerStream {
    fn stream(self) -> ChunkStream {
        stream::unfold(self, |mut answer| async { answer.next().await.map(|item| (item, answer)) }).boxed()
    }

    async fn next(&mut self) -> Option<Result<Chunk, ModelError>> {
        loop {
            if let Some(mut chunk) = self.out.pop_front() {
                if let Some(bound) = self.allowance.take(&mut chunk) {
                    self.discard_and_truncate(bound);
                    if matches!(chunk, Chunk::ToolCall { .. }) {
                        continue;
                    }
                }
                self.emitted = true;
                return Some(Ok(chunk));
            }
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            if self.over {
                return None;
            }
            let failure = match self.bytes.next().await {
                Some(Ok(bytes)) => {
                    self.decoder.push(&bytes);
                    if let Some(document) = self.document.as_mut().filter(|document| document.len() <= MODEL_EVENT_BYTES_MAX) {
                        document.extend_from_slice(&bytes);
                    }
                    match self.allowance.receive(bytes.len()) {
                        Some(bound) => self.discard_and_truncate(bound),
                        None => self.read(),
                    }
                    self.report_usage();
                    continue;
                }
                Some(Err(error)) => Some(body_error(&error)),
                None => None,
            };
            self.over = true;
            if let Err(error) = self.read_end(failure) {
                self.fail(error);
            }
        }
    }

    /// Decodes the rest at the end of the body. `failure` is the error that ended the body early.
    fn read_end(&mut self, failure: Option<ModelError>) -> Result<(), ModelError> {
        self.read_last_event()?;
        if let Some(body) = self.document.take() {
            let read = document::read(&body, &self.content_type, self.reader.as_mut(), &mut self.out);
            return read.map_err(|error| failure.unwrap_or(error));
        }
        if matches!(self.out.back(), Some(Chunk::Stop(_))) || self.reader.end(&mut self.out) {
            return Ok(());
        }
        let empty = !self.emitted && self.out.is_empty() && self.reader.pending().is_empty();
        Err(match failure {
            Some(failure) => failure,
            None if empty => ModelError::of(Cause::InvalidAnswer, "the answer contains no known event"),
            None => interrupted("the connection ended"),
        })
    }

    /// Ends the answer at the chunk that exceeds a limit: discards the later chunks, except usage.
    fn discard_and_truncate(&mut self, bound: String) {
        self.out.retain(|chunk| matches!(chunk, Chunk::Usage(_)));
        self.truncate(bound);
    }

    /// Ends the answer after the chunks in `out`.
    fn truncate(&mut self, bound: String) {
        self.out.push_back(Chunk::Truncated { bound });
        self.out.push_back(Chunk::Stop(StopReason::MaxTokens));
        self.failed = None;
        self.over = true;
    }

    /// Decodes an event at the end of the stream that lacks its blank line, if the event is
    /// complete.
    fn read_last_event(&mut self) -> Result<(), ModelError> {
        let complete = |data: &String| data.trim() == "[DONE]" || serde_json::from_str::<IgnoredAny>(data).is_ok();
        let Some(data) = self.decoder.end().filter(complete) else { return Ok(()) };
        self.document = None;
        self.reader.read(&json::replace_surrogates(&data), &mut self.out)
    }

    /// Decodes the complete events that were received.
    fn read(&mut self) {
        let error = loop {
            let data = match self.decoder.next() {
                Ok(Some(data)) => data,
                Ok(None) => return,
                Err(error) => break error,
            };
            self.document = None;
            if let Err(error) = self.reader.read(&json::replace_surrogates(&data), &mut self.out) {
                break error;
            }
            if matches!(self.out.back(), Some(Chunk::Stop(_))) {
                self.over = true;
                return;
            }
            if let Some(bound) = self.allowance.exceeded(self.reader.pending()) {
                return self.truncate(bound);
            }
        };
        self.fail(error);
    }

    /// Reports usage that was received during the answer.
    fn report_usage(&mut self) {
        let usage = self.reader.usage();
        if !self.over && usage != self.usage {
            self.usage = usage;
            self.out.extend(usage.map(Chunk::UsageSoFar));
        }
    }

    /// Ends the answer with an error after the chunks in `out`, and reports the usage so far.
    fn fail(&mut self, error: ModelError) {
        self.over = true;
        self.out.extend(self.reader.usage().map(Chunk::Usage));
        self.failed = Some(error);
    }
}

/// The error for a response that is not a stream.
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
