//! Requests of Bedrock's Converse API.

use serde_json::Value;

use super::{Arguments, Block, Content, Role, Tool, Turn, elements};

pub fn tools(body: &Value) -> Vec<Tool<'_>> {
    let tools = elements(&body["toolConfig"]["tools"]).filter(|(_, value)| value["toolSpec"].is_object());
    tools.map(|(index, value)| tool(index, &value["toolSpec"])).collect()
}

fn tool(index: usize, spec: &Value) -> Tool<'_> {
    Tool {
        place: format!("toolConfig.tools.{index}.toolSpec"),
        name: spec["name"].as_str().unwrap_or_default(),
        description: spec["description"].as_str(),
        schema: Some(&spec["inputSchema"]["json"]),
        field: "inputSchema.json",
    }
}

pub fn turns(body: &Value) -> Vec<Turn<'_>> {
    let value = &body["system"];
    let system = Turn { role: Role::System, place: "system".into(), blocks: blocks(value, "system"), value };
    let system = (!value.is_null()).then_some(system);
    system.into_iter().chain(elements(&body["messages"]).map(|(index, value)| turn(index, value))).collect()
}

fn turn(index: usize, value: &Value) -> Turn<'_> {
    let role = if value["role"] == "assistant" { Role::Assistant } else { Role::User };
    let place = format!("messages.{index}");
    Turn { role, blocks: blocks(&value["content"], &format!("{place}.content")), place, value }
}

fn blocks<'a>(content: &'a Value, place: &str) -> Vec<Block<'a>> {
    elements(content).map(|(index, value)| block(value, format!("{place}.{index}"))).collect()
}

fn block(value: &Value, place: String) -> Block<'_> {
    let (image, document) = (&value["image"], &value["document"]);
    let (call, result) = (&value["toolUse"], &value["toolResult"]);
    let content = if let Some(text) = value["text"].as_str() {
        Content::Text(text)
    } else if let Some(data) = image["source"]["bytes"].as_str() {
        Content::Image { mime: image["format"].as_str(), data }
    } else if document.is_object() {
        Content::Document { name: document["name"].as_str(), data: document["source"]["bytes"].as_str() }
    } else if value["reasoningContent"].is_object() {
        Content::Thinking
    } else if call.is_object() {
        let name = call["name"].as_str().unwrap_or_default();
        Content::Call { id: call["toolUseId"].as_str(), name, arguments: Arguments::Json(&call["input"]) }
    } else if result.is_object() {
        let content = blocks(&result["content"], &format!("{place}.toolResult.content"));
        Content::Result { id: result["toolUseId"].as_str(), name: None, failed: result["status"] == "error", content }
    } else {
        Content::Other
    };
    Block { place, content, value }
}
