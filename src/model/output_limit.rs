//! The default output limit of servers on this machine, which may have none: a model that does not
//! stop would answer until its context window is full.

use super::endpoint::Endpoint;
use super::error::{Cause, ModelError};
use super::wire_formats::wire_format;

/// Default output limit of a server on this machine, in tokens, unless its context window is less
/// than twice as large.
const MODEL_LOCAL_OUTPUT_TOKENS_MAX: u32 = 16_384;

/// Names of the limit in requests and errors of servers.
const FIELDS: &[&str] = &["max_tokens", "max_completion_tokens", "max_new_tokens"];

/// Returns the endpoint with the default limit, if the user has set no limit and the endpoint is a
/// chat server on this machine, or Ollama. `window` is the size of its context window in tokens.
pub(crate) fn with_default(endpoint: &Endpoint, window: u64) -> Option<Endpoint> {
    let set = endpoint.max_output_tokens.is_some() || FIELDS.iter().any(|field| endpoint.body.contains_key(*field));
    if set || !wire_format(endpoint.protocol).lacks_output_limit.includes(endpoint) {
        return None;
    }
    let half = u32::try_from(window / 2).unwrap_or(u32::MAX);
    let limit = endpoint.output_limit.unwrap_or(u32::MAX).min(half).min(MODEL_LOCAL_OUTPUT_TOKENS_MAX);
    Some(Endpoint { max_output_tokens: Some(limit), ..endpoint.clone() })
}

/// Returns whether the server may accept the request without the limit. Some servers, such as vLLM,
/// reject a request if the prompt and the limit together exceed the context window.
pub(crate) fn is_refused(error: &ModelError) -> bool {
    matches!(error.cause, Cause::ContextOverflow { .. } | Cause::BadRequest)
        && FIELDS.iter().chain(&["the completion"]).any(|name| error.message.contains(name))
}
