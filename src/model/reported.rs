//! The properties of a model that its server reports.

use serde::{Deserialize, Serialize};

/// Properties of a model that a local server reports. `None`: not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Properties {
    /// Context window in tokens.
    pub context_window: Option<u64>,
    /// The model's chat template has tools.
    pub tools: Option<bool>,
    /// The model can think.
    pub thinking: Option<bool>,
}
