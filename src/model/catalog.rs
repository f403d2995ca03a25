//! Properties of models by name, from the catalogue in catalog.json.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::config::{Ability, Price};
use crate::options::Thinking;

/// Context window of local servers that do not report theirs, in tokens.
pub(crate) const LOCAL_CONTEXT_WINDOW: u64 = 32_768;
/// Context window of unknown models, in tokens.
pub(crate) const CONTEXT_WINDOW: u64 = 128_000;
/// Maximum size of an answer of an unknown model, in tokens, for protocols that require a value.
pub(crate) const MAX_OUTPUT_TOKENS: u32 = 8_192;

/// The limits and the price of a model. An absent one is unknown.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelLimits {
    /// Maximum size of a request, in tokens.
    pub context_window: Option<u64>,
    /// Maximum size of an answer, in tokens.
    pub max_output_tokens: Option<u32>,
    pub price: Option<Price>,
}

impl ModelLimits {
    /// Completes missing ones from `other`.
    pub(crate) fn or(self, other: ModelLimits) -> ModelLimits {
        ModelLimits {
            context_window: self.context_window.or(other.context_window),
            max_output_tokens: self.max_output_tokens.or(other.max_output_tokens),
            price: self.price.or(other.price),
        }
    }
}

/// Properties of a model. An absent property is unknown.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ModelProperties {
    #[serde(flatten)]
    pub limits: ModelLimits,
    pub abilities: Option<Vec<Ability>>,
    /// The thinking levels that the model accepts, in ascending order.
    pub thinking: Vec<Thinking>,
}

/// The catalogue: one row per line.
const CATALOG: &str = include_str!("catalog.json");

/// The id or the prefix of a row, and the row as JSON.
type RowText = (&'static str, &'static str);

/// Returns the rows that begin with a field of this name: the value of the field, and the row. Only
/// the rows that are used are parsed.
fn rows(field: &str) -> impl Iterator<Item = RowText> + Clone {
    let start = format!("{{\"{field}\":\"");
    CATALOG.lines().filter_map(move |line| {
        let (value, _) = line.strip_prefix(&start)?.split_once('"')?;
        Some((value, line.trim_end_matches(',')))
    })
}

/// Parses a row: the properties of a model, or of models without a row whose name begins with a
/// prefix.
fn parse(row: &str) -> ModelProperties {
    serde_json::from_str(row).unwrap_or_default()
}

/// Returns the properties of the model `id` (`PROVIDER/NAME`). The first source that exists
/// applies: the row of the model; the row of a model with the same name, without the price of
/// another provider; the family.
pub fn properties(id: &str) -> ModelProperties {
    let models = rows("id");
    if let Some((_, row)) = models.clone().find(|(found, _)| *found == id) {
        return parse(row);
    }
    let name = canonical_name(id);
    let named: Vec<_> = models.filter(|(found, _)| canonical_name(found) == name).collect();
    similar(id, &name, &named, rows("prefix"))
}

/// Returns the properties of a model without a row. `named` are the rows with the same canonical
/// name.
fn similar(id: &str, name: &str, named: &[RowText], families: impl Iterator<Item = RowText>) -> ModelProperties {
    if let Some((_, row)) = named.iter().find(|(found, _)| provider(found) == provider(id)) {
        return parse(row);
    }
    if let Some((_, row)) = named.first() {
        let properties = parse(row);
        return ModelProperties { limits: ModelLimits { price: None, ..properties.limits }, ..properties };
    }
    let families = families.filter(|(prefix, _)| begins_with(name, prefix));
    families.max_by_key(|(prefix, _)| prefix.len()).map(|(_, row)| parse(row)).unwrap_or_default()
}

/// An index of the catalogue, for the properties of many models.
pub(crate) struct Index {
    ids: HashMap<&'static str, &'static str>,
    names: HashMap<String, Vec<RowText>>,
    families: Vec<RowText>,
}

impl Index {
    pub(crate) fn new() -> Index {
        let mut names: HashMap<String, Vec<RowText>> = HashMap::new();
        for (id, row) in rows("id") {
            names.entry(canonical_name(id)).or_default().push((id, row));
        }
        Index { ids: rows("id").collect(), names, families: rows("prefix").collect() }
    }

    /// Returns what [`properties`] returns.
    pub(crate) fn properties(&self, id: &str) -> ModelProperties {
        if let Some(row) = self.ids.get(id) {
            return parse(row);
        }
        let name = canonical_name(id);
        let named = self.names.get(&name).map_or(&[][..], Vec::as_slice);
        similar(id, &name, named, self.families.iter().copied())
    }
}

/// Returns the names of a provider's models in the catalogue.
pub(crate) fn names(provider: &str) -> impl Iterator<Item = &'static str> {
    rows("id").filter_map(move |(id, _)| id.strip_prefix(provider)?.strip_prefix('/'))
}

fn provider(id: &str) -> &str {
    id.split_once('/').map_or("", |(provider, _)| provider)
}

/// Returns whether the name starts with `prefix`, and `prefix` ends where a part of the name ends:
/// `gpt-4-1` is no prefix of `gpt-4-1106`.
fn begins_with(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()) || prefix.ends_with('-'))
}

/// Returns the name of a model without its provider, vendor, version date and variant, with `.`
/// replaced by `-`: `claude-sonnet-4-5` for `bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
fn canonical_name(model: &str) -> String {
    let mut name = model.rsplit('/').next().unwrap_or(model);
    // Regions and vendors of Bedrock.
    while let Some((_, rest)) = name.split_once('.').filter(|(vendor, _)| vendor.bytes().all(|byte| byte.is_ascii_lowercase())) {
        name = rest;
    }
    let name = name.split([':', '@']).next().unwrap_or(name);
    let name = name.strip_suffix("-v1").unwrap_or(name).to_ascii_lowercase().replace('.', "-");
    without_date(&name).to_owned()
}

/// Removes a date at the end: `-20250929` or `-2025-09-29`.
fn without_date(name: &str) -> &str {
    let is_number = |text: &str, digits: usize| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((rest, _)) = name.rsplit_once('-').filter(|(_, date)| is_number(date, 8)) {
        return rest;
    }
    let parts: Vec<&str> = name.rsplitn(4, '-').collect();
    match parts[..] {
        [day, month, year, rest] if is_number(day, 2) && is_number(month, 2) && is_number(year, 4) => rest,
        _ => name,
    }
}

/// Returns the name of a model for comparisons with prefixes: without a vendor prefix, and with `.`
/// replaced by `-`.
pub(crate) fn bare_name(model: &str) -> Cow<'_, str> {
    let name = model.rsplit('/').next().unwrap_or(model);
    if name.contains('.') { Cow::Owned(name.replace('.', "-")) } else { Cow::Borrowed(name) }
}
