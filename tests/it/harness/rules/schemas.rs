//! Rules 3 to 9: JSON schemas of tools.

mod gemini;
mod ollama;
mod openai;
mod references;
mod root;
mod walk;

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::Value;

use super::Platform;
use super::refusal::Refusals;
use super::view::{Tool, View};
use crate::provider::Protocol;

pub fn check(view: &View<'_>, refused: &mut Refusals) {
    for tool in &view.tools {
        let Some(schema) = tool.schema else { continue };
        let found = ToolSchema { view, tool, schema };
        root::check(&found, refused);
        keys(&found, refused);
        references::check(&found, refused);
        meta_schema(&found, refused);
        openai::check(&found, refused);
        gemini::check(&found, refused);
        ollama::check(&found, refused);
    }
}

/// The schema of a tool in a request.
struct ToolSchema<'a> {
    view: &'a View<'a>,
    tool: &'a Tool<'a>,
    schema: &'a Value,
}

impl ToolSchema<'_> {
    fn place(&self) -> String {
        format!("{}.{}", self.tool.place, self.tool.field)
    }

    /// Adds a refusal in the form in which the provider reports faults of schemas.
    fn refuse(&self, rule: u8, refused: &mut Refusals, words: &str) {
        let (place, name) = (self.place(), self.tool.name);
        match (self.view.protocol, self.view.platform) {
            (Protocol::Anthropic, _) => refused.add(rule, &*place, format!("{place}: {words}")),
            (Protocol::Bedrock, _) => {
                refused.add(rule, &*place, format!("The value at {place} is invalid: {words}"));
            }
            (Protocol::Gemini, _) => refused.add(rule, &*place, format!("* GenerateContentRequest.{place}: {words}")),
            (Protocol::Ollama, _) => refused.add(rule, place, words),
            (_, Platform::Moonshot) => {
                let words = format!(
                    "Invalid request: tools.function.parameters of '{name}' is not a valid moonshot flavored json schema, details: <{words}>"
                );
                refused.add(rule, place, words);
            }
            _ => {
                let words = format!("Invalid schema for function '{name}': {words}");
                refused.add_code(rule, "invalid_function_parameters", place, words);
            }
        }
    }
}

/// Rule 4: keys of the properties at the top level.
fn keys(found: &ToolSchema<'_>, refused: &mut Refusals) {
    let fits = |key: &str| match found.view.protocol {
        Protocol::Anthropic => {
            let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
            (1..=64).contains(&key.len()) && key.chars().all(allowed)
        }
        // The other field of schemas, `parametersJsonSchema`, takes any names.
        Protocol::Gemini if found.tool.field == "parameters" => {
            let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            (1..=64).contains(&key.len()) && key.chars().all(allowed) && !key.starts_with(|letter: char| letter.is_ascii_digit())
        }
        _ => true,
    };
    for key in found.schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys()) {
        if !fits(key) {
            let words = match found.view.protocol {
                Protocol::Anthropic => "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'".to_owned(),
                _ => format!("Invalid property name: {key}"),
            };
            found.refuse(4, refused, &words);
        }
    }
}

/// Earlier results of validation, by the protocol and the text of the schema.
static VALID: Mutex<BTreeMap<(&str, String), bool>> = Mutex::new(BTreeMap::new());

/// Rule 7: the schema is valid.
fn meta_schema(found: &ToolSchema<'_>, refused: &mut Refusals) {
    let schema = found.schema;
    let (is_valid, words): (fn(&Value) -> bool, _) = match (found.view.protocol, found.view.platform) {
        (Protocol::Anthropic, _) => (
            jsonschema::draft202012::meta::is_valid,
            "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12)".to_owned(),
        ),
        (Protocol::OpenaiChat, Platform::Mistral) => {
            (jsonschema::draft7::meta::is_valid, "is not a valid JSON schema of draft 7".to_owned())
        }
        _ => return,
    };
    // Validating takes most of the time of a judgement, and requests have the same tools again.
    let key = (found.view.protocol.as_str(), schema.to_string());
    if !*VALID.lock().unwrap().entry(key).or_insert_with(|| is_valid(schema)) {
        found.refuse(7, refused, &words);
    }
}
