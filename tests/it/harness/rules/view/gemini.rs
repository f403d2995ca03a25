//! Requests of Google's generateContent API.

use serde_json::Value;

use super::{Arguments, Block, Content, Role, Tool, Turn, elements};

pub fn tools(body: &Value) -> Vec<Tool<'_>> {
    let lists = elements(&body["tools"]);
    let declarations = |(list, value): (usize, &'_ Value)| (list, value["functionDeclarations"].as_array().map(Vec::len));
    let counts: Vec<(usize, usize)> = lists.map(declarations).map(|(list, count)| (list, count.unwrap_or(0))).collect();
    let places = counts.into_iter().flat_map(|(list, count)| (0..count).map(move |index| (list, index)));
    places.map(|(list, index)| tool(list, index, &body["tools"][list]["functionDeclarations"][index])).collect()
}

fn tool(list: usize, index: usize, value: &Value) -> Tool<'_> {
    let field = if value["parameters"].is_null() { "parametersJsonSchema" } else { "parameters" };
    Tool {
        place: format!("tools[{list}].function_declarations[{index}]"),
        name: value["name"].as_str().unwrap_or_default(),
        description: value["description"].as_str(),
        // A function without parameters needs no schema.
        schema: Some(&value[field]).filter(|schema| !schema.is_null()),
        field,
    }
}

pub fn turns(body: &Value) -> Vec<Turn<'_>> {
    let value = &body["systemInstruction"];
    let system = Turn { role: Role::System, place: "system_instruction".into(), blocks: parts(value, "system_instruction"), value };
    let system = (!value.is_null()).then_some(system);
    system.into_iter().chain(elements(&body["contents"]).map(|(index, value)| turn(index, value))).collect()
}

fn turn(index: usize, value: &Value) -> Turn<'_> {
    let role = if value["role"] == "model" { Role::Assistant } else { Role::User };
    let place = format!("contents[{index}]");
    Turn { role, blocks: parts(value, &place), place, value }
}

fn parts<'a>(value: &'a Value, place: &str) -> Vec<Block<'a>> {
    elements(&value["parts"]).map(|(index, value)| part(value, format!("{place}.parts[{index}]"))).collect()
}

fn part(value: &Value, place: String) -> Block<'_> {
    let (call, response) = (&value["functionCall"], &value["functionResponse"]);
    let content = if value["thought"] == true {
        Content::Thinking
    } else if let Some(text) = value["text"].as_str() {
        Content::Text(text)
    } else if call.is_object() {
        let name = call["name"].as_str().unwrap_or_default();
        Content::Call { id: call["id"].as_str(), name, arguments: Arguments::Json(&call["args"]) }
    } else if response.is_object() {
        let failed = response["response"]["error"].is_string();
        Content::Result { id: response["id"].as_str(), name: response["name"].as_str(), failed, content: parts(response, &place) }
    } else {
        media(&value["inlineData"])
    };
    Block { place, content, value }
}

fn media(inline: &Value) -> Content<'_> {
    let (mime, data) = (inline["mimeType"].as_str().unwrap_or_default(), inline["data"].as_str());
    match (mime.split('/').next(), data) {
        (Some("image"), Some(data)) => Content::Image { mime: Some(mime), data },
        (Some("audio"), Some(_)) => Content::Audio { format: Some(mime) },
        (_, Some(_)) => Content::Document { name: None, data },
        (_, None) => Content::Other,
    }
}
