//! Budgets in the params of methods.

use schemars::Schema;
use serde_json::{Map, Value};

use crate::api::dispatch::params::decode;
use crate::api::dispatch::schemas::inlined;
use crate::content::BudgetLimits;
use crate::error::{Error, Result};
use crate::protocol::acp;

/// Reads a budget. `field` is its name in the params.
pub(in crate::api) fn read(field: &str, value: Value) -> Result<BudgetLimits> {
    let fields = value.as_object().map(Map::keys).into_iter().flatten();
    if let Some(unknown) = fields.into_iter().find(|name| !BudgetLimits::FIELDS.contains(&name.as_str())) {
        let known = format!("the fields are {}", BudgetLimits::FIELDS.join(", "));
        return Err(Error::invalid_params(format!("{field}.{unknown}: unknown field")).hint(known));
    }
    let costs = ["maxCost", "sessionMaxCost"].iter().filter_map(|name| value[name].as_f64());
    if costs.into_iter().any(|cost| cost < 0.0) {
        return Err(Error::invalid_params(format!("{field}: a cost must be 0 or more")));
    }
    decode(field, value)
}

/// Reads the field `_meta.nuncio.budget` of a prompt; `None` if it is absent or `null`.
pub(in crate::api) fn of_prompt(meta: Option<&acp::Meta>) -> Result<Option<BudgetLimits>> {
    let given = meta.and_then(|meta| meta.get("nuncio")?.get("budget")).filter(|budget| !budget.is_null());
    given.map(|budget| read("_meta.nuncio.budget", budget.clone())).transpose()
}

/// Adds the field `budget` to the schema of params.
pub(in crate::api) fn add_to_schema(params: &mut Schema) {
    if let Some(Value::Object(properties)) = params.get_mut("properties") {
        properties.insert("budget".into(), inlined::<BudgetLimits>().to_value());
    }
}
