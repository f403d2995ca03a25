//! Rules of the providers of models: what a provider refuses in a request, and in which words. A
//! rule has a number, so that a test can turn it off.

mod arguments;
mod calls;
mod documents;
mod fields;
mod images;
pub mod magic;
mod media;
mod model;
mod names;
mod parameters;
mod pattern;
mod platform;
mod reasoning;
mod refusal;
mod response;
mod schemas;
mod surrogates;
mod thinking;
mod tools;
mod turns;
mod view;

use serde_json::Value;

use crate::provider::Protocol;
use view::View;

pub use platform::Platform;
pub use refusal::{Refusal, Refusals};
pub use response::response;
pub use surrogates::without_surrogates;

/// The rules of a request: number and subject. Number 39, the forms of streams, is about answers:
/// tests/it/providers/stream_forms.rs has them.
pub const RULES: &[(u8, &str)] = &[
    (1, "names of tools: pattern, length, unique"),
    (2, "names of tools in calls and results of the history"),
    (3, "the root of a schema: an object, no union"),
    (4, "keys of a schema's properties"),
    (5, "arrays with items, objects with properties"),
    (6, "references that resolve"),
    (7, "schemas that are valid"),
    (8, "patterns that compile"),
    (9, "keywords of Gemini's subset of OpenAPI"),
    (10, "number of tools"),
    (11, "descriptions: not empty, not too long"),
    (12, "parameters that are present"),
    (13, "one result for each call, directly after the call"),
    (14, "unique ids of calls"),
    (15, "form of ids"),
    (16, "no ids of calls at Vertex AI and before Gemini 3.5"),
    (17, "no blank text, no turn without content"),
    (18, "assistant messages with content or calls"),
    (19, "no user text next to results"),
    (20, "order of turns, and the last turn"),
    (21, "tools that are defined while the history has calls"),
    (22, "failed results with content"),
    (23, "system messages: one, at the start, role"),
    (24, "content that is a string"),
    (25, "arguments that are a JSON object"),
    (26, "no half of a surrogate pair"),
    (27, "size and number of images"),
    (28, "width and height of images"),
    (29, "type and bytes of images"),
    (30, "no images for models that cannot read them"),
    (31, "media in results"),
    (32, "documents: name, text next to them, number"),
    (33, "audio"),
    (34, "thinking: signed, first, only while thinking is on"),
    (35, "reasoning items: encrypted, followed by their item, prefix of ids"),
    (36, "fields of messages: reasoning_content, unknown fields, null"),
    (37, "signatures of Gemini's calls"),
    (38, "parameters: effort, sampling, caching, unknown ones"),
];

/// Rules that concern more than one request. Only a scripted provider checks them.
pub const RULES_OF_SEVERAL_REQUESTS: &[(u8, &str)] = &[(40, "no request that was refused before")];

/// A request as a provider judges it.
#[derive(Clone, Copy)]
pub struct JudgedRequest<'a> {
    pub protocol: Protocol,
    pub platform: Platform,
    pub model: &'a str,
    pub path: &'a str,
    pub body: &'a Value,
    /// The body as it was sent.
    pub text: &'a str,
}

/// Returns everything that the provider refuses in a request, sorted by rule.
pub fn refusals(request: &JudgedRequest<'_>) -> Vec<Refusal> {
    let view = View::new(*request);
    let mut refused = Refusals::default();
    for check in [
        names::check,
        tools::check,
        schemas::check,
        calls::check,
        arguments::check,
        turns::check,
        surrogates::check,
        images::check,
        media::check,
        documents::check,
        thinking::check,
        reasoning::check,
        fields::check,
        parameters::check,
    ] {
        check(&view, &mut refused);
    }
    refused.into_sorted()
}

/// Judges a request that is written as a line: an object with `path` and `body`, and `provider` if
/// the path does not tell it.
pub fn judge_line(line: &str) -> serde_json::Result<Vec<Refusal>> {
    let request: Value = serde_json::from_str(&without_surrogates(line))?;
    let (path, body) = (request["path"].as_str().unwrap_or_default(), &request["body"]);
    let Some((protocol, platform, model)) = recognize(path, body) else { return Ok(Vec::new()) };
    let platform = request["provider"].as_str().and_then(Platform::from_name).unwrap_or(platform);
    // The line contains the body with its escapes.
    Ok(refusals(&JudgedRequest { protocol, platform, model: &model, path, body, text: line }))
}

/// Returns protocol, platform and model of a request to a path, as far as path and body tell.
/// Returns `None` for a request that is not for an answer of a model.
pub fn recognize(path: &str, body: &Value) -> Option<(Protocol, Platform, String)> {
    let path = path.split('?').next().unwrap_or_default();
    let named = |name: &str| path.split_once(name).map(|(_, rest)| platform::decoded(rest));
    let ends = |ends: &[&str]| ends.iter().any(|end| path.ends_with(end));
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    if ends(&["/chat/completions"]) {
        return Some((Protocol::OpenaiChat, Platform::Compatible, model));
    }
    if ends(&["/responses"]) {
        return Some((Protocol::OpenaiResponses, Platform::OpenAi, model));
    }
    if ends(&["/api/chat"]) {
        return Some((Protocol::Ollama, Platform::Ollama, model));
    }
    if ends(&["/messages"]) {
        return Some((Protocol::Anthropic, Platform::Anthropic, model));
    }
    if ends(&["/converse", "/converse-stream"]) {
        let model = named("/model/")?;
        return Some((Protocol::Bedrock, Platform::Bedrock, model.rsplit_once('/')?.0.to_owned()));
    }
    let model = named("/models/")?.rsplit_once(':')?.0.to_owned();
    if ends(&[":rawPredict", ":streamRawPredict"]) {
        return Some((Protocol::Anthropic, Platform::Vertex, model));
    }
    let platform = if path.contains("/publishers/google/") { Platform::Vertex } else { Platform::Gemini };
    ends(&[":generateContent", ":streamGenerateContent"]).then_some((Protocol::Gemini, platform, model))
}
