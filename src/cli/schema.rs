//! `nuncio schema`: what is generated from the types, and kept under schema/ in the repository.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::{print, print_json};
use crate::api::{METHODS, openapi};
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::event::Event;

/// Name, and what it describes.
pub const SCHEMAS: &[(&str, &str)] = &[
    ("methods", "every method, with the schemas of its params and its result"),
    ("openapi", "the REST routes of the bridge (OpenAPI 3.1)"),
    ("event", "an event of the log"),
    ("config", "config.toml"),
];

/// The schema's text as it is committed.
pub fn schema(name: &str) -> Option<String> {
    let value = match name {
        "methods" => methods(),
        "openapi" => openapi(),
        "event" => of::<Event>().to_value(),
        "config" => of::<Settings>().to_value(),
        _ => return None,
    };
    serde_json::to_string_pretty(&value).ok().map(|text| text + "\n")
}

fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>()
}

fn methods() -> Value {
    let rows = METHODS.iter().map(|entry| {
        let (params, result) = entry.schemas();
        let row = json!({
            "doc": entry.doc,
            "notification": entry.notification,
            "params": params,
            "result": result,
        });
        (entry.name.to_string(), row)
    });
    Value::Object(rows.collect::<Map<_, _>>())
}

pub fn print_named(name: &str) -> Result<u8> {
    let text = schema(name).ok_or_else(|| {
        let names: Vec<&str> = SCHEMAS.iter().map(|(name, _)| *name).collect();
        Error::invalid_params(format!("there is no schema {name}")).hint(format!("there are {}", names.join(", ")))
    })?;
    print_json(text).map(|()| 0)
}

pub fn print_names() -> Result<u8> {
    let lines: String = SCHEMAS.iter().map(|(name, what)| format!("{name:10} {what}\n")).collect();
    print(lines).map(|()| 0)
}
