//! The model of a replay: its answers are those of the script, given when the replay lets it.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::{FutureExt, StreamExt, future, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::expectation::RequestLog;
use super::normaliser::Normaliser;
use super::recording::map_strings;
use crate::error::Result;
use crate::model::scripted::{self, Script};
use crate::model::{Chunk, ChunkStream, Media, Model, ModelError, ModelProvider, Request, Retry, catalog};

/// Something that the model reached.
pub(super) enum ModelEvent {
    /// The step received its request. Its answer follows when the sender is used.
    Reached(usize, oneshot::Sender<()>),
    /// The step has no more text: its answer waits for a cancellation.
    Streamed(usize),
}

/// The answers of a script, for all models of a session.
pub(super) struct RecordedAnswers {
    pub steps: Vec<Value>,
    /// The steps, from 1, whose answers wait for a cancellation at their end.
    pub cancelled: HashSet<usize>,
    pub windows: std::collections::BTreeMap<String, u64>,
    pub reached: mpsc::Sender<ModelEvent>,
    pub sent: Mutex<SentRequests>,
}

/// The requests so far.
pub(super) struct SentRequests {
    pub log: RequestLog,
    pub names: Normaliser,
    number: usize,
}

impl SentRequests {
    pub(super) fn new(names: Normaliser) -> SentRequests {
        SentRequests { log: RequestLog::default(), names, number: 0 }
    }
}

/// A model of a session.
struct RecordedModel {
    id: String,
    answers: Arc<RecordedAnswers>,
}

/// The provider of the models of a session.
pub(super) struct RecordedProvider(pub Arc<RecordedAnswers>);

impl ModelProvider for RecordedProvider {
    fn open(&self, id: &str) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::new(RecordedModel { id: id.into(), answers: self.0.clone() }))
    }
}

impl Model for RecordedModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn context_window(&self) -> u64 {
        self.answers.windows.get(&self.id).copied().unwrap_or(catalog::CONTEXT_WINDOW)
    }

    fn media(&self) -> Media {
        Media::new(catalog::properties(&self.id).abilities.as_deref().unwrap_or_default())
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let (answers, id) = (self.answers.clone(), self.id.clone());
        async move { answers.answer(id, request).await.unwrap_or_else(|error| stream::once(future::ready(Err(error))).boxed()) }
            .flatten_stream()
            .boxed()
    }
}

impl RecordedAnswers {
    /// Returns the answer to a request, when the replay lets it.
    async fn answer(self: Arc<Self>, id: String, request: Request) -> Result<ChunkStream, ModelError> {
        let failed = |message: String| ModelError::new(Retry::Never, message);
        let number = {
            let mut sent = self.sent.lock();
            let SentRequests { log, names, number } = &mut *sent;
            log.add(&request, names, &str::to_owned);
            *number += 1;
            *number
        };
        let (go, gone) = oneshot::channel();
        // Fails only when the replay has ended.
        let _ = self.reached.send(ModelEvent::Reached(number, go)).await;
        let _ = gone.await;
        let step = self.steps.get(number - 1).cloned();
        let step = step.ok_or_else(|| failed(format!("the recording has no answer to request {number}")))?;
        let step = map_strings(step, &mut |text| self.sent.lock().names.actual(text));
        let script = Script::parse(&json!({ "steps": [step] }).to_string()).map_err(|error| failed(error.message))?;
        let chunks = scripted::open(id, script).stream(request);
        if !self.cancelled.contains(&number) {
            return Ok(chunks);
        }
        let text = chunks.filter(|chunk| future::ready(!matches!(chunk, Ok(Chunk::Stop(_) | Chunk::Usage(_)))));
        let end = stream::once(async move {
            let _ = self.reached.send(ModelEvent::Streamed(number)).await;
            future::pending().await
        });
        Ok(text.chain(end).boxed())
    }
}
