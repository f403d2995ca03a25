//! Compares a replay with the expectations of its recording, part by part.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::expectation::{Expectation, ShownRequest};
use crate::terminal_text::output_line;

/// Maximum number of lines, and of characters of a line, that a difference shows.
const LINES_MAX: usize = 12;
const LINE_CHARS_MAX: usize = 160;

/// A part that differs.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    /// Which part, such as `request 2, message 3 (tool), part 1`.
    pub part: String,
    /// The path, if the part is a file.
    pub file: Option<String>,
    /// Lines that begin with `- ` (expected) or `+ ` (replayed).
    pub lines: Vec<String>,
}

/// Returns all parts that differ. A part that several requests repeat is named once.
pub(super) fn differences(expected: &Expectation, actual: &Expectation) -> Vec<Difference> {
    let mut found = Differences::default();
    let (before, now) = (expected.requests.all(), actual.requests.all());
    for (index, (one, other)) in before.iter().zip(&now).enumerate() {
        found.request(index + 1, one, other);
    }
    if before.len() != now.len() {
        found.add("number of requests".into(), &before.len().to_string(), &now.len().to_string());
    }
    let texts = |list: &[Value]| list.iter().map(pretty).collect::<Vec<_>>();
    let label = |value: Option<&Value>, index: usize| match value.and_then(|value| value["call"].as_str()) {
        Some(call) => format!("result of {call} ({})", value.and_then(|value| value["tool"].as_str()).unwrap_or_default()),
        None => format!("end of turn {}", index + 1),
    };
    let pairs = [(&expected.results.turns, &actual.results.turns), (&expected.results.calls, &actual.results.calls)];
    for (before, now) in pairs {
        let (texts_before, texts_now) = (texts(before), texts(now));
        for index in 0..before.len().max(now.len()) {
            let text = |texts: &[String]| texts.get(index).cloned().unwrap_or_default();
            found.add(label(before.get(index).or(now.get(index)), index), &text(&texts_before), &text(&texts_now));
        }
    }
    found.add("removed files".into(), &expected.results.removed.join("\n"), &actual.results.removed.join("\n"));
    let fields: BTreeSet<&String> = expected.results.repository.keys().chain(actual.results.repository.keys()).collect();
    for field in fields {
        let text = |all: &BTreeMap<String, Vec<String>>| all.get(field).map(|lines| lines.join("\n")).unwrap_or_default();
        found.add(format!("repository: {field}"), &text(&expected.results.repository), &text(&actual.results.repository));
    }
    let paths: BTreeSet<&String> = expected.files.keys().chain(actual.files.keys()).collect();
    for path in paths {
        found.file(path, expected.files.get(path), actual.files.get(path));
    }
    found.all
}

/// Returns differences as text: a line for each part, and the lines that differ.
pub(super) fn shown(found: &[Difference]) -> String {
    let mut text = String::new();
    for difference in found {
        text += &format!("{}\n", output_line(&difference.part));
        text.extend(difference.lines.iter().map(|line| format!("  {}\n", output_line(line))));
    }
    text
}

#[derive(Default)]
struct Differences {
    all: Vec<Difference>,
    /// The parts and texts that were named.
    named: HashSet<(String, String, String)>,
}

impl Differences {
    fn request(&mut self, number: usize, expected: &ShownRequest<'_>, actual: &ShownRequest<'_>) {
        self.part(number, "system prompt", expected.system, actual.system);
        let tools = |value: &Value| -> BTreeMap<String, String> {
            let list = value.as_array().into_iter().flatten();
            list.map(|tool| (tool["name"].as_str().unwrap_or_default().to_owned(), pretty(tool))).collect()
        };
        let (before, now) = (tools(expected.tools), tools(actual.tools));
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        for name in names {
            let text = |all: &BTreeMap<String, String>| all.get(name).cloned().unwrap_or_default();
            let what = match (before.contains_key(name), now.contains_key(name)) {
                (true, false) => "tool, which is missing: ",
                (false, true) => "tool, which is new: ",
                _ => "tool ",
            };
            self.part(number, &format!("{what}{name}"), &text(&before), &text(&now));
        }
        for index in 0..expected.messages.len().max(actual.messages.len()) {
            let (before, now) = (expected.messages.get(index), actual.messages.get(index));
            let role = before.or(now).and_then(|message| message["role"].as_str()).unwrap_or_default();
            let parts =
                |message: Option<&&Value>| message.and_then(|message| message["parts"].as_array()).cloned().unwrap_or_default();
            let (before_parts, now_parts) = (parts(before), parts(now));
            for part in 0..before_parts.len().max(now_parts.len()) {
                let text = |parts: &[Value]| parts.get(part).map(part_text).unwrap_or_default();
                let call = before_parts.get(part).or(now_parts.get(part)).and_then(|part| part["call"].as_str());
                let of_call = call.map(|call| format!(", {call}")).unwrap_or_default();
                let what = format!("message {} ({role}), part {}{of_call}", index + 1, part + 1);
                self.part(number, &what, &text(&before_parts), &text(&now_parts));
            }
        }
    }

    /// Adds a part of a request, unless an earlier request has the same difference.
    fn part(&mut self, number: usize, part: &str, expected: &str, actual: &str) {
        if expected != actual && self.named.insert((part.to_owned(), expected.to_owned(), actual.to_owned())) {
            self.add(format!("request {number}, {part}"), expected, actual);
        }
    }

    fn file(&mut self, path: &str, expected: Option<&Vec<u8>>, actual: Option<&Vec<u8>>) {
        let what = match (expected, actual) {
            (Some(_), None) => "is not changed",
            (None, Some(_)) => "is changed",
            _ => "differs",
        };
        if expected != actual {
            let text =
                |content: Option<&Vec<u8>>| content.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
            let lines = diff(&text(expected), &text(actual));
            self.all.push(Difference { part: format!("file {path} {what}"), file: Some(path.into()), lines });
        }
    }

    fn add(&mut self, part: String, expected: &str, actual: &str) {
        if expected != actual {
            self.all.push(Difference { part, file: None, lines: diff(expected, actual) });
        }
    }
}

/// Returns the text of a part; of a part without text only, its JSON.
fn part_text(part: &Value) -> String {
    match part.as_object() {
        Some(fields) if fields.len() == 1 => part["text"].as_str().map_or_else(|| pretty(part), str::to_owned),
        Some(_) if part["output"].is_array() => {
            let output: Vec<String> = part["output"].as_array().into_iter().flatten().map(part_text).collect();
            format!("{}{}", if part["failed"] == true { "failed\n" } else { "" }, output.join("\n"))
        }
        _ => pretty(part),
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}").replace("\\n", "\\n\n")
}

/// Returns the lines that differ.
fn diff(expected: &str, actual: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(expected, actual);
    let changed = diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal);
    let mut lines: Vec<String> = changed
        .map(|change| {
            let sign = if change.tag() == ChangeTag::Delete { '-' } else { '+' };
            let line: String = change.value().trim_end_matches('\n').chars().take(LINE_CHARS_MAX).collect();
            format!("{sign} {line}")
        })
        .collect();
    let left = lines.len().saturating_sub(LINES_MAX);
    if left > 0 {
        lines.truncate(LINES_MAX);
        lines.push(format!("  {left} more lines"));
    }
    lines
}
