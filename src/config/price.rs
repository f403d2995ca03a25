//! Prices of models, and the cost of a request.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::content::{Cost, Usage};

/// Price of a model in US dollars per million tokens.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub output: f64,
    /// Input that is read from the provider's cache. Default: as `input`.
    pub cache_read: Option<f64>,
    /// Input that is written to the provider's cache. Default: as `input`.
    pub cache_write: Option<f64>,
    /// The prices of a request with a larger input.
    pub above: Option<PriceAbove>,
}

impl Price {
    /// Rejects prices that are negative or not finite. `setting` is the name of the price in the
    /// settings.
    pub(super) fn check(&self, setting: &str) -> Result<(), String> {
        let Price { input, output, cache_read, cache_write, above } = self;
        let own = [("input", Some(*input)), ("output", Some(*output)), ("cache_read", *cache_read), ("cache_write", *cache_write)];
        let above = above.iter().flat_map(|above| {
            let PriceAbove { tokens: _, input, output, cache_read, cache_write } = above;
            [
                ("above.input", Some(*input)),
                ("above.output", Some(*output)),
                ("above.cache_read", *cache_read),
                ("above.cache_write", *cache_write),
            ]
        });
        let is_valid = |price: f64| price >= 0.0 && price.is_finite();
        match own.into_iter().chain(above).find(|(_, price)| price.is_some_and(|price| !is_valid(price))) {
            Some((name, _)) => Err(format!("{setting}.{name}: must be 0 or more")),
            None => Ok(()),
        }
    }

    /// Calculates the cost of a request with these tokens.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let above = self.above.as_ref().filter(|above| usage.input_tokens > above.tokens);
        let (input, output, read, write) = match above {
            Some(above) => (above.input, above.output, above.cache_read, above.cache_write),
            None => (self.input, self.output, self.cache_read, self.cache_write),
        };
        let plain = usage.input_tokens.saturating_sub(usage.cache_read_tokens).saturating_sub(usage.cache_write_tokens);
        let amounts = [
            (plain, input),
            (usage.cache_read_tokens, read.unwrap_or(input)),
            (usage.cache_write_tokens, write.unwrap_or(input)),
            (usage.output_tokens, output),
        ];
        // A price in dollars per million tokens is one of 10⁻⁶ dollars per token. The conversion
        // saturates.
        let femto = |price: f64| (price * 1e9).round() as u64;
        Cost::of_femto_dollars(amounts.iter().map(|(tokens, price)| u128::from(*tokens) * u128::from(femto(*price))).sum())
    }
}

/// The prices of requests whose input is larger than `tokens`.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceAbove {
    pub tokens: u64,
    pub input: f64,
    pub output: f64,
    pub cache_read: Option<f64>,
    pub cache_write: Option<f64>,
}
