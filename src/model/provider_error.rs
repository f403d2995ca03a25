//! Errors that providers report: the message, the cause and the requested pause.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use serde::Deserialize;
use serde_json::Value;

use super::classify::classify;
use super::endpoint::Endpoint;
use super::error::{Cause, ModelError, Retry};
use super::providers::provider;
use crate::limits::MODEL_ERROR_CHARS_MAX;
use crate::web::is_loopback;

/// The common fields of the error objects of all providers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ProviderError {
    pub message: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// An error code (OpenAI) or an HTTP status (Gemini, OpenRouter).
    pub code: Option<Value>,
    pub status: Option<Value>,
    /// OpenRouter: `raw` is the error of the provider behind it.
    pub metadata: Option<Value>,
    /// llama.cpp: tokens of the request, and of the context window.
    pub n_prompt_tokens: Option<Value>,
    pub n_ctx: Option<Value>,
}

impl ProviderError {
    /// Reads an error object, or the text of a message.
    pub(crate) fn read(error: Value) -> ProviderError {
        let message = error.as_str().map(str::to_owned);
        ProviderError::deserialize(error).unwrap_or_else(|_| ProviderError { message, ..ProviderError::default() })
    }

    /// Converts an error event in a stream to a [`ModelError`].
    pub(crate) fn error(self) -> ModelError {
        let cause = classify(self.http_status(), &self.text(""));
        let message = self.full_message().unwrap_or_else(|| self.words().join(" "));
        ModelError::from_cause(cause, if message.is_empty() { "the provider reported an error".to_owned() } else { message })
    }

    /// Returns the HTTP status in `code`, which is a number or text.
    fn http_status(&self) -> Option<u16> {
        let code = self.code.as_ref()?;
        let code = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
        u16::try_from(code).ok().filter(|code| (300..600).contains(code))
    }

    /// Returns the error codes.
    fn words(&self) -> Vec<&str> {
        [self.kind.as_deref(), word(&self.code), word(&self.status)].into_iter().flatten().collect()
    }

    /// Returns the message, followed by OpenRouter's `raw`: the error of the provider behind it.
    fn full_message(&self) -> Option<String> {
        let raw = self.metadata.as_ref().and_then(|metadata| metadata["raw"].as_str());
        match (self.message.as_deref().filter(|message| !message.is_empty()), raw) {
            (Some(message), Some(raw)) => Some(format!("{message}: {raw}")),
            (message, raw) => message.or(raw).map(str::to_owned),
        }
    }

    /// Returns the text to classify: error codes, numbers and message, in lower case. `header` is
    /// an error code from the header.
    fn text(&self, header: &str) -> String {
        let mut lines: Vec<String> = self.words().into_iter().map(str::to_owned).collect();
        lines.push(header.to_owned());
        for (name, number) in [("n_prompt_tokens", &self.n_prompt_tokens), ("n_ctx", &self.n_ctx)] {
            lines.extend(number.as_ref().map(|number| format!("\"{name}\":{number}")));
        }
        lines.extend(self.full_message());
        lines.join("\n").to_lowercase()
    }
}

/// Returns the error of an event that has no field of its protocol: `{"error": …}`, vLLM's
/// `{"object": "error", "message": …}`, MiniMax's `base_resp`, or a bare error object.
pub(crate) fn event_error(event: &str) -> Option<ModelError> {
    let mut event: Value = serde_json::from_str(event).ok()?;
    let is_error = event["object"] == "error" || event["type"] == "error";
    let has_code = ["code", "status", "type"].iter().any(|name| !event[*name].is_null());
    let response = &event["base_resp"];
    if !event["error"].is_null() {
        return Some(ProviderError::read(event["error"].take()).error());
    }
    if response["status_msg"].is_string() && response["status_code"].as_i64().is_some_and(|code| code != 0) {
        return Some(ProviderError::read(response["status_msg"].clone()).error());
    }
    (is_error || has_code && event["message"].is_string()).then(|| ProviderError::read(event).error())
}

fn word(value: &Option<Value>) -> Option<&str> {
    value.as_ref().and_then(Value::as_str)
}

/// Creates the error for a document with an error object and a status of success.
pub(crate) fn document_error(body: &str) -> ModelError {
    let error = parse_error_body(body).error();
    if error.cause == Cause::Other { ModelError::from_cause(Cause::InvalidAnswer, error.message) } else { error }
}

/// Creates the error for a response without a status of success: cause, message, retry policy and
/// hint.
pub(crate) fn response_error(endpoint: &Endpoint, status: u16, headers: &HeaderMap, body: &str) -> ModelError {
    if let Some(target) = redirect(endpoint, headers).filter(|_| (300..400).contains(&status)) {
        return ModelError::from_cause(Cause::BadRequest, format!("the server redirects to {target} (HTTP {status})"))
            .hint("redirects are not followed, because requests contain the key: correct base_url if the target is right");
    }
    let error = parse_error_body(body);
    let header = headers.get("x-amzn-errortype").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let pause = retry_after(headers, body);
    let cause = match classify(Some(status), &error.text(header)) {
        // A quota that is free again after a pause is a rate limit.
        Cause::Quota if status == 429 && pause.is_some() && !error.words().contains(&"insufficient_quota") => Cause::RateLimit,
        cause => cause,
    };
    // Mask before shortening: a truncated key would not be recognized.
    let message = endpoint.masked(&error.full_message().unwrap_or_default());
    let message: String = message.chars().take(MODEL_ERROR_CHARS_MAX).collect();
    let what = description(cause, status);
    let message = if message.is_empty() { format!("{what} (HTTP {status})") } else { format!("{what} (HTTP {status}): {message}") };
    let mut error = ModelError::from_cause(cause, message);
    error.retry = match (error.retry, pause) {
        (Retry::Wait(_) | Retry::Backoff, Some(pause)) => Retry::Wait(Some(pause)),
        (retry, _) => retry,
    };
    match response_hint(endpoint, cause, status) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Returns the target of a redirect, without its query.
fn redirect(endpoint: &Endpoint, headers: &HeaderMap) -> Option<String> {
    let location = headers.get(LOCATION)?.to_str().ok()?;
    let mut target = reqwest::Url::parse(&endpoint.base_url).ok()?.join(location).ok()?;
    target.set_query(None);
    Some(endpoint.masked(target.as_str()))
}

/// Returns the start of the error message.
fn description(cause: Cause, status: u16) -> &'static str {
    match (cause, status) {
        (Cause::ContextOverflow { .. }, _) => "the conversation exceeds the model's context window",
        (Cause::Authentication, _) => "the key was refused",
        (Cause::Quota, _) => "the quota is used up",
        (Cause::RateLimit, _) => "too many requests",
        (Cause::UnknownModel, _) => "the provider does not offer this model",
        (Cause::Overloaded, _) => "the server is overloaded or not ready",
        (Cause::ContentFilter, _) => "the content filter of the provider rejected the request",
        (_, 404) => "not found",
        (_, 300..=399) => "the server sent a redirect",
        (Cause::BadRequest | Cause::InvalidAnswer | Cause::Other, _) => "the request failed",
    }
}

/// Returns what the user can do about the failure, if that depends on the endpoint.
fn response_hint(endpoint: &Endpoint, cause: Cause, status: u16) -> Option<String> {
    let local = is_loopback(&endpoint.base_url);
    match (cause, status) {
        (Cause::Authentication, _) => Some(match endpoint.credentials.origin() {
            Some(origin) => format!("check {origin}"),
            None => {
                let known = provider(endpoint.provider()).and_then(|provider| provider.key_env.first());
                format!("the server requires a key: set {}", known.unwrap_or(&"api_key_env"))
            }
        }),
        (Cause::ContextOverflow { .. }, _) if local => {
            let hint = cause.hint().unwrap_or_default();
            Some(format!("{hint}, or start the server with a larger context window"))
        }
        (Cause::UnknownModel, _) | (Cause::BadRequest, 404) => {
            Some(format!("check the model's name ({}) and base_url ({})", endpoint.model, endpoint.base_url))
        }
        (Cause::BadRequest, 300..=399) => Some("check base_url".to_owned()),
        _ => None,
    }
}

/// Parses the error in a body: `{"error":{…}}`, `{"error":"…"}`, a bare error object, or an array
/// of these. Any other body, for example `{"detail":"…"}`, is used as the message.
fn parse_error_body(body: &str) -> ProviderError {
    let text = || ProviderError { message: Some(body.trim().to_owned()), ..ProviderError::default() };
    let Ok(mut value) = serde_json::from_str::<Value>(body) else {
        return text();
    };
    if let Some(first) = value.get_mut(0) {
        value = first.take();
    }
    let error = match value.get_mut("error") {
        Some(error) => error.take(),
        None => value,
    };
    match error {
        Value::String(message) => ProviderError { message: Some(message), ..ProviderError::default() },
        error => ProviderError::deserialize(error).ok().filter(|error| error.message.is_some()).unwrap_or_else(text),
    }
}

/// Returns the delay that the provider requests: `retry-after-ms`, `retry-after` (seconds or a
/// date, RFC 9110, section 10.2.3), or Gemini's `retryDelay` (google.rpc.RetryInfo).
fn retry_after(headers: &HeaderMap, body: &str) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str| text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let delay = text("retry-after-ms").and_then(seconds).map(|delay| delay / 1000);
    let delay = delay.or_else(|| {
        let text = text(RETRY_AFTER.as_str())?;
        seconds(text).or_else(|| Some(httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).unwrap_or_default()))
    });
    delay.or_else(|| {
        let (_, rest) = body.split_once("\"retryDelay\"")?;
        seconds(rest.trim_start_matches([':', ' ', '"']).split_once("s\"")?.0)
    })
}
