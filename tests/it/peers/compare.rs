//! Results, events and updates of different runs in one form: ids are numbered in order of
//! appearance, and times, positions in the log and directories are left out.

use std::collections::HashMap;

use serde_json::{Map, Value};

use harness::Home;

/// Fields whose values differ between runs: times, processes, positions that depend on how adjacent
/// deltas were merged, digests of requests, which contain the id of the session, and sizes of
/// requests, which say whether a client can answer.
const VARIABLE: &[&str] = &[
    "createdAt",
    "noteKey",
    "ownerPid",
    "updatedAt",
    "seq",
    "head",
    "offset",
    "cursor",
    "nextCursor",
    "request",
    "inputTokens",
    "contextTokens",
    "totalTokens",
    "tokens",
    "used",
    "sources",
];
/// The answer to `/compact`, which names numbers of tokens.
const COMPACTED: &str = "The conversation was compacted: about ";
/// Precedes the key of notes, 5 letters.
const KEY: &str = "\nKey: ";
/// Says in a message that no client could answer.
const UNATTENDED: &str = "\nNo one can answer: decide yourself.";

/// The ids of one run, numbered in order of appearance.
pub struct Normal {
    home: String,
    ids: HashMap<String, usize>,
}

impl Normal {
    pub fn new(home: &Home) -> Normal {
        let home = home.work().parent().unwrap().file_name().unwrap().to_str().unwrap().to_string();
        Normal { home, ids: HashMap::new() }
    }

    pub fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                let kept = fields.iter().filter(|(name, _)| !name.ends_with("Ms") && !VARIABLE.contains(&name.as_str()));
                Value::Object(kept.map(|(name, value)| (name.clone(), self.value(value))).collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    /// Replaces the home and each UUID (32 hexadecimal digits). Leaves out the key of notes.
    fn text(&mut self, text: &str) -> String {
        let mut text = text.replace(&self.home, "HOME").replace(UNATTENDED, "");
        if let Some((before, _)) = text.split_once(KEY) {
            let key = before.len() + KEY.len();
            text.replace_range(key..key + 5, "");
        }
        let text = if text.starts_with(COMPACTED) { COMPACTED } else { &text };
        let mut result = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
            let step = if digits == 0 { rest.chars().next().unwrap().len_utf8() } else { digits };
            if digits == 32 {
                let next = self.ids.len() + 1;
                result += &format!("#{}", self.ids.entry(rest[..32].to_string()).or_insert(next));
            } else {
                result += &rest[..step];
            }
            rest = &rest[step..];
        }
        result
    }

    /// Events without deltas and without output of running tools.
    pub fn events(&mut self, events: &[Value]) -> Vec<Value> {
        let piece = |body: &Value| body["type"] == "message.delta" || (body["type"] == "tool.updated" && body["status"].is_null());
        events.iter().filter(|event| !piece(&event["body"])).map(|event| self.value(event)).collect()
    }

    /// Updates with adjacent chunks joined, without output of running tools, and without the
    /// commands that a client receives when it opens a session.
    pub fn updates(&mut self, updates: &[Value]) -> Vec<Value> {
        let mut joined: Vec<Value> = Vec::new();
        for update in updates {
            let kind = &update["sessionUpdate"];
            if kind == "available_commands_update" || (kind == "tool_call_update" && update.get("status").is_none()) {
                continue;
            }
            let update = self.value(update);
            let text = update["content"]["text"].as_str();
            match (joined.last_mut(), text) {
                (Some(last), Some(text)) if last["sessionUpdate"] == *kind && last["messageId"] == update["messageId"] => {
                    last["content"]["text"] = format!("{}{text}", last["content"]["text"].as_str().unwrap()).into();
                }
                _ => joined.push(update),
            }
        }
        joined
    }
}

/// The first difference between two values, as text. None if they are equal.
pub fn difference(what: &str, expected: &Value, found: &Value) -> Option<String> {
    if expected == found {
        return None;
    }
    let inner = match (expected, found) {
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            let mut pairs = expected.iter().zip(found).enumerate();
            pairs.find_map(|(place, (one, other))| difference(&format!("{what}[{place}]"), one, other))
        }
        (Value::Object(expected), Value::Object(found)) if expected.keys().eq(found.keys()) => {
            expected.iter().find_map(|(name, one)| difference(&format!("{what}.{name}"), one, &found[name]))
        }
        _ => None,
    };
    inner.or_else(|| {
        let [expected, found] = [expected.to_string(), found.to_string()];
        let same = expected.bytes().zip(found.bytes()).take_while(|(one, other)| one == other).count();
        Some(format!("{what}: expected …{}\n        found …{}", excerpt(&expected, same), excerpt(&found, same)))
    })
}

/// The text around a place.
fn excerpt(text: &str, place: usize) -> String {
    String::from_utf8_lossy(&text.as_bytes()[place.saturating_sub(60)..text.len().min(place + 240)]).into_owned()
}
