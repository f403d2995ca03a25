//! Writes the requests to a scripted model as the providers would receive them, so that a test can
//! judge them by the rules of the providers. Only debug builds have this module.

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;

use parking_lot::Mutex;
use serde_json::json;

use super::adapt::Adapter;
use super::endpoint::{Endpoint, Protocol};
use super::error::ModelError;
use super::fingerprint::fingerprint;
use super::kept_encoding::KeptEncoding;
use super::observations::Observations;
use super::output_limit;
use super::repair_ladder::RepairLadder;
use super::reported::Properties;
use super::request::Request;
use super::send::encode;
use super::wire::EncodedRequest;
use super::wire_formats::wire_format;

/// Maximum size of a written body, in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Number of the requests to a model that are all written. Of the later ones, only those are whose
/// number is a power of two: each contains most of the conversation of the earlier ones.
const ALL_WRITTEN: u64 = 8;

/// The models that receive the requests: the name of the provider in the rules, the id, the
/// protocol and the base URL.
const RECEIVERS: &[(&str, &str, Protocol, &str)] = &[
    ("anthropic", "anthropic/claude-sonnet-5-5", Protocol::Anthropic, "https://api.anthropic.com"),
    // A server without a name, which refuses everything that several servers refuse.
    ("", "compatible/some-model", Protocol::OpenaiChat, "https://models.example/v1"),
    ("mistral", "mistral/mistral-medium-latest", Protocol::OpenaiChat, "https://api.mistral.ai/v1"),
    ("moonshot", "moonshot/kimi-k3", Protocol::OpenaiChat, "https://api.moonshot.ai/v1"),
    ("openai", "openai/gpt-6.1-sol", Protocol::OpenaiResponses, "https://api.openai.com/v1"),
    ("gemini", "gemini/gemini-3.8-flash", Protocol::Gemini, "https://generativelanguage.googleapis.com/v1beta"),
    (
        "vertex",
        "vertex/gemini-3.8-flash",
        Protocol::Gemini,
        "https://global-aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google",
    ),
    ("bedrock", "bedrock/mistral.mistral-large-2407-v1:0", Protocol::Bedrock, "https://bedrock-runtime.eu-west-1.amazonaws.com"),
    ("ollama", "ollama/qwen3", Protocol::Ollama, "http://127.0.0.1:11434/v1"),
];

/// Writes requests to a file: one JSON object per line, with `provider`, `path` and `body`.
pub(super) struct RequestWriter {
    file: PathBuf,
    receivers: Vec<(&'static str, Endpoint, Adapter)>,
    state: Mutex<WriterState>,
}

#[derive(Default)]
struct WriterState {
    requests: u64,
    /// Digests of the lists of tools that were written.
    tools: HashSet<String>,
}

impl RequestWriter {
    /// Creates a writer that appends to `file`.
    pub(super) fn new(file: PathBuf) -> RequestWriter {
        let receivers = RECEIVERS
            .iter()
            .map(|(provider, id, protocol, base_url)| (*provider, Endpoint::new(*id, *protocol, *base_url), Adapter::default()));
        RequestWriter { file, receivers: receivers.collect(), state: Mutex::default() }
    }

    /// Appends a request in the form of each receiver. A list of tools, which is most of a request,
    /// is written once and for one receiver, which depends on the message; the others get its first
    /// tool only. Does nothing if the file cannot be written.
    pub(super) async fn write(&self, request: &Request) {
        let Some((request, has_new_tools)) = self.next(request) else { return };
        let message = format!("{:?}", request.messages.last());
        let with_tools = message.bytes().map(usize::from).sum::<usize>() % self.receivers.len();
        let mut lines = Vec::new();
        for (index, (provider, endpoint, adapter)) in self.receivers.iter().enumerate() {
            let mut request = request.clone();
            if !has_new_tools || index != with_tools {
                request.tools = request.tools.iter().take(1).cloned().collect();
            }
            let Ok(encoded) = encoded(endpoint, adapter, request).await else { continue };
            if encoded.body.len() > BODY_BYTES_MAX {
                return;
            }
            let path = encoded.url.splitn(4, '/').last().unwrap_or_default();
            lines.extend(format!(r#"{{"provider":"{provider}","path":"/{path}","body":"#).bytes());
            lines.extend(encoded.body);
            lines.extend(b"}\n");
        }
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&self.file);
        // One call, so that processes do not write into the lines of each other.
        let _ = file.and_then(|mut file| file.write_all(&lines));
    }

    /// Counts a request. Returns it, and whether its tools are new, unless it is not written.
    fn next(&self, request: &Request) -> Option<(Request, bool)> {
        let mut state = self.state.lock();
        state.requests += 1;
        if state.requests > ALL_WRITTEN && !state.requests.is_power_of_two() {
            return None;
        }
        Some((request.clone(), state.tools.insert(tools_digest(request))))
    }
}

fn tools_digest(request: &Request) -> String {
    let tools: Vec<String> =
        request.tools.iter().map(|tool| json!([tool.name, tool.description, tool.input_schema]).to_string()).collect();
    fingerprint(&tools.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Encodes a request as it is first sent to an endpoint.
async fn encoded(endpoint: &Endpoint, adapter: &Adapter, mut request: Request) -> Result<EncodedRequest, ModelError> {
    endpoint.media.and(wire_format(endpoint.protocol).media).fit(&mut request.messages);
    adapter.fit_images(endpoint, &mut request).await;
    let observed = Observations::default();
    let (outgoing, _) = RepairLadder::new(endpoint, &observed, request).outgoing(adapter);
    let limited = output_limit::with_default(endpoint, endpoint.window(None));
    encode(
        limited.as_ref().unwrap_or(endpoint),
        &Properties::default(),
        &outgoing,
        &KeptEncoding::default(),
        !endpoint.parallel_tool_calls,
    )
}
