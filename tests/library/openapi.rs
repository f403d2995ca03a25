//! The OpenAPI document: every example conforms to its schema, every operation lists all its
//! responses.

use std::collections::{BTreeMap, BTreeSet};

use nuncio::internal::api::METHODS;
use nuncio::internal::error::KINDS;
use serde_json::{Map, Value, json};

fn document() -> Value {
    serde_json::from_str(include_str!("../../schema/openapi.json")).unwrap()
}

/// Validates a value against a schema of the document. The error lists the violations.
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

/// Collects all pairs of a `schema` and an `example` in the same object.
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
fn examples_conform_to_their_schemas() {
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
    for wrong in [json!({}), json!({"prompt": []}), json!({"prompt": 7}), json!({"prompt": [{"type": "text"}]})] {
        assert!(check(&document, prompt, &wrong).is_err(), "{wrong} passed");
    }
}

/// Every required body and every required parameter has an example.
#[test]
fn required_bodies_and_parameters_have_examples() {
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

/// The examples of the method table, which all interfaces share.
#[test]
fn examples_of_methods_conform_to_params() {
    let mut wrong = Vec::new();
    for entry in &METHODS {
        let example: Map<String, Value> = serde_json::from_str(entry.example).unwrap();
        let (params, _) = entry.types.standalone();
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
fn operations_list_all_responses() {
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
    let routes = METHODS.iter().flat_map(|entry| entry.routes);
    wrong.extend(
        routes
            .filter(|route| document["paths"][route.path].get(route.verb.to_lowercase()).is_none())
            .map(|route| format!("{route:?}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Every error code of the table is in the description of its status.
    for row in KINDS {
        let response = &document["components"]["responses"][format!("E{}", row.http)];
        let codes = response["description"].as_str().unwrap();
        assert!(codes.split(", ").any(|code| code == row.code), "{} in {codes}", row.code);
    }
}

/// Every route of the server is in the document, also those that call no method or any method.
#[test]
fn routes_of_other_protocols_are_described() {
    let document = document();
    for path in ["/hook", "/mcp", "/rpc"] {
        let operation = &document["paths"][path]["post"];
        let body = &operation["requestBody"]["content"]["application/json"];
        check(&document, &body["schema"], &body["example"]).unwrap();
        check(&document, &body["schema"], &json!({})).unwrap_err();
        assert!(operation["description"].is_string(), "{path}: {operation}");
    }
    let headers = &document["paths"]["/hook"]["post"]["parameters"];
    assert_eq!((&headers[0]["name"], &headers[0]["required"]), (&json!("X-Workspace-Path"), &json!(true)));
    let batch = json!([{"jsonrpc": "2.0", "method": "_nuncio/status"}]);
    check(&document, &document["paths"]["/rpc"]["post"]["requestBody"]["content"]["application/json"]["schema"], &batch).unwrap();
}

/// Collects every schema of the document with its location, and whether it is a property of an
/// object.
fn schemas<'a>(value: &'a Value, at: &str, found: &mut Vec<(String, &'a Value, bool)>) {
    match value {
        Value::Object(object) => {
            for (name, inner) in object.iter().filter(|(name, _)| *name != "example") {
                let place = format!("{at}/{name}");
                match name.as_str() {
                    "schema" => schema(inner, &place, false, found),
                    "schemas" => {
                        inner.as_object().unwrap().iter().for_each(|(name, inner)| schema(inner, &format!("#{name}"), false, found))
                    }
                    _ => schemas(inner, &place, found),
                }
            }
        }
        Value::Array(list) => list.iter().enumerate().for_each(|(index, inner)| schemas(inner, &format!("{at}/{index}"), found)),
        _ => {}
    }
}

fn schema<'a>(value: &'a Value, at: &str, is_property: bool, found: &mut Vec<(String, &'a Value, bool)>) {
    found.push((at.into(), value, is_property));
    for (name, inner) in value["properties"].as_object().into_iter().flatten() {
        schema(inner, &format!("{at}.{name}"), true, found);
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        for (index, inner) in value[key].as_array().into_iter().flatten().enumerate() {
            schema(inner, &format!("{at}.{key}[{index}]"), false, found);
        }
    }
    for key in ["items", "contentSchema"] {
        value.get(key).into_iter().for_each(|inner| schema(inner, &format!("{at}.{key}"), false, found));
    }
}

/// Constructs that client generators do not support are absent.
#[test]
fn schemas_are_suitable_for_generators() {
    let document = document();
    let mut found = Vec::new();
    schemas(&document, "", &mut found);
    assert!(found.len() > 500, "only {} schemas", found.len());
    let mut wrong = Vec::new();
    for (at, schema, is_property) in &found {
        let Some(object) = schema.as_object() else {
            wrong.push(format!("{at}: is {schema}"));
            continue;
        };
        let has = |key: &str| object.contains_key(key);
        if has("$ref") && object.len() > 1 {
            wrong.push(format!("{at}: a $ref with siblings"));
        }
        let typed = ["type", "$ref", "oneOf", "anyOf", "allOf"].iter().any(|key| has(key));
        if *is_property && !typed {
            wrong.push(format!("{at}: no type: {schema}"));
        }
        wrong.extend(object.keys().filter(|key| key.starts_with("x-")).map(|key| format!("{at}: {key}")));
        for variants in ["oneOf", "anyOf"].iter().filter_map(|key| object.get(*key)?.as_array()) {
            if variants.iter().all(|variant| variant.get("const").is_some() || variant.get("enum").is_some()) {
                wrong.push(format!("{at}: a union of constants"));
            }
            if has("properties") {
                wrong.push(format!("{at}: fields beside a union"));
            }
            for variant in variants.iter().filter(|variant| variant["type"] == "object" && variant["title"].is_null()) {
                wrong.push(format!("{at}: a variant without a title: {variant}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} schemas:\n{}", wrong.len(), wrong.join("\n"));
}

/// A variant with a constant is a component whose name and title are derived from the constant.
#[test]
fn components_have_unique_names_and_variants_have_titles() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let numbered: Vec<&String> = schemas.keys().filter(|name| name.ends_with(|end: char| end.is_ascii_digit())).collect();
    assert!(numbered.is_empty(), "{numbered:?}");
    let mut titles = BTreeMap::new();
    for (name, title) in schemas.iter().filter_map(|(name, schema)| Some((name, schema["title"].as_str()?))) {
        assert_eq!(titles.insert(title, name), None, "{title} twice");
    }
    for (name, constant) in [("ContentBlockText", "text"), ("PartText", "text"), ("BodySessionCreated", "session.created")] {
        assert_eq!(schemas[name]["title"], name);
        assert_eq!(schemas[name]["properties"]["type"]["const"], constant, "{name}");
    }
    for name in ["StopReason", "MessageRole", "TurnStatus", "SessionStatus", "Delivery"] {
        assert!(schemas[name]["enum"].is_array(), "{name}: {}", schemas[name]);
    }
    // All components are used, and the declared tags are the used tags.
    let text = document.to_string();
    for name in schemas.keys() {
        assert!(text.contains(&format!("\"#/components/schemas/{name}\"")), "{name} is unused");
    }
    let declared: BTreeSet<&str> = document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    let used: BTreeSet<&str> = operations(&document)
        .flat_map(|(_, operation)| operation["tags"].as_array().unwrap())
        .map(|tag| tag.as_str().unwrap())
        .collect();
    assert_eq!(declared, used);
}
