//! Resolves paths in user space, component by component, as the kernel does (path_resolution(7)).
//! Unlike the kernel, it also resolves paths that do not exist.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Maximum number of symlinks followed, as in the kernel.
const LINKS_MAX: usize = 40;

/// A path after symlink resolution.
pub(crate) struct LinkTarget {
    /// Absolute, without `.` and `..`. Symlinks are kept, except where a `..` leads out of one.
    pub path: PathBuf,
    /// The path without symlinks, as far as it exists.
    pub real: PathBuf,
    /// False if the path has too many symlinks; `real` is then meaningless.
    pub complete: bool,
}

enum Step {
    Into(OsString),
    Up,
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(Step::Into(name.to_owned())),
        Component::ParentDir => Some(Step::Up),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Resolves the absolute path `path`.
pub(crate) fn follow(path: &Path) -> LinkTarget {
    let mut shown = PathBuf::from("/");
    let mut real = PathBuf::from("/");
    let mut complete = true;
    for step in steps(path) {
        match step {
            Step::Into(name) => {
                shown.push(&name);
                complete &= enter(&mut real, name);
            }
            Step::Up => {
                let same = shown.file_name() == real.file_name();
                real.pop();
                if same {
                    shown.pop();
                } else {
                    shown.clone_from(&real);
                }
            }
        }
    }
    LinkTarget { path: shown, real, complete }
}

/// Appends `name` to `real`, following symlinks. Returns false if there are too many symlinks.
fn enter(real: &mut PathBuf, name: OsString) -> bool {
    let mut waiting = vec![Step::Into(name)];
    let mut links = 0;
    while let Some(step) = waiting.pop() {
        let Step::Into(name) = step else {
            real.pop();
            continue;
        };
        let Ok(target) = std::fs::read_link(real.join(&name)) else {
            real.push(name);
            continue;
        };
        links += 1;
        if links > LINKS_MAX {
            real.push(name);
            return false;
        }
        if target.is_absolute() {
            *real = PathBuf::from("/");
        }
        waiting.extend(steps(&target).rev());
    }
    true
}

/// Returns `path` without symlinks, as far as it exists.
pub(crate) fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    follow(&absolute).real
}

/// Returns whether the way to `path` passes through one of `roots` and leads out of them all by a
/// symlink, which programs that write there can change.
pub(crate) fn leads_out(path: &Path, roots: &[PathBuf]) -> bool {
    let inside = |real: &Path| roots.iter().any(|root| real.starts_with(root));
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let LinkTarget { path: shown, real: end, .. } = follow(&absolute);
    !inside(&end) && shown.ancestors().any(|above| inside(&real(above)))
}

/// Resolves the directories that one program may write to. Fails with a directory if a symlink in
/// another one, or in `own`, leads out of them to it: an earlier program with the same rights can
/// have created the symlink.
pub(crate) fn real_writable(paths: &[PathBuf], own: &Path) -> Result<Vec<PathBuf>, PathBuf> {
    let all: Vec<PathBuf> = paths.iter().map(|path| real(path)).collect();
    let is_chosen = |(path, end): (&PathBuf, &PathBuf)| {
        let others = all.iter().filter(|other| *other != end).cloned().chain([real(own)]);
        leads_out(path, &others.collect::<Vec<_>>())
    };
    match paths.iter().zip(&all).find(|pair| is_chosen(*pair)) {
        Some((path, _)) => Err(path.clone()),
        None => Ok(all),
    }
}
