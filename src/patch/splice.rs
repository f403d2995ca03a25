//! Putting changed lines into a file. All other bytes stay as they are.

use super::lines::{Lines, MARK};

/// What becomes of the lines from `at` on.
pub struct Splice {
    pub at: usize,
    pub changes: Vec<LineChange>,
    /// Whether a new last line of the file has its ending; none: as the last one has now.
    pub terminated: Option<bool>,
}

/// The next line of the file, or one that comes before it.
pub enum LineChange {
    Keep,
    Remove,
    /// Without its ending, which is that of the place, unless it is given.
    Add {
        text: Vec<u8>,
        ending: Option<&'static [u8]>,
    },
}

/// The content after `splices`, which are in the order of the file and do not overlap. New lines end as those that they replace,
/// else as the one before them.
pub fn splice(lines: &Lines<'_>, splices: &[Splice]) -> Vec<u8> {
    let content = lines.content();
    let mut out = Vec::with_capacity(content.len() + 1024);
    let mut done = 0;
    // Of the line that was put in last, if nothing follows it: the bytes of its ending.
    let mut added = None;
    let mut terminated = None;
    for splice in splices {
        out.extend_from_slice(&content[done..lines.start(splice.at)]);
        let mut next = splice.at;
        // The line whose place the next new one takes, if it is before `next`.
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
