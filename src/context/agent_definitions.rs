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
use crate::similar_names::nearest;
use crate::workspace::{decoded, one_line, read_small};

/// Maximum number of agent definitions for a session, and of files that are read in one directory.
const AGENT_DEFINITIONS_MAX: usize = 64;

/// Directories of agent definitions in a project, in order of precedence.
const PROJECT_DIRECTORIES: [&str; 2] = [".nuncio/agents", ".claude/agents"];

/// The fields that are applied, by plain name.
const APPLIED: &[&str] =
    &["description", "disallowedtools", "maxsteps", "maxturns", "mode", "model", "name", "permissionmode", "steps", "tools"];

/// Fields of other programs that restrict nothing, by plain name.
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

/// Fields that restrict an agent, by plain name: those that are applied, and those of other
/// programs, because of which a definition is skipped.
const RESTRICTING: &[&str] = &[
    "agents",
    "allowedtools",
    "approvalmode",
    "disable",
    "disabled",
    "disablemodelinvocation",
    "disallowedtools",
    "excludedtools",
    "hidden",
    "hooks",
    "infer",
    "isolation",
    "kind",
    "maxsteps",
    "maxturns",
    "mcpservers",
    "mode",
    "permission",
    "permissionmode",
    "permissions",
    "readonly",
    "sandbox",
    "steps",
    "target",
    "timeout",
    "timeoutmins",
    "tools",
];

/// Minimum similarity, from 0 to 1, at which an unknown field is taken for a misspelled one.
const MISSPELLED_MIN: f64 = 0.8;

/// Fields with the number of model requests that an agent may send.
const LIMITS: [&str; 3] = ["maxTurns", "maxSteps", "steps"];

/// The settings of a subagent that an agent definition contains. Absent values are those of the
/// parent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SubagentProfile {
    pub name: Option<String>,
    pub system_prompt: Option<String>,
    /// The tools that the subagent may use; `None`: all tools. In a definition, the names as
    /// written; of a subagent, a list as in `toolkit::tool_list`.
    pub tools: Option<Vec<String>>,
    /// `PROVIDER/NAME`.
    pub model: Option<String>,
    /// Maximum number of model requests of a turn.
    pub max_requests: Option<u64>,
    /// Name of a hosted agent that works in the child session.
    pub hosted: Option<String>,
}

/// A definition of a subagent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AgentDefinition {
    pub description: String,
    pub profile: SubagentProfile,
    /// Names of the tools that it may not use, as written.
    pub disallowed_tools: Vec<String>,
    /// The modes that limit the subagent: the strictest one applies.
    pub modes: Vec<Mode>,
    /// Numbers of the lines of `tools` and `disallowed_tools`.
    pub tool_lines: [Option<usize>; 2],
    /// Parts of the definition that have no effect.
    pub notices: Vec<String>,
}

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
        found.iter_mut().flat_map(|file| &mut file.definition).for_each(|definition| definition.profile.model = None);
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
    let text = match read_small(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        read => read.map_err(|error| format!("it cannot be read: {error}")),
    };
    let file = text.map(|text| Frontmatter::parse(&decoded(&text)));
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
    let restricts = |plain: &str| RESTRICTING.contains(&plain);
    if let Some(unread) = file.unread().find(|unread| unread.contains(restricts)) {
        return Err(at_line(&format!("the field {} is not YAML: {}", unread.name, unread.why), Some(unread.line)));
    }
    let mut notices = Vec::new();
    for (plain, field) in file.names().filter(|(plain, _)| !APPLIED.contains(plain) && !HARMLESS.contains(plain)) {
        if restricts(plain) {
            let why = format!("the field {field}, which may restrict the agent, is not supported");
            return Err(at_line(&why, file.line(field)));
        }
        if let Some(meant) = nearest(plain, RESTRICTING, MISSPELLED_MIN) {
            let why = format!("the field {field} is unknown, and similar to {}, which restricts the agent", RESTRICTING[meant]);
            return Err(at_line(&why, file.line(field)));
        }
        notices.push(at_line(&format!("the field {field} is unknown and has no effect"), file.line(field)));
    }
    if !name.chars().all(|character| character.is_alphanumeric() || "-_. ".contains(character)) {
        return Err("name: use letters, digits, -, _, . and spaces".into());
    }
    let limits: Vec<u64> = LIMITS.iter().filter_map(|field| limit(&file, field)).collect::<Result<_, _>>()?;
    // A model without a provider is a name of another program, such as `sonnet` or `inherit`.
    let named = file.get("model");
    let model = named.clone().filter(|model| model.contains('/') || model.starts_with("scripted:"));
    if let Some(unknown) = named.filter(|named| model.is_none() && named != "inherit") {
        let notice = format!("the model {unknown} is unknown: the model of the session is used");
        notices.push(at_line(&notice, file.line("model")));
    }
    Ok(AgentDefinition {
        description: file.get("description").ok_or("it has no description")?,
        disallowed_tools: file.list("disallowedTools").unwrap_or_default(),
        tool_lines: [file.line("tools"), file.line("disallowedTools")],
        notices,
        modes: modes(&file)?,
        profile: SubagentProfile {
            tools: file.list("tools"),
            max_requests: limits.into_iter().min(),
            system_prompt: Some(file.body).filter(|prompt| !prompt.is_empty()),
            model,
            ..SubagentProfile::default()
        },
    })
}

/// Appends the number of a line to a message about it.
pub(crate) fn at_line(message: &str, line: Option<usize>) -> String {
    line.map_or_else(|| message.to_owned(), |line| format!("{message} (line {line})"))
}

/// Reads a field with a number of model requests.
fn limit(file: &Frontmatter, field: &str) -> Option<Result<u64, String>> {
    let value = file.get(field)?;
    let number = value.parse().ok().filter(|number| *number > 0);
    Some(number.ok_or_else(|| at_line(&format!("{field}: expected a number above 0, got {value}"), file.line(field))))
}

/// Returns the modes in `mode` and in Claude Code's `permissionMode`. OpenCode writes in `mode` how
/// an agent can be started.
fn modes(file: &Frontmatter) -> Result<Vec<Mode>, String> {
    let own = file.get("mode").filter(|mode| mode != "subagent" && mode != "all");
    let own = own.map(|mode| mode.parse().map_err(|_| at_line(&format!("mode: {mode} is not supported"), file.line("mode"))));
    let other = file.get("permissionMode").map(|mode| match plain(&mode).as_str() {
        "default" => Ok(Mode::Ask),
        "acceptedits" => Ok(Mode::AcceptEdits),
        "auto" | "bypasspermissions" => Ok(Mode::Auto),
        "plan" => Ok(Mode::Plan),
        _ => Err(at_line(&format!("permissionMode: {mode} is not supported"), file.line("permissionMode"))),
    });
    own.into_iter().chain(other).collect()
}
