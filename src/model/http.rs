//! One attempt at a model request over HTTP: sends it, reads the answer's events, and tells what a refusal means.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use reqwest::header::{CONTENT_TYPE, HeaderValue};

use super::allowance::Allowance;
use super::endpoint::{Endpoint, Http, Protocol, is_loopback};
use super::refusal::refusal;
use super::sse::Decoder;
use super::wire::{Out, Reader, Sent, cut};
use super::{Again, Chunk, ChunkStream, Model, ModelError, Request, anthropic, gemini, openai_chat, openai_responses};
use crate::content::StopReason;
use crate::limits::{MODEL_ERROR_BYTES_MAX, MODEL_EVENT_BYTES_MAX};
use crate::web::{causes, chain};

/// A model behind an endpoint; each stream is one attempt.
pub struct Provider {
    endpoint: Arc<Endpoint>,
    http: Http,
}

impl Provider {
    pub fn new(endpoint: Endpoint, http: Http) -> Self {
        Self { endpoint: Arc::new(endpoint), http }
    }
}

impl Model for Provider {
    fn id(&self) -> &str {
        &self.endpoint.id
    }

    fn context_window(&self) -> u64 {
        self.endpoint.context_window
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let (endpoint, http) = (self.endpoint.clone(), self.http.clone());
        let named = endpoint.clone();
        let answer = async move { ask(&endpoint, &http, request).await.map(Answer::stream) };
        stream::once(answer)
            .try_flatten()
            .map_err(move |error| {
                let message = named.masked(&format!("{}: {}", named.id, error.message));
                ModelError { message, hint: error.hint.map(|hint| named.masked(&hint)), ..error }
            })
            .boxed()
    }
}

async fn ask(endpoint: &Endpoint, http: &Http, request: Request) -> Result<Answer, ModelError> {
    let (sent, reader): (Sent, Box<dyn Reader>) = match endpoint.protocol {
        Protocol::Anthropic => (anthropic::write(endpoint, &request)?, Box::new(anthropic::Answer::default())),
        Protocol::OpenaiChat => (openai_chat::write(endpoint, &request)?, Box::new(openai_chat::Answer::new(endpoint))),
        Protocol::OpenaiResponses => (openai_responses::write(endpoint, &request)?, Box::new(openai_responses::Answer::default())),
        Protocol::Gemini => (gemini::write(endpoint, &request)?, Box::new(gemini::Answer::default())),
    };
    drop(request);
    let mut post = http.client(&sent.url)?.post(&sent.url).header(CONTENT_TYPE, "application/json").body(sent.body);
    for (name, value) in &sent.headers {
        post = post.header(*name, *value);
    }
    for (name, value) in &endpoint.headers {
        post = post.header(name, value);
    }
    if let Some((name, value)) = key(endpoint)? {
        post = post.header(name, value);
    }
    let response = post.send().await.map_err(|error| unsent(&sent.url, &error))?;
    let json = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !response.status().is_success() || json {
        return Err(refused(endpoint, response).await);
    }
    let bytes = response.bytes_stream().boxed();
    let allowance = Allowance::default();
    Ok(Answer { bytes, decoder: Decoder::default(), reader, out: VecDeque::new(), allowance, failed: None, over: false })
}

/// The header that carries the key, each protocol's own.
fn key(endpoint: &Endpoint) -> Result<Option<(&'static str, HeaderValue)>, ModelError> {
    let Some(key) = &endpoint.key else { return Ok(None) };
    let (name, value) = match endpoint.protocol {
        Protocol::Anthropic => ("x-api-key", key.secret().to_owned()),
        Protocol::Gemini => ("x-goog-api-key", key.secret().to_owned()),
        Protocol::OpenaiChat | Protocol::OpenaiResponses => ("authorization", format!("Bearer {}", key.secret())),
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| {
        let message = format!("the key of {} cannot be sent: it has characters that no key has", key.origin());
        ModelError::new(Again::Never, message).hint(format!("check {}", key.origin())).unreachable()
    })?;
    value.set_sensitive(true);
    Ok(Some((name, value)))
}

/// An answer that is being read.
struct Answer {
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    decoder: Decoder,
    reader: Box<dyn Reader>,
    out: Out,
    allowance: Allowance,
    /// Comes after what is in `out`.
    failed: Option<ModelError>,
    over: bool,
}

impl Answer {
    fn stream(self) -> ChunkStream {
        stream::unfold(self, |mut answer| async { answer.next().await.map(|item| (item, answer)) }).boxed()
    }

    async fn next(&mut self) -> Option<Result<Chunk, ModelError>> {
        loop {
            if let Some(mut chunk) = self.out.pop_front() {
                if let Some(bound) = self.allowance.take(&mut chunk) {
                    self.cut_off(bound);
                    if matches!(chunk, Chunk::ToolCall { .. }) {
                        continue;
                    }
                }
                return Some(Ok(chunk));
            }
            if let Some(error) = self.failed.take() {
                return Some(Err(error));
            }
            if self.over {
                return None;
            }
            let end = match self.bytes.next().await {
                Some(Ok(bytes)) => {
                    self.decoder.push(&bytes);
                    match self.allowance.receive(bytes.len()) {
                        Some(bound) => self.cut_off(bound),
                        None => self.read(),
                    }
                    continue;
                }
                Some(Err(error)) => cut(causes(&error)),
                None => cut("the connection ended"),
            };
            self.over = true;
            if !self.reader.end(&mut self.out) {
                self.failed = Some(end);
            }
        }
    }

    /// Ends the answer at the chunk that exceeds a bound.
    fn cut_off(&mut self, bound: String) {
        self.out.retain(|chunk| matches!(chunk, Chunk::Usage(_)));
        self.truncate(bound);
    }

    /// Ends the answer after what was read.
    fn truncate(&mut self, bound: String) {
        self.out.push_back(Chunk::Truncated { bound });
        self.out.push_back(Chunk::Stop(StopReason::MaxTokens));
        self.failed = None;
        self.over = true;
    }

    /// Reads the events that are whole.
    fn read(&mut self) {
        let error = loop {
            let data = match self.decoder.next() {
                Ok(Some(data)) => data,
                Ok(None) => return,
                Err(_) => break ModelError::new(Again::Never, format!("an event is larger than {MODEL_EVENT_BYTES_MAX} bytes")),
            };
            if let Err(error) = self.reader.read(&data, &mut self.out) {
                break error;
            }
            if matches!(self.out.back(), Some(Chunk::Stop(_))) {
                self.over = true;
                return;
            }
            if let Some(bound) = self.allowance.exceeded(self.reader.held()) {
                return self.truncate(bound);
            }
        };
        self.over = true;
        self.failed = Some(error);
    }
}

/// A request that found nobody, or whose answer never began.
fn unsent(url: &str, error: &reqwest::Error) -> ModelError {
    if error.is_builder() {
        return ModelError::new(Again::Never, format!("{url} is no address: {}", causes(error)))
            .hint("check base_url")
            .unreachable();
    }
    let host = reqwest::Url::parse(url).map(|url| url.authority().to_owned()).unwrap_or_default();
    if !error.is_connect() {
        return ModelError::new(Again::Backoff, format!("waiting for {host}: {}", causes(error)));
    }
    let message = format!("connecting to {host}: {}", causes(error));
    match is_loopback(url) {
        true => ModelError::new(if is_refused(error) { Again::Briefly } else { Again::Backoff }, message)
            .hint("is the server running? start it, or choose another model with --model"),
        false => ModelError::new(Again::Backoff, message).hint("check the network and base_url"),
    }
    .unreachable()
}

fn is_refused(error: &reqwest::Error) -> bool {
    chain(error)
        .any(|error| error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused))
}

/// An answer that is an error.
async fn refused(endpoint: &Endpoint, response: reqwest::Response) -> ModelError {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = Vec::new();
    let mut bytes = response.bytes_stream();
    while let Some(Ok(piece)) = bytes.next().await {
        body.extend_from_slice(&piece);
        if body.len() >= MODEL_ERROR_BYTES_MAX {
            body.truncate(MODEL_ERROR_BYTES_MAX);
            break;
        }
    }
    refusal(endpoint, status, &headers, &String::from_utf8_lossy(&body))
}
