//! Rewrites the schemas of the OpenAPI document for client generators: every schema has a type,
//! a `$ref` has no siblings, a union of constants is an `enum`, and a variant of a union is a
//! component with a title.

use serde_json::{Map, Value, json};

const COMPONENTS: &str = "#/components/schemas/";

/// Rewrites all schemas of a document.
pub(super) fn shape(document: &mut Value) {
    let originals = document["components"]["schemas"].as_object().cloned().unwrap_or_default();
    let mut shaper = Shaper { originals: &originals, referenced: Vec::new(), made: Map::new() };
    plain_references(document, &mut shaper.referenced);
    let mut schemas = Map::new();
    for (name, schema) in &originals {
        schemas.insert(name.clone(), shaper.schema(schema.clone(), name));
    }
    document["components"]["schemas"] = Value::Null;
    shaper.sites(document, "");
    schemas.extend(shaper.made);
    merge_equal(&mut schemas, document);
    document["components"]["schemas"] = schemas.into();
    remove_unused(document);
}

struct Shaper<'a> {
    originals: &'a Map<String, Value>,
    /// Components that are the target of a `$ref` without siblings.
    referenced: Vec<String>,
    /// Variants that became components.
    made: Map<String, Value>,
}

impl Shaper<'_> {
    /// Rewrites every schema outside of the components.
    fn sites(&mut self, value: &mut Value, name: &str) {
        match value {
            Value::Object(object) => {
                let name = object.get("operationId").and_then(Value::as_str).map_or(name.to_string(), pascal);
                for (key, inner) in object.iter_mut().filter(|(key, _)| *key != "example") {
                    if key == "schema" {
                        *inner = self.schema(inner.take(), &name);
                    } else {
                        self.sites(inner, &name);
                    }
                }
            }
            Value::Array(list) => list.iter_mut().for_each(|inner| self.sites(inner, name)),
            _ => {}
        }
    }

    /// Rewrites one schema. `name` is the prefix of the names of its variants.
    fn schema(&mut self, schema: Value, name: &str) -> Value {
        let Value::Object(mut object) = schema else { return any(None) };
        object.shift_remove("discriminator");
        // Remove the default of an object, which the defaults of its fields already describe.
        if object.get("default").is_some_and(Value::is_object) {
            object.shift_remove("default");
        }
        object.retain(|key, _| {
            !["x-side", "x-method", "x-deserialize-default-on-error", "x-deserialize-skip-invalid-items"].contains(&key.as_str())
        });
        if object.shift_remove("x-deserialize-default-on-null").is_some()
            && let Some(kind) = object.get_mut("type").filter(|kind| kind.is_string())
        {
            *kind = json!([kind.take(), "null"]);
        }
        if object.contains_key("$ref") {
            let Some(inlined) = self.reference(&mut object) else { return Value::Object(object) };
            return self.schema(inlined, name);
        }
        if let Some(constants) = enumeration(&object) {
            return constants;
        }
        for union in ["oneOf", "anyOf"] {
            if let Some(Value::Array(variants)) = object.shift_remove(union) {
                return self.union(object, union, variants, name);
            }
        }
        for (key, inner) in object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            *inner = self.schema(inner.take(), &format!("{name}{}", pascal(key)));
        }
        for (key, inner) in object.iter_mut() {
            match key.as_str() {
                "items" | "contentSchema" => *inner = self.schema(inner.take(), name),
                "additionalProperties" if inner.is_object() => *inner = self.schema(inner.take(), name),
                "allOf" => {
                    for part in inner.as_array_mut().into_iter().flatten() {
                        *part = self.schema(part.take(), name);
                    }
                }
                _ => {}
            }
        }
        let has_type = ["type", "allOf", "enum", "const"].iter().any(|key| object.contains_key(*key));
        match (has_type, object.get("const").is_some_and(Value::is_string)) {
            (false, _) => any(object.shift_remove("description")),
            (true, true) => {
                object.entry("type").or_insert_with(|| "string".into());
                Value::Object(object)
            }
            (true, false) => Value::Object(object),
        }
    }

    /// Rewrites a `$ref`. A `$ref` without sibling keys is unchanged. If the only siblings are
    /// texts, the `$ref` is wrapped in `allOf`. Otherwise, returns the target schema merged with
    /// the siblings.
    fn reference(&mut self, object: &mut Map<String, Value>) -> Option<Value> {
        let only_texts = object.keys().all(|key| ["$ref", "description", "default", "title"].contains(&key.as_str()));
        if object.len() == 1 {
            return None;
        }
        let target = object.shift_remove("$ref").unwrap_or_default();
        if only_texts {
            object.insert("allOf".into(), json!([{ "$ref": target }]));
            return None;
        }
        let target = target.as_str().and_then(|target| target.strip_prefix(COMPONENTS)).and_then(|name| self.originals.get(name));
        let target = target.and_then(Value::as_object).cloned().unwrap_or_default();
        Some(Value::Object(merged(target, object.clone())))
    }

    /// Rewrites a union. The fields next to the union are copied into each variant, so that each
    /// variant is complete.
    fn union(&mut self, mut siblings: Map<String, Value>, union: &str, variants: Vec<Value>, name: &str) -> Value {
        let mut texts = Map::new();
        for key in ["title", "description", "default"] {
            texts.extend(siblings.shift_remove(key).map(|text| (key.to_string(), text)));
        }
        let has_fields = siblings.contains_key("properties");
        let mut whole = Vec::new();
        for variant in variants {
            let Value::Object(mut variant) = variant else { continue };
            if has_fields {
                variant = merged(siblings.clone(), variant);
            } else if variant.contains_key("$ref") && variant.keys().all(|key| key == "$ref" || key == "description") {
                variant.retain(|key, _| key == "$ref");
            }
            whole.push(self.variant(variant, name));
        }
        if !has_fields {
            texts.extend(siblings);
        }
        texts.insert(union.into(), whole.into());
        Value::Object(texts)
    }

    /// Rewrites a variant of a union. A variant with a constant field becomes a component that is
    /// named after the constant; any other object variant gets a title.
    fn variant(&mut self, variant: Map<String, Value>, union: &str) -> Value {
        let constant = variant
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .find_map(|(_, field)| field["const"].as_str());
        let mut name = format!("{union}{}", constant.map_or("Other".into(), pascal));
        let is_taken = self.referenced.contains(&name) || self.made.contains_key(&name);
        let is_named = constant.is_some() && self.originals.contains_key(union);
        if is_named && is_taken {
            name += "Variant";
        }
        let mut whole = self.schema(Value::Object(variant), &name);
        if whole["type"] != "object" {
            return whole;
        }
        whole["title"] = name.as_str().into();
        if !is_named {
            return whole;
        }
        self.made.insert(name.clone(), whole);
        json!({ "$ref": format!("{COMPONENTS}{name}") })
    }
}

/// Returns a schema that allows any JSON value.
fn any(description: Option<Value>) -> Value {
    let types = ["object", "array", "string", "number", "boolean", "null"];
    let mut schema = json!({ "type": types, "additionalProperties": true, "items": {} });
    if let Some(description) = description {
        schema["description"] = description;
    }
    schema
}

/// Rewrites a union of string constants to an `enum`. If the union also accepts any other string,
/// it becomes a string with the constants as examples. None for other schemas.
fn enumeration(object: &Map<String, Value>) -> Option<Value> {
    let variants = object.get("oneOf").or(object.get("anyOf"))?.as_array()?;
    let (mut values, mut texts, mut open) = (Vec::new(), Vec::new(), false);
    for variant in variants {
        if variant["type"] != "string" {
            return None;
        }
        let constants: Vec<Value> = match (&variant["const"], variant["enum"].as_array()) {
            (constant @ Value::String(_), _) => vec![constant.clone()],
            (_, Some(constants)) => constants.clone(),
            _ => Vec::new(),
        };
        open |= constants.is_empty();
        if let ([constant], Some(text)) = (constants.as_slice(), variant["description"].as_str()) {
            texts.push(format!("- `{}`: {text}", constant.as_str().unwrap_or_default()));
        }
        values.extend(constants);
    }
    let mut whole = object.clone();
    whole.retain(|key, _| !["oneOf", "anyOf"].contains(&key.as_str()));
    whole.insert("type".into(), "string".into());
    whole.insert(if open { "examples" } else { "enum" }.into(), values.into());
    if !texts.is_empty() {
        let text = object.get("description").and_then(Value::as_str).into_iter().map(String::from);
        whole.insert("description".into(), text.chain([texts.join("\n")]).collect::<Vec<_>>().join("\n\n").into());
    }
    Some(Value::Object(whole))
}

/// Merges two object schemas. The result has the fields of both. If both have a text, the result
/// has the text of the second.
fn merged(mut first: Map<String, Value>, second: Map<String, Value>) -> Map<String, Value> {
    for (key, value) in second {
        match (key.as_str(), first.get_mut(&key), value) {
            ("properties", Some(Value::Object(fields)), Value::Object(more)) => {
                // The fields of the second schema come first, because one of them is the tag of the
                // variant.
                let mut all = more;
                for (name, field) in std::mem::take(fields) {
                    all.entry(name).or_insert(field);
                }
                *fields = all;
            }
            ("required", Some(Value::Array(names)), Value::Array(more)) => {
                let more: Vec<Value> = more.into_iter().filter(|name| !names.contains(name)).collect();
                names.extend(more);
            }
            (_, _, value) => drop(first.insert(key, value)),
        }
    }
    first
}

/// Converts a name to Pascal case: `session.created` → `SessionCreated`.
fn pascal(name: &str) -> String {
    let words = name.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| format!("{}{}", word[..1].to_ascii_uppercase(), &word[1..])).collect()
}

fn plain_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            if let (Some(Value::String(target)), true) =
                (object.get("$ref"), object.keys().all(|key| key == "$ref" || key == "description"))
            {
                found.extend(target.strip_prefix(COMPONENTS).map(String::from));
            }
            object.values().for_each(|inner| plain_references(inner, found));
        }
        Value::Array(list) => list.iter().for_each(|inner| plain_references(inner, found)),
        _ => {}
    }
}

/// Merges components that differ only in their texts. Such components exist because schemars
/// appends numbers to the names of types that share a name.
fn merge_equal(schemas: &mut Map<String, Value>, document: &mut Value) {
    let base = |name: &str| name.trim_end_matches(|character: char| character.is_ascii_digit()).to_string();
    let numbered: Vec<String> = schemas.keys().filter(|name| base(name) != **name).cloned().collect();
    for name in numbered {
        let same = schemas.get(&base(&name)).is_some_and(|first| without_texts(first) == without_texts(&schemas[&name]));
        if same {
            schemas.shift_remove(&name);
            let (old, new) = (format!("{COMPONENTS}{name}"), format!("{COMPONENTS}{}", base(&name)));
            schemas.values_mut().for_each(|schema| redirect(schema, &old, &new));
            redirect(document, &old, &new);
        }
    }
}

fn without_texts(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(object) = &mut schema {
        object.retain(|key, _| key != "description" && key != "title");
        if let Some(Value::Array(values)) = object.get_mut("enum") {
            values.sort_by_key(Value::to_string);
        }
    }
    schema
}

fn redirect(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object.iter_mut() {
                if key == "$ref" && inner == old {
                    *inner = new.into();
                } else {
                    redirect(inner, old, new);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|inner| redirect(inner, old, new)),
        _ => {}
    }
}

/// Removes components without references, such as those that were merged into their variants.
fn remove_unused(document: &mut Value) {
    loop {
        let mut used = Vec::new();
        every_reference(document, &mut used);
        let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
        let before = schemas.len();
        schemas.retain(|name, _| used.contains(name));
        if schemas.len() == before {
            return;
        }
    }
}

fn every_reference(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            found.extend(
                object.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix(COMPONENTS)).map(String::from),
            );
            object.values().for_each(|inner| every_reference(inner, found));
        }
        Value::Array(list) => list.iter().for_each(|inner| every_reference(inner, found)),
        _ => {}
    }
}
