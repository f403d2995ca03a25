//! `nuncio schema`: the schemas generated from the types. Copies are committed under schema/.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::terminal::output::{print, print_json};
use crate::acp;
use crate::api::{METHODS, MethodKind, openapi};
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::hooks::{CompactionAnswer, HookRequest, InputAnswer, MessagesAnswer, OutputAnswer, SystemAnswer, ValidationAnswer};
use crate::tools::Tools;

/// Names of the schemas, with descriptions.
pub(crate) const SCHEMAS: &[(&str, &str)] = &[
    ("methods", "all methods, with the schemas of their params and results"),
    ("openapi", "REST routes of the HTTP server (OpenAPI 3.1)"),
    ("tools", "all tools, with the schemas of their inputs and result details"),
    ("event", "an event of a session's log"),
    ("config", "settings in config.toml"),
    ("hooks", "requests to hooks and their answers, by event"),
];

/// Returns the text of a schema, as committed under schema/, or `None` if no schema has this name.
pub(crate) fn schema(name: &str) -> Option<String> {
    let value = match name {
        "methods" => methods(),
        "openapi" => openapi(),
        "tools" => tools(),
        "event" => root::<Event>().to_value(),
        "hooks" => hooks(),
        "config" => root::<Settings>().to_value(),
        _ => return None,
    };
    serde_json::to_string_pretty(&value).ok().map(|text| text + "\n")
}

fn root<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>()
}

fn methods() -> Value {
    let rows = METHODS.iter().filter(|row| row.kind != MethodKind::Stream).map(|row| {
        let (params, result) = acp::schemas(row);
        let schema = json!({
            "doc": row.doc,
            "notification": row.kind == MethodKind::Notification,
            "params": params,
            "result": result,
        });
        (row.name.to_string(), schema)
    });
    Value::Object(rows.collect::<Map<_, _>>())
}

/// Returns the schemas of the request to a hook and, by event, of its answers.
fn hooks() -> Value {
    json!({
        "request": SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<HookRequest>(),
        "answers": {
            "tool.execute.before": root::<InputAnswer>(),
            "tool.execute.after": root::<OutputAnswer>(),
            "tool.result.validate": root::<ValidationAnswer>(),
            "prompt.system.transform": root::<SystemAnswer>(),
            "prompt.messages.transform": root::<MessagesAnswer>(),
            "session.compacting": root::<CompactionAnswer>(),
        },
    })
}

fn tools() -> Value {
    let tools = Tools::native();
    let rows = tools.iter().map(|tool| {
        let row = json!({
            "doc": tool.spec().description,
            "aliases": tool.aliases(),
            "input": tool.spec().input_schema,
            "details": tool.details_schema(),
        });
        (tool.name().to_string(), row)
    });
    Value::Object(rows.collect::<Map<_, _>>())
}

pub(crate) fn print_named(name: &str) -> Result<u8> {
    let text = schema(name).ok_or_else(|| {
        let names: Vec<&str> = SCHEMAS.iter().map(|(name, _)| *name).collect();
        Error::invalid_params(format!("schema \"{name}\" is unknown")).hint(format!("use one of {}", names.join(", ")))
    })?;
    print_json(text).map(|()| 0)
}

/// Prints the names and descriptions of all schemas.
pub(crate) fn print_names() -> Result<u8> {
    let lines: String = SCHEMAS.iter().map(|(name, description)| format!("{name:10} {description}\n")).collect();
    print(lines).map(|()| 0)
}
