//! The body of an answer as what a model can read: which type, which characters, and HTML as markdown.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use htmd::HtmlToMarkdown;

use crate::content::Part;
use crate::limits;
use crate::workspace::{image_type, media_type};

pub enum Page {
    /// `extension` is that of a file with the text.
    Text {
        text: String,
        extension: &'static str,
    },
    Image(Part),
    /// By its type.
    Other(String),
}

/// What people do not read.
const SKIPPED: [&str; 8] = ["script", "style", "noscript", "template", "svg", "iframe", "canvas", "object"];

/// Types of text beside `text/*`, and endings of such.
const TEXTS: [&str; 7] = ["json", "xml", "javascript", "ecmascript", "yaml", "toml", "x-sh"];

impl Page {
    /// `content_type` is what the host says; without it the beginning of the body decides.
    pub fn read(content_type: Option<&str>, body: &[u8]) -> Page {
        let said = content_type.unwrap_or_default();
        let kind = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if let Some(mime_type) = image_type(body) {
            return Page::Image(Part::Image { mime_type: mime_type.into(), data: STANDARD.encode(body) });
        }
        let guessed = if kind.is_empty() || kind == "application/octet-stream" { media_type(body) } else { kind.as_str() };
        let subtype = guessed.strip_prefix("application/").unwrap_or_default();
        let html = guessed == "text/html" || guessed == "application/xhtml+xml" || (kind.is_empty() && begins_as_html(body));
        if html {
            return markdown(&decode(said, body, true));
        }
        if guessed.starts_with("text/") || TEXTS.iter().any(|text| subtype == *text || subtype.ends_with(&format!("+{text}"))) {
            let extension = if subtype.ends_with("json") { "json" } else { "txt" };
            return Page::Text { text: decode(said, body, false), extension };
        }
        Page::Other(guessed.to_owned())
    }
}

fn begins_as_html(body: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&body[..body.len().min(64)]).trim_start().to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html")
}

/// A mark at its beginning decides, then the host, then the page itself; without any of them it is UTF-8 or, if it is not, Latin 1.
fn decode(content_type: &str, body: &[u8], html: bool) -> String {
    let named = |text: &str| {
        let at = text.to_ascii_lowercase().find("charset=")?;
        let label = text[at + 8..].trim_start_matches(['"', '\'']).split(['"', '\'', ';', ' ', '>', '/']).next()?;
        Encoding::for_label(label.as_bytes())
    };
    let head = || String::from_utf8_lossy(&body[..body.len().min(1024)]).into_owned();
    let marked = Encoding::for_bom(body).map(|(encoding, _)| encoding);
    let said = marked.or_else(|| named(content_type)).or_else(|| if html { named(&head()) } else { None });
    // A character may be cut where the page was.
    let cut = body.len() == limits::FETCH_BYTES_MAX;
    let utf8 = || std::str::from_utf8(body).map_or_else(|error| cut && error.error_len().is_none(), |_| true);
    let encoding = said.unwrap_or_else(|| if utf8() { UTF_8 } else { WINDOWS_1252 });
    encoding.decode(body).0.into_owned()
}

fn markdown(html: &str) -> Page {
    if depth(html) > limits::HTML_DEPTH_MAX {
        let text = format!("[nested too deeply to be made into markdown; this is the page itself]\n{html}");
        return Page::Text { text, extension: "html" };
    }
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    match converter.convert(html) {
        Ok(text) => Page::Text { text, extension: "md" },
        Err(_) => Page::Text { text: html.to_owned(), extension: "html" },
    }
}

/// Elements that are never open for long, whether somebody closes them or not.
const SHORT: [&str; 26] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr", "p", "li", "dt",
    "dd", "tr", "td", "th", "thead", "tbody", "tfoot", "option", "colgroup",
];

/// How many elements are open at once, at most, give or take those that are [`SHORT`]. The converter needs stack for each.
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
