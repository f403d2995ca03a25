//! Rebuilds the files that a session started with: those of the commit, and what the log proves of
//! the others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use super::recording::{StartRepository, is_inside};
use super::session_log::SessionRecord;
use super::workspace::git;
use crate::cli::eval::digest::entries;
use crate::content::{ToolContent, plain_text};
use crate::error::Result;
use crate::event::{Body, Notice, REPOSITORY, ToolEnd};
use crate::process::ProcessLauncher;

/// Maximum number and total size of the files of the start. Of a larger commit only the files that
/// the session names are in the recording.
const FILES_MAX: usize = 400;
const BYTES_MAX: u64 = 2 << 20;
/// Maximum size of one file.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// Names of files that a session reads without a call.
const ALWAYS: [&str; 8] =
    ["AGENTS.md", "CLAUDE.md", ".nuncio/", ".gitignore", "Cargo.toml", "package.json", "pyproject.toml", "Makefile"];

#[derive(Default)]
pub(super) struct StartFiles {
    pub commit: BTreeMap<PathBuf, Vec<u8>>,
    pub changed: BTreeMap<PathBuf, Vec<u8>>,
    pub repository: Option<StartRepository>,
    /// Parts of the start that are not known.
    pub notes: Vec<String>,
}

/// The state of the repository in the log.
#[derive(Default)]
struct LoggedState {
    branch: Option<String>,
    commit: Option<String>,
    /// Files that differed from the commit, and those of them that were gone.
    changed: BTreeSet<PathBuf>,
    removed: BTreeSet<PathBuf>,
}

impl StartFiles {
    /// Rebuilds the files with which a session started, as far as they are known.
    pub(super) async fn rebuild(record: &SessionRecord, launcher: &ProcessLauncher) -> Result<StartFiles> {
        let (cwd, mut start) = (PathBuf::from(&record.cwd), StartFiles::default());
        let proofs = proofs(record, &cwd);
        let logged = record.events.iter().find_map(|event| match &event.body {
            Body::Notice(Notice { code: Some(code), details: Some(details), .. }) if code == REPOSITORY => {
                Some(LoggedState::parse(details))
            }
            _ => None,
        });
        let state = logged.unwrap_or_default();
        let is_committed = state.commit.is_some();
        if let Some(commit) = &state.commit {
            start.add_commit(commit, record, &cwd, launcher).await?;
        }
        if let (Some(branch), _) | (None, Some(branch)) = (state.branch.clone(), state.commit.as_ref().map(|_| "main".to_owned())) {
            let removed = state.removed.iter().filter(|path| start.commit.contains_key(*path)).cloned().collect();
            start.repository = Some(StartRepository { branch, removed });
        }
        // Files that no one changed since the session began are as they were then.
        let began = UNIX_EPOCH + Duration::from_millis(record.period().0);
        let unchanged = |path: &Path| {
            let metadata = fs::symlink_metadata(cwd.join(path)).ok()?;
            let is_old = metadata.is_file() && metadata.len() <= FILE_BYTES_MAX && metadata.modified().ok()? <= began;
            is_old.then(|| fs::read(cwd.join(path)).ok()).flatten()
        };
        let candidates: BTreeSet<PathBuf> = match is_committed {
            true => state.changed.iter().flat_map(|path| below(&cwd, path)).collect(),
            false => listed(&cwd, record),
        };
        for path in candidates.iter().chain(proofs.keys()) {
            if state.removed.contains(path) || start.changed.contains_key(path) || !is_inside(path) || is_private(path) {
                continue;
            }
            let is_changed = !is_committed || candidates.contains(path) || !start.commit.contains_key(path);
            let content = match proofs.get(path) {
                Some(None) => continue,
                Some(Some(content)) => Some(content.clone()),
                None => unchanged(path),
            };
            match content {
                Some(content) if is_changed && start.commit.get(path) != Some(&content) => {
                    drop(start.changed.insert(path.clone(), content))
                }
                None if is_committed => start.notes.push(format!("{}: its content at the start is not known", path.display())),
                _ => {}
            }
        }
        Ok(start)
    }

    async fn add_commit(&mut self, commit: &str, record: &SessionRecord, cwd: &Path, launcher: &ProcessLauncher) -> Result<()> {
        let listed = git(launcher, cwd, &["ls-tree", "-r", "-z", "--long", commit]).await?;
        let Some(listed) = listed else {
            self.notes.push(format!("commit {} of the start is not in {}", &commit[..commit.len().min(10)], cwd.display()));
            return Ok(());
        };
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let files = listed.split('\0').filter_map(|line| {
            let (fields, path) = line.split_once('\t')?;
            let mut fields = fields.split_whitespace().skip(1);
            let (kind, id, size) = (fields.next()?, fields.next()?, fields.next()?.parse::<u64>().ok()?);
            let is_usable = kind == "blob" && is_inside(Path::new(path)) && !is_private(Path::new(path));
            is_usable.then(|| (PathBuf::from(path), id.to_owned(), size))
        });
        let mut files: Vec<(PathBuf, String, u64)> = files.collect();
        let all = files.len();
        if all > FILES_MAX || files.iter().map(|(_, _, size)| size).sum::<u64>() > BYTES_MAX {
            let text = record.calls.iter().map(|call| call.input.to_string()).collect::<String>();
            let is_named = |path: &Path| {
                let name = path.to_string_lossy();
                text.contains(&*name) || ALWAYS.iter().any(|always| name.starts_with(always) || name.ends_with(always))
            };
            files.retain(|(path, _, size)| *size <= FILE_BYTES_MAX && is_named(path));
            files.truncate(FILES_MAX);
            self.notes.push(format!("{} of {all} files of the commit: those that the session names", files.len()));
        }
        for (path, id, _) in files {
            if let Some(content) = git(launcher, cwd, &["cat-file", "blob", &id]).await? {
                self.commit.insert(path, content);
            }
        }
        Ok(())
    }
}

impl LoggedState {
    /// Reads the details of `git_status`.
    fn parse(details: &Value) -> LoggedState {
        let text = |name: &str| details[name].as_str().map(str::to_owned);
        let mut state = LoggedState { branch: text("branch"), commit: text("commit"), ..LoggedState::default() };
        let lists = ["conflicted", "staged", "unstaged", "untracked"].map(|name| details[name].as_array());
        for entry in lists.into_iter().flatten().flatten() {
            let Some(path) = entry.as_str().or(entry["path"].as_str()).map(PathBuf::from) else { continue };
            if entry["status"] == "deleted" {
                state.removed.insert(path);
            } else {
                state.removed.remove(&path);
                state.changed.insert(path);
            }
        }
        state
    }
}

/// Returns what the log proves of files at the start: their content, or `None` for a file that did
/// not exist. The first proof of a file counts.
fn proofs(record: &SessionRecord, cwd: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found: BTreeMap<PathBuf, Option<Vec<u8>>> = BTreeMap::new();
    for event in &record.events {
        let Body::ToolCompleted(ToolEnd { output, content, details, .. }) = &event.body else { continue };
        let details = details.as_ref().unwrap_or(&Value::Null);
        let is_whole = details["truncated"] == false && details["offset"] == 1 && details["totalLines"] == details["linesRead"];
        let path = details["filePath"].as_str().and_then(|path| Path::new(path).strip_prefix(cwd).ok());
        if let Some(path) = path.filter(|_| is_whole) {
            found.entry(path.into()).or_insert_with(|| Some(without_numbers(&plain_text(output))));
        }
        for shown in content {
            if let ToolContent::Diff { path, old_text, .. } = shown
                && let Ok(path) = path.strip_prefix(cwd)
            {
                found.entry(path.into()).or_insert_with(|| old_text.as_ref().map(|text| text.clone().into_bytes()));
            }
        }
    }
    found
}

/// Returns the text of a file from the output of `read`.
fn without_numbers(output: &str) -> Vec<u8> {
    let line = |line: &str| {
        let (number, text) = line.split_once('\t')?;
        number.trim().parse::<u64>().ok().map(|_| text.to_owned() + "\n")
    };
    output.lines().map_while(line).collect::<String>().into_bytes()
}

/// Returns a file, or the files in a directory, relative to `cwd`.
fn below(cwd: &Path, path: &Path) -> Vec<PathBuf> {
    match cwd.join(path).is_dir() {
        true => {
            entries(&cwd.join(path)).unwrap_or_default().into_iter().map(|entry| path.join(entry.path)).take(FILES_MAX).collect()
        }
        false => vec![path.into()],
    }
}

/// Returns whether a file usually has secrets, by its name or that of a directory above it.
fn is_private(path: &Path) -> bool {
    let is_secret = |name: &str| {
        [".env", ".netrc", ".npmrc", ".pypirc", "id_"].iter().any(|start| name.starts_with(start))
            || [".pem", ".key", ".p12", ".pfx", ".kdbx"].iter().any(|end| name.ends_with(end))
            || [".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", ".password-store"].contains(&name)
    };
    path.iter().any(|name| is_secret(&name.to_string_lossy().to_ascii_lowercase()))
}

/// Lists the files of a directory without a repository that the session names.
fn listed(cwd: &Path, record: &SessionRecord) -> BTreeSet<PathBuf> {
    let named = record.calls.iter().map(|call| call.input.to_string()).collect::<String>();
    let mut found = all_files(cwd);
    found.retain(|path| named.contains(&*path.to_string_lossy()) || path.file_name().is_some_and(|name| name == "AGENTS.md"));
    found
}

/// Lists the files of a directory, if there are few, without those of hidden directories.
fn all_files(cwd: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(cwd.join(&directory)).into_iter().flatten().flatten() {
            let (path, kind) = (directory.join(entry.file_name()), entry.file_type());
            match kind {
                Ok(kind) if kind.is_dir() && !entry.file_name().as_encoded_bytes().starts_with(b".") => directories.push(path),
                Ok(kind) if kind.is_file() => drop(found.insert(path)),
                _ => {}
            }
            if found.len() > FILES_MAX {
                return BTreeSet::new();
            }
        }
    }
    found
}
