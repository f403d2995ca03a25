//! The OpenAPI document as those read it who write against it: every example is what its schema wants, every operation tells all that may
//! come of it.

use std::collections::BTreeSet;

use nuncio::api::METHODS;
use nuncio::error::KINDS;
use serde_json::{Map, Value, json};

fn document() -> Value {
    serde_json::from_str(include_str!("../../schema/openapi.json")).unwrap()
}

/// Whether a value is what a schema of the document wants; what is wrong with it.
fn check(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let whole = json!({ "allOf": [schema], "components": document["components"] });
    let validator = jsonschema::draft202012::new(&whole).map_err(|error| error.to_string())?;
    let wrong: Vec<String> = validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

fn operations(document: &Value) -> impl Iterator<Item = (String, &Map<String, Value>)> {
    let paths = document["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, verbs)| {
        let verbs = verbs.as_object().unwrap();
        verbs.iter().map(move |(verb, operation)| (format!("{verb} {path}"), operation.as_object().unwrap()))
    })
}

/// Wherever a `schema` and an `example` stand side by side.
fn examples<'a>(value: &'a Value, at: &str, found: &mut Vec<(String, &'a Value, &'a Value)>) {
    match value {
        Value::Object(object) => {
            if let (Some(schema), Some(example)) = (object.get("schema"), object.get("example")) {
                found.push((at.into(), schema, example));
            }
            object.iter().for_each(|(name, value)| examples(value, &format!("{at}/{name}"), found));
        }
        Value::Array(list) => list.iter().enumerate().for_each(|(place, value)| examples(value, &format!("{at}/{place}"), found)),
        _ => {}
    }
}

#[test]
fn examples_are_what_their_schemas_want() {
    let document = document();
    let mut found = Vec::new();
    examples(&document, "", &mut found);
    let wrong: Vec<String> = found
        .iter()
        .filter_map(|(at, schema, example)| {
            check(&document, schema, example).err().map(|error| format!("{at}: {error} in {example}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found.len() > 30, "only {} examples", found.len());
    // The check is not vacuous.
    let prompt =
        &document["paths"]["/v1/sessions/{sessionId}/prompt"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    for wrong in [json!({}), json!({"prompt": []}), json!({"prompt": "text"}), json!({"prompt": [{"type": "text"}]})] {
        assert!(check(&document, prompt, &wrong).is_err(), "{wrong} passed");
    }
}

/// A body, or a part of a path, that somebody has to make up is shown once.
#[test]
fn what_is_required_has_an_example() {
    let document = document();
    let mut missing = Vec::new();
    for (name, operation) in operations(&document) {
        let body = &operation.get("requestBody").unwrap_or(&Value::Null);
        if body["required"] == true && body["content"]["application/json"].get("example").is_none() {
            missing.push(format!("{name}: the body"));
        }
        for parameter in operation.get("parameters").and_then(Value::as_array).into_iter().flatten() {
            if parameter["required"] == true && parameter.get("example").is_none() {
                missing.push(format!("{name}: {}", parameter["name"]));
            }
        }
    }
    assert!(missing.is_empty(), "no example of\n{}", missing.join("\n"));
}

/// The examples of the rows, which all doors have in common.
#[test]
fn examples_of_rows_are_params() {
    let mut wrong = Vec::new();
    for entry in METHODS {
        let mut example: Map<String, Value> = serde_json::from_str(entry.example).unwrap();
        (entry.complete)(&mut example);
        let (mut params, mut result) = entry.schemas();
        (entry.rest_schema)(&mut params, &mut result);
        let validator = jsonschema::draft202012::new(params.as_value()).unwrap();
        for error in validator.iter_errors(&Value::Object(example.clone())) {
            wrong.push(format!("{}: {}: {error}", entry.name, error.instance_path()));
        }
        let known = params.get("properties").and_then(Value::as_object);
        let strange = example.keys().filter(|name| !known.is_some_and(|known| known.contains_key(*name)));
        wrong.extend(strange.map(|name| format!("{}: there is no field {name}", entry.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn operations_tell_all_that_may_come_of_them() {
    let document = document();
    let statuses: BTreeSet<String> = KINDS.iter().map(|row| row.http.to_string()).collect();
    let mut ids = BTreeSet::new();
    let mut wrong = Vec::new();
    for (name, operation) in operations(&document) {
        let said = |field: &str| operation.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
        let id = said("operationId");
        if id.is_none_or(|id| !ids.insert(id.to_string())) || said("summary").is_none() {
            wrong.push(format!("{name}: no operationId of its own, or no summary"));
        }
        let told = operation["responses"].as_object().unwrap();
        let missing: Vec<&String> = statuses.iter().filter(|status| !told.contains_key(*status)).collect();
        if !missing.is_empty() || !told.keys().any(|status| status.starts_with('2')) {
            wrong.push(format!("{name}: does not tell of {missing:?}, or of no success"));
        }
    }
    let routes = METHODS.iter().filter_map(|entry| entry.route);
    wrong.extend(
        routes
            .filter(|route| document["paths"][route.path].get(route.verb.to_lowercase()).is_none())
            .map(|route| format!("{route:?}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Every code of the table stands where its status is told.
    for row in KINDS {
        let response = &document["components"]["responses"][format!("E{}", row.http)];
        let codes = response["description"].as_str().unwrap();
        assert!(codes.split(", ").any(|code| code == row.code), "{} in {codes}", row.code);
    }
}
