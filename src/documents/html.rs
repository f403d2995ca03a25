//! HTML pages as Markdown.

use std::collections::HashMap;

use htmd::HtmlToMarkdown;

/// Maximum nesting depth of HTML elements. A page with deeper nesting is not converted to Markdown.
const HTML_DEPTH_MAX: usize = 200;

/// HTML elements without readable text.
const SKIPPED: [&str; 8] = ["script", "style", "noscript", "template", "svg", "iframe", "canvas", "object"];

/// Converts a page to Markdown. The error says why it cannot be converted.
pub(crate) fn markdown(html: &str) -> Result<String, String> {
    if depth(html) > HTML_DEPTH_MAX {
        return Err("nested too deeply to convert to Markdown".into());
    }
    let converter = HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build();
    converter.convert(html).map_err(|error| format!("cannot be converted to Markdown: {error}"))
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
