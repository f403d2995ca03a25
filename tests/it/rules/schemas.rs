//! Schemas of tools.

use harness::rules::Platform;
use serde_json::{Value, json};

use super::{
    BEDROCK, CLAUDE, COMPATIBLE, Case, GEMINI, LLAMACPP, MISTRAL, MOONSHOT, OLLAMA, OPENAI, RESPONSES, Server, VERTEX, bodies, case,
};

/// Where the schema of the first tool is.
fn at(server: Server) -> &'static str {
    use harness::provider::Protocol::{Anthropic, Bedrock, Gemini, Ollama, OpenaiChat, OpenaiResponses};
    match server.protocol {
        Anthropic => "/tools/0/input_schema",
        OpenaiChat | Ollama => "/tools/0/function/parameters",
        OpenaiResponses => "/tools/0/parameters",
        Gemini => "/tools/0/functionDeclarations/0/parametersJsonSchema",
        Bedrock => "/toolConfig/tools/0/toolSpec/inputSchema/json",
    }
}

/// A schema with this property.
fn property(name: &str, schema: Value) -> Value {
    json!({"type": "object", "properties": {name: schema}})
}

/// Refuses this schema, and takes the usual one.
fn breaks(rule: u8, server: Server, schema: Value) -> Case {
    case(rule, server, at(server), bodies::schema(), schema)
}

/// Takes one property and refuses another.
fn properties(rule: u8, server: Server, keeps: Value, breaks: Value) -> Case {
    case(rule, server, at(server), property("a", keeps), property("a", breaks))
}

pub fn cases() -> Vec<Case> {
    let mut cases = roots();
    cases.extend(keys());
    cases.extend(members());
    cases.extend(references());
    cases.extend(patterns());
    cases.extend(validity());
    cases.extend(openapi());
    cases
}

fn roots() -> Vec<Case> {
    let union = |word: &str| json!({"type": "object", "properties": {}, word: [{"type": "object", "properties": {}}]});
    let mut cases = Vec::new();
    for word in ["anyOf", "oneOf", "allOf"] {
        for server in [CLAUDE, OPENAI, COMPATIBLE, Server { model: "gpt-4.1", ..RESPONSES }, Server { model: "o3", ..RESPONSES }] {
            cases.push(breaks(3, server, union(word)));
        }
        // GPT-5 and later, and Gemini.
        cases.push(case(3, RESPONSES, at(RESPONSES), union(word), json!({"properties": {}})));
        cases.push(case(3, GEMINI, at(GEMINI), union(word), json!({"properties": {}})));
    }
    cases.push(breaks(3, OPENAI, json!({"type": "object", "properties": {}, "enum": [{}]})));
    cases.push(breaks(3, OPENAI, json!({"type": "object", "properties": {}, "not": {"type": "object", "properties": {}}})));
    cases.push(breaks(3, COMPATIBLE, json!({"type": "object", "properties": {}, "const": {}})));
    for server in [CLAUDE, OPENAI, COMPATIBLE, RESPONSES, GEMINI, VERTEX, BEDROCK, MOONSHOT] {
        cases.push(breaks(3, server, json!({"properties": {}})));
        cases.push(breaks(3, server, json!({"type": "string"})));
    }
    // Unions below the root are accepted.
    let nested = || json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    for server in [CLAUDE, OPENAI, RESPONSES] {
        cases.push(case(3, server, at(server), property("a", nested()), json!({"type": "array", "items": {}})));
    }
    cases
}

fn keys() -> Vec<Case> {
    let one = |name: &str| property(name, json!({"type": "string"}));
    let mut cases = Vec::new();
    for name in ["$filter", "a b", "x[]", "", "größe"] {
        cases.push(case(4, CLAUDE, at(CLAUDE), one("a.b-c_1"), one(name)));
    }
    cases.push(case(4, CLAUDE, at(CLAUDE), one(&"k".repeat(64)), one(&"k".repeat(65))));
    // Deeper keys are not checked.
    cases.push(case(4, CLAUDE, at(CLAUDE), property("a", one("$filter")), one("$filter")));
    for server in [GEMINI, VERTEX] {
        for name in ["1a", "$filter", "-a", "a.b", ""] {
            cases.push(case(4, server, "/tools", declaration(one("_a1")), declaration(one(name))));
        }
        cases.push(case(4, server, "/tools", declaration(one(&"k".repeat(64))), declaration(one(&"k".repeat(65)))));
    }
    // The other field takes any names.
    cases.push(case(3, GEMINI, at(GEMINI), one("-a"), json!({"properties": {}})));
    cases
}

fn members() -> Vec<Case> {
    let mut cases = Vec::new();
    for server in [OPENAI, COMPATIBLE, RESPONSES] {
        let text = || json!({"type": "string"});
        cases.push(properties(5, server, json!({"type": "array", "items": {}}), json!({"type": "array"})));
        cases.push(properties(5, server, text(), json!({"type": "array", "prefixItems": [text()]})));
        cases.push(properties(5, server, text(), json!({"type": "array", "items": {"type": "array"}})));
        cases.push(properties(5, server, json!({"type": "object", "properties": {}}), json!({"type": "object"})));
        let map = || json!({"type": "object", "additionalProperties": {"type": "string"}});
        cases.push(properties(5, server, map(), json!({"anyOf": [text(), {"type": "object"}]})));
        cases.push(breaks(5, server, map()));
        cases.push(properties(5, server, text(), json!({"type": "array", "items": {"type": "object"}})));
        cases.push(breaks(5, server, json!({"type": "object"})));
    }
    for schema in [json!({}), json!({"description": "any"}), json!({"enum": ["a"]})] {
        cases.push(properties(5, MOONSHOT, json!({"type": "string"}), schema));
    }
    cases.push(properties(
        5,
        MOONSHOT,
        json!({"anyOf": [{"type": "string"}]}),
        json!({"type": "array", "items": [{"type": "string"}]}),
    ));
    cases
}

fn references() -> Vec<Case> {
    let with = |reference: Value| {
        let definition = json!({"type": "string", "$anchor": "text"});
        json!({"type": "object", "properties": {"a": reference}, "$defs": {"text": definition}})
    };
    let to = |reference: &str| with(json!({"$ref": reference}));
    let mut cases = Vec::new();
    for server in [CLAUDE, OPENAI, COMPATIBLE, RESPONSES, GEMINI, BEDROCK] {
        for keeps in ["#/$defs/text", "#text", "#"] {
            cases.push(case(6, server, at(server), to(keeps), to("#/$defs/none")));
        }
        cases.push(breaks(6, server, to("https://example.com/schema.json")));
        cases.push(breaks(6, server, to("#/definitions/text")));
    }
    cases.push(case(6, MOONSHOT, at(MOONSHOT), to("#/$defs/text"), with(json!({"$ref": "#/$defs/text", "description": "a"}))));
    cases.push(case(6, MOONSHOT, at(MOONSHOT), to("#/$defs/text"), to("#/properties/a")));
    cases.push(case(6, MOONSHOT, at(MOONSHOT), to("#/$defs/text"), to("#")));
    cases
}

fn patterns() -> Vec<Case> {
    let text = |pattern: &str| json!({"type": "string", "pattern": pattern});
    let mut cases = Vec::new();
    let keeps = [
        "^[a-z]+$",
        "(?P<name>a)",
        "(?<=a)b(?!c)",
        "a{2,3}",
        "a{",
        "[]a]",
        "[^]]",
        "\\d+\\.\\w*?",
        "(?i)a",
        "a|b",
        "[[a]",
        "a++",
        "\\/",
        "(?:a|b){3}",
        "\\x41\\u0041",
    ];
    for (index, pattern) in ["[a-z", "(a", "a)", "*a", "a**", "\\p{L}", "(?<name>a)", "a{3,2}", "\\", "[\\q]"].iter().enumerate() {
        for server in [OPENAI, COMPATIBLE, RESPONSES] {
            cases.push(properties(8, server, text(keeps[index % keeps.len()]), text(pattern)));
        }
    }
    cases.extend(keeps.iter().map(|keeps| properties(8, OPENAI, text(keeps), text("("))));
    for pattern in ["[a-z]+", "^a", "a$", "^\\d$", "^\\S+$"] {
        cases.push(properties(8, LLAMACPP, text("^[0-9]+$"), text(pattern)));
    }
    let grok = Server { model: "xai.grok-4.6", ..BEDROCK };
    cases.push(properties(8, grok, text("^a$"), text("^(?!a)b$")));
    // Other models take it.
    cases.push(case(3, BEDROCK, at(BEDROCK), property("a", text("(?=a)")), json!({})));
    cases
}

fn validity() -> Vec<Case> {
    let mut cases = Vec::new();
    let malformed = [
        json!({"type": "text"}),
        json!({"type": "string", "enum": "a"}),
        json!({"type": "number", "minimum": "1"}),
        json!({"type": "string", "minLength": -1}),
    ];
    for schema in malformed {
        for server in [CLAUDE, MISTRAL] {
            cases.push(properties(7, server, json!({"type": ["string", "null"], "const": "a", "format": "uri"}), schema.clone()));
        }
    }
    cases.push(properties(
        7,
        CLAUDE,
        json!({"type": "number", "nullable": true}),
        json!({"type": "number", "exclusiveMinimum": true}),
    ));
    // Tuples of draft 7.
    let tuple = || json!({"type": "array", "items": [{"type": "string"}]});
    cases.push(properties(7, CLAUDE, json!({"type": "array", "prefixItems": [{"type": "string"}]}), tuple()));
    cases.push(properties(7, MISTRAL, tuple(), json!({"type": "array", "items": "string"})));
    for schema in [
        json!({"type": ["object"]}),
        json!({"type": "object", "properties": {"a": true}}),
        json!({"type": "object", "properties": []}),
        json!({"type": "object", "required": "a"}),
        json!({"type": "object", "required": [1]}),
    ] {
        cases.push(breaks(7, OLLAMA, schema));
    }
    cases
}

/// The tools of Gemini with a schema in the field `parameters`.
fn declaration(schema: Value) -> Value {
    json!([{"functionDeclarations": [{"name": "read", "description": "Reads.", "parameters": schema}]}])
}

/// Rule 9, which holds for the field `parameters` alone.
fn openapi() -> Vec<Case> {
    let declaration =
        |schema: Value| json!([{"functionDeclarations": [{"name": "read", "description": "Reads.", "parameters": schema}]}]);
    let text = || json!({"type": "STRING", "description": "a", "enum": ["a"]});
    let broken = [
        json!({"$ref": "#"}),
        json!({"type": "STRING", "default": "a"}),
        json!({"type": "STRING", "const": "a"}),
        json!({"type": "OBJECT", "additionalProperties": false, "properties": {"a": {"type": "STRING"}}}),
        json!({"oneOf": [{"type": "STRING"}]}),
        json!({"type": "ARRAY", "items": {"type": "STRING"}, "uniqueItems": true}),
        json!({"type": ["string", "null"]}),
        json!({"type": "INTEGER", "enum": [1]}),
        json!({"type": "STRING", "enum": [""]}),
        json!({"type": "OBJECT", "properties": {}}),
        json!({"type": "ARRAY"}),
        json!({"type": "STRING", "anyOf": [{"type": "STRING"}]}),
        json!({"type": "STRING", "format": "uri"}),
        json!({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "required": ["b"]}),
    ];
    let both = |schema: Value| case(9, GEMINI, "/tools", declaration(property("a", text())), declaration(property("a", schema)));
    broken.into_iter().map(both).collect()
}

#[test]
fn platforms_with_the_rules_of_openai() {
    use super::{chat, judge};
    for (platform, expected) in
        [(Platform::Azure, true), (Platform::Zai, true), (Platform::Vllm, false), (Platform::OpenRouter, false)]
    {
        let server = chat(platform, "m");
        let mut body = bodies::body(server);
        super::set(&mut body, at(server), &property("a", json!({"type": "array"})));
        assert_eq!(!judge(server, &body).is_empty(), expected, "{platform:?}");
    }
}
