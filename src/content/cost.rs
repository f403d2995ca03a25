//! Amounts of money, exact in sums.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// US dollars, in units of 10⁻⁹. In JSON, a number of dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(from = "f64", into = "f64")]
#[schemars(with = "f64")]
pub struct Cost(u64);

impl Cost {
    /// Creates an amount from units of 10⁻¹⁵ dollars, rounded.
    pub(crate) fn of_femto_dollars(amount: u128) -> Cost {
        Cost(u64::try_from((amount + 500_000) / 1_000_000).unwrap_or(u64::MAX))
    }

    /// Creates an amount from units of 10⁻⁹ dollars.
    pub(crate) fn of_nano_dollars(amount: u64) -> Cost {
        Cost(amount)
    }

    /// Returns the amount in units of 10⁻⁹ dollars.
    pub(crate) fn nano_dollars(self) -> u64 {
        self.0
    }

    /// Adds two amounts. If one is unknown, returns the other.
    pub(crate) fn sum(one: Option<Cost>, other: Option<Cost>) -> Option<Cost> {
        one.zip(other).map(|(one, other)| one + other).or(one).or(other)
    }

    /// Returns the amount in dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// Negative and invalid numbers become 0.
impl From<f64> for Cost {
    fn from(dollars: f64) -> Cost {
        // The conversion saturates.
        Cost((dollars * 1e9).round() as u64)
    }
}

impl From<Cost> for f64 {
    fn from(cost: Cost) -> f64 {
        cost.dollars()
    }
}

impl std::ops::Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost(self.0.saturating_add(other.0))
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        *self = *self + other;
    }
}

/// Formats as dollars with at least two decimals, and with two significant digits below a dollar:
/// `$1.25`, `$0.034`.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.dollars();
        let decimals = if self.0 == 0 || dollars >= 0.1 { 2 } else { (1.0 - dollars.log10().floor()) as usize };
        write!(f, "${dollars:.decimals$}")
    }
}
