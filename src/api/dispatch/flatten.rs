//! Conversion of params and results between nuncio's form, whose fields are all at the top level,
//! and that of ACP, whose `_meta.nuncio` has the fields that ACP does not define.

use serde_json::{Map, Value, json};

use super::method::{MethodRow, Scope};
use crate::api::dispatch::system_prompt;
use crate::error::{Error, Kind, Result};

/// The field of a session's system prompt, which is also read from `_meta`, as in claude-agent-acp.
const SYSTEM_PROMPT: &str = "systemPrompt";
/// The field that ACP has as well, so that it is in both places.
const USAGE: &str = "usage";

impl MethodRow {
    /// Returns whether ACP defines the method.
    pub(crate) fn is_acp(&self) -> bool {
        !self.name.starts_with('_')
    }

    /// Moves the fields in `_meta.nuncio` to the top level, and removes `_meta`.
    pub(crate) fn flatten_params(&self, params: &mut Map<String, Value>) -> Result<()> {
        if !self.is_acp() || !params.get("_meta").is_some_and(|meta| meta.is_object() || meta.is_null()) {
            return Ok(());
        }
        let Some(Value::Object(mut meta)) = params.shift_remove("_meta") else { return Ok(()) };
        if let Some(prompt) = meta.shift_remove(SYSTEM_PROMPT).filter(system_prompt::is_valid) {
            params.entry(SYSTEM_PROMPT).or_insert(prompt);
        }
        let mut ours = match meta.shift_remove("nuncio") {
            Some(Value::Object(ours)) => ours,
            None | Some(Value::Null) => return Ok(()),
            Some(_) if self.meta.refuses_others => return Err(Error::invalid_params("_meta.nuncio: must be an object")),
            Some(_) => return Ok(()),
        };
        for field in self.meta.params {
            let Some(value) = ours.shift_remove(*field).filter(|value| !value.is_null()) else { continue };
            let value = match params.get_mut(*field) {
                Some(given) if *field == SYSTEM_PROMPT => system_prompt::replaced(given.take(), value)?,
                _ => value,
            };
            params.insert((*field).into(), value);
        }
        match ours.keys().next().filter(|_| self.meta.refuses_others) {
            Some(unknown) => {
                let known = format!("the fields are {}", self.meta.params.join(", "));
                Err(Error::invalid_params(format!("_meta.nuncio.{unknown}: unknown field")).hint(known))
            }
            None => Ok(()),
        }
    }

    /// Moves the fields that ACP does not define into `_meta.nuncio`.
    pub(crate) fn nest_params(&self, params: &mut Value) {
        let Value::Object(object) = params else { return };
        nest(object, self.meta.params);
        if self.scope == Scope::OwnerOrReader {
            // ACP requires a directory; if it is empty, the session keeps its own.
            object.entry("cwd").or_insert_with(|| "".into());
        }
        if self.is_acp()
            && let Some(prompt) = object.shift_remove(SYSTEM_PROMPT)
        {
            match system_prompt::is_valid(&prompt) {
                true => insert_meta(object, SYSTEM_PROMPT, prompt),
                false => drop(object.insert(SYSTEM_PROMPT.into(), prompt)),
            }
        }
    }

    /// Moves the fields of a result that ACP does not define into `_meta.nuncio`.
    pub(crate) fn nest_result(&self, result: &mut Value) {
        if let Value::Object(object) = result {
            let lists = object.values_mut().filter_map(Value::as_array_mut).flatten();
            lists.filter_map(Value::as_object_mut).for_each(|item| nest(item, self.meta.result));
            nest(object, self.meta.result);
        }
    }

    /// Moves the fields in `_meta.nuncio` to the top level, in a result and in the objects of its
    /// list.
    pub(crate) fn flatten_result(&self, result: &mut Value) {
        if let Value::Object(object) = result
            && !self.meta.result.is_empty()
        {
            flatten(object);
            let lists = object.values_mut().filter_map(Value::as_array_mut).flatten();
            lists.filter_map(Value::as_object_mut).for_each(flatten);
        }
    }

    /// Names a field in an error as it is called in ACP.
    pub(crate) fn nest_error(&self, error: Error) -> Error {
        let is_named = |field: &&&str| error.message.strip_prefix(**field).is_some_and(|rest| rest.starts_with([':', '.', '[']));
        match self.meta.params.iter().find(is_named).filter(|_| error.kind == Kind::InvalidParams) {
            Some(_) => Error { message: format!("_meta.nuncio.{}", error.message), ..error },
            None => error,
        }
    }
}

/// Moves fields of an object into its `_meta.nuncio`.
fn nest(object: &mut Map<String, Value>, fields: &[&str]) {
    let mut ours = Map::new();
    for field in fields {
        let value = if *field == USAGE { object.get(USAGE).cloned() } else { object.shift_remove(*field) };
        ours.extend(value.map(|value| ((*field).to_owned(), value)));
    }
    if !ours.is_empty() {
        insert_meta(object, "nuncio", Value::Object(ours));
    }
}

/// Replaces `_meta` by the fields of its `nuncio`.
fn flatten(object: &mut Map<String, Value>) {
    if let Some(Value::Object(mut meta)) = object.shift_remove("_meta")
        && let Some(Value::Object(ours)) = meta.shift_remove("nuncio")
    {
        object.extend(ours);
    }
}

/// Sets a field in `_meta` of an object.
fn insert_meta(object: &mut Map<String, Value>, field: &str, value: Value) {
    match object.get_mut("_meta") {
        Some(Value::Object(meta)) => drop(meta.insert(field.into(), value)),
        _ => drop(object.insert("_meta".into(), json!({ field: value }))),
    }
}
