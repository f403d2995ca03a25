//! The text of documents: PDF, HTML, Word, OpenDocument and Excel files, and smaller copies of
//! images. Their parsers use as much memory, time and stack as a hostile document makes them use,
//! so only a reader process calls them (`process/reader.rs`).

mod bounded_text;
#[cfg(feature = "documents")]
mod html;
#[cfg(feature = "images")]
mod image;
#[cfg(feature = "documents")]
mod office;
#[cfg(feature = "documents")]
mod package;
#[cfg(feature = "pdf")]
mod pdf;
#[cfg(feature = "documents")]
mod sheet;

use crate::content::{DOCX, HTML, ODS, ODT, PDF, XLSX};
use crate::limits;
use bounded_text::BoundedText;

/// A kind of document that nuncio reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentKind {
    /// An HTML page for `fetch`, in UTF-8. It may have a long text, or none.
    Page,
    /// An HTML file.
    Html,
    /// A PDF document.
    Pdf,
    /// A Word document.
    Word,
    /// A text of OpenDocument.
    OpenText,
    /// A sheet of OpenDocument.
    OpenSheet,
    /// An Excel workbook.
    Workbook,
    /// An image, of which a smaller copy is made.
    Image,
}

impl DocumentKind {
    /// All kinds. The index of a kind is its number in orders to the fork server.
    const ALL: [DocumentKind; 8] = [
        DocumentKind::Page,
        DocumentKind::Html,
        DocumentKind::Pdf,
        DocumentKind::Word,
        DocumentKind::OpenText,
        DocumentKind::OpenSheet,
        DocumentKind::Workbook,
        DocumentKind::Image,
    ];

    /// Returns the kind of the documents with this media type; `None` if their text is not read.
    pub(crate) fn from_media_type(media_type: &str) -> Option<DocumentKind> {
        match media_type {
            HTML => Some(DocumentKind::Html),
            PDF => Some(DocumentKind::Pdf),
            DOCX => Some(DocumentKind::Word),
            ODT => Some(DocumentKind::OpenText),
            ODS => Some(DocumentKind::OpenSheet),
            XLSX => Some(DocumentKind::Workbook),
            _ => None,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<DocumentKind> {
        DocumentKind::ALL.get(usize::from(number)).copied()
    }

    /// Returns the maximum size of the text that is read, or of the copy of an image, in bytes.
    pub(crate) fn output_bytes_max(self) -> usize {
        match self {
            DocumentKind::Image => limits::IMAGE_COPY_BYTES_MAX,
            DocumentKind::Page => limits::FETCH_BYTES_MAX,
            _ => limits::DOCUMENT_TEXT_BYTES_MAX,
        }
    }
}

#[cfg_attr(
    not(all(feature = "documents", feature = "images", feature = "pdf")),
    allow(unused_mut, unused_variables, unreachable_code, reason = "a build without a feature cannot read some documents")
)]
/// Returns the text of a document, or a smaller copy of an image. The error says why it cannot be
/// read.
pub fn read(kind: DocumentKind, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut text = BoundedText::new(kind.output_bytes_max());
    match kind {
        #[cfg(feature = "images")]
        DocumentKind::Image => return image::shrink(bytes),
        #[cfg(feature = "documents")]
        DocumentKind::Page | DocumentKind::Html => drop(text.push(&html::markdown(&String::from_utf8_lossy(bytes))?)),
        #[cfg(feature = "pdf")]
        DocumentKind::Pdf => pdf::read(bytes, &mut text)?,
        #[cfg(feature = "documents")]
        DocumentKind::Word => office::word(bytes, &mut text)?,
        #[cfg(feature = "documents")]
        DocumentKind::OpenText | DocumentKind::OpenSheet => {
            office::open_document(bytes, kind == DocumentKind::OpenSheet, &mut text)?;
        }
        #[cfg(feature = "documents")]
        DocumentKind::Workbook => sheet::read(bytes, &mut text)?,
        #[cfg(not(all(feature = "documents", feature = "images", feature = "pdf")))]
        _ => {
            let feature = match kind {
                DocumentKind::Pdf => "pdf",
                DocumentKind::Image => "images",
                _ => "documents",
            };
            return Err(format!("this build of nuncio cannot read it: it lacks the Cargo feature `{feature}`"));
        }
    }
    let text = text.whole();
    if kind != DocumentKind::Page && text.trim().is_empty() {
        return Err("it has no text, for example because it consists of images".into());
    }
    Ok(text.into_bytes())
}
