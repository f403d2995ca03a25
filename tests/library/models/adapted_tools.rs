//! Tools that a provider refuses as their server describes them: names, arguments and schemas are
//! adapted, and calls are translated back.

use std::collections::HashSet;
use std::sync::Arc;

use harness::provider::{Exchange, Protocol, Provider, ReceivedRequest};
use harness::wires::WIRES;
use nuncio::content::Part;
use nuncio::internal::model::{Chunk, Message, ToolSpec};
use serde_json::{Value, json};

use super::{Answer, ask, open_as, request};

fn tool(name: &str, input_schema: Value) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: "Does it.".to_owned(), input_schema }
}

fn say() -> Vec<Message> {
    vec![Message::User(vec![Part::text("hi")])]
}

/// Sends a request with these tools to the provider with this name.
async fn send(protocol: Protocol, provider_name: &str, tools: Vec<ToolSpec>) -> (Answer, ReceivedRequest) {
    let wire = WIRES.iter().find(|wire| wire.protocol == protocol).expect("a wire");
    let provider = Provider::start(protocol, vec![Exchange::events(wire.plain)]).await;
    // The number of tools that a server without a name accepts is not known.
    provider.lax(&[10]);
    let mut request = request(say());
    request.tools = tools.into();
    let answer = ask(open_as(provider_name, wire, &provider.base_url).as_ref(), request).await;
    (answer, provider.finish().await.remove(0))
}

/// The names and the schemas of the tools in a body of any protocol.
fn sent(body: &Value) -> Vec<(String, Value)> {
    let lists = [
        ("/tools", "/name", "/input_schema"),
        ("/tools", "/function/name", "/function/parameters"),
        ("/tools", "/name", "/parameters"),
        ("/tools/0/functionDeclarations", "/name", "/parametersJsonSchema"),
        ("/toolConfig/tools", "/toolSpec/name", "/toolSpec/inputSchema/json"),
    ];
    for (list, name, schema) in lists {
        let tools = body.pointer(list).and_then(Value::as_array).into_iter().flatten();
        let found: Vec<(String, Value)> =
            tools.filter_map(|tool| Some((tool.pointer(name)?.as_str()?.to_owned(), tool.pointer(schema)?.clone()))).collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

const NAMES: &[&str] = &[
    "files.read",
    "files/read",
    "files read",
    "1st",
    "_private",
    "-dash",
    "größe",
    "文件",
    "a::b",
    "mcp__a_very_long_name_of_a_server__and_a_long_name_of_its_tool_as_well",
];

#[tokio::test]
async fn names_of_tools_that_providers_refuse_are_replaced_by_safe_ones() {
    for wire in WIRES {
        let tools: Vec<ToolSpec> = NAMES.iter().map(|name| tool(name, json!({ "type": "object" }))).collect();
        let (_, received) = send(wire.protocol, "test", tools.clone()).await;
        let names: Vec<String> = sent(&received.body).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), NAMES.len(), "{names:?}");
        for name in &names {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
            assert!(name.len() <= 64 && name.chars().all(plain) && name.starts_with(|c: char| c.is_ascii_alphabetic()), "{name}");
        }
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
        // A name does not depend on the order in which servers started.
        let (_, received) = send(wire.protocol, "test", tools.into_iter().rev().collect()).await;
        let reversed: Vec<String> = sent(&received.body).into_iter().map(|(name, _)| name).rev().collect();
        assert_eq!(names, reversed);
    }
}

#[tokio::test]
async fn calls_of_renamed_tools_and_arguments_reach_the_tool_by_its_own_names() {
    let wire = WIRES.iter().find(|wire| wire.protocol == Protocol::OpenaiChat).expect("a wire");
    let schema = json!({ "type": "object", "required": ["$filter", "plain"], "properties": {
        "$filter": { "type": "string" }, "plain": { "type": "string" }, "max results": { "type": "integer" }, "x[]": { "type": "array" },
    } });
    let tools: Arc<[ToolSpec]> = vec![tool("items.find", schema.clone()), tool("other", json!({}))].into();
    let provider = Provider::start(wire.protocol, vec![Exchange::events(wire.plain)]).await;
    let model = open_as("test", wire, &provider.base_url);
    let mut asked = request(say());
    asked.tools = tools;
    provider.respond(move |received| {
        let (name, schema) = sent(&received.body).remove(0);
        let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        let (filter, count) = (fields.iter().find(|name| name.contains("filter")).unwrap(), fields.iter().find(|name| name.contains("max")).unwrap());
        let arguments = json!({ filter.as_str(): "a", count.as_str(): 2, "plain": "b", "unknown": true }).to_string();
        let call = json!({ "choices": [{ "delta": { "tool_calls": [{ "index": 0, "id": "call_1", "function": { "name": name, "arguments": arguments } }] }, "finish_reason": "tool_calls" }] });
        Exchange::events(&[&call.to_string(), "[DONE]"])
    });
    assert_eq!(ask(model.as_ref(), asked.clone()).await.error, None);
    let answer = ask(model.as_ref(), asked.clone()).await;
    let call = answer.chunks.iter().find_map(|chunk| match chunk {
        Chunk::ToolCall { name, input, .. } => Some((name.clone(), serde_json::from_str::<Value>(input).unwrap())),
        _ => None,
    });
    let input = json!({ "$filter": "a", "max results": 2, "plain": "b", "unknown": true });
    assert_eq!(call, Some(("items.find".to_owned(), input.clone())), "{:?}", answer.error);
    // The conversation has the names of requests again.

    let call = nuncio::internal::model::Block::ToolCall {
        id: "call_1".into(),
        name: "items.find".into(),
        input,
        input_text: None,
        state: None,
    };
    Arc::make_mut(&mut asked.messages).push(Arc::new(Message::Assistant(vec![call])));
    let output = vec![Part::text("found")];
    let result = nuncio::internal::model::ToolResult { id: "call_1".into(), name: "items.find".into(), output, failed: false };
    Arc::make_mut(&mut asked.messages).push(Arc::new(Message::ToolResults(vec![result])));
    assert_eq!(ask(model.as_ref(), asked).await.error, None);
    let received = provider.finish().await;
    let called = &received[2].body["messages"][2]["tool_calls"][0]["function"];
    let (name, schema) = sent(&received[2].body).remove(0);
    assert_eq!(called["name"], name.as_str());
    let arguments: Value = serde_json::from_str(called["arguments"].as_str().unwrap()).unwrap();
    let properties = schema["properties"].as_object().unwrap();
    assert!(arguments.as_object().unwrap().keys().all(|field| properties.contains_key(field) || field == "unknown"), "{arguments}");
    assert!(
        schema["required"].as_array().unwrap().iter().all(|field| properties.contains_key(field.as_str().unwrap())),
        "{schema}"
    );
}

/// Schemas as servers write them, and as they are sent.
fn schemas() -> Vec<(&'static str, Value, Value)> {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let property = |given: Value, sent: Value| (object(json!({ "a": given })), object(json!({ "a": sent })));
    let mut cases = vec![
        ("no schema", json!({}), object(json!({}))),
        ("a boolean", json!(true), object(json!({}))),
        ("no object", json!({ "type": "string" }), object(json!({}))),
        (
            "dialect",
            json!({ "$schema": "http://json-schema.org/draft-07/schema#", "$id": "x", "type": "object" }),
            object(json!({})),
        ),
        (
            "a choice at the root",
            json!({ "oneOf": [
                { "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } }, "required": ["a", "b"] },
                { "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] },
            ] }),
            json!({
                "description": "The arguments are one of: a, b; a.",
                "properties": { "a": { "anyOf": [{ "type": "string" }, { "type": "integer" }] }, "b": { "type": "string" } },
                "required": ["a"], "type": "object",
            }),
        ),
        (
            "parts at the root",
            json!({ "allOf": [{ "properties": { "a": { "type": "string" } }, "required": ["a"] }, { "properties": { "b": {} } }] }),
            json!({ "properties": { "a": { "type": "string" }, "b": {} }, "required": ["a"], "type": "object" }),
        ),
        (
            "references",
            json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/A", "description": "one" } }, "$defs": { "A": { "type": "array", "items": { "$ref": "#/definitions/B" } } }, "definitions": { "B": { "type": "string" } } }),
            object(json!({ "a": { "type": "array", "items": { "type": "string" }, "description": "one" } })),
        ),
        (
            "a cycle",
            json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/A" } }, "$defs": { "A": { "type": "object", "properties": { "next": { "$ref": "#/$defs/A" } } } } }),
            object(json!({ "a": object(json!({ "next": object(json!({})) })) })),
        ),
        (
            "unknown required",
            json!({ "type": "object", "properties": { "a": {} }, "required": ["a", "b", "a"] }),
            json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] }),
        ),
        (
            "required of draft 3",
            object(json!({ "a": { "type": "string", "required": true } })),
            object(json!({ "a": { "type": "string" } })),
        ),
        ("a property that is never allowed", object(json!({ "a": false, "b": true })), object(json!({ "b": {} }))),
    ];
    let more = [
        ("array", json!({ "type": "array" }), json!({ "type": "array", "items": {} })),
        ("object", json!({ "type": "object" }), json!({ "type": "object", "properties": {} })),
        (
            "tuple",
            json!({ "type": "array", "items": [{ "type": "string" }] }),
            json!({ "type": "array", "prefixItems": [{ "type": "string" }], "items": {} }),
        ),
        ("reference to nothing", json!({ "$ref": "#/$defs/Gone", "description": "d" }), json!({ "description": "d" })),
        ("reference to a page", json!({ "$ref": "https://example.com/schema.json" }), json!({})),
        (
            "nullable",
            json!({ "type": "string", "nullable": true, "example": "x", "xml": {} }),
            json!({ "type": ["string", "null"] }),
        ),
        ("unknown type", json!({ "type": "any", "minLength": 1 }), json!({ "minLength": 1 })),
        ("types of Python", json!({ "type": ["int", "None"] }), json!({ "type": ["integer", "null"] })),
        (
            "limits of draft 4",
            json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true }),
            json!({ "type": "integer", "minimum": 1 }),
        ),
        ("empty enum", json!({ "type": "string", "enum": [] }), json!({ "type": "string" })),
        ("enum with repetitions", json!({ "enum": ["a", "b", "a"] }), json!({ "enum": ["a", "b"] })),
        ("an object as enum", json!({ "type": "string", "enum": { "a": 1 } }), json!({ "type": "string" })),
        ("pattern that is none", json!({ "type": "string", "pattern": "(" }), json!({ "type": "string" })),
        ("length as text", json!({ "type": "string", "maxLength": "3", "title": 1 }), json!({ "type": "string" })),
        ("empty choice", json!({ "type": "string", "anyOf": [] }), json!({ "type": "string" })),
        (
            "nested choice",
            json!({ "anyOf": [{ "type": "array" }, { "type": "null" }] }),
            json!({ "anyOf": [{ "type": "array", "items": {} }, { "type": "null" }] }),
        ),
    ];
    cases.extend(more.into_iter().map(|(name, given, sent)| {
        let (given, sent) = property(given, sent);
        (name, given, sent)
    }));
    cases
}

#[tokio::test]
async fn schemas_that_providers_refuse_are_repaired() {
    for (name, given, expected) in schemas() {
        for protocol in [Protocol::Anthropic, Protocol::OpenaiResponses, Protocol::Gemini] {
            let (answer, received) = send(protocol, "test", vec![tool("read", given.clone())]).await;
            assert_eq!(answer.error, None);
            assert_eq!(sent(&received.body), [("read".to_owned(), expected.clone())], "{name}: {protocol:?}");
        }
    }
}

#[tokio::test]
async fn schemas_differ_where_providers_differ() {
    let given = json!({ "type": "object", "properties": {
        "a": { "type": "string", "pattern": "^\\d+$", "format": "uri" },
        "b": { "description": "anything" },
        "c": { "type": "object", "additionalProperties": false },
        "d": { "type": "string", "anyOf": [{ "enum": ["x"] }, { "type": "null" }] },
    } });
    for (provider, path, expected) in [
        ("mistral", "/a/pattern", json!("^\\d+$")),
        ("moonshot", "/b/type", json!("string")),
        ("moonshot", "/d/type", Value::Null),
        ("moonshot", "/d/anyOf/0/type", json!("string")),
        ("xai", "/c/additionalProperties", Value::Null),
        ("groq", "/c/additionalProperties", json!(false)),
        ("llamacpp", "/a/pattern", Value::Null),
        ("llamacpp", "/a/format", Value::Null),
    ] {
        let (_, received) = send(Protocol::OpenaiChat, provider, vec![tool("read", given.clone())]).await;
        let (_, schema) = sent(&received.body).remove(0);
        assert_eq!(schema["properties"].pointer(path).unwrap_or(&Value::Null), &expected, "{provider} {path}: {schema}");
    }
}

#[tokio::test]
async fn tools_that_cannot_be_adapted_are_left_out_with_one_notice() {
    let deep = (0..200).fold(json!({ "type": "string" }), |schema, _| json!({ "type": "array", "items": schema }));
    let object = |property: Value| json!({ "type": "object", "properties": { "a": property } });
    let wide = object(json!({ "type": "string", "description": "x".repeat(1 << 20) }));
    // Each reference doubles the schema.
    let definitions: serde_json::Map<String, Value> = (0..40)
        .map(|number| {
            let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
            (format!("d{number}"), json!({ "type": "object", "properties": { "left": next, "right": next } }))
        })
        .collect();
    let doubled = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions });
    let many = (0..130).map(|number| tool(&format!("tool{number}"), json!({})));
    let cases: Vec<(&str, Vec<ToolSpec>, usize)> = vec![
        ("test", vec![tool("good", json!({})), tool("bad", object(deep))], 1),
        ("test", vec![tool("good", json!({})), tool("bad", wide)], 1),
        ("test", vec![tool("good", json!({})), tool("bad", doubled)], 1),
        ("test", vec![tool("good", json!({})), tool("good", json!({}))], 1),
        ("openai", many.clone().collect(), 128),
        ("test", many.collect(), 130),
    ];
    for (provider, tools, count) in cases {
        let given = tools.len();
        let (answer, received) = send(Protocol::OpenaiChat, provider, tools).await;
        assert_eq!(answer.error, None);
        assert_eq!(sent(&received.body).len(), count);
        let notices = answer
            .chunks
            .iter()
            .filter(|chunk| matches!(chunk, Chunk::Notice { code: Some(code), .. } if code == "tool_left_out"))
            .count();
        assert_eq!(notices, given - count, "{provider}");
    }
}
