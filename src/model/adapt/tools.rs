//! The tools of a request, adapted to a provider, and the way back from their names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::names::{argument_name, tool_name};
use super::schema;
use super::traits::ProviderTraits;
use crate::json;
use crate::model::message::{Block, Message};
use crate::model::request::ToolSpec;

/// The tools of a session, adapted to a provider.
pub(in crate::model) struct AdaptedTools {
    source: Arc<[ToolSpec]>,
    traits: ProviderTraits,
    specs: Arc<[ToolSpec]>,
    /// The tools with another name in requests, by that name.
    names: HashMap<String, String>,
    /// The arguments with another name in requests, by the name of the tool in requests: their
    /// names by those in requests.
    arguments: HashMap<String, HashMap<String, String>>,
    /// The tools that were left out, with the reason.
    pub left_out: Vec<(String, String)>,
}

impl AdaptedTools {
    pub(super) fn new(source: &Arc<[ToolSpec]>, traits: ProviderTraits) -> AdaptedTools {
        let (mut names, mut arguments, mut left_out) = (HashMap::new(), HashMap::new(), Vec::new());
        let (mut specs, mut taken) = (Vec::new(), HashSet::new());
        for tool in source.iter() {
            let name = tool_name(&tool.name).into_owned();
            let adapted = match schema::adapt(&tool.input_schema, traits) {
                _ if specs.len() >= traits.tools_max => Err(format!("the provider accepts {} tools", traits.tools_max)),
                _ if !taken.insert(name.clone()) => Err("another tool has the same name".to_owned()),
                adapted => adapted,
            };
            let adapted = match adapted {
                Ok(adapted) => adapted,
                Err(why) => {
                    left_out.push((tool.name.clone(), why));
                    continue;
                }
            };
            if name != tool.name {
                names.insert(name.clone(), tool.name.clone());
            }
            if !adapted.renamed.is_empty() {
                arguments.insert(name.clone(), adapted.renamed);
            }
            let description = description(tool, traits);
            specs.push(ToolSpec { name, description, input_schema: adapted.schema });
        }
        AdaptedTools { source: source.clone(), traits, specs: specs.into(), names, arguments, left_out }
    }

    pub(super) fn is_of(&self, source: &Arc<[ToolSpec]>, traits: ProviderTraits) -> bool {
        self.traits == traits && (Arc::ptr_eq(&self.source, source) || self.source == *source)
    }

    /// Returns the tools for a request.
    pub(super) fn specs(&self) -> Arc<[ToolSpec]> {
        self.specs.clone()
    }

    /// Returns the name of a tool of the session by its name in requests.
    pub(super) fn original_name(&self, name: String) -> String {
        self.names.get(&name).cloned().unwrap_or(name)
    }

    /// Returns the name and the arguments of a call for the session.
    pub(super) fn original_call(&self, name: String, input: String) -> (String, String) {
        let renamed = self.arguments.get(&name).and_then(|renamed| {
            let mut fields: Map<String, Value> = json::from_str(&input).ok()?;
            fields.keys().any(|field| renamed.contains_key(field)).then(|| {
                fields = fields.into_iter().map(|(field, value)| (renamed.get(&field).cloned().unwrap_or(field), value)).collect();
                Value::Object(fields).to_string()
            })
        });
        (self.original_name(name), renamed.unwrap_or(input))
    }

    /// Returns the arguments of a call in the conversation, if they have other names in requests.
    /// `name` is the name of the tool in requests.
    pub(super) fn renamed_input(&self, name: &str, input: &Value) -> Option<Value> {
        let (renamed, fields) = (self.arguments.get(name)?, input.as_object()?);
        let adapted = |field: &String| {
            let adapted = argument_name(field);
            if renamed.contains_key(adapted.as_ref()) { adapted.into_owned() } else { field.clone() }
        };
        fields
            .keys()
            .any(|field| adapted(field) != *field)
            .then(|| Value::Object(fields.iter().map(|(field, value)| (adapted(field), value.clone())).collect()))
    }
}

/// Returns the description of a tool. Some providers refuse an empty one.
fn description(tool: &ToolSpec, traits: ProviderTraits) -> String {
    match tool.description.trim() {
        "" => tool.name.clone(),
        text if text.chars().count() > traits.description_chars_max => text.chars().take(traits.description_chars_max).collect(),
        _ => tool.description.clone(),
    }
}

/// Returns a tool for each name that is called in the conversation, for providers that refuse a
/// conversation with calls and without tools.
pub(super) fn called(messages: &[Arc<Message>]) -> Arc<[ToolSpec]> {
    let mut names: Vec<&str> = Vec::new();
    for message in messages {
        let Message::Assistant(blocks) = &**message else { continue };
        for block in blocks {
            if let Block::ToolCall { name, .. } = block
                && !names.contains(&name.as_str())
            {
                names.push(name);
            }
        }
    }
    let tool = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: "Not available now.".to_owned(),
        input_schema: json!({ "type": "object", "properties": {} }),
    };
    names.iter().map(tool).collect()
}
