//! Rule 3: the root of a schema is an object without unions.

use serde_json::Value;

use super::ToolSchema;
use crate::provider::Protocol;
use crate::rules::refusal::Refusals;
use crate::rules::{Platform, model};

pub fn check(found: &ToolSchema<'_>, refused: &mut Refusals) {
    let (view, schema) = (found.view, found.schema);
    let lacks_type = schema["type"] != "object";
    let has = |words: &[&str]| words.iter().any(|word| schema.get(word).is_some());
    match (view.protocol, view.platform) {
        (Protocol::Anthropic, _) => {
            if lacks_type {
                refused.add(3, format!("{}.type", found.place()), type_words(schema, &found.place()));
            }
            if has(&["anyOf", "oneOf", "allOf"]) {
                found.refuse(3, refused, "input_schema does not support oneOf, allOf, or anyOf at the top level");
            }
        }
        (Protocol::Bedrock, _) if lacks_type => {
            let place = format!("{}.type", found.place());
            let words = format!("The value at {place} must be one of the following: object.");
            refused.add(3, place, words);
        }
        (Protocol::Gemini, _) if lacks_type && schema["type"] != "OBJECT" => {
            found.refuse(3, refused, "parameters schema should be of type OBJECT");
        }
        (Protocol::OpenaiChat, Platform::Moonshot) if lacks_type => {
            found.refuse(3, refused, "At path '': type must be object");
        }
        // A missing field is rule 12.
        _ if view.is_like_openai() && !schema.is_null() => openai(found, refused, lacks_type),
        _ => {}
    }
}

fn type_words(schema: &Value, place: &str) -> String {
    match schema["type"] {
        Value::Null => format!("{place}.type: Field required"),
        _ => format!("{place}.type: Input should be 'object'"),
    }
}

fn openai(found: &ToolSchema<'_>, refused: &mut Refusals, lacks_type: bool) {
    let (view, schema) = (found.view, found.schema);
    if lacks_type {
        let kind = schema["type"].as_str().unwrap_or("None");
        found.refuse(3, refused, &format!("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."));
    }
    // GPT-5 and later accept unions in Responses.
    let is_older = view.is_model(&["gpt-3.5", "gpt-4"]) || model::is_o_series(view.model);
    let unions = ["oneOf", "anyOf", "allOf", "enum", "not", "const"];
    if (view.protocol == Protocol::OpenaiChat || is_older) && unions.iter().any(|word| schema.get(word).is_some()) {
        let words = "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level.";
        found.refuse(3, refused, words);
    }
}
