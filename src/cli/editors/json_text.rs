//! Edits of JSON with comments (the settings of Zed and VS Code) that keep the text around the
//! edit: comments, order, blanks, line ends, and commas after the last member.

use std::ops::Range;

use serde_json::{Map, Value};

/// Deepest nesting that is read.
const DEPTH: usize = 100;

/// Parses JSON with comments and with commas after last members. `None` if it is anything else.
pub(super) fn parse(text: &str) -> Option<Value> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.skip_blanks();
    (reader.at == text.len()).then_some(value)
}

/// Sets the member at `path` in the text of an object, which must be valid. Missing objects of the
/// path are created as first members. `None` if a value on the path is not an object.
pub(super) fn with_member(text: &str, path: &[&str], value: &Value) -> Option<String> {
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    with_nested(text, path, value, 1, line_end)
}

/// Sets the member in the text of an object whose members are indented `depth` times.
fn with_nested(text: &str, path: &[&str], value: &Value, depth: usize, line_end: &str) -> Option<String> {
    let (name, rest) = path.split_first()?;
    let mut reader = Reader { text, at: 0 };
    reader.skip_blanks();
    let start = reader.at;
    let (_, members) = reader.object(0)?;
    let indent = format!("{line_end}{}", "  ".repeat(depth));
    let pretty = |value: &Value| format!("{value:#}").replace('\n', &indent);
    let Some(Member { range, .. }) = members.iter().rev().find(|member| member.name == *name) else {
        let value =
            rest.iter().rev().fold(value.clone(), |inner, name| Value::Object(Map::from_iter([((*name).to_owned(), inner)])));
        let end = if members.is_empty() { format!("{line_end}{}", "  ".repeat(depth - 1)) } else { ",".to_owned() };
        let (before, after) = text.split_at(start + 1);
        return Some(format!("{before}{indent}{}: {}{end}{after}", Value::from(*name), pretty(&value)));
    };
    let replacement = match rest {
        [] => pretty(value),
        rest => with_nested(&text[range.clone()], rest, value, depth + 1, line_end)?,
    };
    Some(format!("{}{replacement}{}", &text[..range.start], &text[range.end..]))
}

/// A member of an object, and the position of its value.
struct Member {
    name: String,
    range: Range<usize>,
}

/// Reads JSON with comments.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    /// Skips white space and comments. An unterminated comment ends with the text.
    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{feff}']).len();
            let comment = match &rest[blanks..] {
                rest if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
                rest if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
                _ => 0,
            };
            self.at += blanks + comment;
            if comment == 0 {
                return;
            }
        }
    }

    /// Skips blanks, then the character if it is next.
    fn accept(&mut self, character: char) -> bool {
        self.skip_blanks();
        let found = self.text[self.at..].starts_with(character);
        self.at += if found { character.len_utf8() } else { 0 };
        found
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        self.skip_blanks();
        match self.text[self.at..].chars().next()? {
            '{' => self.object(depth).map(|(object, _)| Value::Object(object)),
            '[' => {
                self.at += 1;
                let mut items = Vec::new();
                while depth < DEPTH && !self.accept(']') {
                    items.push(self.value(depth + 1)?);
                    if !self.accept(',') {
                        return self.accept(']').then_some(Value::Array(items));
                    }
                }
                (depth < DEPTH).then_some(Value::Array(items))
            }
            _ => self.scalar(),
        }
    }

    /// Reads an object, and returns also the position of each value.
    fn object(&mut self, depth: usize) -> Option<(Map<String, Value>, Vec<Member>)> {
        let (mut object, mut members) = (Map::new(), Vec::new());
        if depth >= DEPTH || !self.accept('{') {
            return None;
        }
        while !self.accept('}') {
            let Value::String(name) = self.scalar()? else { return None };
            if !self.accept(':') {
                return None;
            }
            self.skip_blanks();
            let start = self.at;
            object.insert(name.clone(), self.value(depth + 1)?);
            members.push(Member { name, range: start..self.at });
            if !self.accept(',') {
                return self.accept('}').then_some((object, members));
            }
        }
        Some((object, members))
    }

    /// Reads a string, number, boolean or null.
    fn scalar(&mut self) -> Option<Value> {
        let rest = &self.text[self.at..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        let value: Value = values.next()?.ok()?;
        self.at += values.byte_offset();
        (!value.is_object() && !value.is_array()).then_some(value)
    }
}
