//! Limits of model requests, tokens, cost and time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Cost;

/// Limits of a turn, and of the session (`session…`). An absent limit is inherited: a turn's from
/// its session, a session's from the settings. 0 is no limit. Costs are in US dollars.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "Budget")]
#[non_exhaustive]
pub struct BudgetLimits {
    /// Model requests.
    pub max_requests: Option<u64>,
    /// Input and output tokens, as counted by the provider.
    pub max_tokens: Option<u64>,
    /// US dollars.
    pub max_cost: Option<Cost>,
    /// Seconds.
    pub max_wall_s: Option<u64>,
    /// Model requests.
    pub session_max_requests: Option<u64>,
    /// Input and output tokens, as counted by the provider.
    pub session_max_tokens: Option<u64>,
    /// US dollars.
    pub session_max_cost: Option<Cost>,
    /// Seconds in which a turn runs.
    pub session_max_wall_s: Option<u64>,
}

/// A limit of a budget. Amounts of cost are in nano-dollars, amounts of time in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetLimit {
    pub resource: Resource,
    /// True if the limit applies to the session, not to the turn.
    pub session: bool,
}

/// A resource that a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Requests,
    Tokens,
    Cost,
    Time,
}

impl Resource {
    /// Formats an amount for display without its unit: `200`, `$1.25`.
    pub(crate) fn number(self, amount: u64) -> String {
        match self {
            Resource::Cost => self.show(amount),
            Resource::Requests | Resource::Tokens | Resource::Time => amount.to_string(),
        }
    }

    /// Formats an amount for display: `200 model requests`.
    pub(crate) fn show(self, amount: u64) -> String {
        match self {
            Resource::Requests => format!("{amount} model requests"),
            Resource::Tokens => format!("{amount} tokens"),
            Resource::Cost => Cost::of_nano_dollars(amount).to_string(),
            Resource::Time => format!("{amount} s"),
        }
    }
}

impl BudgetLimits {
    /// The names of the fields.
    pub(crate) const FIELDS: &[&str] = &[
        "maxRequests",
        "maxTokens",
        "maxCost",
        "maxWallS",
        "sessionMaxRequests",
        "sessionMaxTokens",
        "sessionMaxCost",
        "sessionMaxWallS",
    ];

    /// Returns these limits; limits that are not set are taken from `other`.
    pub(crate) fn or(self, other: BudgetLimits) -> BudgetLimits {
        BudgetLimits {
            max_requests: self.max_requests.or(other.max_requests),
            max_tokens: self.max_tokens.or(other.max_tokens),
            max_cost: self.max_cost.or(other.max_cost),
            max_wall_s: self.max_wall_s.or(other.max_wall_s),
            session_max_requests: self.session_max_requests.or(other.session_max_requests),
            session_max_tokens: self.session_max_tokens.or(other.session_max_tokens),
            session_max_cost: self.session_max_cost.or(other.session_max_cost),
            session_max_wall_s: self.session_max_wall_s.or(other.session_max_wall_s),
        }
    }

    /// Returns the limits of the session only.
    pub(crate) fn of_session(self) -> BudgetLimits {
        BudgetLimits { max_requests: None, max_tokens: None, max_cost: None, max_wall_s: None, ..self }
    }

    /// Returns the limits of the turn only.
    pub(crate) fn of_turn(self) -> BudgetLimits {
        let BudgetLimits { max_requests, max_tokens, max_cost, max_wall_s, .. } = self;
        BudgetLimits { max_requests, max_tokens, max_cost, max_wall_s, ..BudgetLimits::default() }
    }

    /// Returns the amount of a limit, or `None` if the limit is not set. A cost is in units of 10⁻⁹
    /// dollars, a time is in seconds.
    pub(crate) fn get(&self, limit: BudgetLimit) -> Option<u64> {
        let nanos = |cost: Option<Cost>| cost.map(Cost::nano_dollars);
        match (limit.resource, limit.session) {
            (Resource::Requests, false) => self.max_requests,
            (Resource::Tokens, false) => self.max_tokens,
            (Resource::Cost, false) => nanos(self.max_cost),
            (Resource::Time, false) => self.max_wall_s,
            (Resource::Requests, true) => self.session_max_requests,
            (Resource::Tokens, true) => self.session_max_tokens,
            (Resource::Cost, true) => nanos(self.session_max_cost),
            (Resource::Time, true) => self.session_max_wall_s,
        }
    }

    /// Sets the amount of a limit.
    pub(crate) fn set(&mut self, limit: BudgetLimit, amount: u64) {
        let cost = Cost::of_nano_dollars(amount);
        match (limit.resource, limit.session) {
            (Resource::Requests, false) => self.max_requests = Some(amount),
            (Resource::Tokens, false) => self.max_tokens = Some(amount),
            (Resource::Cost, false) => self.max_cost = Some(cost),
            (Resource::Time, false) => self.max_wall_s = Some(amount),
            (Resource::Requests, true) => self.session_max_requests = Some(amount),
            (Resource::Tokens, true) => self.session_max_tokens = Some(amount),
            (Resource::Cost, true) => self.session_max_cost = Some(cost),
            (Resource::Time, true) => self.session_max_wall_s = Some(amount),
        }
    }
}

impl BudgetLimit {
    /// Describes the parameter of a client's request that gives the limit, and the flag.
    pub(crate) fn parameter(self) -> String {
        let (flag, field) = match self.resource {
            Resource::Requests => (Some("--max-requests"), "maxRequests"),
            Resource::Tokens => (Some("--max-tokens"), "maxTokens"),
            Resource::Cost => (Some("--max-cost"), "maxCost"),
            Resource::Time => (None, "maxWallS"),
        };
        match flag.filter(|_| !self.session) {
            Some(flag) => format!("{flag} of the command, or {field} of the request"),
            None if self.session => format!("session{}{} of the request", field[..1].to_uppercase(), &field[1..]),
            None => format!("{field} of the request"),
        }
    }

    /// Returns the name of the setting in `[budget]`.
    pub(crate) fn name(self) -> String {
        let name = match self.resource {
            Resource::Requests => "max_requests",
            Resource::Tokens => "max_tokens",
            Resource::Cost => "max_cost",
            Resource::Time => "max_wall_s",
        };
        format!("{}{name}", if self.session { "session_" } else { "" })
    }
}
