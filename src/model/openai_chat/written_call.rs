//! A tool call that a model writes as text between `<tool_call>` and `</tool_call>`, in one of
//! three syntaxes.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::model::request::ToolSpec;
use crate::model::wire;

/// The tags around a name and a value, and between them.
struct Syntax {
    /// Start, separator and end of the tool's name and the parameters.
    call: [&'static str; 3],
    /// Start, separator and end of a parameter's name and value.
    parameter: [&'static str; 3],
}

const SYNTAXES: &[Syntax] = &[
    // Qwen3-Coder: <function=NAME><parameter=NAME>VALUE</parameter></function>
    Syntax { call: ["<function=", ">", "</function>"], parameter: ["<parameter=", ">", "</parameter>"] },
    // GLM: NAME<arg_key>NAME</arg_key><arg_value>VALUE</arg_value>
    Syntax { call: ["", "\n", ""], parameter: ["<arg_key>", "</arg_key>", "</arg_value>"] },
];

/// Hermes and Qwen: `{"name": …, "arguments": …}`.
#[derive(Deserialize)]
struct JsonCall<'a> {
    name: String,
    #[serde(borrow, alias = "parameters")]
    arguments: Option<&'a RawValue>,
}

/// Parses a call of an existing tool. Returns its name and its arguments.
pub(super) fn parse(text: &str, tools: &[ToolSpec]) -> Option<(String, String)> {
    let text = text.trim();
    if text.starts_with('{') {
        let JsonCall { name, arguments } = serde_json::from_str(text).ok()?;
        let known = tools.iter().any(|tool| tool.name == name);
        return known.then(|| (name, arguments.map(wire::arguments).unwrap_or_default().into_owned()));
    }
    SYNTAXES.iter().find_map(|syntax| tagged(text, syntax, tools))
}

fn tagged(text: &str, syntax: &Syntax, tools: &[ToolSpec]) -> Option<(String, String)> {
    let [start, separator, end] = syntax.call;
    let text = text.strip_prefix(start)?.trim_end();
    let text = text.strip_suffix(end).unwrap_or(text);
    let at = [separator, syntax.parameter[0]].iter().filter_map(|tag| text.find(tag)).min().unwrap_or(text.len());
    let (name, mut rest) = (text[..at].trim(), text[at..].trim_start_matches(separator));
    let tool = tools.iter().find(|tool| tool.name == name)?;
    let mut arguments = Map::new();
    let [start, separator, end] = syntax.parameter;
    while let Some((_, parameter)) = rest.split_once(start) {
        let (name, parameter) = parameter.split_once(separator)?;
        let parameter = parameter.trim_start().strip_prefix("<arg_value>").unwrap_or(parameter);
        let (value, after) = parameter.split_once(end)?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(name.trim().to_owned(), typed(tool, name.trim(), value));
        rest = after;
    }
    Some((tool.name.clone(), Value::Object(arguments).to_string()))
}

/// Converts the value of a parameter: to text if the tool's schema requires text or the value is
/// not JSON, else to JSON.
fn typed(tool: &ToolSpec, name: &str, value: &str) -> Value {
    let text = || Value::String(value.to_owned());
    match &tool.input_schema["properties"][name]["type"] {
        Value::String(kind) if kind == "string" => text(),
        _ => serde_json::from_str(value).unwrap_or_else(|_| text()),
    }
}
