//! The state of a task's directory: its files without ignored ones, its commits, branches and
//! stashes, and the uncommitted lines.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::digest::entries;
use super::workbench::Workbench;
use crate::error::{Error, Result};

/// Maximum number of bytes of a file that are compared.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Files and repository at one moment.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// The contents of files, and the targets of symlinks.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// The commits of branches, tags and HEAD.
    pub commits: BTreeSet<String>,
    /// The names of branches and tags.
    pub branches: BTreeSet<String>,
    /// The commits of the stashes.
    pub stashes: BTreeSet<String>,
}

/// The lines of each file that its last commit does not have.
pub(super) type UncommittedLines = BTreeMap<PathBuf, Vec<u8>>;

impl Snapshot {
    /// Reads the state of the task's directory. If git no longer works there, the files are all
    /// files, and there are no commits, branches and stashes.
    pub(super) async fn read(bench: &Workbench) -> Result<Snapshot> {
        let Some(listed) = bench.git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).await? else {
            return Ok(Snapshot { files: all_files(&bench.task())?, ..Snapshot::default() });
        };
        let lines = async |arguments: &[&str]| -> Result<BTreeSet<String>> {
            let text = bench.git(arguments).await?.unwrap_or_default();
            Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
        };
        let references = lines(&["for-each-ref", "--format=%(refname)"]).await?;
        let stashes = match references.contains("refs/stash") {
            true => lines(&["reflog", "show", "--format=%H", "refs/stash"]).await?,
            false => BTreeSet::new(),
        };
        let is_branch = |name: &String| name.starts_with("refs/heads/") || name.starts_with("refs/tags/");
        Ok(Snapshot {
            files: read_files(&bench.task(), &listed),
            commits: lines(&["rev-list", "--branches", "--tags", "HEAD"]).await?,
            branches: references.into_iter().filter(is_branch).collect(),
            stashes,
        })
    }

    pub(super) async fn uncommitted(&self, bench: &Workbench) -> Result<UncommittedLines> {
        let status = ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"];
        let status = bench.git(&status).await?.unwrap_or_default();
        let mut all = UncommittedLines::new();
        for entry in status.split(|byte| *byte == 0).filter(|entry| entry.len() > 3) {
            let path = PathBuf::from(OsStr::from_bytes(&entry[3..]));
            let Some(content) = self.files.get(&path) else { continue };
            let committed = match path.to_str().filter(|_| !entry.starts_with(b"??")) {
                Some(path) => bench.git(&["show", &format!("HEAD:{path}")]).await?.unwrap_or_default(),
                None => Vec::new(),
            };
            let added = lost_lines(content, &committed).join(&b"\n"[..]);
            if !added.is_empty() {
                all.insert(path, added);
            }
        }
        Ok(all)
    }
}

/// Returns the lines of `before` that `after` does not have, each as often as it is missing. Blank
/// lines do not count.
pub(super) fn lost_lines<'t>(before: &'t [u8], after: &[u8]) -> Vec<&'t [u8]> {
    fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
        text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end).filter(|line| !line.is_empty())
    }
    let mut kept: HashMap<&[u8], usize> = HashMap::new();
    lines(after).for_each(|line| *kept.entry(line).or_default() += 1);
    let mut lost = Vec::new();
    for line in lines(before) {
        match kept.get_mut(line) {
            Some(count @ 1..) => *count -= 1,
            _ => lost.push(line),
        }
    }
    lost
}

fn read_files(directory: &Path, listed: &[u8]) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    let read = |path: &[u8]| {
        let path = PathBuf::from(OsStr::from_bytes(path));
        let full = directory.join(&path);
        // A file that was deleted but is still in the index, or a repository inside this one.
        let kind = fs::symlink_metadata(&full).ok()?.file_type();
        let content = match kind.is_symlink() {
            true => fs::read_link(&full).ok()?.into_os_string().as_bytes().to_vec(),
            false if kind.is_file() => read_start(&full),
            false => Vec::new(),
        };
        Some((path, content))
    };
    paths.filter_map(read).collect()
}

/// Returns the first bytes of a file; none if it cannot be read.
fn read_start(file: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    let read = File::open(file).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut content));
    if read.is_err() {
        content.clear();
    }
    content
}

fn all_files(directory: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let found = entries(directory).map_err(|error| Error::io(format_args!("reading {}", directory.display()), error))?;
    let found = found.into_iter().filter(|entry| !entry.path.starts_with(".git"));
    Ok(found.map(|entry| (entry.path, entry.content)).collect())
}
