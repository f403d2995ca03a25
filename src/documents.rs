//! The text of documents: PDF, HTML, Word, OpenDocument and Excel files.

mod bounded_text;
mod html;
mod office;
mod package;
#[cfg(feature = "pdf")]
mod pdf;
mod sheet;

use crate::content::{DOCX, HTML, ODS, ODT, PDF, XLSX};
use crate::limits;
use bounded_text::BoundedText;
pub(crate) use html::markdown;

/// Returns whether [`extract`] reads documents of a media type.
pub(crate) fn has_text(media_type: &str) -> bool {
    [DOCX, HTML, ODS, ODT, PDF, XLSX].contains(&media_type)
}

/// Extracts the text of a document of this media type, within limits of time and size. The error
/// says why there is no text. Panics of the parsers become errors.
pub(crate) async fn extract(media_type: &str, bytes: Vec<u8>) -> Result<String, String> {
    let media_type = media_type.to_owned();
    let work = tokio::task::spawn_blocking(move || read(&media_type, bytes));
    match tokio::time::timeout(limits::DOCUMENT_TIME_MAX, work).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err("the document is damaged".into()),
        Err(_) => Err(format!("reading it takes longer than {} s", limits::DOCUMENT_TIME_MAX.as_secs())),
    }
}

fn read(media_type: &str, bytes: Vec<u8>) -> Result<String, String> {
    let mut text = BoundedText::new();
    match media_type {
        #[cfg(feature = "pdf")]
        PDF => pdf::read(&bytes, &mut text)?,
        #[cfg(not(feature = "pdf"))]
        PDF => return Err("this build of nuncio cannot read it: it lacks the Cargo feature `pdf`".into()),
        HTML => drop(text.push(&markdown(&String::from_utf8_lossy(&bytes))?)),
        DOCX => office::word(&bytes, &mut text)?,
        ODT | ODS => office::open_document(&bytes, media_type == ODS, &mut text)?,
        XLSX => sheet::read(&bytes, &mut text)?,
        other => return Err(format!("the text of {other} documents cannot be read")),
    }
    text.whole()
}
