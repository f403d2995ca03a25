//! Labels: their escape sequences, and the fields of nodes with the shape `record`.

use layout::std_shapes::shapes::RecordDef;

use crate::limits;

/// Resolves the escape sequences in `text`: `\n`, `\l` and `\r` are line breaks, `\N` is the name
/// of the node. Line breaks at the end are removed.
pub(crate) fn label(text: &str, name: &str) -> String {
    let mut label = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            label.push(character);
            continue;
        }
        match characters.next() {
            Some('n' | 'l' | 'r') => label.push('\n'),
            Some('N') => label.push_str(name),
            Some(other) => label.push(other),
            None => label.push('\\'),
        }
    }
    label.trim_end_matches('\n').to_owned()
}

/// Parses a record label, `<port> text | { … | … }`: fields are side by side, fields in braces are
/// one below the other, and each further nesting level alternates.
pub(crate) fn record(text: &str, name: &str) -> RecordDef {
    fields(&mut text.chars(), name, 0)
}

/// Reads fields up to the closing brace or the end.
fn fields(characters: &mut std::str::Chars<'_>, name: &str, depth: usize) -> RecordDef {
    let mut all = Vec::new();
    let mut text = String::new();
    let mut inner = None;
    loop {
        let character = characters.next();
        match character {
            Some('\\') => {
                text.push('\\');
                text.extend(characters.next());
            }
            Some('{') if depth < limits::DIAGRAM_DEPTH_MAX => inner = Some(fields(characters, name, depth + 1)),
            None | Some('|' | '}') => {
                all.push(inner.take().unwrap_or_else(|| field(&text, name)));
                text.clear();
                if character != Some('|') {
                    return RecordDef::Array(all);
                }
            }
            Some(other) => text.push(other),
        }
    }
}

fn field(text: &str, name: &str) -> RecordDef {
    let text = text.trim();
    let ported = text.strip_prefix('<').and_then(|rest| rest.split_once('>'));
    match ported {
        Some((port, text)) => RecordDef::Text(label(text.trim(), name), Some(port.trim().to_owned())),
        None => RecordDef::Text(label(text, name), None),
    }
}
