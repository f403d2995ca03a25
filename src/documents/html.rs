//! HTML pages as Markdown.

use htmd::HtmlToMarkdown;

/// HTML elements without readable text.
const SKIPPED: [&str; 8] = ["script", "style", "noscript", "template", "svg", "iframe", "canvas", "object"];

/// Converts a page to Markdown. The error says why it cannot be converted.
pub(super) fn markdown(html: &str) -> Result<String, String> {
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    converter.convert(html).map_err(|error| format!("cannot be converted to Markdown: {error}"))
}
