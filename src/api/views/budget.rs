//! The field `budget` of params.

use serde_json::{Map, Value};

use crate::api::dispatch::params::decode;
use crate::content::BudgetLimits;
use crate::error::{Error, Result};

/// Reads the field `budget`; `None` if it is absent.
pub(in crate::api) fn read(field: Option<Value>) -> Result<Option<BudgetLimits>> {
    let Some(value) = field else { return Ok(None) };
    let fields = value.as_object().map(Map::keys).into_iter().flatten();
    if let Some(unknown) = fields.into_iter().find(|name| !BudgetLimits::FIELDS.contains(&name.as_str())) {
        let known = format!("the fields are {}", BudgetLimits::FIELDS.join(", "));
        return Err(Error::invalid_params(format!("budget.{unknown}: unknown field")).hint(known));
    }
    let costs = ["maxCost", "sessionMaxCost"].iter().filter_map(|name| value[name].as_f64());
    if costs.into_iter().any(|cost| cost < 0.0) {
        return Err(Error::invalid_params("budget: a cost must be 0 or more"));
    }
    decode("budget", value).map(Some)
}
