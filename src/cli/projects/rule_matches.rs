//! The files of a directory that permission rules match, for `nuncio config check`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::config::{LoadedSettings, Rule};
use crate::permission::paths::PathGlob;
use crate::workspace::{Walk, one_line};

/// Maximum time for the search of files.
const SEARCH_TIME: Duration = Duration::from_secs(1);

/// The files that a rule matches.
struct RuleMatches<'r> {
    rule: &'r Rule,
    glob: PathGlob,
    count: usize,
    first: Option<PathBuf>,
}

/// Describes for each rule with a path how many files below `cwd` it matches. Ignored files are not
/// counted.
pub(in crate::cli) fn rule_matches(loaded: &LoadedSettings, cwd: &Path) -> Vec<String> {
    let rules = loaded.settings.permissions.rules.iter().chain(&loaded.project_rules);
    let found = rules.filter_map(|rule| {
        let glob = PathGlob::new(rule.path.as_deref()?);
        Some(RuleMatches { rule, glob, count: 0, first: None })
    });
    let mut found: Vec<RuleMatches<'_>> = found.collect();
    let Some(root) = cwd.canonicalize().ok().filter(|_| !found.is_empty()) else { return Vec::new() };
    let deadline = Instant::now() + SEARCH_TIME;
    Walk::new(&root, CancellationToken::new()).hidden(true).in_order(|entry| {
        let relative = entry.path.strip_prefix(&root).unwrap_or(&entry.path);
        for rule in found.iter_mut().filter(|_| entry.kind.is_file()) {
            if rule.glob.fits(relative, false) || rule.glob.fits(&entry.path, false) {
                rule.count += 1;
                rule.first.get_or_insert_with(|| relative.to_owned());
            }
        }
        Instant::now() < deadline
    });
    let least = if Instant::now() >= deadline { "at least " } else { "" };
    found.iter().map(|rule| rule.describe(least)).collect()
}

impl RuleMatches<'_> {
    fn describe(&self, least: &str) -> String {
        let path = self.rule.path.as_deref().unwrap_or_default();
        let files = match (self.count, &self.first) {
            (1, Some(first)) => format!("{least}1 file here: {}", first.display()),
            (count, Some(first)) => format!("{least}{count} files here, such as {}", first.display()),
            (_, None) => "no file here".to_owned(),
        };
        let policy = format!("{:?}", self.rule.policy).to_lowercase();
        one_line(format!("permissions.rules: {path} ({policy}) matches {files}"))
    }
}
