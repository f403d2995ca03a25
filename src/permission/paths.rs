//! Paths for rule matching.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

/// A path that a tool call accesses, in the forms that rules are matched against.
#[derive(Clone, Debug)]
pub struct AccessPath {
    /// The path without symlinks.
    pub real: PathBuf,
    /// The path as written in the tool call, made absolute.
    pub written: PathBuf,
    /// The working directory of the session, the base of relative rules.
    pub cwd: PathBuf,
    /// True if the path is inside a root of the session and not guarded.
    pub inside: bool,
    /// True if the call would write to this path, and the file affects permissions, is executed
    /// implicitly, or is read-only.
    pub guarded: bool,
    /// True if the call would write to this path, and the file's mode has no write bit.
    pub read_only: bool,
}

impl AccessPath {
    /// Returns the path for display. A path below the session's directory is relative to that
    /// directory.
    pub(crate) fn shown(&self) -> &Path {
        self.written.strip_prefix(&self.cwd).unwrap_or(&self.written)
    }

    /// Returns the forms of the path that rules are matched against, each absolute and relative to
    /// the working directory. Allow rules are matched against the real path only; `cautious` adds
    /// the written path for deny and ask rules.
    pub(super) fn names(&self, cautious: bool) -> impl Iterator<Item = &Path> {
        let paths = if cautious { [Some(&self.real), Some(&self.written)] } else { [Some(&self.real), None] };
        paths.into_iter().flatten().flat_map(|path| [Some(path.as_path()), path.strip_prefix(&self.cwd).ok()]).flatten()
    }
}

/// Returns the forms of a glob whose brackets, and also whose braces, are characters of a path, as
/// in `app/[slug]/page.tsx`. Characters after a backslash stay as they are.
pub(crate) fn with_literal_brackets(glob: &str) -> impl Iterator<Item = String> {
    let escape = |special: &[char]| {
        let (mut literal, mut rest) = (String::with_capacity(glob.len() + 4), glob.chars());
        while let Some(character) = rest.next() {
            if special.contains(&character) {
                literal.push('\\');
            }
            literal.push(character);
            if character == '\\' {
                literal.extend(rest.next());
            }
        }
        Some(literal).filter(|literal| literal != glob)
    };
    [escape(&['[', ']']), escape(&['[', ']', '{', '}'])].into_iter().flatten()
}

/// A path glob of a rule. `X/**` matches `X` too, and `[X]` also matches a path that is written so.
#[derive(Debug)]
pub(crate) struct PathGlob(Option<Vec<GlobMatcher>>);

impl PathGlob {
    pub(crate) fn new(glob: &str) -> PathGlob {
        let build = |glob: &str| {
            let globs = [Some(glob), glob.strip_suffix("/**")].into_iter().flatten();
            let matcher = |glob: &str| {
                GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build().map(|glob| glob.compile_matcher())
            };
            globs.map(matcher).collect::<Result<Vec<_>, _>>().ok()
        };
        let literal = || with_literal_brackets(glob).filter_map(|glob| build(&glob)).flatten();
        PathGlob(build(glob).map(|globs| globs.into_iter().chain(literal()).collect()))
    }

    /// Returns whether the glob matches. An invalid glob matches everything if `cautious`, nothing
    /// if not.
    pub(crate) fn fits(&self, path: &Path, cautious: bool) -> bool {
        self.0.as_ref().map_or(cautious, |globs| globs.iter().any(|glob| glob.is_match(path)))
    }
}

/// Matches a glob against a path. An invalid glob matches everything if `cautious`, nothing if not.
pub(super) fn glob_matches(glob: &str, path: &Path, cautious: bool) -> bool {
    let glob = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    glob.map_or(cautious, |glob| glob.compile_matcher().is_match(path))
}
