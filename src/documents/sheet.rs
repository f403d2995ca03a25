//! The text of Excel workbooks (ECMA-376, SpreadsheetML): one line per row, with tabs between the
//! cells. Formulas are represented by their last results, dates as in ISO 8601.

use std::collections::HashMap;

use super::bounded_text::BoundedText;
use super::package::{Package, Xml};
use crate::event;
use crate::limits;

/// Maximum number of shared strings, and of cell styles, that are read of a workbook.
const DOCUMENT_STRINGS_MAX: usize = 500_000;
/// Maximum total size of the shared strings that are read of a workbook, in bytes.
const DOCUMENT_STRINGS_BYTES_MAX: usize = 16 << 20;

/// Adds the text of all sheets of a workbook. Each begins with its name.
pub(super) fn read(bytes: &[u8], text: &mut BoundedText) -> Result<(), String> {
    let mut package = Package::open(bytes)?;
    let workbook = Workbook { strings: strings(&mut package)?, dates: date_styles(&mut package)? };
    for (name, part) in sheets(&mut package)? {
        if !text.push(&format!("[sheet {name}]\n")) {
            break;
        }
        let mut rows = Rows { workbook: &workbook, text, cell: Cell::default(), is_value: false };
        package.read(&part, |xml| rows.read(xml))?;
    }
    Ok(())
}

/// Returns the names of the sheets with their parts, in order.
fn sheets(package: &mut Package<'_>) -> Result<Vec<(String, String)>, String> {
    let (mut named, mut targets) = (Vec::new(), HashMap::new());
    package.read("xl/workbook.xml", |xml| {
        if let Xml::Open("sheet", attributes) = xml {
            named.push((attributes.get("name").unwrap_or_default(), attributes.get("id").unwrap_or_default()));
        }
        true
    })?;
    package.read("xl/_rels/workbook.xml.rels", |xml| {
        if let Xml::Open("Relationship", attributes) = xml {
            targets.insert(attributes.get("Id").unwrap_or_default(), attributes.get("Target").unwrap_or_default());
        }
        true
    })?;
    let part = |target: &String| target.strip_prefix('/').map_or_else(|| format!("xl/{target}"), String::from);
    let found = named.into_iter().filter_map(|(name, id)| Some((name, part(targets.get(&id)?))));
    // A chart sheet has no part in `worksheets`, and no rows.
    Ok(found.filter(|(_, part)| part.contains("worksheets/")).collect())
}

/// Reads the strings that cells share, within limits.
fn strings(package: &mut Package<'_>) -> Result<Vec<String>, String> {
    let (mut strings, mut bytes, mut texts, mut phonetic) = (Vec::<String>::new(), 0, 0_usize, 0_usize);
    if !package.has("xl/sharedStrings.xml") {
        return Ok(strings);
    }
    package.read("xl/sharedStrings.xml", |xml| {
        match xml {
            Xml::Open("si", _) => strings.push(String::new()),
            Xml::Open("t", _) => texts += 1,
            Xml::Close("t") => texts = texts.saturating_sub(1),
            Xml::Open("rPh", _) => phonetic += 1,
            Xml::Close("rPh") => phonetic = phonetic.saturating_sub(1),
            Xml::Text(text) if texts > 0 && phonetic == 0 => {
                bytes += text.len();
                strings.last_mut().into_iter().for_each(|string| string.push_str(text));
            }
            _ => {}
        }
        bytes < DOCUMENT_STRINGS_BYTES_MAX && strings.len() < DOCUMENT_STRINGS_MAX
    })?;
    Ok(strings)
}

/// Returns for each cell style whether it shows a date or a time.
fn date_styles(package: &mut Package<'_>) -> Result<Vec<bool>, String> {
    let (mut formats, mut styles, mut in_cells) = (HashMap::new(), Vec::new(), false);
    if !package.has("xl/styles.xml") {
        return Ok(styles);
    }
    package.read("xl/styles.xml", |xml| {
        match xml {
            Xml::Open("numFmt", attributes) => {
                formats.insert(attributes.get("numFmtId").unwrap_or_default(), attributes.get("formatCode").unwrap_or_default());
            }
            Xml::Open("cellXfs", _) => in_cells = true,
            Xml::Close("cellXfs") => in_cells = false,
            Xml::Open("xf", attributes) if in_cells => {
                let id = attributes.get("numFmtId").unwrap_or_default();
                let built_in = || matches!(id.parse(), Ok(14_u32..=22 | 45..=47));
                styles.push(formats.get(&id).map_or_else(built_in, |code| is_date(code)));
            }
            _ => {}
        }
        styles.len() < DOCUMENT_STRINGS_MAX
    })?;
    Ok(styles)
}

/// Returns whether a format code shows a date: it has one of their letters outside of quotes and
/// brackets.
fn is_date(code: &str) -> bool {
    let (mut quoted, mut bracketed, mut escaped) = (false, false, false);
    code.chars().any(|letter| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        match letter {
            '"' => quoted = !quoted,
            '[' => bracketed = true,
            ']' => bracketed = false,
            '\\' => escaped = true,
            _ => {}
        }
        !quoted && !bracketed && "ymdhsYMDHS".contains(letter)
    })
}

struct Workbook {
    strings: Vec<String>,
    dates: Vec<bool>,
}

/// A cell that is being read.
#[derive(Default)]
struct Cell {
    /// The attribute `t`.
    kind: String,
    is_date: bool,
    value: String,
    /// Cells of the row so far.
    column: usize,
}

struct Rows<'a> {
    workbook: &'a Workbook,
    text: &'a mut BoundedText,
    cell: Cell,
    /// True within the element of a value.
    is_value: bool,
}

impl Rows<'_> {
    fn read(&mut self, xml: Xml<'_>) -> bool {
        match xml {
            Xml::Open("row", _) => self.cell.column = 0,
            Xml::Open("c", attributes) => {
                let at = attributes.get("r").and_then(|name| column(&name)).unwrap_or(self.cell.column);
                let missing = at.saturating_sub(self.cell.column).min(limits::DOCUMENT_COLUMNS_MAX);
                let style = attributes.get("s").and_then(|style| style.parse::<usize>().ok());
                self.cell = Cell {
                    kind: attributes.get("t").unwrap_or_default(),
                    is_date: style.and_then(|style| self.workbook.dates.get(style).copied()).unwrap_or(false),
                    value: String::new(),
                    column: at + 1,
                };
                return self.text.push(&"\t".repeat(missing));
            }
            Xml::Open("v" | "t", _) => self.is_value = true,
            Xml::Close("v" | "t") => self.is_value = false,
            Xml::Text(text) if self.is_value => self.cell.value.push_str(text),
            Xml::Close("c") => {
                let shown = self.shown();
                return self.text.push(&shown) && self.text.push("\t");
            }
            Xml::Close("row") => {
                self.text.trim_end(&['\t']);
                return self.text.push("\n");
            }
            _ => {}
        }
        true
    }

    /// Returns the value of the cell as text in one line.
    fn shown(&self) -> String {
        let Cell { kind, is_date, value, .. } = &self.cell;
        let text = match kind.as_str() {
            "s" => value.parse().ok().and_then(|index: usize| self.workbook.strings.get(index).cloned()).unwrap_or_default(),
            "b" => String::from(if value == "1" { "TRUE" } else { "FALSE" }),
            "" | "n" if *is_date => value.parse().ok().and_then(date).unwrap_or_else(|| value.clone()),
            _ => value.clone(),
        };
        text.replace(['\n', '\t'], " ")
    }
}

/// Returns the index of the column of a cell: 0 for `A1`.
fn column(name: &str) -> Option<usize> {
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic);
    let number =
        letters.fold(0_usize, |number, letter| (number * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1).min(1 << 20));
    number.checked_sub(1)
}

/// Formats the number of a date: days since 1899-12-30, with the time of day as a fraction.
fn date(number: f64) -> Option<String> {
    if !(0.0..2_958_466.0).contains(&number) {
        return None;
    }
    let seconds = (number * 86_400.0).round() as u64;
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let time = (time > 0).then(|| format!("{:02}:{:02}:{:02}", time / 3600, time / 60 % 60, time % 60));
    // 1970-01-01 is 25569 days after 1899-12-30.
    let date = event::date(days as i64 - 25_569);
    Some(match time {
        None => date,
        Some(time) if days == 0 => time,
        Some(time) => format!("{date} {time}"),
    })
}
