//! Walking a directory as ripgrep does: hidden files and what .gitignore, .ignore and their like exclude are left out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::{DirEntry, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

/// What was met on a walk.
pub type Entry = DirEntry;

/// Says of a path, without symlinks, that it is left out.
pub type Except = Arc<dyn Fn(&Path) -> bool + Send + Sync>;

/// A walk that is about to begin. Both ways of it stop soon after `cancel`.
#[derive(Clone)]
pub struct Walk {
    root: PathBuf,
    hidden: bool,
    depth_max: Option<usize>,
    except: Option<Except>,
    cancel: CancellationToken,
}

impl Walk {
    pub fn new(root: &Path, cancel: CancellationToken) -> Walk {
        Walk { root: root.to_owned(), hidden: false, depth_max: None, except: None, cancel }
    }

    /// Visits hidden files too, all but `.git`.
    pub fn hidden(mut self, hidden: bool) -> Walk {
        self.hidden = hidden;
        self
    }

    /// The root's own entries have depth 1.
    pub fn depth_max(mut self, depth: usize) -> Walk {
        self.depth_max = Some(depth);
        self
    }

    /// Leaves out what it says.
    pub fn except(mut self, except: Option<Except>) -> Walk {
        self.except = except;
        self
    }

    fn leaves_out(&self, entry: &Entry) -> bool {
        self.except.as_ref().is_some_and(|except| except(entry.path()))
    }

    fn builder(&self) -> WalkBuilder {
        let mut builder = WalkBuilder::new(&self.root);
        builder.hidden(!self.hidden).require_git(false).max_depth(self.depth_max).follow_links(false);
        builder.filter_entry(|entry| entry.file_name() != ".git");
        builder
    }

    /// Visits all entries in the order of their names, a directory before what is in it. `visit` returns false to stop.
    pub fn in_order(&self, mut visit: impl FnMut(Entry) -> bool) {
        for entry in self.builder().sort_by_file_name(|one, other| one.cmp(other)).build() {
            let Ok(entry) = entry else { continue };
            if self.cancel.is_cancelled() || (entry.depth() > 0 && !self.leaves_out(&entry) && !visit(entry)) {
                return;
            }
        }
    }

    /// Visits all files on several threads, in no order; the root itself when it is a file. `visitor` makes a function for each
    /// thread, which returns false to stop all of them.
    pub fn parallel<'s, V>(&self, mut visitor: impl FnMut() -> V)
    where
        V: FnMut(Entry) -> bool + Send + 's,
    {
        self.builder().build_parallel().run(|| {
            let mut visit = visitor();
            let walk = self.clone();
            Box::new(move |entry| {
                let Ok(entry) = entry else { return WalkState::Continue };
                if walk.cancel.is_cancelled() {
                    return WalkState::Quit;
                }
                let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
                if is_file && !walk.leaves_out(&entry) && !visit(entry) { WalkState::Quit } else { WalkState::Continue }
            })
        });
    }
}
