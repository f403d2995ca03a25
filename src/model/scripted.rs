//! A model that follows a script, for demos and tests. Each request performs the next step. Opening
//! a session in this process starts again at the first step.

use std::num::NonZeroUsize;
#[cfg(debug_assertions)]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;

use super::answer::{Chunk, ChunkStream, Model};
use super::call_progress::{REPORTED_BYTES, call_input};
use super::classify::classify;
use super::error::{ModelError, Retry};
use super::message::{Block, Message};
use super::request::Request;
use super::retry::RetryModel;
#[cfg(debug_assertions)]
use super::written_requests::RequestWriter;
use crate::content::{StopReason, Usage, plain_text};
use crate::error::{Error, Result};
use crate::id::ToolCallId;
use crate::limits::MODEL_WAIT;

/// The answers of a scripted model, one step per request, as JSON:
/// `{"steps":[{"text","thinking","tool_calls":[{"name","input"}],"expect",
/// "delay_ms","chunk_chars","error":{"status","times"}}]}`. Recordings also have the `id` and the
/// `input_text` of calls, and the `usage` and the reason to `stop` of a step.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    text: Option<String>,
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Call>,
    /// Text that the request must contain.
    expect: Option<String>,
    /// Delay before each chunk of text or thinking, and before each report about a long call.
    #[serde(default)]
    delay_ms: u64,
    #[serde(default = "chunk_chars")]
    chunk_chars: NonZeroUsize,
    error: Option<Failure>,
    /// Without it, four bytes count as one token.
    usage: Option<Usage>,
    stop: Option<StopReason>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    id: Option<String>,
    name: String,
    #[serde(default = "no_input")]
    input: Value,
    /// The text of the input, if it is not `input` as compact JSON.
    input_text: Option<String>,
}

/// HTTP errors that are returned before the step.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    status: u16,
    #[serde(default = "once")]
    times: u32,
}

fn chunk_chars() -> NonZeroUsize {
    NonZeroUsize::new(12).expect("12 is not 0")
}

fn no_input() -> Value {
    Value::Object(serde_json::Map::new())
}

fn once() -> u32 {
    1
}

impl Call {
    fn text(&self) -> String {
        self.input_text.clone().unwrap_or_else(|| self.input.to_string())
    }
}

impl Script {
    /// Parses a script from JSON. Errors name the invalid field.
    pub fn parse(json: &str) -> Result<Script> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let script = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            Error::invalid_params(match error.path().to_string().as_str() {
                "." | "?" => format!("the script: {}", error.inner()),
                path => format!("the script at {path}: {}", error.inner()),
            })
        })?;
        deserializer.end().map_err(|error| Error::invalid_params(format!("the script: {error}")))?;
        Ok(script)
    }
}

/// Opens the model for one session, at the first step.
pub fn open(id: impl Into<String>, script: Script) -> Arc<dyn Model> {
    Arc::new(RetryModel::new(ScriptedModel::new(id.into(), script), MODEL_WAIT))
}

/// Opens the model like [`open`], and writes each request to `file` as the providers would receive
/// it.
#[cfg(debug_assertions)]
pub(crate) fn open_written(id: impl Into<String>, script: Script, file: PathBuf) -> Arc<dyn Model> {
    let writer = Some(Arc::new(RequestWriter::new(file)));
    Arc::new(RetryModel::new(ScriptedModel { writer, ..ScriptedModel::new(id.into(), script) }, MODEL_WAIT))
}

struct ScriptedModel {
    id: String,
    script: Arc<Script>,
    position: Arc<Mutex<Position>>,
    #[cfg(debug_assertions)]
    writer: Option<Arc<RequestWriter>>,
}

impl ScriptedModel {
    fn new(id: String, script: Script) -> ScriptedModel {
        ScriptedModel {
            id,
            script: Arc::new(script),
            position: Arc::default(),
            #[cfg(debug_assertions)]
            writer: None,
        }
    }
}

/// The next step, and the number of failures returned for it.
#[derive(Default)]
struct Position {
    step: usize,
    failures: u32,
}

/// Context window that the model reports, in tokens.
const CONTEXT_WINDOW: u64 = 200_000;

impl Model for ScriptedModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn context_window(&self) -> u64 {
        CONTEXT_WINDOW
    }

    fn stream(&self, request: Request) -> ChunkStream {
        let (script, position) = (self.script.clone(), self.position.clone());
        #[cfg(debug_assertions)]
        let writer = self.writer.clone();
        let answer = async move {
            #[cfg(debug_assertions)]
            if let Some(writer) = writer {
                writer.write(&request).await;
            }
            let answer = match next(&script, &position) {
                Ok(number) => perform(number, script.steps.get(number), &request),
                Err(error) => Err(error),
            };
            match answer {
                Ok((delay, chunks)) => paced(delay, chunks),
                Err(error) => stream::once(async { Err(error) }).boxed(),
            }
        };
        stream::once(answer).flatten().boxed()
    }
}

/// Returns the number of the next step and advances, or returns the next failure of the step.
fn next(script: &Script, position: &Mutex<Position>) -> Result<usize, ModelError> {
    let mut position = position.lock();
    let failure = script.steps.get(position.step).and_then(|step| step.error.as_ref());
    if let Some(failure) = failure.filter(|failure| position.failures < failure.times) {
        position.failures += 1;
        let message =
            format!("the model script returns HTTP {} (response {} of {})", failure.status, position.failures, failure.times);
        return Err(ModelError::from_cause(classify(Some(failure.status), ""), message));
    }
    let number = position.step;
    *position = Position { step: number + 1, failures: 0 };
    Ok(number)
}

/// Returns the chunks of a step, and the delay before each chunk. If the script has no more steps,
/// the answer is the text `done`.
fn perform(number: usize, step: Option<&Step>, request: &Request) -> Result<(Duration, Vec<Chunk>), ModelError> {
    let Some(step) = step else {
        return Ok((Duration::ZERO, complete(vec![Chunk::Text("done".to_owned())], request, None, None)));
    };
    if let Some(expected) = step.expect.as_ref().filter(|expected| !joined(request).contains(expected.as_str())) {
        let message = format!("step {} of the script expects {expected:?}, which the request does not contain", number + 1);
        return Err(ModelError::new(Retry::Never, message));
    }
    let pieces = |text: &Option<String>, chunk: fn(String) -> Chunk| -> Vec<Chunk> {
        let characters: Vec<char> = text.iter().flat_map(|text| text.chars()).collect();
        characters.chunks(step.chunk_chars.get()).map(|piece| chunk(piece.iter().collect())).collect()
    };
    let mut chunks = pieces(&step.thinking, Chunk::Thinking);
    chunks.extend(pieces(&step.text, Chunk::Text));
    chunks.extend(step.tool_calls.iter().flat_map(call_reports));
    chunks.extend(step.tool_calls.iter().map(|call| Chunk::ToolCall {
        id: call.id.clone().unwrap_or_else(|| ToolCallId::new().to_string()),
        name: call.name.clone(),
        input: call.text(),
        state: None,
    }));
    Ok((Duration::from_millis(step.delay_ms), complete(chunks, request, step.usage, step.stop)))
}

/// Returns the reports about a long call: at most eight, as if its input arrived in pieces.
fn call_reports(call: &Call) -> Vec<Chunk> {
    let input = call.text();
    let piece = REPORTED_BYTES.max(input.len().div_ceil(8));
    let ends = (1..=input.len() / piece).map(|number| input.floor_char_boundary(number * piece));
    ends.map(|end| call_input(&call.name, &input[..end])).collect()
}

/// Appends the usage (of the step, else four bytes per token) and the stop reason.
fn complete(mut chunks: Vec<Chunk>, request: &Request, usage: Option<Usage>, stop: Option<StopReason>) -> Vec<Chunk> {
    let said: usize = chunks
        .iter()
        .map(|chunk| match chunk {
            Chunk::Text(text) | Chunk::Thinking(text) => text.len(),
            Chunk::ToolCall { name, input, .. } => name.len() + input.len(),
            Chunk::BlockEnd { .. }
            | Chunk::Usage(_)
            | Chunk::UsageSoFar(_)
            | Chunk::CallInput { .. }
            | Chunk::Truncated { .. }
            | Chunk::Notice { .. }
            | Chunk::Refused { .. }
            | Chunk::Retry { .. }
            | Chunk::Stop(_) => 0,
        })
        .sum();
    let tokens = |bytes: usize| bytes.div_ceil(4) as u64;
    let counted = || {
        let mut bytes = 0;
        each_text(request, &mut |text| bytes += text.len() + 1);
        Usage { input_tokens: tokens(bytes), output_tokens: tokens(said), ..Usage::default() }
    };
    chunks.push(Chunk::Usage(usage.unwrap_or_else(counted)));
    chunks.push(Chunk::Stop(stop.unwrap_or(StopReason::EndTurn)));
    chunks
}

fn paced(delay: Duration, chunks: Vec<Chunk>) -> ChunkStream {
    let chunks = stream::iter(chunks);
    if delay.is_zero() {
        return chunks.map(Ok).boxed();
    }
    chunks
        .then(move |chunk| async move {
            if matches!(chunk, Chunk::Text(_) | Chunk::Thinking(_) | Chunk::CallInput { .. }) {
                tokio::time::sleep(delay).await;
            }
            Ok(chunk)
        })
        .boxed()
}

/// Joins all texts of a request, each in lines of its own.
fn joined(request: &Request) -> String {
    let mut joined = String::new();
    each_text(request, &mut |text| {
        joined.push_str(text);
        joined.push('\n');
    });
    joined
}

/// Calls a function with each text of a request: the system prompt, messages, tool calls and their
/// results.
fn each_text(request: &Request, call: &mut dyn FnMut(&str)) {
    call(&request.system);
    for message in request.messages.iter() {
        match message.as_ref() {
            Message::User(parts) => call(&plain_text(parts)),
            Message::Assistant(blocks) => blocks.iter().for_each(|block| match block {
                Block::Thinking { text, .. } | Block::Text { text, .. } => call(text),
                Block::ToolCall { name, input, .. } => {
                    call(name);
                    // Quicker than the formatter of `Value`; all calls of the session pass here.
                    call(&serde_json::to_string(input).unwrap_or_default());
                }
            }),
            Message::ToolResults(results) => results.iter().for_each(|result| call(&plain_text(&result.output))),
        }
    }
}
