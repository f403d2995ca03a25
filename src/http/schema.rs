//! Checks the params of a REST request against the schema of their method. An unknown field is an
//! error that names the nearest known one. A value that ACP's types would silently replace by a
//! default is also an error.

use serde_json::{Map, Value};
use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::similar_names;

/// Maximum number of characters of an unknown field's name that are compared with the known names.
const FIELD_NAME_CHARS_MAX: usize = 64;

/// Fails with `invalid_params` for the first field that `schema` does not allow. `schema` contains
/// its own `$defs`.
pub(crate) fn check(schema: &Value, params: &Map<String, Value>) -> Result<()> {
    Checker { root: schema }.object(schema, params, "")
}

struct Checker<'a> {
    root: &'a Value,
}

/// The fields that an object may have.
#[derive(Default)]
struct KnownFields<'a> {
    fields: BTreeMap<&'a str, &'a Value>,
    /// True if any other field is also allowed.
    open: bool,
}

impl<'a> Checker<'a> {
    fn object(&self, schema: &'a Value, object: &Map<String, Value>, path: &str) -> Result<()> {
        let mut known = KnownFields::default();
        self.collect(schema, object, &mut known);
        for (name, value) in object {
            let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match known.fields.get(name.as_str()) {
                Some(field) => self.value(field, value, &place)?,
                None if known.open => {}
                None => return Err(unknown(name, &place, &known)),
            }
        }
        Ok(())
    }

    fn value(&self, schema: &'a Value, value: &Value, path: &str) -> Result<()> {
        // ACP's types replace a value of the wrong type by a default; REST reports it.
        if schema["x-deserialize-default-on-error"] == true && !self.fits(schema, value) {
            return Err(Error::invalid_params(format!("{path}: has the wrong type")).hint("see /v1/openapi.json"));
        }
        match value {
            Value::Object(object) => self.object(schema, object, path),
            Value::Array(list) => {
                let Some(items) = self.items(schema) else { return Ok(()) };
                list.iter().enumerate().try_for_each(|(index, item)| self.value(items, item, &format!("{path}[{index}]")))
            }
            _ => Ok(()),
        }
    }

    fn target(&self, schema: &'a Value) -> Option<&'a Value> {
        self.root.pointer(schema["$ref"].as_str()?.strip_prefix('#')?)
    }

    /// Returns the schemas that a value must match in addition to `schema`, and the variants of
    /// `schema`, of which the value must match one.
    fn parts(&self, schema: &'a Value) -> (impl Iterator<Item = &'a Value> + use<'a>, Option<&'a Vec<Value>>) {
        let all = schema["allOf"].as_array().into_iter().flatten();
        (self.target(schema).into_iter().chain(all), schema["oneOf"].as_array().or(schema["anyOf"].as_array()))
    }

    /// Adds the fields that `schema` allows in this object: for a union, the fields of the variants
    /// that the object can match.
    fn collect(&self, schema: &'a Value, object: &Map<String, Value>, known: &mut KnownFields<'a>) {
        let (parts, variants) = self.parts(schema);
        parts.for_each(|part| self.collect(part, object, known));
        let own = schema["properties"].as_object();
        known.fields.extend(own.into_iter().flatten().map(|(name, field)| (name.as_str(), field)));
        let variants = variants.map(Vec::as_slice).unwrap_or_default();
        let named = |variant: &&'a Value| self.constants(variant).any(|(name, constant)| object.get(name) == Some(constant));
        let chosen: Vec<&Value> = variants.iter().filter(named).collect();
        let candidates = || variants.iter().filter(|variant| self.constants(variant).next().is_none());
        // The field that names the variant is a known field in all variants.
        known.fields.extend(variants.iter().flat_map(|variant| self.constants(variant)).map(|(name, _)| (name, &Value::Null)));
        match chosen.is_empty() {
            true => candidates().for_each(|variant| self.collect(variant, object, known)),
            false => chosen.iter().for_each(|variant| self.collect(variant, object, known)),
        }
        let is_unconstrained = own.is_none() && variants.is_empty() && schema["$ref"].is_null() && schema["allOf"].is_null();
        known.open |= match &schema["additionalProperties"] {
            Value::Null => is_unconstrained && schema["type"] != "null",
            other => other != false,
        };
    }

    /// Returns the constant fields that identify a variant.
    fn constants(&self, variant: &'a Value) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        let fields = variant["properties"].as_object().into_iter().flatten();
        fields.filter(|(_, field)| !field["const"].is_null()).map(|(name, field)| (name.as_str(), &field["const"]))
    }

    fn items(&self, schema: &'a Value) -> Option<&'a Value> {
        if schema["items"].is_object() {
            return Some(&schema["items"]);
        }
        let (mut parts, variants) = self.parts(schema);
        parts.find_map(|part| self.items(part)).or_else(|| variants.into_iter().flatten().find_map(|variant| self.items(variant)))
    }

    /// Returns true if the value matches the schema. Supports the JSON Schema keywords that the
    /// schemas of params use.
    fn fits(&self, schema: &'a Value, value: &Value) -> bool {
        if value.is_null() && schema["x-deserialize-default-on-null"] == true {
            return true;
        }
        let (mut parts, variants) = self.parts(schema);
        let is_type = match &schema["type"] {
            Value::String(name) => is_type(name, value),
            Value::Array(names) => names.iter().filter_map(Value::as_str).any(|name| is_type(name, value)),
            _ => true,
        };
        let is_enumerated = schema["enum"].as_array().is_none_or(|values| values.contains(value));
        let is_constant = schema["const"].is_null() || schema["const"] == *value;
        is_type
            && is_enumerated
            && is_constant
            && parts.all(|part| self.fits(part, value))
            && variants.is_none_or(|variants| variants.iter().any(|variant| self.fits(variant, value)))
            && value.as_object().is_none_or(|object| self.fields_fit(schema, object))
            && value
                .as_array()
                .is_none_or(|list| schema["items"].is_null() || list.iter().all(|item| self.fits(&schema["items"], item)))
    }

    fn fields_fit(&self, schema: &'a Value, object: &Map<String, Value>) -> bool {
        let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut fields = schema["properties"].as_object().into_iter().flatten();
        required.all(|name| object.contains_key(name))
            && fields.all(|(name, field)| object.get(name).is_none_or(|value| self.fits(field, value)))
    }
}

/// Returns true if the value has this JSON Schema type. An integer must be written without a
/// fraction: `1.0` is not one.
fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// Fields that clients send to methods that do not have them, and where they belong.
const ELSEWHERE: &[(&str, &str)] = &[
    ("autoRun", "a message: POST /v1/sessions/{sessionId}/messages"),
    ("delivery", "a message: POST /v1/sessions/{sessionId}/messages"),
    ("role", "a message: POST /v1/sessions/{sessionId}/messages"),
    ("parts", "a message: POST /v1/sessions/{sessionId}/messages"),
    ("prompt", "a prompt: POST /v1/sessions/{sessionId}/prompt"),
];

fn unknown(name: &str, place: &str, known: &KnownFields<'_>) -> Error {
    let fields: Vec<&str> = known.fields.keys().copied().filter(|field| *field != "_meta").collect();
    let Some(nearest) = nearest(name, &fields) else {
        return Error::invalid_params(format!("{place}: unknown field; no fields are allowed here"));
    };
    let elsewhere = ELSEWHERE.iter().find(|(field, _)| *field == name);
    let remedy = match elsewhere {
        Some((_, owner)) => format!("it belongs to {owner}"),
        None => format!("the nearest known field is `{nearest}`"),
    };
    Error::invalid_params(format!("{place}: unknown field; {remedy}")).hint(format!("known fields: {}", fields.join(", ")))
}

/// Finds the known field most similar to `name`, ignoring case and separators.
fn nearest<'a>(name: &str, fields: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let plains: Vec<String> = fields.iter().map(|field| plain(field)).collect();
    let name: String = plain(name).chars().take(FIELD_NAME_CHARS_MAX).collect();
    similar_names::nearest(&name, &plains, 0.0).map(|index| fields[index])
}
