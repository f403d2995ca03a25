//! Agent definitions: Markdown files that describe subagents, in `.nuncio/agents` and
//! `.claude/agents` of a project and in `agents` of the user's configuration directory. The
//! frontmatter has `name`, `description`, `tools`, `model` and `mode`; the text is the system
//! prompt.

use std::path::{Path, PathBuf};

use super::frontmatter::Frontmatter;
use super::project_dirs::ProjectDirs;
use crate::config::DataPaths;
use crate::options::Mode;
use crate::workspace::read_small_text;

/// Maximum number of agent definitions for a session, and of files that are read in one directory.
const AGENT_DEFINITIONS_MAX: usize = 64;

/// Directories of agent definitions in a project, in order of precedence.
const PROJECT_DIRECTORIES: [&str; 2] = [".nuncio/agents", ".claude/agents"];

/// A definition of a subagent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentDefinition {
    pub name: String,
    pub description: String,
    pub system_prompt: String,
    /// Names of the tools that the subagent may use, as written; `None`: all tools.
    pub tools: Option<Vec<String>>,
    /// `PROVIDER/NAME`; `None`: the model of the parent.
    pub model: Option<String>,
    pub mode: Option<Mode>,
    pub path: PathBuf,
}

/// Finds the definitions for a session in `cwd`, sorted by name. The nearest definition of a name
/// applies: definitions of a trusted project come before the user's, definitions of another project
/// after them. The model of an untrusted project's definition is ignored.
pub(crate) fn find(cwd: &Path, places: &DataPaths, trusted: bool) -> Vec<AgentDefinition> {
    let is_inside = |path: &Path| Some(path.canonicalize().ok()?.starts_with(places.config.canonicalize().ok()?));
    let mut own = read_directory(&places.config.join("agents"), |path| is_inside(path).unwrap_or(false));
    let mut found = project(cwd, places);
    if trusted {
        found.append(&mut own);
    } else {
        found.iter_mut().for_each(|definition| definition.model = None);
        own.append(&mut found);
        found = own;
    }
    // The sort is stable, so that the first definition of a name remains first.
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found.dedup_by(|later, earlier| later.name == earlier.name);
    found.truncate(AGENT_DEFINITIONS_MAX);
    found
}

/// Reads the definitions in `cwd` and its parent directories, up to the root of the repository.
/// Links that lead out of the repository and files of other users are skipped.
fn project(cwd: &Path, places: &DataPaths) -> Vec<AgentDefinition> {
    let project = ProjectDirs::new(cwd, Some(places));
    let below = |dir: &Path| PROJECT_DIRECTORIES.map(|name| (dir.to_owned(), dir.join(name)));
    let directories = project.dirs.iter().rev().flat_map(|dir| below(dir));
    let read = |(dir, directory): (PathBuf, PathBuf)| {
        let is_own = |path: &Path| project.inside(path).is_some_and(|real| !project.is_foreign(&dir, path, &real));
        read_directory(&directory, is_own)
    };
    directories.flat_map(read).collect()
}

/// Reads the definitions of a directory that `accepts` returns true for, in the order of their file
/// names.
fn read_directory(directory: &Path, accepts: impl Fn(&Path) -> bool) -> Vec<AgentDefinition> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    paths.sort();
    paths.truncate(AGENT_DEFINITIONS_MAX);
    paths.iter().filter(|path| accepts(path)).filter_map(|path| read(path)).collect()
}

/// Reads a definition. A file without a name or a description is skipped.
fn read(path: &Path) -> Option<AgentDefinition> {
    let file = Frontmatter::parse(&read_small_text(path).ok()?);
    let name = file.get("name").or_else(|| Some(path.file_stem()?.to_str()?.to_string()))?;
    let plain = name.chars().all(|character| character.is_alphanumeric() || "-_. ".contains(character));
    // A model without a provider is a name of another program, such as `sonnet` or `inherit`.
    let model = file.get("model").filter(|model| model.contains('/') || model.starts_with("scripted:"));
    Some(AgentDefinition {
        description: file.get("description").filter(|_| plain)?,
        tools: file.list("tools"),
        mode: file.get("mode").and_then(|mode| mode.parse().ok()),
        system_prompt: file.body,
        path: path.into(),
        name,
        model,
    })
}
