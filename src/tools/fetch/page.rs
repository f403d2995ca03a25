//! Converts the body of a response for a model: detects the type, decodes text, and converts HTML
//! to Markdown.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use htmd::HtmlToMarkdown;

use crate::content::Part;
use crate::limits;
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

/// HTML elements without readable text.
const SKIPPED: [&str; 8] = ["script", "style", "noscript", "template", "svg", "iframe", "canvas", "object"];

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
        let html = guessed == "text/html" || guessed == "application/xhtml+xml" || (kind.is_empty() && begins_as_html(body));
        if html {
            return markdown(&decode(header, body, true));
        }
        if guessed.starts_with("text/") || TEXTS.iter().any(|text| subtype == *text || subtype.ends_with(&format!("+{text}"))) {
            let extension = if subtype.ends_with("json") { "json" } else { "txt" };
            return Page::Text { text: decode(header, body, false), extension };
        }
        Page::Other(guessed.to_owned())
    }
}

fn begins_as_html(body: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&body[..body.len().min(64)]).trim_start().to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html")
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

fn markdown(html: &str) -> Page {
    if depth(html) > limits::HTML_DEPTH_MAX {
        let text = format!("[nested too deeply to convert to Markdown; this is the HTML source]\n{html}");
        return Page::Text { text, extension: "html" };
    }
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    match converter.convert(html) {
        Ok(text) => Page::Text { text, extension: "md" },
        Err(_) => Page::Text { text: html.to_owned(), extension: "html" },
    }
}

/// HTML elements that do not nest deeply: void elements, and elements with an optional end tag.
const SHORT: [&str; 26] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr", "p", "li", "dt",
    "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "colgroup",
];

/// Returns the approximate nesting depth of HTML elements, ignoring the elements in [`SHORT`]. The
/// depth must be limited because the converter uses stack space for each level.
fn depth(html: &str) -> usize {
    let mut open: HashMap<String, usize> = HashMap::new();
    let (mut depth, mut deepest) = (0, 0);
    for tag in html.split('<').skip(1) {
        let (closes, tag) = tag.strip_prefix('/').map_or((false, tag), |tag| (true, tag));
        let end = tag.find(|character: char| !character.is_ascii_alphanumeric() && character != '-').unwrap_or(tag.len());
        let name = tag[..end].to_ascii_lowercase();
        if name.is_empty() || SHORT.contains(&name.as_str()) {
            continue;
        }
        let count = open.entry(name).or_default();
        if !closes {
            *count += 1;
            depth += 1;
            deepest = deepest.max(depth);
        } else if *count > 0 {
            *count -= 1;
            depth -= 1;
        }
    }
    deepest
}
