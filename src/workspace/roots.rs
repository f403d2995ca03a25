//! Following a path by hand, a component at a time, as the kernel does (path_resolution(7)), but also where it does not exist.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// As many as the kernel follows.
const LINKS_MAX: usize = 40;

pub struct Followed {
    /// Absolute and without `.` and `..`; links are kept, except those that a `..` leads out of.
    pub path: PathBuf,
    /// Without links, as far as it exists.
    pub real: PathBuf,
    /// False when there were too many links, so that `real` says nothing.
    pub whole: bool,
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

/// Where `path`, which is absolute, leads.
pub fn follow(path: &Path) -> Followed {
    let mut shown = PathBuf::from("/");
    let mut real = PathBuf::from("/");
    let mut whole = true;
    for step in steps(path) {
        match step {
            Step::Into(name) => {
                shown.push(&name);
                whole &= enter(&mut real, name);
            }
            Step::Up => {
                let plain = shown.file_name() == real.file_name();
                real.pop();
                if plain {
                    shown.pop();
                } else {
                    shown.clone_from(&real);
                }
            }
        }
    }
    Followed { path: shown, real, whole }
}

/// Goes from `real` to what `name` stands for there. False when there are too many links.
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

/// `path` without links as far as it exists.
pub fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    follow(&absolute).real
}
