//! Unified diffs (as diff(1) -u writes them), for people and for `details`.

use similar::TextDiff;

use crate::limits;

/// The change from `old` to `new` with three lines of context, or nothing when they are equal. A diff that would take longer
/// than `limits::DIFF_TIME` becomes a coarse one.
pub fn unified(name: &str, old: &str, new: &str) -> String {
    let diff = TextDiff::configure().timeout(limits::DIFF_TIME).diff_lines(old, new);
    let (before, after) = (format!("a/{name}"), format!("b/{name}"));
    diff.unified_diff().context_radius(3).header(&before, &after).to_string()
}
