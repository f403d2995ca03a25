//! Ignore files, with ripgrep's semantics and without requiring a repository. `.ignore` takes
//! precedence over `.gitignore`, then `.git/info/exclude`, then the user's global file; within each
//! kind, the nearest file wins. The files are untrusted and read with [`read_small`].

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::file::read_small;
use crate::limits;

/// The ignore rules of a directory and of its ancestors.
#[derive(Debug)]
pub(super) struct Ignores {
    /// The directory's own rules, by kind of ignore file, in order of precedence.
    own: [Gitignore; KINDS],
    above: Option<Arc<Ignores>>,
    /// Number of rules, including those of the ancestors; at most [`limits::IGNORE_RULES_MAX`].
    rules: usize,
}

const KINDS: usize = 3;

/// Names of the files in a directory that decide which entries are ignored, and how git compares
/// files.
pub(super) const RULE_FILES: [&str; 3] = [".ignore", ".gitignore", ".gitattributes"];

/// Such files in a git directory.
pub(super) const GIT_RULE_FILES: [&str; 3] = ["info/exclude", "info/attributes", "info/sparse-checkout"];

/// Returns the paths of such files in the git directory of a working tree.
pub(super) fn rules_of_git(directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let git_directory = git_directory(directory);
    GIT_RULE_FILES.into_iter().map(move |name| git_directory.join(name))
}

/// The ignore files that a directory contains.
#[derive(Clone, Copy, Default)]
pub(super) struct IgnoreFiles {
    ignore: bool,
    gitignore: bool,
    git: bool,
}

impl IgnoreFiles {
    /// Returns the paths of files in the git directory that decide which entries are ignored, if
    /// the directory has one.
    pub(super) fn git_rules(&self, directory: &Path) -> impl Iterator<Item = PathBuf> + use<> {
        self.git.then(|| rules_of_git(directory)).into_iter().flatten()
    }

    const ALL: IgnoreFiles = IgnoreFiles { ignore: true, gitignore: true, git: true };

    /// Records `name` if it is an ignore file.
    pub(crate) fn note(&mut self, name: &OsStr) {
        match name.as_bytes() {
            b".ignore" => self.ignore = true,
            b".gitignore" => self.gitignore = true,
            b".git" => self.git = true,
            _ => {}
        }
    }
}

impl Ignores {
    /// Reads the rules of the directories above `root`.
    pub(crate) fn above(root: &Path) -> Option<Arc<Ignores>> {
        let mut directories: Vec<&Path> = root.ancestors().skip(1).collect();
        directories.reverse();
        directories.into_iter().fold(None, |above, directory| Ignores::enter(above, directory, IgnoreFiles::ALL))
    }

    /// Adds the rules of `directory`, which contains the ignore files `found`, to those of its
    /// ancestors.
    pub(crate) fn enter(above: Option<Arc<Ignores>>, directory: &Path, found: IgnoreFiles) -> Option<Arc<Ignores>> {
        let mut left = limits::IGNORE_RULES_MAX.saturating_sub(above.as_ref().map_or(0, |above| above.rules));
        let before = left;
        let mut read = |wanted: bool, file: &dyn Fn() -> PathBuf| match wanted {
            true => rules(directory, &file(), &mut left),
            false => Gitignore::empty(),
        };
        let own = [
            read(found.ignore, &|| directory.join(".ignore")),
            read(found.gitignore, &|| directory.join(".gitignore")),
            read(found.git, &|| git_directory(directory).join("info/exclude")),
        ];
        let rules = above.as_ref().map_or(0, |above| above.rules) + before - left;
        if own.iter().all(Gitignore::is_empty) { above } else { Some(Arc::new(Ignores { own, above, rules })) }
    }

    /// Returns whether `path`, which is in the directory, is ignored (`true`) or re-included
    /// (`false`); `None` if no rule matches.
    pub(crate) fn decide(&self, path: &Path, is_directory: bool) -> Option<bool> {
        (0..KINDS).find_map(|kind| {
            let mut here = Some(self);
            while let Some(ignores) = here {
                let rules = &ignores.own[kind];
                let decided = if rules.is_empty() { None } else { decision(rules, path, is_directory) };
                if decided.is_some() {
                    return decided;
                }
                here = ignores.above.as_deref();
            }
            None
        })
    }
}

/// Returns whether `rules` ignore `path` (`true`) or re-include it (`false`); `None` if no rule
/// matches.
pub(super) fn decision(rules: &Gitignore, path: &Path, is_directory: bool) -> Option<bool> {
    match rules.matched(path, is_directory) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

/// Reads the rules of `file`, relative to `directory`, and subtracts their number from `left`, the
/// number of rules that may still be read. An unreadable file has no rules; invalid lines are
/// skipped.
pub(super) fn rules(directory: &Path, file: &Path, left: &mut usize) -> Gitignore {
    let Ok(bytes) = read_small(file) else { return Gitignore::empty() };
    let mut builder = GitignoreBuilder::new(directory);
    let text = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
        if *left == 0 {
            break;
        }
        *left -= 1;
        if let Ok(line) = std::str::from_utf8(line) {
            // An invalid pattern excludes nothing, as in git.
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Returns the common git directory of a directory that has a `.git` (gitrepository-layout(5)).
fn git_directory(directory: &Path) -> PathBuf {
    let own = directory.join(".git");
    if own.is_dir() {
        return own;
    }
    let named = |file: &Path, prefix: &str| {
        let text = read_small(file).ok()?;
        let name = text.strip_prefix(prefix.as_bytes())?.trim_ascii();
        Some(PathBuf::from(OsStr::from_bytes(name)))
    };
    let Some(linked) = named(&own, "gitdir:").map(|named| directory.join(named)) else { return own };
    match named(&linked.join("commondir"), "") {
        Some(common) => linked.join(common),
        None => linked,
    }
}
