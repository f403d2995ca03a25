//! Markdown files with frontmatter: YAML between two `---` lines, then text. Files that people
//! write are often not quite YAML (`description: Use when: a`): a field that cannot be read is
//! taken as text, and [`Frontmatter::unread`] names it, so that no field that restricts is lost.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

/// Maximum size of the front matter of a file, in bytes.
const FRONTMATTER_BYTES_MAX: usize = 64 << 10;

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
    /// Number of its line in the file, from 1.
    line: usize,
    /// The value; of a list, one value per item; of other collections, [`COLLECTION`].
    items: Vec<String>,
    /// If the field is not YAML: why, and the names of fields that its text may contain.
    unread: Option<UnreadText>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct UnreadText {
    why: String,
    names: Vec<String>,
}

/// Stands for a mapping, or a list of lists.
const COLLECTION: &str = "{…}";

/// A field that is not YAML.
pub(crate) struct UnreadField<'f> {
    pub name: &'f str,
    pub line: usize,
    pub why: &'f str,
    /// Plain names of the field and of fields that its text may contain.
    names: Vec<&'f str>,
}

impl UnreadField<'_> {
    /// Returns whether the field, or one that its text may contain, is one for which `is_named`
    /// returns true. `is_named` receives plain names.
    pub(crate) fn contains(&self, is_named: impl Fn(&str) -> bool) -> bool {
        self.names.iter().any(|name| is_named(name))
    }
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

    /// Returns the number of the line of a field, from 1.
    pub(crate) fn line(&self, name: &str) -> Option<usize> {
        self.fields.get(&plain(name)).map(|field| field.line)
    }

    /// Returns the names of the fields that have a value, as written, with their plain names.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        let has_value = |field: &Field| field.items.iter().any(|item| !item.is_empty());
        let given = self.fields.iter().filter(move |(_, field)| has_value(field));
        given.map(|(plain, field)| (plain.as_str(), field.name.as_str()))
    }

    /// Returns the fields that are not YAML.
    pub(crate) fn unread(&self) -> impl Iterator<Item = UnreadField<'_>> {
        self.fields.iter().filter_map(|(plain, field)| {
            let UnreadText { why, names } = field.unread.as_ref()?;
            let names = names.iter().map(String::as_str).chain([plain.as_str()]).collect();
            Some(UnreadField { name: &field.name, line: field.line, why, names })
        })
    }
}

/// Returns a name in lower case without separators: programs write `disallowedTools`,
/// `disallowed-tools` and `Disallowed_Tools`.
pub(crate) fn plain(name: &str) -> String {
    name.to_lowercase().replace(['_', '-'], "")
}

/// Reads the lines of a frontmatter. Also returns why some of them have no effect.
fn fields(head: &str) -> (BTreeMap<String, Field>, Option<String>) {
    if head.len() > FRONTMATTER_BYTES_MAX {
        return (BTreeMap::new(), Some(format!("the front matter is larger than {} KiB", FRONTMATTER_BYTES_MAX >> 10)));
    }
    // YAML ends lines at other characters, too.
    let is_control =
        |letter: char| (letter.is_control() && !matches!(letter, '\n' | '\t')) || matches!(letter, '\u{2028}' | '\u{2029}');
    let control = head.contains(is_control).then(|| "the front matter has control characters".to_owned());
    let (found, other) = match read(head) {
        Ok(found) => (found, None),
        Err(_) => sections(head),
    };
    let (mut fields, mut problem) = (BTreeMap::<String, Field>::new(), control.or(other));
    for field in found {
        let name = field.name.clone();
        if fields.insert(plain(&name), field).is_some() {
            problem.get_or_insert_with(|| format!("the field {name} occurs twice"));
        }
    }
    // The frontmatter begins at the second line of the file.
    fields.values_mut().for_each(|field| field.line += 1);
    (fields, problem)
}

/// Reads each field of a text that is not YAML as a whole. Also returns the first line that belongs
/// to no field.
fn sections(head: &str) -> (Vec<Field>, Option<String>) {
    let mut problem = None;
    let no_field = |line: &str| format!("this line of the front matter is no field: {line}");
    let mut sections: Vec<(usize, String)> = Vec::new();
    for (number, line) in head.lines().enumerate() {
        let continues = line.trim().is_empty() || line.starts_with([' ', '\t', '-', '#']);
        match sections.last_mut() {
            Some((_, section)) if continues => section.push_str(&format!("\n{line}")),
            None if line.trim().is_empty() || line.starts_with('#') => {}
            _ if !continues && line.contains(':') => sections.push((number, line.to_owned())),
            _ => {
                problem.get_or_insert_with(|| no_field(line));
            }
        }
    }
    let mut fields = Vec::new();
    for (number, section) in sections {
        match read(&section) {
            Ok(found) => fields.extend(found.into_iter().map(|field| Field { line: field.line + number, ..field })),
            Err(_) if section.starts_with(['?', '<', '{', '[']) => {
                problem.get_or_insert_with(|| no_field(section.lines().next().unwrap_or_default()));
            }
            Err(why) => fields.push(unread(&section, number + 1, why)),
        }
    }
    (fields, problem)
}

/// Reads a field that is not YAML as text.
fn unread(section: &str, line: usize, why: String) -> Field {
    let (name, value) = section.split_once(':').unwrap_or((section, ""));
    let lines: Vec<&str> = value.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let bare =
        |name: &str| name.trim_matches(|letter: char| letter.is_whitespace() || matches!(letter, '-' | '"' | '\'')).to_owned();
    let names = section.lines().skip(1).filter_map(|line| Some(plain(&bare(line.split_once(':')?.0))));
    let unread = Some(UnreadText { why, names: names.collect() });
    Field { name: bare(name), line, items: vec![unquote(&lines.join(" ")).to_string()], unread }
}

/// Reads a mapping in YAML. Anchors, aliases and tags are refused.
fn read(text: &str) -> Result<Vec<Field>, String> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error: ScanError| error.info().to_owned())?;
        reader.take(event, span.start.line())?;
    }
    Ok(reader.fields)
}

/// Collects the fields of a mapping.
#[derive(Default)]
struct Reader {
    fields: Vec<Field>,
    /// Number of open collections.
    depth: usize,
    documents: usize,
    /// True if the value of the last field is still missing.
    expects_value: bool,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<(), String> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            Event::DocumentStart(_) if self.documents > 0 => return Err("it has several documents".into()),
            Event::DocumentStart(_) => self.documents += 1,
            Event::Alias(_) => return Err("aliases are not supported".into()),
            Event::Scalar(_, _, 1.., _) | Event::SequenceStart(1.., _) | Event::MappingStart(1.., _) => {
                return Err("anchors are not supported".into());
            }
            Event::Scalar(.., Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return Err("tags are not supported".into());
            }
            Event::Scalar(value, style, ..) => self.scalar(&value, style, line)?,
            Event::MappingStart(..) if self.depth == 0 => self.depth = 1,
            Event::SequenceStart(..) | Event::MappingStart(..) if self.depth == 1 && self.expects_value => {
                self.expects_value = false;
                self.depth = 2;
                if matches!(event, Event::MappingStart(..))
                    && let Some(field) = self.fields.last_mut()
                {
                    field.items.push(COLLECTION.into());
                }
            }
            Event::SequenceStart(..) | Event::MappingStart(..) if self.depth > 1 => {
                self.depth += 1;
                self.push(COLLECTION.into());
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => return Err("it is not a list of fields".into()),
            Event::SequenceEnd | Event::MappingEnd => self.depth -= 1,
        }
        Ok(())
    }

    fn scalar(&mut self, value: &str, style: ScalarStyle, line: usize) -> Result<(), String> {
        let is_null = style == ScalarStyle::Plain && matches!(value, "" | "~" | "null" | "Null" | "NULL");
        let text = if is_null { String::new() } else { value.trim().to_owned() };
        match self.depth {
            0 if is_null => {}
            0 => return Err("it has no fields".into()),
            1 if !self.expects_value => {
                self.fields.push(Field { name: value.trim().into(), line, ..Field::default() });
                self.expects_value = true;
            }
            1 => {
                self.expects_value = false;
                self.push(text);
            }
            2 if !text.is_empty() => self.push(text),
            _ => {}
        }
        Ok(())
    }

    /// Adds an item to the last field. A mapping stays one item.
    fn push(&mut self, item: String) {
        if let Some(field) = self.fields.last_mut().filter(|field| field.items.last().is_none_or(|last| last != COLLECTION)) {
            field.items.push(item);
        }
    }
}

/// Removes the white space and the quotes around a value.
fn unquote(value: &str) -> &str {
    let value = value.trim();
    let quoted = |quote: char| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(value)
}
