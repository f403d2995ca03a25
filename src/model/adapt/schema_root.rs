//! The root of a tool's schema: one object, because most providers refuse alternatives there.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::names::argument_name;

type Fields = Map<String, Value>;

/// Makes the root one object whose arguments have names that every provider accepts. Returns the
/// names of the renamed arguments by those in the schema too.
pub(super) fn flatten(schema: Value) -> (Value, HashMap<String, String>) {
    let Value::Object(mut root) = schema else { return (schema, HashMap::new()) };
    for (keyword, is_choice) in [("allOf", false), ("anyOf", true), ("oneOf", true)] {
        if let Some(Value::Array(branches)) = root.shift_remove(keyword) {
            let branches: Vec<Fields> = branches.into_iter().filter_map(|branch| branch.as_object().cloned()).collect();
            add_branches(&mut root, branches, is_choice);
        }
    }
    for keyword in ["enum", "const", "not", "if", "then", "else", "items", "prefixItems"] {
        root.shift_remove(keyword);
    }
    root.insert("type".to_owned(), "object".into());
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    let mut renamed = HashMap::new();
    if let Some(fields) = properties.as_object_mut()
        && fields.keys().any(|name| argument_name(name) != *name)
    {
        let adapted = std::mem::take(fields).into_iter().map(|(name, property)| {
            let adapted = argument_name(&name).into_owned();
            if adapted != name {
                renamed.insert(adapted.clone(), name);
            }
            (adapted, property)
        });
        *fields = adapted.collect();
    }
    if let Some(Value::Array(required)) = root.get_mut("required") {
        for name in required.iter_mut() {
            if let Some(adapted) = name.as_str().map(|name| argument_name(name).into_owned()) {
                *name = adapted.into();
            }
        }
    }
    (Value::Object(root), renamed)
}

/// Adds the properties of branches to an object. For a choice between them, only what all of them
/// require is required, and the description names the choices.
fn add_branches(root: &mut Fields, mut branches: Vec<Fields>, is_choice: bool) {
    for branch in &mut branches {
        for (keyword, inner_choice) in [("allOf", false), ("anyOf", true), ("oneOf", true)] {
            if let Some(Value::Array(inner)) = branch.shift_remove(keyword) {
                add_branches(branch, inner.into_iter().filter_map(|inner| inner.as_object().cloned()).collect(), inner_choice);
            }
        }
    }
    let names = |branch: &Fields| -> Vec<String> {
        let required = branch.get("required").and_then(Value::as_array).into_iter().flatten();
        required.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let mut required = names(root);
    let all: Vec<Vec<String>> = branches.iter().map(names).collect();
    let added: Vec<String> = match is_choice {
        true => all.first().into_iter().flatten().filter(|name| all.iter().all(|names| names.contains(name))).cloned().collect(),
        false => all.iter().flatten().cloned().collect(),
    };
    for name in added {
        if !required.contains(&name) {
            required.push(name);
        }
    }
    let choices: Vec<String> = all.iter().filter(|names| !names.is_empty()).map(|names| names.join(", ")).collect();
    if is_choice && choices.len() > 1 {
        let choices = format!("The arguments are one of: {}.", choices.join("; "));
        let description = match root.get("description").and_then(Value::as_str) {
            Some(text) => format!("{text}\n{choices}"),
            None => choices,
        };
        root.insert("description".to_owned(), description.into());
    }
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    for (name, property) in branches.into_iter().filter_map(|mut branch| branch.shift_remove("properties")).flat_map(members) {
        add_property(properties, name, property);
    }
    if !required.is_empty() {
        root.insert("required".to_owned(), required.into());
    }
}

fn members(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}

/// Adds a property. If there is another one with the name, both are allowed.
fn add_property(properties: &mut Value, name: String, property: Value) {
    let Some(properties) = properties.as_object_mut() else { return };
    let joined = match properties.get(&name) {
        Some(known) if *known != property => {
            match known.get("anyOf").and_then(Value::as_array).filter(|_| known.as_object().is_some_and(|known| known.len() == 1)) {
                Some(known) if known.contains(&property) => return,
                Some(known) => json!({ "anyOf": known.iter().chain([&property]).collect::<Vec<_>>() }),
                None => json!({ "anyOf": [known, property] }),
            }
        }
        Some(_) => return,
        None => property,
    };
    properties.insert(name, joined);
}
