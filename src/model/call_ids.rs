//! Ids of tool calls in requests. An id of another model may not be acceptable to the model that
//! reads it.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::endpoint::{Endpoint, Protocol};

/// The ids of tool calls that a model accepts.
#[derive(Clone, Copy)]
pub(crate) enum CallIds {
    /// Exactly nine letters and digits: Mistral's API, and the chat templates of its models on any
    /// server.
    Nine,
    /// The ids of Kimi, `functions.NAME:INDEX`, which its models must see again as they are.
    Kimi,
    /// 1 to this number of letters, digits, `_` and `-`.
    Plain(usize),
}

/// Names of Mistral's models. Their chat template, also on other servers, requires ids of nine
/// letters and digits, and refuses a message of the user after tool results.
const MISTRAL: &[&str] = &["mistral", "ministral", "devstral", "codestral", "magistral", "mixtral", "pixtral"];

impl CallIds {
    /// Returns the kind of ids that the model of `endpoint` accepts. `length` is the limit of the
    /// protocol.
    pub(crate) fn new(endpoint: &Endpoint, length: usize) -> CallIds {
        match is_mistral(endpoint) {
            true => CallIds::Nine,
            false if endpoint.protocol == Protocol::OpenaiChat && endpoint.model.to_lowercase().contains("kimi") => CallIds::Kimi,
            false => CallIds::Plain(length),
        }
    }

    /// Returns `id` if the model accepts it, else a hash of nine letters and digits, which every
    /// model accepts.
    pub(crate) fn fit(self, id: &str) -> Cow<'_, str> {
        let fits = match self {
            CallIds::Nine => id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
            CallIds::Kimi => id.strip_prefix("functions.").is_some_and(|rest| rest.contains(':')) || is_plain(id, 64),
            CallIds::Plain(length) => is_plain(id, length),
        };
        if fits { Cow::Borrowed(id) } else { Cow::Owned(CallIds::hashed(id)) }
    }

    pub(super) fn hashed(id: &str) -> String {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let mut rest = hasher.finish();
        let letters = (0..9).map(|_| {
            let digit = (rest % 36) as u32;
            rest /= 36;
            char::from_digit(digit, 36).expect("less than 36")
        });
        letters.collect()
    }
}

/// Returns whether the provider or the model is Mistral's.
pub(super) fn is_mistral(endpoint: &Endpoint) -> bool {
    let model = endpoint.model.to_lowercase();
    endpoint.provider() == "mistral" || MISTRAL.iter().any(|name| model.contains(name))
}

fn is_plain(id: &str, length: usize) -> bool {
    (1..=length).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
