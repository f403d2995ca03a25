//! Extracts the text of PDF documents, for models that do not read them.

use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lopdf::Document;

use crate::limits;

/// Extracts the text of a document in base64, one block per page, within limits of time and size.
/// The error says why there is no text. Panics of the parser become errors.
pub(super) async fn extract(data: String) -> Result<String, String> {
    let work = tokio::task::spawn_blocking(move || read(&data));
    match tokio::time::timeout(limits::PDF_TIME_MAX, work).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err("the document is damaged".into()),
        Err(_) => Err(format!("reading it takes longer than {} s", limits::PDF_TIME_MAX.as_secs())),
    }
}

fn read(data: &str) -> Result<String, String> {
    let started = Instant::now();
    let bytes = STANDARD.decode(data).map_err(|_| "it is not base64".to_string())?;
    let document = Document::load_mem(&bytes).map_err(|error| error.to_string())?;
    if document.is_encrypted() {
        return Err("it is encrypted".into());
    }
    let mut text = String::new();
    for page in document.get_pages().into_keys() {
        if text.len() >= limits::PDF_TEXT_BYTES_MAX || started.elapsed() > limits::PDF_TIME_MAX {
            text.push_str("\n[truncated: the document exceeds the limits of PDF documents]");
            break;
        }
        // A page that cannot be read does not hide the others.
        let page_text = document.extract_text_with_limit(&[page], limits::PDF_PAGE_BYTES_MAX).unwrap_or_default();
        let left = limits::PDF_TEXT_BYTES_MAX - text.len();
        let page_text = page_text.trim();
        if !page_text.is_empty() {
            text.push_str(&format!("[page {page}]\n{}\n", &page_text[..page_text.floor_char_boundary(left)]));
        }
    }
    if text.is_empty() { Err("it has no text, for example because it consists of images".into()) } else { Ok(text) }
}
