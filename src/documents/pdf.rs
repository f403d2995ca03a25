//! The text of PDF documents.

use lopdf::Document;

use super::bounded_text::BoundedText;

/// Maximum size of a decompressed page of a PDF document, in bytes.
const PDF_PAGE_BYTES_MAX: usize = 16 << 20;

/// Adds the text of a document, one block per page.
pub(super) fn read(bytes: &[u8], text: &mut BoundedText) -> Result<(), String> {
    let document = Document::load_mem(bytes).map_err(|error| error.to_string())?;
    if document.is_encrypted() {
        return Err("it is encrypted".into());
    }
    for page in document.get_pages().into_keys() {
        // A page that cannot be read does not hide the others.
        let page_text = document.extract_text_with_limit(&[page], PDF_PAGE_BYTES_MAX).unwrap_or_default();
        let page_text = page_text.trim();
        if !page_text.is_empty() && !text.push(&format!("[page {page}]\n{page_text}\n")) {
            break;
        }
    }
    Ok(())
}
