//! Paths as rules see them, and what a rule hides from tools that look at many files.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::rules::{Rules, glob_matches};
use crate::config::{AccessKind, Policy, Rule};

/// A path that a call touches, by all its names.
#[derive(Clone, Debug)]
pub struct Place {
    /// Without symlinks: where it really is.
    pub real: PathBuf,
    /// As it was written, made absolute.
    pub written: PathBuf,
    /// The session's directory, which relative rules are relative to.
    pub cwd: PathBuf,
    /// Inside a root, and not guarded.
    pub inside: bool,
    /// It decides what may be done, or runs later unseen, and would be written.
    pub guarded: bool,
}

impl Place {
    /// Relative to the session's directory if it is below it: for people.
    pub fn shown(&self) -> &Path {
        self.written.strip_prefix(&self.cwd).unwrap_or(&self.written)
    }

    /// Its names, each absolute and relative. What is to be allowed is known by its real ones alone.
    pub(super) fn names(&self, cautious: bool) -> impl Iterator<Item = &Path> {
        let paths = if cautious { [Some(&self.real), Some(&self.written)] } else { [Some(&self.real), None] };
        paths.into_iter().flatten().flat_map(|path| [Some(path.as_path()), path.strip_prefix(&self.cwd).ok()]).flatten()
    }
}

/// A rule's glob over paths: `X/**` is about `X` too.
#[derive(Debug)]
pub(super) struct PathGlob(Option<Vec<GlobMatcher>>);

impl PathGlob {
    pub(super) fn new(glob: &str) -> PathGlob {
        let globs = [Some(glob), glob.strip_suffix("/**")].into_iter().flatten();
        let matcher =
            |glob| GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build().map(|glob| glob.compile_matcher());
        PathGlob(globs.map(matcher).collect::<Result<_, _>>().ok())
    }

    /// A glob that cannot be read fits everything, but nothing when it would allow.
    pub(super) fn fits(&self, path: &Path, cautious: bool) -> bool {
        self.0.as_ref().map_or(cautious, |globs| globs.iter().any(|glob| glob.is_match(path)))
    }
}

/// What rules keep a tool from looking at, file by file: whatever they deny, or want to be asked about.
#[derive(Debug)]
pub struct Hidden {
    /// Of each scope, outermost first, the rules about this tool; none in `path` fits every file.
    scopes: Vec<Vec<(Policy, Option<PathGlob>)>>,
    cwd: PathBuf,
    asked: bool,
}

impl Hidden {
    /// `asked`: the call itself was asked about, and with it what is below. None: there is no rule about paths that it would have to heed.
    pub fn of(rules: &Rules, tool: &str, cwd: &Path, asked: bool) -> Option<Hidden> {
        let speaks = |rule: &&Rule| {
            rule.pattern.is_none()
                && rule.kind.is_none_or(|kind| kind == AccessKind::Read)
                && rule.tool.as_ref().is_none_or(|glob| glob_matches(glob, Path::new(tool), rule.policy != Policy::Allow))
        };
        let scopes = [&rules.user, &rules.project, &rules.session];
        let about: Vec<Vec<&Rule>> = scopes.map(|scope| scope.iter().filter(speaks).collect()).into();
        about.iter().flatten().find(|rule| rule.path.is_some() && rule.policy != Policy::Allow)?;
        let compiled = |rule: &&Rule| (rule.policy, rule.path.as_deref().map(PathGlob::new));
        Some(Hidden { asked, scopes: about.iter().map(|scope| scope.iter().map(compiled).collect()).collect(), cwd: cwd.into() })
    }

    /// `real` is absolute and without symlinks.
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
        decisive.contains(&Policy::Deny) || (!self.asked && decisive.last() == Some(&Policy::Ask))
    }
}
