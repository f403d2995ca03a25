//! Trusted directories, whose project settings may widen permissions. The file `trusted` in the
//! data directory has one line for each trusted directory, with a digest of the trusted content.
//! Changing the content revokes the trust.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use toml::{Table, Value};

use super::data_paths::{DataPaths, project_file};
use super::worktree_origin::worktree_origin;
use crate::error::{Error, Result};
use crate::workspace::{read_small, read_small_text, replace_private};

/// The list of trusted directories.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    /// Digests by canonical directory. `None`: an earlier version of nuncio recorded no digest.
    digests: BTreeMap<PathBuf, Option<String>>,
    /// The directory of nuncio's worktrees.
    worktrees: PathBuf,
}

/// The trust status of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trusted {
    Yes,
    /// The directory is not in the list.
    No,
    /// The content differs from the trusted content.
    Changed,
    /// The directory was added by an earlier version, without a digest.
    NoDigest,
}

impl Trusted {
    /// The reason why a formerly trusted directory is no longer trusted.
    pub(crate) fn why_not(self) -> Option<&'static str> {
        match self {
            Trusted::Yes | Trusted::No => None,
            Trusted::Changed => Some("they changed since they were trusted"),
            Trusted::NoDigest => Some("they were trusted with an older version of nuncio, which did not record their content"),
        }
    }
}

impl Trust {
    /// Loads the list; it is empty if the file cannot be read.
    pub(crate) fn load(places: &DataPaths) -> Trust {
        let text = read_small_text(&file(places)).unwrap_or_default();
        let mut digests = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            match line.split_once(' ').filter(|(digest, _)| is_digest(digest)) {
                Some((digest, directory)) => digests.insert(PathBuf::from(directory), Some(digest.to_owned())),
                None => digests.insert(PathBuf::from(line), None),
            };
        }
        Trust { digests, worktrees: places.worktrees() }
    }

    /// The trust status of the settings of `directory`. `content` is the content of its settings
    /// file, `None` if there is no file. Parent directories have no influence. In a worktree of
    /// nuncio, settings that equal the trusted settings of its repository are trusted, too.
    pub(crate) fn settings(&self, directory: &Path, content: Option<&[u8]>) -> Trusted {
        let directory = canonical(directory);
        let recorded = match worktree_origin(&self.worktrees, &directory) {
            Some(origin) if !self.digests.contains_key(&directory) => origin.repository.join(origin.rest),
            _ => directory.clone(),
        };
        self.compared(&recorded, &directory, content)
    }

    /// Compares the settings of `directory` with the digest that is recorded for `recorded`.
    fn compared(&self, recorded: &Path, directory: &Path, content: Option<&[u8]>) -> Trusted {
        match self.digests.get(recorded) {
            None => Trusted::No,
            Some(None) => Trusted::NoDigest,
            Some(Some(trusted)) if *trusted == digest(directory, content) => Trusted::Yes,
            Some(Some(_)) => Trusted::Changed,
        }
    }

    /// Returns whether `directory` or a parent directory is trusted and unchanged. Only then may
    /// programs that no setting names run code in `directory`. A worktree of nuncio counts as a
    /// directory at the place of its repository.
    pub(crate) fn covers(&self, directory: &Path) -> bool {
        self.covering(directory).is_some()
    }

    /// The trusted directory that covers `directory`.
    pub(crate) fn covering(&self, directory: &Path) -> Option<PathBuf> {
        let directory = canonical(directory);
        let above = directory.ancestors().map(|above| (above.to_owned(), above.to_owned()));
        let mut pairs: Vec<(PathBuf, PathBuf)> = above.collect();
        if let Some(origin) = worktree_origin(&self.worktrees, &directory) {
            let place = origin.repository.join(&origin.rest);
            pairs.extend(place.ancestors().map(|recorded| match recorded.strip_prefix(&origin.repository) {
                Ok(rest) => (recorded.to_owned(), origin.worktree.join(rest)),
                Err(_) => (recorded.to_owned(), recorded.to_owned()),
            }));
        }
        pairs.retain(|(recorded, _)| self.digests.contains_key(recorded));
        pairs.into_iter().find(|(recorded, actual)| self.current(recorded, actual) == Trusted::Yes).map(|(recorded, _)| recorded)
    }

    /// Compares the current settings of `directory` with the digest that is recorded for
    /// `recorded`.
    fn current(&self, recorded: &Path, directory: &Path) -> Trusted {
        match read_small(&project_file(directory)) {
            Ok(content) => self.compared(recorded, directory, Some(&content)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.compared(recorded, directory, None),
            Err(_) => Trusted::Changed,
        }
    }

    /// The directories of the list, with their status.
    pub(crate) fn list(&self) -> impl Iterator<Item = (&Path, Trusted)> {
        self.digests.keys().map(|directory| (directory.as_path(), self.current(directory, directory)))
    }

    /// Removes `directory` from the list. Returns its entry, or `None` if there was none.
    pub(crate) fn remove(places: &DataPaths, directory: &Path) -> Result<Option<PathBuf>> {
        let mut trust = Trust::load(places);
        let Some((directory, _)) = trust.digests.remove_entry(&canonical(directory)) else { return Ok(None) };
        trust.write(places)?;
        Ok(Some(directory))
    }

    /// Trusts the current content of `directory` and writes the list. Returns the canonical
    /// directory.
    pub(crate) fn add(places: &DataPaths, directory: &Path) -> Result<PathBuf> {
        let doing = format!("trusting {}", directory.display());
        let directory = fs::canonicalize(directory).map_err(|error| Error::io(&doing, error))?;
        if directory.to_str().is_none_or(|name| name.contains(['\n', '\r'])) {
            return Err(Error::invalid_params(format!("{doing}: its path is not UTF-8 or contains a line break")));
        }
        let content = match read_small(&project_file(&directory)) {
            Ok(content) => Some(content),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(format_args!("reading {}", project_file(&directory).display()), error)),
        };
        let mut trust = Trust::load(places);
        trust.digests.insert(directory.clone(), Some(digest(&directory, content.as_deref())));
        trust.write(places)?;
        Ok(directory)
    }

    fn write(&self, places: &DataPaths) -> Result<()> {
        let mut lines = String::new();
        for (directory, digest) in &self.digests {
            let digest = digest.as_ref().map(|digest| format!("{digest} ")).unwrap_or_default();
            let _ = writeln!(lines, "{digest}{}", directory.display());
        }
        let path = file(places);
        let write = || {
            fs::create_dir_all(&places.data)?;
            replace_private(&path, lines.as_bytes())
        };
        write().map_err(|error| Error::io(format_args!("writing {}", path.display()), error))
    }
}

fn file(places: &DataPaths) -> PathBuf {
    places.data.join("trusted")
}

fn canonical(directory: &Path) -> PathBuf {
    fs::canonicalize(directory).unwrap_or_else(|_| directory.into())
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Hexadecimal SHA-256 of a project's settings and of the files inside the project that the
/// settings name as prompts or in commands.
fn digest(directory: &Path, content: Option<&[u8]>) -> String {
    let mut all = Context::new(&SHA256);
    let mut add = |bytes: Option<&[u8]>| {
        // Hash the length of each part, so that moving bytes from one part to another changes the
        // digest.
        all.update(&bytes.map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
        all.update(bytes.unwrap_or_default());
    };
    add(content);
    let table: Option<Table> = content.and_then(|content| toml::from_str(std::str::from_utf8(content).ok()?).ok());
    for name in table.iter().flat_map(referenced_files) {
        let path = directory.join(&name);
        // Files outside the project are not under the project's control.
        if canonical(&path).starts_with(directory) && path.is_file() {
            add(Some(name.as_bytes()));
            add(read_small(&path).ok().as_deref());
        }
    }
    all.finish().as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the names in the settings that may refer to files: prompts, and the words of commands.
fn referenced_files(settings: &Table) -> Vec<String> {
    let tables = |name: &str| settings.get(name).and_then(Value::as_table);
    let prompts = tables("prompts").into_iter().flat_map(Table::values).cloned();
    let commands = [("lsp", "command"), ("mcp", "command"), ("mcp", "bearer_token_command"), ("providers", "api_key_command")]
        .into_iter()
        .flat_map(|(name, key)| {
            let inner = tables(name).into_iter().flat_map(Table::values);
            inner.filter_map(move |one| one.get(key)?.as_array().cloned()).flatten()
        });
    // The program of an MCP server runs in the directory `cwd`.
    let servers = tables("mcp").into_iter().flat_map(Table::values);
    let of_servers = servers.flat_map(|server| {
        let cwd = server.get("cwd").and_then(Value::as_str).map(PathBuf::from);
        let words = server.get("command").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        words.filter_map(move |word| cwd.as_ref()?.join(word).to_str().map(Value::from))
    });
    let hooks = settings.get("hooks").and_then(Value::as_array).into_iter().flatten();
    let hooks = hooks.filter_map(|hook| hook.get("command")?.as_array().cloned()).flatten();
    let mut names: Vec<String> =
        prompts.chain(commands).chain(of_servers).chain(hooks).filter_map(|value| value.as_str().map(String::from)).collect();
    names.sort();
    names.dedup();
    names
}
