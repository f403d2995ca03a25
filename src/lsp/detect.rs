//! Chooses the language server for a file: a server from the settings, or else a well-known server
//! on PATH.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use globset::Glob;

use super::server::Launch;
use crate::config::LanguageServer;

/// The well-known servers of a language.
struct KnownLanguage {
    /// The language's name in the settings: `[lsp.NAME]`.
    name: &'static str,
    files: &'static [&'static str],
    /// Commands in order of preference; the first on PATH is used.
    commands: &'static [&'static [&'static str]],
    /// Name of a file that must exist in the source file's directory or in a parent. The outermost
    /// directory inside the session's root that contains such a file becomes the server's root.
    marker: Option<&'static str>,
}

const KNOWN_LANGUAGES: &[KnownLanguage] = &[
    KnownLanguage { name: "rust", files: &["*.rs"], commands: &[&["rust-analyzer"]], marker: Some("Cargo.toml") },
    KnownLanguage { name: "python", files: &["*.py"], commands: &[&["pyright-langserver", "--stdio"], &["pylsp"]], marker: None },
    KnownLanguage {
        name: "typescript",
        files: &["*.ts", "*.tsx", "*.js", "*.jsx"],
        commands: &[&["typescript-language-server", "--stdio"]],
        marker: None,
    },
    KnownLanguage { name: "go", files: &["*.go"], commands: &[&["gopls"]], marker: None },
    KnownLanguage { name: "c", files: &["*.c", "*.h", "*.cc", "*.cpp", "*.hpp"], commands: &[&["clangd"]], marker: None },
];

/// The language server chosen for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerChoice {
    /// The server's name in the settings, `[lsp.NAME]`, or else the name of its language.
    pub name: String,
    /// Command, root and confinement.
    pub launch: Launch,
    /// True if the settings name the server, false if it was found on PATH.
    pub configured: bool,
}

/// Chooses the server for `path`, which is below `root`. The error contains the cause and a remedy.
/// `search` is the value of PATH.
pub(crate) fn choose(
    settings: &BTreeMap<String, LanguageServer>,
    search: &str,
    root: &Path,
    path: &Path,
) -> Result<ServerChoice, String> {
    let relative = path.strip_prefix(root).unwrap_or(path);
    if let Some((name, server)) = settings.iter().find(|(_, server)| fits(server.files.iter().map(String::as_str), relative)) {
        if server.command.is_empty() {
            return Err(format!("the language server {name} is disabled in the settings"));
        }
        return Ok(ServerChoice {
            name: name.clone(),
            launch: Launch {
                command: server.command.clone(),
                root: root.into(),
                confinement: None,
                project: server.project.clone(),
            },
            configured: true,
        });
    }
    let Some(known) = KNOWN_LANGUAGES.iter().find(|known| fits(known.files.iter().copied(), relative)) else {
        let kind = path.extension().map_or("files like this".into(), |extension| format!("*.{}", extension.display()));
        return Err(format!("no language server for {kind} is known; to add one, set command and files in [lsp.NAME]"));
    };
    let name = known.name;
    if settings.get(name).is_some_and(|server| server.command.is_empty()) {
        return Err(format!("the language server {name} is disabled in the settings"));
    }
    let Some(command) = known.commands.iter().find(|command| is_on_path(command[0], search)) else {
        let names: Vec<&str> = known.commands.iter().map(|command| command[0]).collect();
        return Err(format!("no language server for {name} is installed: {} is not on PATH", names.join(" or ")));
    };
    let root = match known.marker {
        None => root.into(),
        Some(marker) => outermost_with(path, root, marker)
            .ok_or_else(|| format!("{} needs a {marker} in the file's directory or above", command[0]))?,
    };
    let command = command.iter().map(|word| word.to_string()).collect();
    Ok(ServerChoice { name: name.into(), launch: Launch { command, root, confinement: None, project: None }, configured: false })
}

/// Returns the well-known languages with an installed server, and the program of the server.
pub(crate) fn installed(search: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    KNOWN_LANGUAGES.iter().filter_map(move |known| {
        let command = known.commands.iter().find(|command| is_on_path(command[0], search))?;
        Some((known.name, command[0]))
    })
}

fn fits<'a>(mut globs: impl Iterator<Item = &'a str>, path: &Path) -> bool {
    globs.any(|glob| Glob::new(glob).is_ok_and(|glob| glob.compile_matcher().is_match(path)))
}

/// Returns the outermost directory between `root` and `path` that contains `marker`, or `root` if
/// only a parent of `root` contains it.
fn outermost_with(path: &Path, root: &Path, marker: &str) -> Option<PathBuf> {
    let has = path.ancestors().skip(1).filter(|directory| directory.join(marker).is_file());
    let outermost = has.fold(None, |found, directory| match found {
        Some(_) if !directory.starts_with(root) => found,
        _ => Some(directory),
    })?;
    Some(if outermost.starts_with(root) { outermost.into() } else { root.into() })
}

fn is_on_path(name: &str, search: &str) -> bool {
    std::env::split_paths(search).filter(|directory| directory.is_absolute()).any(|directory| {
        std::fs::metadata(directory.join(name)).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    })
}
