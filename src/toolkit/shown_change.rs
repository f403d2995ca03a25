//! Changes in the form shown to users. Pure.

use std::path::Path;

use crate::content::ToolContent;
use crate::limits;

/// Maximum size of the texts that a review shows, in bytes. Further files are only named.
const REVIEW_SHOWN_BYTES_MAX: usize = 4 << 20;

/// Returns a change in the form shown to users. Content that is too large or not text is only
/// described.
pub(super) fn shown(path: &Path, name: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> ToolContent {
    let text = |bytes: &[u8]| {
        let short = bytes.len() <= limits::DIFF_TEXT_BYTES_MAX;
        short.then(|| std::str::from_utf8(bytes).ok().map(str::to_owned)).flatten()
    };
    let path = path.to_owned();
    match (old.map(text), new.map_or(Some(String::new()), text)) {
        (None, Some(new_text)) => ToolContent::Diff { path, old_text: None, new_text },
        (Some(Some(old)), Some(new_text)) => ToolContent::Diff { path, old_text: Some(old), new_text },
        _ => {
            let bytes = new.or(old).map_or(0, <[u8]>::len);
            ToolContent::text(format!("{name}: {bytes} bytes, too large to show or not text"))
        }
    }
}

/// Returns changes (path, content before and after) in the form shown to users. Changes beyond
/// `REVIEW_SHOWN_BYTES_MAX` are only described.
pub(crate) fn changes_shown<'a>(changes: impl Iterator<Item = (&'a Path, Option<&'a [u8]>, Option<Vec<u8>>)>) -> Vec<ToolContent> {
    let mut bytes = 0;
    let shown_one = |(path, old, new): (&Path, Option<&[u8]>, Option<Vec<u8>>)| {
        let name = path.display().to_string();
        bytes += old.map_or(0, <[u8]>::len) + new.as_ref().map_or(0, Vec::len);
        match bytes <= REVIEW_SHOWN_BYTES_MAX {
            true => shown(path, &name, old, new.as_deref()),
            false => ToolContent::text(format!("{name}: not shown, because the review is too large")),
        }
    };
    changes.map(shown_one).collect()
}
