//! docs/SETTINGS.md describes every setting of schema/config.json.

use serde_json::{Map, Value};

use harness::package;
use harness::pages::check_generated;

use super::wrap;

/// The page, while it is written.
struct Page<'a> {
    definitions: &'a Map<String, Value>,
    text: String,
}

/// A table of settings that follows the one that names it.
struct Table {
    heading: String,
    schema: Value,
    /// Replaces the description of the schema.
    description: Option<String>,
}

fn words(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

impl Page<'_> {
    /// Returns the definition that a schema refers to, without `null` as an alternative.
    fn resolve(&self, schema: &Value) -> Value {
        if let Some(name) = schema["$ref"].as_str() {
            return self.definitions[name.trim_start_matches("#/$defs/")].clone();
        }
        let alternatives = schema["anyOf"].as_array().into_iter().flatten().filter(|one| one["type"] != "null");
        let alternatives: Vec<&Value> = alternatives.collect();
        match alternatives[..] {
            [one] => self.resolve(one),
            _ => schema.clone(),
        }
    }

    /// Returns the values that a schema accepts, and their meanings.
    fn values(&self, schema: &Value) -> (Vec<String>, Vec<String>) {
        let (mut names, mut meanings) = (Vec::new(), Vec::new());
        let variants = schema["oneOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
        for variant in variants {
            let of_enum = variant["enum"].as_array().into_iter().flatten();
            names.extend(of_enum.map(|value| format!("`{}`", value.as_str().unwrap())));
            if let Some(name) = variant["const"].as_str() {
                names.push(format!("`{name}`"));
                meanings.push(format!("`{name}`: {}", words(&variant)));
            }
        }
        (names, meanings)
    }

    /// Returns the name of a type for readers.
    fn kind(&self, schema: &Value) -> String {
        let schema = self.resolve(schema);
        let names = self.values(&schema).0;
        if !names.is_empty() {
            return names.join(", ");
        }
        if let Some(alternatives) = schema["anyOf"].as_array() {
            return alternatives.iter().map(|one| self.kind(one)).collect::<Vec<_>>().join(" or ");
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").unwrap().as_str().unwrap(),
            kind => kind.as_str().unwrap_or("value"),
        };
        match kind {
            "array" => format!("list: {}", self.kind(&schema["items"])),
            "object" if schema["additionalProperties"].is_object() => {
                format!("table by name: {}", self.kind(&schema["additionalProperties"]))
            }
            "object" => "table".into(),
            kind => kind.into(),
        }
    }

    /// Returns the tables that the setting `path` consists of, for each name or item if there are
    /// several.
    fn tables(&self, path: &str, schema: &Value) -> Vec<Table> {
        let resolved = self.resolve(schema);
        let own = |schema: &Value| (!words(schema).is_empty()).then(|| words(schema));
        let table = |heading: String, target: &Value| Table { heading, schema: target.clone(), description: None };
        let has_properties = |schema: &Value| schema["properties"].is_object();
        let mut found = Vec::new();
        if has_properties(&resolved) {
            found.push(Table { description: own(&resolved).or(own(schema)), ..table(format!("[{path}]"), &resolved) });
        }
        let named = self.resolve(&resolved["additionalProperties"]);
        if has_properties(&named) {
            let name = if path == "models" || path == "trust" { "\"…\"" } else { "NAME" };
            let description = (!has_properties(&resolved)).then(|| words(schema)).or(own(&named));
            found.push(Table { description, ..table(format!("[{path}.{name}]"), &named) });
        }
        let items = self.resolve(&resolved["items"]);
        if has_properties(&items) {
            found.push(table(format!("[[{path}]]"), &items));
        }
        found
    }

    /// Writes a table of settings, and then those below it.
    fn write(&mut self, table: &Table) {
        let path = table.heading.trim_matches(['[', ']']).to_owned();
        let description = table.description.clone().unwrap_or_else(|| words(&table.schema));
        self.text += &format!("\n## `{}`\n", table.heading);
        if !description.is_empty() {
            self.text += &format!("\n{}\n", wrap(&description));
        }
        self.text += "\n| setting | type | default | meaning |\n|---|---|---|---|\n";
        let mut below = Vec::new();
        for (name, schema) in table.schema["properties"].as_object().unwrap() {
            let resolved = self.resolve(schema);
            let tables = self.tables(&format!("{path}.{name}"), schema);
            let kind = match tables.iter().map(|table| format!("`{}`", table.heading)).collect::<Vec<_>>()[..] {
                [] => self.kind(schema),
                ref headings => headings.join(", "),
            };
            let default = match &schema["default"] {
                Value::Null | Value::Object(_) => String::new(),
                Value::Array(values) if values.is_empty() => String::new(),
                value => format!("`{value}`"),
            };
            let described = if words(schema).is_empty() { words(&resolved) } else { words(schema) };
            let meanings = self.values(&resolved).1;
            let meaning = [vec![described], meanings].concat().join(" ");
            self.text += &format!("| `{name}` | {kind} | {default} | {} |\n", meaning.trim());
            below.extend(tables);
        }
        below.iter().for_each(|table| self.write(table));
    }
}

#[test]
fn page_describes_every_setting() {
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(package("schema/config.json")).unwrap()).unwrap();
    let definitions = schema["$defs"].as_object().unwrap();
    let mut page = Page { definitions, text: String::new() };
    let settings = schema["properties"].as_object().unwrap();
    page.text += "\n## Settings without a table\n\n| setting | type | default | meaning |\n|---|---|---|---|\n";
    let mut tables = Vec::new();
    for (name, schema) in settings {
        let found = page.tables(name, schema);
        if found.is_empty() {
            let default = if schema["default"].is_string() { format!("`{}`", schema["default"]) } else { String::new() };
            let meanings = page.values(&page.resolve(schema)).1;
            let meaning = [vec![words(schema)], meanings].concat().join(" ");
            page.text += &format!("| `{name}` | {} | {default} | {} |\n", page.kind(schema), meaning.trim());
        }
        tables.extend(found);
    }
    tables.iter().for_each(|table| page.write(table));
    for definition in definitions.values() {
        for name in definition["properties"].as_object().into_iter().flatten().map(|(name, _)| name) {
            assert!(page.text.contains(&format!("| `{name}` |")), "the page lacks {name}");
        }
    }
    check_generated("docs/SETTINGS.md", &page.text);
}
