//! The filter that hides files from tools that read many files.

use std::path::{Path, PathBuf};

use super::paths::{PathGlob, glob_matches};
use super::rules::Rules;
use crate::config::{AccessKind, Policy, Rule};

/// Filters the files that a tool reads. Hides files that a rule denies or for which a rule requires
/// a permission request.
#[derive(Debug)]
pub struct Hidden {
    /// The rules for this tool by scope, outermost first. A rule without a path matches every file.
    scopes: Vec<Vec<(Policy, Option<PathGlob>)>>,
    cwd: PathBuf,
    approved: bool,
}

impl Hidden {
    /// Creates the filter for `tool`, or returns `None` if no rule restricts paths. `approved`: the
    /// user allowed the call itself, so files that would need a permission request are not hidden.
    pub fn from_rules(rules: &Rules, tool: &str, cwd: &Path, approved: bool) -> Option<Hidden> {
        let applies = |rule: &&Rule| {
            rule.pattern.is_none()
                && rule.kind.is_none_or(|kind| kind == AccessKind::Read)
                && rule.tool.as_ref().is_none_or(|glob| glob_matches(glob, Path::new(tool), rule.policy != Policy::Allow))
        };
        let scopes = rules.scopes();
        let about: Vec<Vec<&Rule>> = scopes.map(|scope| scope.iter().filter(applies).collect()).into();
        about.iter().flatten().find(|rule| rule.path.is_some() && rule.policy != Policy::Allow)?;
        let compiled = |rule: &&Rule| (rule.policy, rule.path.as_deref().map(PathGlob::new));
        Some(Hidden { approved, scopes: about.iter().map(|scope| scope.iter().map(compiled).collect()).collect(), cwd: cwd.into() })
    }

    /// Returns whether `real`, which is absolute and free of symlinks, is hidden.
    pub fn hides(&self, real: &Path) -> bool {
        let relative = real.strip_prefix(&self.cwd).ok();
        let fits = |policy: Policy, glob: &Option<PathGlob>| {
            let cautious = policy != Policy::Allow;
            glob.as_ref()
                .is_none_or(|glob| glob.fits(real, cautious) || relative.is_some_and(|relative| glob.fits(relative, cautious)))
        };
        let last = |scope: &Vec<(Policy, Option<PathGlob>)>| {
            scope.iter().rev().find(|(policy, glob)| fits(*policy, glob)).map(|rule| rule.0)
        };
        let decisive: Vec<Policy> = self.scopes.iter().filter_map(last).collect();
        decisive.contains(&Policy::Deny) || (!self.approved && decisive.last() == Some(&Policy::Ask))
    }
}
