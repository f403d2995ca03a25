//! The section `[budget]`: limits of each turn, and of each session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Value;

use crate::content::{BudgetLimits, Cost};

/// Default of the setting `budget.max_requests`: model requests per turn.
const TURN_REQUESTS_MAX: u64 = 200;

/// Limits of each turn, and of each session (`session_…`). 0 is no limit. When a limit is reached,
/// nuncio asks whether to continue; without a client that can answer, the turn stops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Model requests of a turn.
    pub max_requests: u64,
    /// Input and output tokens of a turn, as counted by the provider.
    pub max_tokens: u64,
    /// Cost of a turn in US dollars. Requests without a known price do not count.
    pub max_cost: f64,
    /// Seconds of a turn.
    pub max_wall_s: u64,
    /// Model requests of a session.
    pub session_max_requests: u64,
    /// Input and output tokens of a session, as counted by the provider.
    pub session_max_tokens: u64,
    /// Cost of a session in US dollars. Requests without a known price do not count.
    pub session_max_cost: f64,
    /// Seconds in which a turn of the session runs.
    pub session_max_wall_s: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_requests: TURN_REQUESTS_MAX,
            max_tokens: 0,
            max_cost: 0.0,
            max_wall_s: 0,
            session_max_requests: 0,
            session_max_tokens: 0,
            session_max_cost: 0.0,
            session_max_wall_s: 0,
        }
    }
}

impl Budget {
    pub(crate) fn limits(&self) -> BudgetLimits {
        BudgetLimits {
            max_requests: Some(self.max_requests),
            max_tokens: Some(self.max_tokens),
            max_cost: Some(Cost::from(self.max_cost)),
            max_wall_s: Some(self.max_wall_s),
            session_max_requests: Some(self.session_max_requests),
            session_max_tokens: Some(self.session_max_tokens),
            session_max_cost: Some(Cost::from(self.session_max_cost)),
            session_max_wall_s: Some(self.session_max_wall_s),
        }
    }

    /// Rejects costs that are negative or not finite.
    pub(super) fn check(&self) -> Result<(), String> {
        let costs = [("max_cost", self.max_cost), ("session_max_cost", self.session_max_cost)];
        match costs.iter().find(|(_, cost)| !(*cost >= 0.0 && cost.is_finite())) {
            Some((name, _)) => Err(format!("budget.{name}: must be 0 or more")),
            None => Ok(()),
        }
    }

    /// Returns whether a project may set the limit `name` to `value`: the value limits no less than
    /// the user's.
    pub(super) fn allows(&self, name: &str, value: &Value) -> bool {
        let number = |value: &Value| value.as_float().or_else(|| value.as_integer().map(|integer| integer as f64));
        let own = Value::try_from(self).ok().and_then(|table| number(table.get(name)?)).unwrap_or_default();
        number(value).is_some_and(|value| value > 0.0 && (own == 0.0 || value <= own))
    }
}
