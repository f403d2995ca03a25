//! Derives the title of a session from its first prompt.

use crate::content::Part;
use crate::limits;

/// Maximum number of nested elements that are unwrapped to find a title.
const TITLE_DEPTH_MAX: usize = 8;

/// Returns the first line of the prompt, truncated at a word boundary. Clients wrap context in
/// elements (`<context>…</context>`): text outside of elements is preferred to text inside the
/// first element.
pub(super) fn title_of(prompt: &[Part]) -> Option<String> {
    let texts = prompt.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.trim()),
        _ => None,
    });
    let outside = texts.clone().find_map(|text| first_line(unwrapped(text)));
    let line = outside.or_else(|| texts.filter(|text| !text.is_empty()).find_map(inside))?;
    if line.chars().count() <= limits::TITLE_CHARS_MAX {
        return Some(line.into());
    }
    let cut: String = line.chars().take(limits::TITLE_CHARS_MAX).collect();
    let end = cut.rfind(' ').filter(|end| *end > 0).unwrap_or(cut.len());
    Some(format!("{}…", &cut[..end]))
}

fn first_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| !line.is_empty())
}

/// Returns the text after all leading elements.
fn unwrapped(mut text: &str) -> &str {
    while let Some((_, rest)) = element(text) {
        text = rest;
    }
    text
}

/// Returns the first line of the text inside the leading element, which may contain nested
/// elements.
fn inside(mut text: &str) -> Option<&str> {
    for _ in 0..TITLE_DEPTH_MAX {
        let Some((content, _)) = element(text) else { break };
        text = content;
    }
    first_line(text)
}

/// Splits a leading `<name …>content</name>rest`, or `<name …/>rest`, into content and rest.
fn element(text: &str) -> Option<(&str, &str)> {
    let tag = text.trim_start().strip_prefix('<')?;
    let named = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.' | ':');
    let name = &tag[..tag.find(|character| !named(character))?];
    if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let (attributes, behind) = tag[name.len()..].split_once('>')?;
    match attributes.strip_suffix('/').unwrap_or(attributes).chars().next() {
        None => {}
        Some(space) if space.is_whitespace() => {}
        Some(_) => return None,
    }
    if attributes.ends_with('/') {
        return Some(("", behind));
    }
    behind.split_once(&format!("</{name}>"))
}
