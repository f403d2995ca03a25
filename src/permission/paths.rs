//! Paths for rule matching, and the filter that hides files from tools that read many files.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::rules::{Rules, glob_matches};
use crate::config::{AccessKind, Policy, Rule};

/// A path that a call accesses, in its forms for rule matching.
#[derive(Clone, Debug)]
pub struct Place {
    /// The path without symlinks.
    pub real: PathBuf,
    /// The path as it was written, made absolute.
    pub written: PathBuf,
    /// The working directory of the session, the base of relative rules.
    pub cwd: PathBuf,
    /// Inside a root and not guarded.
    pub inside: bool,
    /// The call would write this path, which affects permissions or is executed implicitly.
    pub guarded: bool,
}

impl Place {
    /// Returns the path for display, relative to the session's directory if it is below it.
    pub fn shown(&self) -> &Path {
        self.written.strip_prefix(&self.cwd).unwrap_or(&self.written)
    }

    /// Returns the forms that rules are matched against, each absolute and relative. Rules that
    /// allow match the real path only; `cautious` adds the written path.
    pub(super) fn names(&self, cautious: bool) -> impl Iterator<Item = &Path> {
        let paths = if cautious { [Some(&self.real), Some(&self.written)] } else { [Some(&self.real), None] };
        paths.into_iter().flatten().flat_map(|path| [Some(path.as_path()), path.strip_prefix(&self.cwd).ok()]).flatten()
    }
}

/// A path glob of a rule. `X/**` matches `X` too.
#[derive(Debug)]
pub(super) struct PathGlob(Option<Vec<GlobMatcher>>);

impl PathGlob {
    pub(super) fn new(glob: &str) -> PathGlob {
        let globs = [Some(glob), glob.strip_suffix("/**")].into_iter().flatten();
        let matcher =
            |glob| GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build().map(|glob| glob.compile_matcher());
        PathGlob(globs.map(matcher).collect::<Result<_, _>>().ok())
    }

    /// Returns whether the glob matches. An invalid glob matches everything if `cautious`, nothing
    /// if not.
    pub(super) fn fits(&self, path: &Path, cautious: bool) -> bool {
        self.0.as_ref().map_or(cautious, |globs| globs.iter().any(|glob| glob.is_match(path)))
    }
}

/// Filters the files that a tool reads: hides files for which rules deny reading or require a
/// request.
#[derive(Debug)]
pub struct Hidden {
    /// The rules for this tool by scope, outermost first. A rule without a path matches every file.
    scopes: Vec<Vec<(Policy, Option<PathGlob>)>>,
    cwd: PathBuf,
    approved: bool,
}

impl Hidden {
    /// Creates the filter for `tool`, or `None` if no rule restricts paths. `approved`: the user
    /// allowed the call itself, which covers the files below.
    pub fn of(rules: &Rules, tool: &str, cwd: &Path, approved: bool) -> Option<Hidden> {
        let applies = |rule: &&Rule| {
            rule.pattern.is_none()
                && rule.kind.is_none_or(|kind| kind == AccessKind::Read)
                && rule.tool.as_ref().is_none_or(|glob| glob_matches(glob, Path::new(tool), rule.policy != Policy::Allow))
        };
        let scopes = [&rules.user, &rules.project, &rules.session];
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
