//! Markdown files with frontmatter: `name: value` lines between two `---` lines, then text. The
//! subset of YAML that agent, command and skill files use: plain and quoted values, block values
//! (`|`, `>`), and lists (`[a, b]`, `- a`).

use std::collections::BTreeMap;

/// A file with frontmatter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Frontmatter {
    /// Fields by [`plain`] name.
    fields: BTreeMap<String, Field>,
    /// The text after the frontmatter.
    pub body: String,
    /// Why a part of the frontmatter has no effect, if one has none: a field may be in it.
    pub problem: Option<String>,
}

/// A field as it is written.
#[derive(Clone, Debug, Default, PartialEq)]
struct Field {
    name: String,
    /// The value; of a list, one value per item.
    items: Vec<String>,
}

impl Frontmatter {
    /// Parses a file. Without frontmatter, the whole file is the body.
    pub(crate) fn parse(text: &str) -> Frontmatter {
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let start = text.split_inclusive('\n').next().filter(|line| line.trim_end() == "---");
        let Some(rest) = start.map(|line| &text[line.len()..]) else {
            return Frontmatter { body: text.trim().into(), ..Frontmatter::default() };
        };
        let lines = rest.split_inclusive('\n').scan(0, |at, line| Some((std::mem::replace(at, *at + line.len()), line)));
        match lines.into_iter().find(|(_, line)| line.trim_end() == "---") {
            Some((at, line)) => {
                let (fields, problem) = fields(&rest[..at]);
                Frontmatter { fields, body: rest[at + line.len()..].trim().into(), problem }
            }
            None => {
                let problem = Some("the line --- after the front matter is missing".into());
                Frontmatter { body: text.trim().into(), problem, ..Frontmatter::default() }
            }
        }
    }

    /// Returns whether the file begins with no frontmatter.
    pub(crate) fn is_absent(&self) -> bool {
        self.fields.is_empty() && self.problem.is_none()
    }

    /// Returns the value of a field; `None` if it is absent or empty. The items of a list are
    /// joined.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.fields.get(&plain(name)).map(|field| field.items.join(", ")).filter(|value| !value.is_empty())
    }

    /// Returns the items of a list, which may also be written as one value with commas or spaces.
    /// A text in parentheses is part of its item. `None` if the field is absent.
    pub(crate) fn list(&self, name: &str) -> Option<Vec<String>> {
        let mut list = Vec::new();
        for item in &self.fields.get(&plain(name))?.items {
            let mut depth = 0_usize;
            let separates = |letter: char| {
                match letter {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0 && (letter == ',' || letter.is_whitespace())
            };
            list.extend(item.split(separates).map(|item| unquote(item).to_string()).filter(|item| !item.is_empty()));
        }
        Some(list)
    }

    /// Returns the names of the fields that have a value, as written, with their plain names.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        let has_value = |field: &Field| field.items.iter().any(|item| !item.is_empty());
        let given = self.fields.iter().filter(move |(_, field)| has_value(field));
        given.map(|(plain, field)| (plain.as_str(), field.name.as_str()))
    }
}

/// Returns a name in lower case without separators: programs write `disallowedTools`,
/// `disallowed-tools` and `Disallowed_Tools`.
pub(crate) fn plain(name: &str) -> String {
    name.to_lowercase().replace(['_', '-'], "")
}

/// Reads the lines of a frontmatter. Also returns why some of them have no effect.
fn fields(head: &str) -> (BTreeMap<String, Field>, Option<String>) {
    let mut fields = BTreeMap::<String, Field>::new();
    let mut problem = None;
    // YAML ends lines at other characters, too.
    if head.contains(|letter: char| {
        (letter.is_control() && !matches!(letter, '\n' | '\t')) || matches!(letter, '\u{2028}' | '\u{2029}')
    }) {
        problem = Some("the front matter has control characters".into());
    }
    let mut lines = head.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let Some((name, value)) = line.split_once(':').filter(|_| !line.starts_with([' ', '\t', '-'])) else {
            problem.get_or_insert_with(|| format!("this line of the front matter is no field: {line}"));
            continue;
        };
        let value = without_comment(value);
        let mut nested = Vec::new();
        while let Some(next) = lines.next_if(|next| next.starts_with([' ', '\t', '-']) || next.trim().is_empty()) {
            nested.push(next.trim());
        }
        let items = nested.iter().map(|line| unquote(line.strip_prefix('-').unwrap_or(line)).to_string());
        let items = match value {
            "" if nested.iter().any(|line| line.starts_with('-')) => items.filter(|item| !item.is_empty()).collect(),
            "|" | "|-" => vec![nested.join("\n").trim().to_string()],
            ">" | ">-" => vec![nested.join(" ").trim().to_string()],
            // A plain value may continue on indented lines.
            _ => {
                let lines: Vec<&str> = std::iter::once(value).chain(nested.iter().map(|line| without_comment(line))).collect();
                let value = lines.join(" ");
                match value.trim().strip_prefix('[').and_then(|list| list.strip_suffix(']')).filter(|list| !list.contains('[')) {
                    Some(list) => list.split(',').map(|item| unquote(item).to_string()).collect(),
                    None => vec![unquote(&value).to_string()],
                }
            }
        };
        let name = unquote(name);
        let field = Field { name: name.into(), items };
        if fields.insert(plain(name), field).is_some() {
            problem.get_or_insert_with(|| format!("the field {name} occurs twice"));
        }
    }
    (fields, problem)
}

/// Removes the white space around a value, and a comment at its end.
fn without_comment(value: &str) -> &str {
    let value = value.trim();
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
    let start = quote.and_then(|quote| value.rfind(quote)).unwrap_or(0);
    match value[start..].find(" #") {
        _ if value.starts_with('#') => "",
        Some(comment) => value[..start + comment].trim_end(),
        None => value,
    }
}

/// Removes the white space, the comment and the quotes around a value.
fn unquote(value: &str) -> &str {
    let value = without_comment(value);
    let quoted = |quote: char| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(value)
}
