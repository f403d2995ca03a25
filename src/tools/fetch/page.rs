//! Converts the body of a response for a model: detects the type, decodes text, and has HTML
//! converted to Markdown.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::content::{HTML, Part};
use crate::documents::DocumentKind;
use crate::limits;
use crate::process::ProcessLauncher;
use crate::workspace::{image_type, media_type};

/// The content of a page.
pub(crate) enum Page {
    /// Text, with the file extension for storing the text.
    Text {
        text: String,
        extension: &'static str,
    },
    Image(Part),
    /// Any other content, represented by its media type.
    Other(String),
}

const HTML_EXTENSION: &str = "html";
/// Precedes HTML in a build that cannot convert it.
const SOURCE: &str = "[this build of nuncio lacks the Cargo feature `documents`; this is the HTML source]";

/// Subtypes and structured suffixes of `application/*` that are text.
const TEXTS: [&str; 7] = ["json", "xml", "javascript", "ecmascript", "yaml", "toml", "x-sh"];

impl Page {
    /// Converts a body. Without a `content_type` header, the type is detected from the beginning of
    /// the body.
    pub(crate) fn read(content_type: Option<&str>, body: &[u8]) -> Page {
        let header = content_type.unwrap_or_default();
        let kind = header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if let Some(mime_type) = image_type(body) {
            return Page::Image(Part::Image { mime_type: mime_type.into(), data: STANDARD.encode(body) });
        }
        let guessed = if kind.is_empty() || kind == "application/octet-stream" { media_type(body) } else { kind.as_str() };
        let subtype = guessed.strip_prefix("application/").unwrap_or_default();
        if guessed == HTML || guessed == "application/xhtml+xml" {
            return Page::Text { text: decode(header, body, true), extension: HTML_EXTENSION };
        }
        if guessed.starts_with("text/") || TEXTS.iter().any(|text| subtype == *text || subtype.ends_with(&format!("+{text}"))) {
            let extension = if subtype.ends_with("json") { "json" } else { "txt" };
            return Page::Text { text: decode(header, body, false), extension };
        }
        Page::Other(guessed.to_owned())
    }

    /// Converts HTML to Markdown. The error says why it cannot be read.
    pub(crate) async fn converted(self, launcher: &ProcessLauncher) -> Result<Page, String> {
        match self {
            Page::Text { text: html, extension: HTML_EXTENSION } if cfg!(feature = "documents") => {
                let text = launcher.read_document(DocumentKind::Page, html.as_bytes()).await?;
                Ok(Page::Text { text, extension: "md" })
            }
            Page::Text { text: html, extension: HTML_EXTENSION } => {
                Ok(Page::Text { text: format!("{SOURCE}\n{html}"), extension: HTML_EXTENSION })
            }
            other => Ok(other),
        }
    }
}

/// Decodes text. The encoding is that of the byte order mark, the header or the page itself, in
/// this order; without any of them it is UTF-8 or, if the text is not valid UTF-8, Windows-1252.
fn decode(content_type: &str, body: &[u8], html: bool) -> String {
    let named = |text: &str| {
        let at = text.to_ascii_lowercase().find("charset=")?;
        let label = text[at + 8..].trim_start_matches(['"', '\'']).split(['"', '\'', ';', ' ', '>', '/']).next()?;
        Encoding::for_label(label.as_bytes())
    };
    let head = || String::from_utf8_lossy(&body[..body.len().min(1024)]).into_owned();
    let marked = Encoding::for_bom(body).map(|(encoding, _)| encoding);
    let declared = marked.or_else(|| named(content_type)).or_else(|| if html { named(&head()) } else { None });
    // The last character of a truncated page may be incomplete.
    let cut = body.len() == limits::FETCH_BYTES_MAX;
    let utf8 = || std::str::from_utf8(body).map_or_else(|error| cut && error.error_len().is_none(), |_| true);
    let encoding = declared.unwrap_or_else(|| if utf8() { UTF_8 } else { WINDOWS_1252 });
    encoding.decode(body).0.into_owned()
}
