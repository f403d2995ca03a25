//! The text of Word documents (ECMA-376, WordprocessingML) and of OpenDocument texts and sheets.
//! The cells of a table row are separated by tabs.

use super::bounded_text::BoundedText;
use super::package::{Package, Xml};
use crate::limits;

/// The elements of a format, as local names.
struct OfficeFormat {
    /// Elements in which tabs, line breaks and text count.
    runs: &'static [&'static str],
    /// Elements in which text counts.
    texts: &'static [&'static str],
    breaks: &'static [&'static str],
    cell: &'static str,
    row: &'static str,
    /// Elements whose content is not text of the document.
    skipped: &'static [&'static str],
}

const WORD: OfficeFormat =
    OfficeFormat { runs: &["r"], texts: &["t"], breaks: &["br", "cr"], cell: "tc", row: "tr", skipped: &["Fallback"] };
const OPEN_DOCUMENT: OfficeFormat = OfficeFormat {
    runs: &["p", "h"],
    texts: &["p", "h"],
    breaks: &["line-break"],
    cell: "table-cell",
    row: "table-row",
    skipped: &["annotation", "tracked-changes"],
};

/// Elements of paragraphs.
const PARAGRAPHS: [&str; 2] = ["p", "h"];

/// Adds the text of a Word document.
pub(super) fn word(bytes: &[u8], text: &mut BoundedText) -> Result<(), String> {
    TextWalk::new(&WORD, false, text).part(&mut Package::open(bytes)?, "word/document.xml")
}

/// Adds the text of an OpenDocument text or sheet. Each table of a sheet begins with its name.
pub(super) fn open_document(bytes: &[u8], is_sheet: bool, text: &mut BoundedText) -> Result<(), String> {
    TextWalk::new(&OPEN_DOCUMENT, is_sheet, text).part(&mut Package::open(bytes)?, "content.xml")
}

/// A walk through the elements of a part. The fields count the open elements of each kind.
struct TextWalk<'a> {
    format: &'static OfficeFormat,
    names_tables: bool,
    text: &'a mut BoundedText,
    runs: usize,
    texts: usize,
    cells: usize,
    skipped: usize,
    /// Empty columns after the cell.
    columns: usize,
}

impl<'a> TextWalk<'a> {
    fn new(format: &'static OfficeFormat, names_tables: bool, text: &'a mut BoundedText) -> TextWalk<'a> {
        TextWalk { format, names_tables, text, runs: 0, texts: 0, cells: 0, skipped: 0, columns: 0 }
    }

    fn part(mut self, package: &mut Package<'_>, name: &str) -> Result<(), String> {
        package.read(name, |xml| self.read(xml))
    }

    fn read(&mut self, xml: Xml<'_>) -> bool {
        let format = self.format;
        match xml {
            Xml::Open(name, _) if self.skipped > 0 || format.skipped.contains(&name) => {
                self.skipped += usize::from(format.skipped.contains(&name));
                true
            }
            Xml::Close(name) if self.skipped > 0 => {
                self.skipped -= usize::from(format.skipped.contains(&name));
                true
            }
            Xml::Text(_) if self.skipped > 0 || self.texts == 0 => true,
            Xml::Text(text) => self.text.push(text),
            Xml::Open(name, attributes) => {
                let repeated = |name: &str| attributes.get(name).and_then(|count| count.parse::<usize>().ok()).unwrap_or(1);
                self.runs += usize::from(format.runs.contains(&name));
                self.texts += usize::from(format.texts.contains(&name));
                match name {
                    "table" if self.names_tables => {
                        self.text.push(&format!("[sheet {}]\n", attributes.get("name").unwrap_or_default()))
                    }
                    name if name == format.cell => {
                        self.cells += 1;
                        self.columns = repeated("number-columns-repeated").min(limits::DOCUMENT_COLUMNS_MAX);
                        true
                    }
                    "tab" if self.runs > 0 => self.text.push("\t"),
                    "s" if self.runs > 0 => self.text.push(&" ".repeat(repeated("c").min(limits::DOCUMENT_COLUMNS_MAX))),
                    name if self.runs > 0 && format.breaks.contains(&name) => self.text.push("\n"),
                    _ => true,
                }
            }
            Xml::Close(name) => {
                self.runs -= usize::from(format.runs.contains(&name)).min(self.runs);
                self.texts -= usize::from(format.texts.contains(&name)).min(self.texts);
                match name {
                    name if PARAGRAPHS.contains(&name) => self.text.push(if self.cells > 0 { " " } else { "\n" }),
                    name if name == format.cell => {
                        self.cells = self.cells.saturating_sub(1);
                        self.text.trim_end(&[' ']);
                        self.text.push(&"\t".repeat(self.columns.max(1)))
                    }
                    name if name == format.row => {
                        self.text.trim_end(&['\t', ' ']);
                        self.text.push("\n")
                    }
                    _ => true,
                }
            }
        }
    }
}
