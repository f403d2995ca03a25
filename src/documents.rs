//! The text of documents: PDF, HTML, Word, OpenDocument and Excel files.

mod bounded_text;
#[cfg(feature = "documents")]
mod html;
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
#[cfg(feature = "documents")]
pub(crate) use html::markdown;

/// Returns the error of a build without the feature that converts pages.
#[cfg(not(feature = "documents"))]
pub(crate) fn markdown(_: &str) -> Result<String, String> {
    Err(without("documents"))
}

/// Returns the error of a build without a Cargo feature.
#[cfg(not(all(feature = "documents", feature = "pdf")))]
fn without(feature: &str) -> String {
    format!("this build of nuncio cannot read it: it lacks the Cargo feature `{feature}`")
}

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
        PDF => return Err(without("pdf")),
        HTML => drop(text.push(&markdown(&String::from_utf8_lossy(&bytes))?)),
        #[cfg(feature = "documents")]
        DOCX => office::word(&bytes, &mut text)?,
        #[cfg(feature = "documents")]
        ODT | ODS => office::open_document(&bytes, media_type == ODS, &mut text)?,
        #[cfg(feature = "documents")]
        XLSX => sheet::read(&bytes, &mut text)?,
        #[cfg(not(feature = "documents"))]
        DOCX | ODT | ODS | XLSX => return Err(without("documents")),
        other => return Err(format!("the text of {other} documents cannot be read")),
    }
    text.whole()
}
