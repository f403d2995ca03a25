//! A model behind an HTTP server: one attempt at a request, with the variants of a request that
//! some servers need.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use super::adapt::{self, Adapter, ImageConverter};
use super::answer::{Chunk, ChunkStream, Model};
use super::answer_stream::AnswerStream;
use super::authorize::key_header_name;
use super::endpoint::{Endpoint, Protocol};
use super::error::{ModelError, Retry};
use super::kept_encoding::KeptEncoding;
use super::local::LocalServers;
use super::media::Media;
use super::repair_ladder::RepairLadder;
use super::reported::Properties;
use super::request::Request;
use super::request_form::{RefusedParts, RequestForm};
use super::retry::RetryModel;
use super::send::{OutgoingRequest, SendError, encode, send};
use super::wire_formats::wire_format;
use super::{output_limit, single_calls};
use crate::web::HttpClients;

/// Opens a model that retries failed requests. `servers` keeps what servers report and reveal;
/// `converter` converts images that the provider does not accept.
pub fn open(endpoint: Endpoint, clients: &HttpClients, servers: &LocalServers, converter: ImageConverter) -> Arc<dyn Model> {
    let wait = endpoint.wait;
    Arc::new(RetryModel::new(HttpModel::new(endpoint, clients, servers, converter), wait))
}

/// The model of an endpoint, without retries: each stream is one attempt.
#[derive(Clone)]
struct HttpModel {
    endpoint: Arc<Endpoint>,
    clients: HttpClients,
    servers: LocalServers,
    adapter: Arc<Adapter>,
    kept: Arc<KeptEncoding>,
    /// Send at most one tool call per message.
    single_calls: Arc<AtomicBool>,
    /// Send no default output limit, because the server refused it.
    unlimited: Arc<AtomicBool>,
    /// The form of the last request.
    form: Arc<Mutex<Option<Arc<RequestForm>>>>,
}

impl HttpModel {
    fn new(endpoint: Endpoint, clients: &HttpClients, servers: &LocalServers, converter: ImageConverter) -> HttpModel {
        let single_calls = Arc::new(AtomicBool::new(!endpoint.parallel_tool_calls));
        HttpModel {
            endpoint: Arc::new(endpoint),
            clients: clients.clone(),
            servers: servers.clone(),
            adapter: Arc::new(Adapter::new(converter)),
            kept: Arc::default(),
            single_calls,
            unlimited: Arc::default(),
            form: Arc::default(),
        }
    }

    /// Sends the request. A server without the Responses API gets it as a chat completion, which
    /// the first answer reports.
    async fn answer(&self, mut request: Request) -> Result<ChunkStream, ModelError> {
        let (endpoint, observed) = (&self.endpoint, &self.servers.observed);
        let reported = self.servers.ask(&self.clients, endpoint, false).await;
        if endpoint.tools.or(reported.tools) == Some(false) {
            request.tools = Arc::new([]);
        }
        let is_responses = endpoint.protocol == Protocol::OpenaiResponses;
        if is_responses && observed.lacks_responses(endpoint) {
            return self.adapted(&chat(endpoint), &reported, request).await.map_err(|refused| refused.error);
        }
        let refused = match self.adapted(endpoint, &reported, request.clone()).await {
            Err(refused) if is_responses && refused.lacks_path => refused,
            sent => return sent.map_err(|refused| refused.error),
        };
        match self.adapted(&chat(endpoint), &reported, request).await {
            Ok(sent) => {
                observed.add_lack_of_responses(endpoint);
                let notice = Chunk::Notice {
                    title: format!("{} uses chat completions", endpoint.id),
                    description: format!(
                        "{} does not have the Responses API: to select it, set protocol = \"openai-chat\" in [providers.{}]",
                        endpoint.base_url,
                        endpoint.provider()
                    ),
                    code: None,
                };
                Ok(stream::iter([Ok(notice)]).chain(sent).boxed())
            }
            // The server has neither path.
            Err(other) if other.lacks_path => Err(refused.error),
            Err(other) => Err(other.error),
        }
    }

    /// Adapts the request to the provider, sends it, and translates the answer. If the provider
    /// refuses a part of the request, sends the request without the part.
    async fn adapted(&self, endpoint: &Endpoint, reported: &Properties, mut request: Request) -> Result<ChunkStream, SendError> {
        let mut first = self.adapter.fit_images(endpoint, &mut request).await;
        let encode_again = |outgoing: &OutgoingRequest| {
            encode(endpoint, reported, outgoing, &self.kept, self.single_calls.load(Ordering::Relaxed))
        };
        let mut ladder = RepairLadder::new(endpoint, &self.servers.observed, request);
        loop {
            let (outgoing, tools) = ladder.outgoing(&self.adapter);
            match self.variants(endpoint, reported, &outgoing).await {
                Ok(sent) => {
                    let mut answer = sent.stream();
                    let begun = beginning(&mut answer).await;
                    if let Some(Err(error)) = begun.last() {
                        if ladder.repair(&self.adapter, &SendError::in_answer(error), &outgoing, encode_again) {
                            continue;
                        }
                        return Ok(stream::iter(begun).boxed());
                    }
                    first.extend(self.adapter.notices(endpoint, &tools));
                    first.extend(ladder.finish());
                    let id = endpoint.id.clone();
                    let answer = stream::iter(begun).chain(answer).map_ok(move |chunk| adapt::original(chunk, &tools, &id));
                    return Ok(stream::iter(first.into_iter().map(Ok)).chain(answer).boxed());
                }
                Err(refused) => {
                    if refused.lacks_path || !ladder.repair(&self.adapter, &refused, &outgoing, encode_again) {
                        return Err(refused);
                    }
                }
            }
        }
    }

    /// Sends the request, and once more in another form if the server refuses the usual one.
    async fn variants(
        &self,
        endpoint: &Endpoint,
        reported: &Properties,
        outgoing: &OutgoingRequest,
    ) -> Result<AnswerStream, SendError> {
        let single = self.single_calls.load(Ordering::Relaxed);
        let limited = self.limited(endpoint, reported);
        let mut used = limited.as_ref().unwrap_or(endpoint);
        let mut sent = self.send(used, reported, outgoing, single).await;
        if limited.is_some() && sent.as_ref().is_err_and(|refused| output_limit::is_refused(&refused.error)) {
            used = endpoint;
            sent = self.send(used, reported, outgoing, single).await;
            self.unlimited.store(sent.is_ok(), Ordering::Relaxed);
        }
        if !single && sent.as_ref().is_err_and(|refused| refused.error.message.contains(single_calls::REFUSAL)) {
            self.single_calls.store(true, Ordering::Relaxed);
            sent = self.send(used, reported, outgoing, true).await;
        }
        if sent.as_ref().is_err_and(|refused| refused.error.retry == Retry::Refused) {
            self.servers.forget(endpoint);
        }
        sent
    }

    /// Returns the form of a request that is not refused.
    fn first_form(&self) -> RequestForm {
        let observed = &self.servers.observed;
        let is_chat = self.endpoint.protocol == Protocol::OpenaiResponses && observed.lacks_responses(&self.endpoint);
        let endpoint = if is_chat { &chat(&self.endpoint) } else { &*self.endpoint };
        let reported = self.servers.properties(endpoint);
        let (fields, tools) = observed.refused(endpoint);
        let refused = RefusedParts { fields, tools, conversation: Vec::new() };
        let (limited, single) = (self.limited(endpoint, &reported), self.single_calls.load(Ordering::Relaxed));
        let endpoint = limited.as_ref().unwrap_or(endpoint);
        RequestForm::new(endpoint, key_header_name(endpoint), self.media(), reported, single, refused)
    }

    /// Notes the form of a request and sends it.
    async fn send(
        &self,
        endpoint: &Endpoint,
        reported: &Properties,
        outgoing: &OutgoingRequest,
        single: bool,
    ) -> Result<AnswerStream, SendError> {
        let form = RequestForm::new(endpoint, key_header_name(endpoint), self.media(), *reported, single, outgoing.refused.clone());
        self.note(form);
        send(endpoint, reported, &self.clients, outgoing, &self.kept, single).await
    }

    /// Keeps the form of the last request.
    fn note(&self, form: RequestForm) {
        let mut last = self.form.lock();
        if last.as_deref() != Some(&form) {
            *last = Some(Arc::new(form));
        }
    }

    /// Returns the endpoint with the default output limit, if requests have it.
    fn limited(&self, endpoint: &Endpoint, reported: &Properties) -> Option<Endpoint> {
        let limited = output_limit::with_default(endpoint, self.window(reported.context_window));
        limited.filter(|_| !self.unlimited.load(Ordering::Relaxed))
    }

    /// Returns the context window: a smaller one that the server has named precedes the settings
    /// and the server's report.
    fn window(&self, reported: Option<u64>) -> u64 {
        self.servers.observed.window(&self.endpoint, self.endpoint.window(reported))
    }
}

/// Reads an answer until it shows something or fails. Some providers refuse a request with an error
/// in the stream.
async fn beginning(answer: &mut ChunkStream) -> Vec<Result<Chunk, ModelError>> {
    let mut begun = Vec::new();
    while let Some(chunk) = answer.next().await {
        let shows_nothing = matches!(chunk, Ok(Chunk::Usage(_) | Chunk::UsageSoFar(_)));
        begun.push(chunk);
        if !shows_nothing {
            break;
        }
    }
    begun
}

/// Returns the endpoint with the protocol of chat completions.
fn chat(endpoint: &Endpoint) -> Endpoint {
    Endpoint { protocol: Protocol::OpenaiChat, ..endpoint.clone() }
}

impl Model for HttpModel {
    fn id(&self) -> &str {
        &self.endpoint.id
    }

    fn context_window(&self) -> u64 {
        self.window(self.servers.properties(&self.endpoint).context_window)
    }

    fn supports_tools(&self) -> bool {
        self.endpoint.tools.or(self.servers.properties(&self.endpoint).tools) != Some(false)
    }

    fn media(&self) -> Media {
        self.endpoint.media.and(wire_format(self.endpoint.protocol).media)
    }

    fn prepare(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.servers.ask(&self.clients, &self.endpoint, true).await;
        })
    }

    fn request_form(&self) -> Option<Arc<RequestForm>> {
        let mut form = self.form.lock();
        Some(form.get_or_insert_with(|| Arc::new(self.first_form())).clone())
    }

    fn stream(&self, mut request: Request) -> ChunkStream {
        let model = self.clone();
        self.media().fit(&mut request.messages);
        let answer = async move { model.answer(request).await };
        let model = self.clone();
        stream::once(answer)
            .try_flatten()
            .map_err(move |error| {
                let endpoint = &model.endpoint;
                let assumed = endpoint.window(model.servers.properties(endpoint).context_window);
                model.servers.observed.add_error(endpoint, assumed, &error);
                let message = endpoint.masked(&format!("{}: {}", endpoint.id, error.message));
                ModelError { message, hint: error.hint.map(|hint| endpoint.masked(&hint)), ..error }
            })
            .boxed()
    }
}
