//! The settings of the model's context window (`[context]`).

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// Default size of the description of a repository in the first request of a session, in tokens.
const BUNDLE_TOKENS: usize = 1_500;
/// Maximum size of that description, in tokens.
const BUNDLE_TOKENS_MAX: usize = 20_000;

/// The content of model requests: pruning and compaction of the conversation, and the description
/// of the repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextSettings {
    /// Old tool outputs are pruned only if that saves at least this number of tokens. At most an
    /// eighth of the model's context window.
    pub prune_minimum_tokens: u64,
    /// Tokens of the newest tool outputs that are not pruned, in addition to those of the two
    /// newest turns. At most a quarter of the model's context window.
    pub prune_protect_tokens: u64,
    /// Names of tools whose outputs are never pruned.
    pub prune_protected_tools: Vec<String>,
    /// Size of the conversation at which it is replaced by a summary: a share of the model's
    /// context window (up to 1), or a number of tokens (above 1). 0: only if the provider rejects a
    /// request as too large, and on request.
    #[serde(deserialize_with = "compact_at")]
    #[schemars(range(min = 0))]
    pub compact_at: f64,
    /// Maximum size in tokens of the description of a git repository in the first request of a
    /// session: tree, branch, status, languages, entry points, files that fit the prompt. 0: none.
    pub bundle_tokens: usize,
}

impl Default for ContextSettings {
    fn default() -> Self {
        Self {
            prune_minimum_tokens: 20_000,
            prune_protect_tokens: 40_000,
            prune_protected_tools: Vec::new(),
            compact_at: 0.8,
            bundle_tokens: BUNDLE_TOKENS,
        }
    }
}

impl ContextSettings {
    /// Returns the size in tokens at which the conversation is compacted, for a model with this
    /// context window (0: unknown). `None` if the setting is 0, or a share of an unknown window.
    pub(crate) fn compact_at_tokens(&self, context_window: u64) -> Option<u64> {
        let at = self.compact_at;
        let tokens = if at <= 1.0 { (at * context_window as f64) as u64 } else { at as u64 };
        let tokens = if context_window > 0 { tokens.min(context_window) } else { tokens };
        (tokens > 0).then_some(tokens)
    }

    /// Returns [`ContextSettings::prune_minimum_tokens`] and
    /// [`ContextSettings::prune_protect_tokens`], limited for a model with this context window. A
    /// window of 0 is unknown.
    pub(crate) fn prune_tokens(&self, context_window: u64) -> (u64, u64) {
        let window = if context_window > 0 { context_window } else { u64::MAX };
        (self.prune_minimum_tokens.min(window / 8), self.prune_protect_tokens.min(window / 4))
    }
}

fn compact_at<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let at = f64::deserialize(deserializer)?;
    match at.is_finite() && at >= 0.0 {
        true => Ok(at),
        false => Err(serde::de::Error::custom("must be 0, a share of the context window up to 1, or a number of tokens")),
    }
}

/// Rejects sizes above their limits.
pub(super) fn check(settings: &ContextSettings) -> Result<(), String> {
    if settings.bundle_tokens > BUNDLE_TOKENS_MAX {
        return Err(format!("context.bundle_tokens: give at most {}", BUNDLE_TOKENS_MAX));
    }
    Ok(())
}
