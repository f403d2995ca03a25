//! The content that a trust covers: a project's settings, the files inside the project that they
//! name, and the check commands of its AGENTS.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256, digest};
use toml::{Table, Value};

use super::data_paths::project_file;
use super::declared_checks::declared_checks;
use crate::workspace::{read_small, read_small_text};

/// Name of the part with the settings.
pub(super) const SETTINGS: &str = ".nuncio/config.toml";
/// Name of the part with the check commands.
pub(super) const CHECKS: &str = "AGENTS.md (checks)";

/// The parts of a project that a trust covers.
#[derive(Clone, Debug)]
pub(crate) struct TrustedContent {
    /// The settings file; `None` if it is absent.
    pub settings: Option<Vec<u8>>,
    /// Name and content of the files. `None`: the file cannot be read.
    pub files: Vec<(String, Option<Vec<u8>>)>,
    /// The check commands of AGENTS.md. They are compared by themselves, so that a new check does
    /// not stop the hooks.
    pub checks: Vec<String>,
}

impl TrustedContent {
    /// Reads the content of `directory`, which is free of symlinks.
    pub(crate) fn read(directory: &Path) -> std::io::Result<TrustedContent> {
        match read_small(&project_file(directory)) {
            Ok(settings) => Ok(TrustedContent::of(directory, Some(settings))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(TrustedContent::of(directory, None)),
            Err(error) => Err(error),
        }
    }

    /// Reads the content of `directory` with these settings.
    pub(super) fn of(directory: &Path, settings: Option<Vec<u8>>) -> TrustedContent {
        let files = referenced_files(directory, settings.as_deref());
        let files = files.into_iter().map(|(name, path)| (name, read_small(&path).ok())).collect();
        let checks = read_small_text(&directory.join("AGENTS.md")).map(|text| declared_checks(&text)).unwrap_or_default();
        TrustedContent { settings, files, checks }
    }

    /// Returns the hexadecimal SHA-256 of the settings and of the files.
    pub(super) fn digest(&self) -> String {
        let mut all = Context::new(&SHA256);
        let mut add = |bytes: Option<&[u8]>| {
            // Hash the length of each part, so that moving bytes from one part to another changes
            // the digest.
            all.update(&bytes.map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
            all.update(bytes.unwrap_or_default());
        };
        add(self.settings.as_deref());
        for (name, content) in &self.files {
            add(Some(name.as_bytes()));
            add(content.as_deref());
        }
        hexadecimal(all.finish().as_ref())
    }

    /// Returns the text of all parts by name. Bytes that are not UTF-8 are replaced.
    pub(crate) fn by_name(&self) -> BTreeMap<String, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let settings = self.settings.as_deref().map(|content| (SETTINGS.to_owned(), text(content)));
        let files = self.files.iter().filter_map(|(name, content)| Some((name.clone(), text(content.as_deref()?))));
        let checks = (!self.checks.is_empty()).then(|| (CHECKS.to_owned(), self.checks.join("\n") + "\n"));
        settings.into_iter().chain(files).chain(checks).collect()
    }
}

/// Returns the directory for the data of `project` below `base`.
pub(super) fn entry(base: &Path, project: &Path) -> PathBuf {
    base.join(&hexadecimal(digest(&SHA256, project.as_os_str().as_bytes()).as_ref())[..32])
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the files inside the project that its settings name as prompts or in commands, with
/// their names there. Files outside of the project are not under its control.
pub(crate) fn referenced_files(directory: &Path, settings: Option<&[u8]>) -> Vec<(String, PathBuf)> {
    let table: Option<Table> = settings.and_then(|content| toml::from_str(std::str::from_utf8(content).ok()?).ok());
    let names = table.iter().flat_map(referenced_names);
    let files = names.filter_map(|name| {
        let path = directory.join(&name);
        // An interpreter runs this file of a directory.
        let path = if path.is_dir() { path.join("__main__.py") } else { path };
        let real = fs::canonicalize(&path).ok()?;
        (real.starts_with(directory) && real.is_file()).then_some((name, path))
    });
    files.collect()
}

/// Returns the names in the settings that may refer to files: prompts, and the words of commands.
fn referenced_names(settings: &Table) -> Vec<String> {
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
    let lines = [("worktree", "setup"), ("verify", "commands")].into_iter();
    let lines = lines.filter_map(|(name, key)| tables(name)?.get(key)?.as_array().cloned()).flatten();
    let values: Vec<Value> = prompts.chain(commands).chain(of_servers).chain(hooks).chain(lines).collect();
    let words = values.iter().filter_map(Value::as_str).flat_map(|word| std::iter::once(word).chain(shell_words(word)));
    let mut names: Vec<String> = words.map(|word| word.replace("$WORKSPACE/", "")).filter(|word| !word.is_empty()).collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the words of a line that may be names of files.
fn shell_words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| c.is_whitespace() || ";&|()<>\"'`".contains(c))
}
