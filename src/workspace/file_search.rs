//! Finds paths by characters that they contain in order.

use std::cmp::Ordering;
use std::path::Path;

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::walk::Walk;
use crate::limits;

/// The paths that match best, best first. A directory ends with a slash.
#[derive(Debug)]
pub(crate) struct FileSearch {
    pub paths: Vec<String>,
    /// Not all files were searched.
    pub truncated: bool,
}

impl FileSearch {
    /// Searches the entries of a walk that starts at `root`.
    pub(crate) fn run(walk: &Walk, root: &Path, query: &str, limit: usize) -> FileSearch {
        let pattern = Pattern::parse(query, CaseMatching::Smart, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let (mut found, mut seen, mut buffer) = (Vec::new(), 0, Vec::new());
        walk.in_order(|entry| {
            seen += 1;
            // Paths that are not UTF-8 cannot be written in a message.
            let Some(path) = entry.path.strip_prefix(root).ok().and_then(Path::to_str) else { return true };
            let path = format!("{path}{}", if entry.kind.is_dir() { "/" } else { "" });
            if let Some(score) = pattern.score(Utf32Str::new(&path, &mut buffer), &mut matcher) {
                found.push((score, path));
            }
            seen < limits::SEARCHED_FILES_MAX && !(query.is_empty() && found.len() >= limit)
        });
        // Of equal matches, the shorter path is more likely meant. Without a query, keep the order.
        let by_length = !query.is_empty();
        found.sort_by(|(one_score, one), (other_score, other)| {
            let length = if by_length { one.len().cmp(&other.len()) } else { Ordering::Equal };
            other_score.cmp(one_score).then(length)
        });
        found.truncate(limit);
        FileSearch { paths: found.into_iter().map(|(_, path)| path).collect(), truncated: seen >= limits::SEARCHED_FILES_MAX }
    }
}
