//! Requests of Chat Completions, and of Ollama's own API, which differs in images and arguments.

use serde_json::Value;

use super::{Arguments, Block, Content, Role, Tool, Turn, data_url, elements};

pub fn tools(body: &Value) -> Vec<Tool<'_>> {
    let tools = elements(&body["tools"]).filter(|(_, value)| value["function"].is_object());
    tools.map(|(index, value)| tool(index, &value["function"])).collect()
}

fn tool(index: usize, function: &Value) -> Tool<'_> {
    Tool {
        place: format!("tools[{index}].function"),
        name: function["name"].as_str().unwrap_or_default(),
        description: function["description"].as_str(),
        schema: Some(&function["parameters"]),
        field: "parameters",
    }
}

pub fn turns(body: &Value) -> Vec<Turn<'_>> {
    elements(&body["messages"]).map(|(index, value)| turn(index, value)).collect()
}

fn turn(index: usize, value: &Value) -> Turn<'_> {
    let place = format!("messages[{index}]");
    let role = match value["role"].as_str() {
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        Some("user") => Role::User,
        _ => Role::System,
    };
    let mut blocks = blocks(&value["content"], &place);
    let images = elements(&value["images"]).filter_map(|(index, value)| {
        let content = Content::Image { mime: None, data: value.as_str()? };
        Some(Block { place: format!("{place}.images[{index}]"), content, value })
    });
    blocks.extend(images);
    blocks.extend(elements(&value["tool_calls"]).map(|(index, value)| call(value, format!("{place}.tool_calls[{index}]"))));
    if role == Role::Tool {
        let (id, name) = (value["tool_call_id"].as_str(), value["tool_name"].as_str());
        let content = Content::Result { id, name, failed: false, content: blocks };
        blocks = vec![Block { place: place.clone(), content, value }];
    }
    Turn { role, place, blocks, value }
}

fn call(value: &Value, place: String) -> Block<'_> {
    let function = &value["function"];
    let arguments = &function["arguments"];
    let arguments = arguments.as_str().map_or(Arguments::Json(arguments), Arguments::Text);
    let name = function["name"].as_str().unwrap_or_default();
    Block { place, content: Content::Call { id: value["id"].as_str(), name, arguments }, value }
}

/// Reads the content of a message, which is a string or a list.
fn blocks<'a>(content: &'a Value, place: &str) -> Vec<Block<'a>> {
    match content.as_str() {
        Some(text) => vec![Block { place: format!("{place}.content"), content: Content::Text(text), value: content }],
        None => elements(content).map(|(index, value)| part(value, format!("{place}.content[{index}]"))).collect(),
    }
}

fn part(value: &Value, place: String) -> Block<'_> {
    let content = match value["type"].as_str() {
        Some("text") => Content::Text(value["text"].as_str().unwrap_or_default()),
        Some("image_url") => match value["image_url"]["url"].as_str().and_then(data_url) {
            Some((mime, data)) => Content::Image { mime: Some(mime), data },
            None => Content::Other,
        },
        Some("input_audio") => Content::Audio { format: value["input_audio"]["format"].as_str() },
        Some("file") => Content::Document { name: value["file"]["filename"].as_str(), data: value["file"]["file_data"].as_str() },
        _ => Content::Other,
    };
    Block { place, content, value }
}
