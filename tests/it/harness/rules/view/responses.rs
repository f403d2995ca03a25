//! Requests of OpenAI's Responses API. Each item is a turn.

use serde_json::Value;

use super::{Arguments, Block, Content, Role, Tool, Turn, data_url, elements};

pub fn tools(body: &Value) -> Vec<Tool<'_>> {
    let tools = elements(&body["tools"]).filter(|(_, value)| value["type"] == "function");
    tools.map(|(index, value)| tool(index, value)).collect()
}

fn tool(index: usize, value: &Value) -> Tool<'_> {
    Tool {
        place: format!("tools[{index}]"),
        name: value["name"].as_str().unwrap_or_default(),
        description: value["description"].as_str(),
        schema: Some(&value["parameters"]),
        field: "parameters",
    }
}

pub fn turns(body: &Value) -> Vec<Turn<'_>> {
    elements(&body["input"]).map(|(index, value)| turn(index, value)).collect()
}

fn turn(index: usize, value: &Value) -> Turn<'_> {
    let place = format!("input[{index}]");
    let one = |content| vec![Block { place: place.clone(), content, value }];
    let (role, blocks) = match value["type"].as_str() {
        Some("function_call") => (Role::Assistant, one(call(value))),
        Some("function_call_output") => {
            let content = contents(&value["output"], &format!("{place}.output"));
            let content = Content::Result { id: value["call_id"].as_str(), name: None, failed: false, content };
            (Role::Tool, one(content))
        }
        Some("reasoning") => (Role::Assistant, one(Content::Thinking)),
        Some("message") | None => {
            let role = match value["role"].as_str() {
                Some("assistant") => Role::Assistant,
                Some("user") => Role::User,
                _ => Role::System,
            };
            (role, contents(&value["content"], &format!("{place}.content")))
        }
        Some(_) => (Role::Assistant, one(Content::Other)),
    };
    Turn { role, place, blocks, value }
}

fn call(value: &Value) -> Content<'_> {
    let arguments = &value["arguments"];
    let arguments = arguments.as_str().map_or(Arguments::Json(arguments), Arguments::Text);
    Content::Call { id: value["call_id"].as_str(), name: value["name"].as_str().unwrap_or_default(), arguments }
}

fn contents<'a>(content: &'a Value, place: &str) -> Vec<Block<'a>> {
    match content.as_str() {
        Some(text) => vec![Block { place: place.into(), content: Content::Text(text), value: content }],
        None => elements(content).map(|(index, value)| part(value, format!("{place}[{index}]"))).collect(),
    }
}

fn part(value: &Value, place: String) -> Block<'_> {
    let content = match value["type"].as_str() {
        Some("input_text" | "output_text" | "text") => Content::Text(value["text"].as_str().unwrap_or_default()),
        Some("input_image") => match value["image_url"].as_str().and_then(data_url) {
            Some((mime, data)) => Content::Image { mime: Some(mime), data },
            None => Content::Other,
        },
        Some("input_audio") => Content::Audio { format: value["input_audio"]["format"].as_str() },
        Some("input_file") => Content::Document { name: value["filename"].as_str(), data: value["file_data"].as_str() },
        _ => Content::Other,
    };
    Block { place, content, value }
}
