//! JSON Schemas of tools that every provider accepts: references are resolved, keywords that are
//! malformed or belong to other dialects are removed, and what providers require is added. What
//! remains allows at least what the original allows.

use std::collections::HashMap;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::schema_root;
use super::traits::ProviderTraits;

/// Maximum depth of a schema.
const SCHEMA_DEPTH_MAX: usize = 100;
/// Maximum size of an adapted schema, in bytes.
const SCHEMA_BYTES_MAX: usize = 1 << 20;

pub(super) struct AdaptedSchema {
    pub schema: Value,
    /// The arguments that were renamed: their names by those in the schema.
    pub renamed: HashMap<String, String>,
}

/// Adapts the schema of a tool's arguments. Fails if it is too large or too deep.
pub(super) fn adapt(schema: &Value, traits: ProviderTraits) -> Result<AdaptedSchema, String> {
    let mut adapter = SchemaAdapter { root: schema, traits, open: Vec::new(), bytes: 0 };
    let adapted = adapter.schema(schema, 0)?;
    let (schema, renamed) = schema_root::flatten(adapted);
    Ok(AdaptedSchema { schema, renamed })
}

struct SchemaAdapter<'a> {
    root: &'a Value,
    traits: ProviderTraits,
    /// The references that are being resolved.
    open: Vec<&'a str>,
    /// Approximate size of the schema so far.
    bytes: usize,
}

type Fields = Map<String, Value>;

impl<'a> SchemaAdapter<'a> {
    fn schema(&mut self, value: &'a Value, depth: usize) -> Result<Value, String> {
        if depth > SCHEMA_DEPTH_MAX {
            return Err(format!("its schema has more than {SCHEMA_DEPTH_MAX} levels"));
        }
        let mut out = Fields::new();
        let Some(fields) = value.as_object() else { return Ok(self.completed(out, depth)) };
        let reference = fields.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|reference| Some((reference, self.target(reference)?)));
        if let Some((reference, target)) = target {
            if self.open.contains(&reference) {
                out.insert("type".to_owned(), "object".into());
            } else {
                self.open.push(reference);
                let resolved = self.schema(target, depth + 1);
                self.open.pop();
                out = resolved?.as_object().cloned().unwrap_or_default();
            }
        }
        for (keyword, value) in fields {
            if let Some(value) = self.keyword(keyword, value, fields, depth)? {
                self.bytes += keyword.len() + 8;
                out.insert(keyword.clone(), value);
            }
            if self.bytes > SCHEMA_BYTES_MAX {
                return Err(format!("its schema has more than {} KiB", SCHEMA_BYTES_MAX >> 10));
            }
        }
        if let Some(Value::Array(tuple)) = fields.get("items") {
            out.insert("prefixItems".to_owned(), self.schemas(tuple, depth)?.unwrap_or_default());
        }
        Ok(self.completed(out, depth))
    }

    /// Returns the definition that a reference names.
    fn target(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?;
        self.root.pointer(&pointer)
    }

    /// Returns the value of a keyword; `None` if the keyword is left out.
    fn keyword(&mut self, keyword: &str, value: &'a Value, fields: &Fields, depth: usize) -> Result<Option<Value>, String> {
        let keep = |is_valid: bool| Ok(is_valid.then(|| value.clone()));
        match keyword {
            "type" => Ok(types(value, fields.get("nullable") == Some(&Value::Bool(true)))),
            "title" | "description" => {
                self.bytes += value.as_str().map_or(0, str::len);
                keep(value.is_string())
            }
            "properties" => self.properties(value, depth),
            "patternProperties" | "dependentSchemas" if self.traits.has_patterns => self.properties(value, depth),
            "items" if value.is_array() => Ok(None),
            "items" => self.schema(value, depth + 1).map(Some),
            "additionalProperties" | "unevaluatedProperties" if value.is_boolean() => {
                keep(self.traits.has_closed_objects || value == &Value::Bool(true))
            }
            "additionalProperties" | "propertyNames" | "contains" | "not" | "if" | "then" | "else" if value.is_object() => {
                self.schema(value, depth + 1).map(Some)
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => match value.as_array() {
                Some(branches) => self.schemas(branches, depth),
                None => Ok(None),
            },
            "required" => Ok(required(value, fields)),
            "enum" => {
                self.bytes += value.as_array().map_or(0, |values| values.iter().map(|value| value.to_string().len()).sum());
                Ok(enumeration(value))
            }
            "const" | "default" => {
                self.bytes += value.to_string().len();
                keep(true)
            }
            "minimum" | "maximum" => keep(value.is_number()),
            "exclusiveMinimum" | "exclusiveMaximum" => keep(value.is_number()),
            "multipleOf" => keep(value.as_f64().is_some_and(|number| number > 0.0)),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => keep(value.is_u64()),
            "uniqueItems" | "deprecated" => keep(value.is_boolean()),
            "pattern" => keep(self.traits.has_patterns && value.as_str().is_some_and(|pattern| Regex::new(pattern).is_ok())),
            "format" => keep(self.traits.has_patterns && value.is_string()),
            // Keywords of other dialects, definitions that are resolved, and unknown keywords.
            _ => Ok(None),
        }
    }

    fn schemas(&mut self, branches: &'a [Value], depth: usize) -> Result<Option<Value>, String> {
        let branches: Result<Vec<Value>, String> = branches.iter().map(|branch| self.schema(branch, depth + 1)).collect();
        branches.map(|branches| (!branches.is_empty()).then_some(Value::Array(branches)))
    }

    fn properties(&mut self, value: &'a Value, depth: usize) -> Result<Option<Value>, String> {
        let Some(properties) = value.as_object() else { return Ok(None) };
        let mut out = Fields::new();
        for (name, property) in properties.iter().filter(|(_, property)| **property != Value::Bool(false)) {
            self.bytes += name.len() + 4;
            out.insert(name.clone(), self.schema(property, depth + 1)?);
        }
        Ok(Some(Value::Object(out)))
    }

    /// Adds what providers require: the elements of arrays, the properties of objects, and types.
    fn completed(&self, mut fields: Fields, depth: usize) -> Value {
        let has_type = |fields: &Fields, name: &str| match fields.get("type") {
            Some(Value::String(one)) => one == name,
            Some(Value::Array(types)) => types.iter().any(|one| one == name),
            _ => false,
        };
        if has_type(&fields, "array") && !fields.contains_key("items") {
            let element = self.completed(Fields::new(), depth + 1);
            fields.insert("items".to_owned(), element);
        }
        if has_type(&fields, "object") && !fields.contains_key("properties") {
            fields.insert("properties".to_owned(), json!({}));
        }
        if self.traits.is_typed && depth > 0 {
            let has_alternatives = ["anyOf", "oneOf"].iter().any(|keyword| fields.contains_key(*keyword));
            if has_alternatives {
                fields.remove("type");
            } else if !fields.contains_key("type") {
                fields.insert("type".to_owned(), implied_type(&fields).into());
            }
        }
        Value::Object(fields)
    }
}

/// Returns the type of a schema that names none.
fn implied_type(fields: &Fields) -> &'static str {
    let example = fields.get("const").or_else(|| fields.get("enum").and_then(|values| values.get(0)));
    match example {
        Some(Value::Number(number)) if number.is_f64() => "number",
        Some(Value::Number(_)) => "integer",
        Some(Value::Bool(_)) => "boolean",
        _ if fields.contains_key("properties") => "object",
        _ if fields.contains_key("items") || fields.contains_key("prefixItems") => "array",
        _ => "string",
    }
}

/// Returns the valid types in the keyword `type`.
fn types(value: &Value, is_nullable: bool) -> Option<Value> {
    let named = |value: &Value| {
        Some(match value.as_str()?.to_lowercase().as_str() {
            "string" | "str" | "text" => "string",
            "number" | "float" | "double" => "number",
            "integer" | "int" | "long" => "integer",
            "boolean" | "bool" => "boolean",
            "array" | "list" | "tuple" => "array",
            "object" | "dict" | "map" => "object",
            "null" | "none" => "null",
            _ => return None,
        })
    };
    let given = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let mut types: Vec<&str> = Vec::new();
    for name in given {
        // A type that is not known may be any type.
        let name = named(name)?;
        if !types.contains(&name) {
            types.push(name);
        }
    }
    if is_nullable && !types.contains(&"null") {
        types.push("null");
    }
    match types.as_slice() {
        [] => None,
        [one] => Some((*one).into()),
        _ => Some(types.into()),
    }
}

/// Returns the required properties that the schema has.
fn required(value: &Value, fields: &Fields) -> Option<Value> {
    let properties = fields.get("properties").and_then(Value::as_object);
    let is_known = |name: &str| {
        properties.is_none_or(|properties| properties.get(name).is_some_and(|property| *property != Value::Bool(false)))
    };
    let mut names: Vec<&str> = Vec::new();
    for name in value.as_array()?.iter().filter_map(Value::as_str).filter(|name| is_known(name)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| names.into())
}

/// Returns the different values of the keyword `enum`.
fn enumeration(value: &Value) -> Option<Value> {
    let mut values: Vec<&Value> = Vec::new();
    for value in value.as_array()? {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    (!values.is_empty()).then(|| Value::Array(values.into_iter().cloned().collect()))
}
