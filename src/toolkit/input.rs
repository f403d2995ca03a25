//! A tool's input: the schema for models, and a tolerant parser for the input that models write.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::argument_names;
use super::git::quoted;
use super::output::ToolError;
use crate::json;
use crate::model::ToolSpec;

/// Builds the specification of a tool for models. The schema description of `T` becomes the tool's
/// description, and parts of the schema that models do not need are removed.
pub(crate) fn spec<T: JsonSchema>(name: &str) -> ToolSpec {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let description = schema.as_object_mut().and_then(|object| object.remove("description"));
    simplify(&mut schema);
    if let Some(object) = schema.as_object_mut() {
        // Some providers reject an object schema without `properties`.
        object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    ToolSpec {
        name: name.into(),
        description: description.and_then(|text| text.as_str().map(unwrapped)).unwrap_or_default(),
        input_schema: schema,
    }
}

/// Joins the lines of each paragraph; single line feeds come from wrapped source lines.
fn unwrapped(text: &str) -> String {
    text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n")
}

/// Removes parts of a schema that models do not need: titles, defaults, number formats, and null as
/// a value of optional fields.
fn simplify(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    for noise in ["title", "format", "minimum", "default"] {
        object.remove(noise);
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(options)) = object.get_mut("enum") {
        options.retain(|option| !option.is_null());
    }
    if let Some(Value::Array(forms)) = object.get_mut("anyOf") {
        forms.retain(|form| form.get("type") != Some(&Value::from("null")));
        if let [Value::Object(only)] = forms.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            object.extend(only);
        }
    }
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = unwrapped(text);
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(simplify);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(inner) {
            simplify(inner);
        }
    }
}

/// Parses `input`, which is an object, or null for an empty object. Numbers, booleans, lists and
/// objects may also be written as strings, optional fields may be null, and names may be
/// misspelled. Also returns the object with the tool's own names and types. The error message names
/// the field and lists the tool's arguments.
pub(crate) fn parse<T: DeserializeOwned>(spec: &ToolSpec, mut input: Value) -> Result<(T, Value), ToolError> {
    if input.is_null() {
        input = Value::Object(Map::new());
    }
    if let Value::String(text) = &input
        && let Ok(object @ Value::Object(_)) = json::from_str(text)
    {
        input = object;
    }
    let schema = &spec.input_schema;
    let Value::Object(fields) = &mut input else {
        return Err(ToolError(format!("{}: the input must be a JSON object with {}", spec.name, argument_names::describe(schema))));
    };
    argument_names::normalize(fields, schema);
    rename_aliases::<T>(fields, schema);
    let mut renamed = fields.clone();
    read(spec, input).or_else(|error| {
        if argument_names::fuzzy_match(&mut renamed, schema) { read(spec, Value::Object(renamed)) } else { Err(error) }
    })
}

/// Renames arguments that have other names in `T`.
fn rename_aliases<T: DeserializeOwned>(fields: &mut Map<String, Value>, schema: &Value) {
    let unknown: Vec<String> = fields.keys().filter(|name| schema["properties"].get(name.as_str()).is_none()).cloned().collect();
    for alias in unknown {
        // A field that is given twice is an error with the field's own name.
        let twice = format!("{{{0}:{1},{0}:{1}}}", Value::from(alias.as_str()), fields[&alias]);
        let error = serde_json::from_str::<T>(&twice).err().map(|error| error.to_string()).unwrap_or_default();
        if let Some((own, _)) = error.strip_prefix("duplicate field `").and_then(|rest| rest.split_once('`'))
            && !fields.contains_key(own)
            && let Some(value) = fields.remove(&alias)
        {
            fields.insert(own.to_owned(), value);
        }
    }
}

fn read<T: DeserializeOwned>(spec: &ToolSpec, mut input: Value) -> Result<(T, Value), ToolError> {
    coerce(&mut input, &spec.input_schema);
    let wrong =
        |what: String| ToolError(format!("{}: {what}; it takes {}", spec.name, argument_names::describe(&spec.input_schema)));
    let mut unknown = Vec::new();
    let mut note = |path: serde_ignored::Path<'_>| unknown.push(path.to_string());
    let mut track = serde_path_to_error::Track::new();
    let value = serde_path_to_error::Deserializer::new(&input, &mut track);
    match serde_ignored::deserialize(value, &mut note) {
        Err(error) => {
            let path = track.path().to_string();
            let field = if path == "." { String::new() } else { format!("{path}: ") };
            Err(wrong(field + &in_words_of_json(&error.to_string())))
        }
        // An unknown argument is an error, because ignoring it could change the meaning of the
        // call. Unknown fields of list items are ignored.
        Ok(_) if let Some(name) = unknown.iter().find(|name| !name.contains('.') && !REMARKS.contains(&name.as_str())) => {
            Err(wrong(format!("there is no argument {name}")))
        }
        Ok(parsed) => Ok((parsed, input)),
    }
}

/// Replaces the names of Rust's types in an error of serde by those of JSON.
fn in_words_of_json(error: &str) -> String {
    let Some((given, expected)) = error.split_once(", expected ") else { return error.to_owned() };
    let given = given.replace("invalid type: sequence", "invalid type: list").replace("invalid type: map", "invalid type: object");
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    };
    format!("{given}, expected {expected}")
}

/// Names of arguments in which models explain a call. Such arguments are ignored.
const REMARKS: [&str; 5] = ["description", "explanation", "intent", "reason", "thought"];

/// Converts values to the types of the schema: strings to JSON, scalars to strings, and whole
/// numbers to integers. Removes optional fields that are null.
fn coerce(value: &mut Value, schema: &Value) {
    if let (Value::String(text), Some(kind)) = (&*value, schema.get("type").and_then(Value::as_str)) {
        let read: Option<Value> = match kind {
            "integer" | "number" | "boolean" | "array" | "object" => json::from_str(text.trim()).ok(),
            _ => None,
        };
        if let Some(read) = read
            && is(&read, kind)
        {
            *value = read;
        }
    }
    if schema.get("type") == Some(&Value::from("string")) && (value.is_number() || value.is_boolean()) {
        *value = Value::from(value.to_string());
    }
    if schema.get("type") == Some(&Value::from("integer"))
        && let Some(number) = value.as_f64()
        && !value.is_u64()
        && number.fract() == 0.0
        && (0.0..9e15).contains(&number)
    {
        *value = Value::from(number as u64);
    }
    match value {
        Value::Object(fields) => {
            let required = schema.get("required").and_then(Value::as_array);
            fields.retain(|name, value| {
                !value.is_null() || required.is_some_and(|required| required.iter().any(|field| field == name))
            });
            for (name, value) in fields {
                let named = schema.get("properties").and_then(|properties| properties.get(name));
                if name == "command" {
                    join_words(value, named);
                }
                if let Some(schema) = named.or_else(|| schema.get("additionalProperties")) {
                    coerce(value, schema);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| coerce(item, schema));
            }
        }
        _ => {}
    }
}

/// Joins the words of a command that is a line by its schema.
fn join_words(value: &mut Value, schema: Option<&Value>) {
    let is_line = schema.is_some_and(|schema| schema["type"] == "string");
    let words = value.as_array().filter(|_| is_line);
    let words: Option<Vec<String>> = words.and_then(|words| words.iter().map(|word| word.as_str().map(quoted)).collect());
    if let Some(words) = words.filter(|words| !words.is_empty()) {
        *value = Value::from(words.join(" "));
    }
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "integer" | "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}

/// Returns whether a value is an object with the required arguments of a tool, each of its type.
pub(crate) fn fits(spec: &ToolSpec, value: &Value) -> bool {
    let Some(fields) = value.as_object() else { return false };
    let (schema, is_typed) = (&spec.input_schema, |kind: &Value, value: &Value| match kind.as_str() {
        Some("string") => value.is_string(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    });
    let mut required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    required.all(|name| fields.contains_key(name))
        && fields.iter().all(|(name, value)| value.is_null() || is_typed(&schema["properties"][name]["type"], value))
}
