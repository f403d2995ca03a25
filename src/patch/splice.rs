//! Applies line changes to a file; all other bytes stay unchanged.

use super::lines::{Lines, MARK};

/// Changes to consecutive lines.
pub(crate) struct Splice {
    /// The first line, from 0.
    pub(crate) at: usize,
    pub(crate) changes: Vec<LineChange>,
    /// True if a new last line of the file receives a line ending. With `None` it receives one if
    /// the old file ended with a line ending or was empty.
    pub(crate) terminated: Option<bool>,
}

/// A change at the current line of the file. `Keep` and `Remove` advance to the next line.
pub(crate) enum LineChange {
    Keep,
    Remove,
    /// Inserts a line before the current one.
    Add {
        /// The text without a line ending.
        text: Vec<u8>,
        /// The line ending; `None` to use the ending of the replaced or previous line.
        ending: Option<&'static [u8]>,
    },
}

/// Applies `splices` to `lines` and returns the new content. The splices must be in ascending order
/// and must not overlap. An added line receives the ending of the line that it replaces, or else of
/// the previous line.
pub(crate) fn splice(lines: &Lines<'_>, splices: &[Splice]) -> Vec<u8> {
    let content = lines.content;
    let mut out = Vec::with_capacity(content.len() + 1024);
    let mut done = 0;
    // Length of the line ending in bytes, if the last change added a line.
    let mut added = None;
    let mut terminated = None;
    for splice in splices {
        out.extend_from_slice(&content[done..lines.start(splice.at)]);
        let mut next = splice.at;
        // If this is smaller than `next`: the removed line that the next added line replaces.
        let mut replaced = next;
        for change in &splice.changes {
            added = None;
            match change {
                LineChange::Keep => {
                    out.extend_from_slice(lines.whole(next));
                    next += 1;
                    replaced = next;
                }
                LineChange::Remove => next += 1,
                LineChange::Add { text, ending } => {
                    let like = if replaced < next { replaced } else { next.saturating_sub(1) };
                    let ending = ending.unwrap_or_else(|| lines.ending(like));
                    if !out.is_empty() && out != MARK && !out.ends_with(b"\n") {
                        out.extend_from_slice(ending);
                    }
                    out.extend_from_slice(text);
                    out.extend_from_slice(ending);
                    replaced = (replaced + 1).min(next);
                    added = Some(ending.len());
                }
            }
        }
        done = lines.start(next);
        terminated = splice.terminated;
    }
    out.extend_from_slice(&content[done..]);
    match (added, terminated.unwrap_or(lines.terminated())) {
        (Some(ending), false) if done == content.len() => out.truncate(out.len() - ending),
        _ => {}
    }
    out
}
