//! Agent definitions: Markdown files that describe subagents, in `.nuncio/agents` and
//! `.claude/agents` of a project and in `agents` of the user's configuration directory. The text is
//! the system prompt. The frontmatter may have the fields of other programs: a field that restricts
//! the agent is applied, or the definition is skipped with a reason that the user sees.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::frontmatter::{Frontmatter, plain};
use super::project_dirs::ProjectDirs;
use crate::config::DataPaths;
use crate::options::Mode;
use crate::workspace::{one_line, read_small_text};

/// Maximum number of agent definitions for a session, and of files that are read in one directory.
const AGENT_DEFINITIONS_MAX: usize = 64;

/// Directories of agent definitions in a project, in order of precedence.
const PROJECT_DIRECTORIES: [&str; 2] = [".nuncio/agents", ".claude/agents"];

/// The fields that are applied, by plain name.
const APPLIED: &[&str] =
    &["description", "disallowedtools", "maxsteps", "maxturns", "mode", "model", "name", "permissionmode", "steps", "tools"];

/// Fields of other programs that restrict nothing, by plain name. A definition with any other field
/// is skipped, because the field may restrict the agent.
const HARMLESS: &[&str] = &[
    "argumenthint",
    "author",
    "background",
    "category",
    "color",
    "displayname",
    "effort",
    "emoji",
    "examples",
    "icon",
    "initialprompt",
    "keywords",
    "license",
    "memory",
    "metadata",
    "reasoningeffort",
    "skills",
    "tags",
    "temperature",
    "title",
    "topp",
    "version",
    "whentouse",
];

/// Fields with the number of model requests that an agent may send.
const LIMITS: [&str; 3] = ["maxTurns", "maxSteps", "steps"];

/// A definition of a subagent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentDefinition {
    pub description: String,
    pub system_prompt: String,
    /// Names of the tools that the subagent may use, as written; `None`: all tools.
    pub tools: Option<Vec<String>>,
    /// Names of the tools that it may not use, as written.
    pub disallowed_tools: Vec<String>,
    /// `PROVIDER/NAME`; `None`: the model of the parent.
    pub model: Option<String>,
    /// The modes that limit the subagent: the strictest one applies.
    pub modes: Vec<Mode>,
    /// Maximum number of model requests.
    pub max_requests: Option<u64>,
}

/// A file with an agent definition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DefinitionFile {
    pub name: String,
    pub path: PathBuf,
    /// The error says why the definition is skipped.
    pub definition: Result<AgentDefinition, String>,
}

/// Finds the definitions for a session in `cwd`, sorted by name. The nearest definition of a name
/// applies, or none of the name if that is skipped: definitions of a trusted project come before
/// the user's, definitions of another project after them. The model of an untrusted project's
/// definition is ignored.
pub(crate) fn find(cwd: &Path, places: &DataPaths, trusted: bool) -> Vec<DefinitionFile> {
    let is_inside = |path: &Path| Some(path.canonicalize().ok()?.starts_with(places.config.canonicalize().ok()?));
    let mut own = read_directory(&places.config.join("agents"), |path| is_inside(path).unwrap_or(false));
    let mut found = project(cwd, places);
    if trusted {
        found.append(&mut own);
    } else {
        found.iter_mut().flat_map(|file| &mut file.definition).for_each(|definition| definition.model = None);
        own.append(&mut found);
        found = own;
    }
    // The sort is stable, so that the first definition of a name remains first. `task` finds names
    // in any case.
    found.sort_by_key(|file| file.name.to_ascii_lowercase());
    found.dedup_by(|later, earlier| later.name.eq_ignore_ascii_case(&earlier.name));
    found.truncate(AGENT_DEFINITIONS_MAX);
    found
}

/// Reads the definitions in `cwd` and its parent directories, up to the root of the repository.
/// Links that lead out of the repository and files of other users are skipped.
fn project(cwd: &Path, places: &DataPaths) -> Vec<DefinitionFile> {
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
fn read_directory(directory: &Path, accepts: impl Fn(&Path) -> bool) -> Vec<DefinitionFile> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    paths.sort();
    paths.truncate(AGENT_DEFINITIONS_MAX);
    paths.into_iter().filter(|path| accepts(path)).filter_map(read).collect()
}

/// Reads a file. Returns `None` for a file without a frontmatter: it describes no agent.
fn read(path: PathBuf) -> Option<DefinitionFile> {
    let stem = path.file_stem()?.to_string_lossy().into_owned();
    let text = match read_small_text(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        read => read.map_err(|error| format!("it cannot be read: {error}")),
    };
    let file = text.map(|text| Frontmatter::parse(&text));
    if file.as_ref().is_ok_and(Frontmatter::is_absent) {
        return None;
    }
    let name = file.as_ref().ok().and_then(|file| file.get("name")).unwrap_or(stem);
    let definition = file.and_then(|file| definition(&name, file)).map_err(one_line);
    Some(DefinitionFile { name: one_line(name), path, definition })
}

/// Converts a file to a definition. The error says why it is skipped.
fn definition(name: &str, file: Frontmatter) -> Result<AgentDefinition, String> {
    if let Some(problem) = file.problem {
        return Err(problem);
    }
    if let Some((_, field)) = file.names().find(|(plain, _)| !APPLIED.contains(plain) && !HARMLESS.contains(plain)) {
        return Err(format!("the field {field}, which may restrict the agent, is not supported"));
    }
    if !name.chars().all(|character| character.is_alphanumeric() || "-_. ".contains(character)) {
        return Err("name: use letters, digits, -, _, . and spaces".into());
    }
    let limits: Vec<u64> = LIMITS.iter().filter_map(|field| limit(&file, field)).collect::<Result<_, _>>()?;
    // A model without a provider is a name of another program, such as `sonnet` or `inherit`.
    let model = file.get("model").filter(|model| model.contains('/') || model.starts_with("scripted:"));
    Ok(AgentDefinition {
        description: file.get("description").ok_or("it has no description")?,
        tools: file.list("tools"),
        disallowed_tools: file.list("disallowedTools").unwrap_or_default(),
        modes: modes(&file)?,
        max_requests: limits.into_iter().min(),
        system_prompt: file.body,
        model,
    })
}

/// Reads a field with a number of model requests.
fn limit(file: &Frontmatter, field: &str) -> Option<Result<u64, String>> {
    let value = file.get(field)?;
    let number = value.parse().ok().filter(|number| *number > 0);
    Some(number.ok_or_else(|| format!("{field}: expected a number above 0, got {value}")))
}

/// Returns the modes in `mode` and in Claude Code's `permissionMode`. OpenCode writes in `mode` how
/// an agent can be started.
fn modes(file: &Frontmatter) -> Result<Vec<Mode>, String> {
    let own = file.get("mode").filter(|mode| mode != "subagent" && mode != "all");
    let own = own.map(|mode| mode.parse().map_err(|_| format!("mode: {mode} is not supported")));
    let other = file.get("permissionMode").map(|mode| match plain(&mode).as_str() {
        "default" => Ok(Mode::Ask),
        "acceptedits" => Ok(Mode::AcceptEdits),
        "auto" | "bypasspermissions" => Ok(Mode::Auto),
        "plan" => Ok(Mode::Plan),
        _ => Err(format!("permissionMode: {mode} is not supported")),
    });
    own.into_iter().chain(other).collect()
}
