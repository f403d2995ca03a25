//! Classifies errors from providers: error message, retry policy and delay.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde::Deserialize;
use serde_json::Value;

use super::endpoint::Endpoint;
use super::error::{ModelError, Retry};
use crate::limits::{MODEL_BACKOFF_MAX, MODEL_ERROR_CHARS_MAX};

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
}

impl ProviderError {
    /// Converts an error event in a stream to a [`ModelError`].
    pub(crate) fn error(self) -> ModelError {
        let words: Vec<&str> = [self.kind.as_deref(), word(&self.code), word(&self.status)].into_iter().flatten().collect();
        let retry = match self.code.as_ref().and_then(Value::as_u64) {
            Some(status) => retry_policy(status as u16, &words),
            None if words.iter().any(|word| is_final(word)) => Retry::Never,
            None => Retry::Backoff,
        };
        let message = self.message.clone().unwrap_or_else(|| words.join(" "));
        ModelError::new(retry, if message.is_empty() { "the provider reported an error".to_owned() } else { message })
    }

    /// True if the error is permanent, so that a retry cannot succeed.
    pub(crate) fn is_final(&self) -> bool {
        [self.kind.as_deref(), word(&self.code), word(&self.status)].into_iter().flatten().any(is_final)
    }
}

fn word(value: &Option<Value>) -> Option<&str> {
    value.as_ref().and_then(Value::as_str)
}

/// Prefixes of error codes that mark permanent errors.
const FINAL: &[&str] = &[
    "invalid",
    "authentication",
    "permission",
    "unauthenticated",
    "not_found",
    "model_not_found",
    "billing",
    "insufficient_quota",
    "request_too_large",
    "context_length_exceeded",
    "content_policy",
    "content_filter",
    "failed_precondition",
    "unsupported",
];

fn is_final(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    FINAL.iter().any(|prefix| word.starts_with(prefix))
}

/// The retry policy for an HTTP status and the error codes in its body.
pub(crate) fn retry_policy(status: u16, words: &[&str]) -> Retry {
    match status {
        429 if words.iter().any(|word| is_final(word)) => Retry::Never,
        408 | 409 | 429 | 500.. => Retry::Backoff,
        _ => Retry::Never,
    }
}

/// Creates the error for a response that is not an event stream: error message, retry policy and
/// hint.
pub(crate) fn response_error(endpoint: &Endpoint, status: u16, headers: &HeaderMap, body: &str) -> ModelError {
    let error = parse_error_body(body);
    // Mask before shortening: a truncated key would not be recognized.
    let message = endpoint.masked(error.message.as_deref().unwrap_or_default());
    let message: String = message.chars().take(MODEL_ERROR_CHARS_MAX).collect();
    let describe = |what: &str| match message.is_empty() {
        true => format!("{what} (HTTP {status})"),
        false => format!("{what} (HTTP {status}): {message}"),
    };
    let origin = endpoint.key.as_ref().map(|key| key.origin());
    match status {
        200..=299 => {
            let error = error.error();
            ModelError { message: format!("answered without a stream: {}", error.message), ..error }
        }
        401 | 403 => {
            let hint = origin.map_or("the server requires a key: set api_key_env".to_owned(), |origin| format!("check {origin}"));
            ModelError::new(Retry::Never, describe("the key was refused")).hint(hint).unreachable()
        }
        404 => {
            let hint = format!("check the model's name ({}) and base_url ({})", endpoint.model, endpoint.base_url);
            ModelError::new(Retry::Never, describe("not found")).hint(hint)
        }
        300..=399 => ModelError::new(Retry::Never, describe("the server sent a redirect")).hint("check base_url"),
        _ => {
            let retry = match retry_policy(status, &[]) {
                Retry::Backoff if status == 429 && error.is_final() => Retry::Never,
                Retry::Backoff => retry_after(headers, body).map_or(Retry::Backoff, Retry::After),
                retry => retry,
            };
            ModelError::new(retry, describe(if status == 429 { "too many requests" } else { "the request failed" }))
        }
    }
}

/// Parses the error in a body: `{"error":{…}}`, `{"error":"…"}`, a bare error object, or an array
/// of these. Any other body is used as the message.
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

/// The delay that the provider requests: `retry-after-ms`, `retry-after` (seconds or a date, RFC
/// 9110, section 10.2.3), or Gemini's `retryDelay` (google.rpc.RetryInfo). At most
/// [`MODEL_BACKOFF_MAX`].
fn retry_after(headers: &HeaderMap, body: &str) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str| text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let delay = text("retry-after-ms").and_then(seconds).map(|delay| delay / 1000);
    let delay = delay.or_else(|| {
        let text = text(RETRY_AFTER.as_str())?;
        seconds(text).or_else(|| Some(httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).unwrap_or_default()))
    });
    let delay = delay.or_else(|| {
        let (_, rest) = body.split_once("\"retryDelay\"")?;
        seconds(rest.trim_start_matches([':', ' ', '"']).split_once("s\"")?.0)
    });
    delay.map(|delay| delay.min(MODEL_BACKOFF_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], body: &str, expected: Option<Duration>) {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect();
        assert_eq!(retry_after(&headers, body), expected);
    }

    #[test]
    fn retry_delay_is_read_from_headers_and_body() {
        check(&[], "", None);
        check(&[("retry-after", "2")], "", Some(Duration::from_secs(2)));
        check(&[("retry-after", "2"), ("retry-after-ms", "1500")], "", Some(Duration::from_millis(1500)));
        check(&[("retry-after", "86400")], "", Some(MODEL_BACKOFF_MAX));
        check(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], "", Some(Duration::ZERO));
        check(&[("retry-after", "Thu, 06 Nov 2994 08:49:37 GMT")], "", Some(MODEL_BACKOFF_MAX));
        check(&[("retry-after", "soon")], "", None);
        check(&[], r#"{"error":{"details":[{"retryDelay": "34s"}]}}"#, Some(Duration::from_secs(34)));
    }
}
