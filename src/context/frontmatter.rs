//! Markdown files with frontmatter: `name: value` lines between two `---` lines, then text. The
//! subset of YAML that agent, command and skill files use: plain and quoted values, block values
//! (`|`, `>`), and lists (`[a, b]`, `- a`).

use std::collections::BTreeMap;

/// A file with frontmatter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Frontmatter {
    /// Values by name. A list has one value per item.
    values: BTreeMap<String, Vec<String>>,
    /// The text after the frontmatter.
    pub body: String,
}

impl Frontmatter {
    /// Parses a file. Without frontmatter, the whole file is the body.
    pub(crate) fn parse(text: &str) -> Frontmatter {
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let parts = text.strip_prefix("---\n").and_then(|rest| {
            let end = rest.split_inclusive('\n').scan(0, |at, line| Some((std::mem::replace(at, *at + line.len()), line)));
            let (at, line) = end.into_iter().find(|(_, line)| line.trim_end() == "---")?;
            Some((&rest[..at], &rest[at + line.len()..]))
        });
        match parts {
            Some((head, body)) => Frontmatter { values: values(head), body: body.trim().into() },
            None => Frontmatter { values: BTreeMap::new(), body: text.trim().into() },
        }
    }

    /// Returns the value of a field; `None` if it is absent or empty. The items of a list are
    /// joined.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.values.get(name).map(|items| items.join(", ")).filter(|value| !value.is_empty())
    }

    /// Returns the items of a list, which may also be written as one value with commas. `None` if
    /// the field is absent.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<String>> {
        let items = self.values.get(name)?;
        let split = items.iter().flat_map(|item| item.split(',')).map(|item| unquote(item).to_string());
        Some(split.filter(|item| !item.is_empty()).collect())
    }
}

fn values(head: &str) -> BTreeMap<String, Vec<String>> {
    let mut values = BTreeMap::new();
    let mut lines = head.lines().peekable();
    while let Some(line) = lines.next() {
        // Comments, and lines that belong to no field.
        let Some((name, value)) = line.split_once(':').filter(|_| !line.starts_with([' ', '\t', '#', '-'])) else { continue };
        let value = value.trim();
        let mut nested = Vec::new();
        while let Some(next) = lines.next_if(|next| next.starts_with([' ', '\t', '-']) || next.trim().is_empty()) {
            nested.push(next.trim());
        }
        let items = nested.iter().filter_map(|line| line.strip_prefix("- ")).map(|item| unquote(item).to_string());
        let value = match value {
            "" if nested.iter().any(|line| line.starts_with("- ")) => items.collect(),
            "|" | "|-" => vec![nested.join("\n").trim().to_string()],
            "" | ">" | ">-" => vec![nested.join(" ").trim().to_string()],
            _ if nested.iter().all(|line| line.is_empty()) => {
                match value.strip_prefix('[').and_then(|list| list.strip_suffix(']')).filter(|list| !list.contains('[')) {
                    Some(list) => list.split(',').map(|item| unquote(item).to_string()).collect(),
                    None => vec![unquote(value).to_string()],
                }
            }
            // A plain value may continue on indented lines.
            _ => vec![unquote(&format!("{value} {}", nested.join(" "))).trim().to_string()],
        };
        values.insert(name.trim().to_string(), value);
    }
    values
}

/// Removes the white space and the quotes around a value.
fn unquote(value: &str) -> &str {
    let value = value.trim();
    let quoted = |quote: char| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(value)
}
