//! Requests of Anthropic's Messages API.

use serde_json::Value;

use super::{Arguments, Block, Content, Role, Tool, Turn, elements};

pub fn tools(body: &Value) -> Vec<Tool<'_>> {
    elements(&body["tools"]).map(|(index, value)| tool(index, value)).collect()
}

fn tool(index: usize, value: &Value) -> Tool<'_> {
    // A tool with another type is the provider's own.
    let is_custom = matches!(value["type"].as_str(), None | Some("custom"));
    Tool {
        place: format!("tools.{index}.custom"),
        name: value["name"].as_str().unwrap_or_default(),
        description: value["description"].as_str(),
        schema: is_custom.then(|| &value["input_schema"]),
        field: "input_schema",
    }
}

pub fn turns(body: &Value) -> Vec<Turn<'_>> {
    let value = &body["system"];
    let system = Turn { role: Role::System, place: "system".into(), blocks: blocks(value, "system"), value };
    let system = (!value.is_null()).then_some(system);
    system.into_iter().chain(elements(&body["messages"]).map(|(index, value)| turn(index, value))).collect()
}

fn turn(index: usize, value: &Value) -> Turn<'_> {
    let role = match value["role"].as_str() {
        Some("assistant") => Role::Assistant,
        Some("user") => Role::User,
        _ => Role::System,
    };
    let place = format!("messages.{index}");
    Turn { role, blocks: blocks(&value["content"], &format!("{place}.content")), place, value }
}

/// Reads a content field, which is a string or a list.
fn blocks<'a>(content: &'a Value, place: &str) -> Vec<Block<'a>> {
    match content.as_str() {
        Some(text) => vec![Block { place: place.into(), content: Content::Text(text), value: content }],
        None => elements(content).map(|(index, value)| block(value, format!("{place}.{index}"))).collect(),
    }
}

fn block(value: &Value, place: String) -> Block<'_> {
    let source = &value["source"];
    let content = match value["type"].as_str() {
        Some("text") => Content::Text(value["text"].as_str().unwrap_or_default()),
        Some("image") => match source["data"].as_str() {
            Some(data) => Content::Image { mime: source["media_type"].as_str(), data },
            None => Content::Other,
        },
        Some("document") => Content::Document { name: value["title"].as_str(), data: source["data"].as_str() },
        Some("thinking" | "redacted_thinking") => Content::Thinking,
        Some("tool_use") => Content::Call {
            id: value["id"].as_str(),
            name: value["name"].as_str().unwrap_or_default(),
            arguments: Arguments::Json(&value["input"]),
        },
        Some("tool_result") => Content::Result {
            id: value["tool_use_id"].as_str(),
            name: None,
            failed: value["is_error"] == true,
            content: blocks(&value["content"], &format!("{place}.tool_result.content")),
        },
        _ => Content::Other,
    };
    Block { place, content, value }
}
