//! Changes in the form shown to users. Pure.

use std::path::Path;

use crate::content::ToolContent;
use crate::limits;
use crate::patch::{Side, unified_diff};

/// Maximum size of the texts that a review shows, in bytes. Further files are only named.
const REVIEW_SHOWN_BYTES_MAX: usize = 4 << 20;

/// Maximum size of the diff that is shown of a file whose text is too long, in bytes.
const LONG_DIFF_BYTES_MAX: usize = 32 << 10;

/// Returns a change in the form shown to users: of a text that is too long the changed lines.
/// Content that is not text is only described.
pub(super) fn shown(path: &Path, name: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> ToolContent {
    let text = |bytes: &[u8]| {
        let short = bytes.len() <= limits::DIFF_TEXT_BYTES_MAX;
        short.then(|| std::str::from_utf8(bytes).ok().map(str::to_owned)).flatten()
    };
    let path = path.to_owned();
    match (old.map(text), new.map_or(Some(String::new()), text)) {
        (None, Some(new_text)) => ToolContent::Diff { path, old_text: None, new_text },
        (Some(Some(old)), Some(new_text)) => ToolContent::Diff { path, old_text: Some(old), new_text },
        _ => ToolContent::text(described(name, old, new)),
    }
}

fn described(name: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> String {
    let bytes = new.or(old).map_or(0, <[u8]>::len);
    if [old, new].into_iter().flatten().any(|bytes| std::str::from_utf8(bytes).is_err()) {
        return format!("{name}: {bytes} bytes, not text");
    }
    let mut diff = unified_diff(old.map(|bytes| Side { name, bytes }), new.map(|bytes| Side { name, bytes })).text;
    if diff.len() > LONG_DIFF_BYTES_MAX {
        let cut = diff[..diff.floor_char_boundary(LONG_DIFF_BYTES_MAX)].rfind('\n').map_or(0, |end| end + 1);
        diff.replace_range(cut.., "[diff truncated]\n");
    }
    // No line of the diff ends the block.
    let fence = "`".repeat(diff.split(|character| character != '`').map(str::len).max().unwrap_or(0).max(2) + 1);
    format!("{name}: {bytes} bytes, of which only the changed lines are shown:\n\n{fence}diff\n{diff}{fence}")
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
