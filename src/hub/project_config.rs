//! Starts agents without the configuration of the project, because it names programs to run, and
//! can have changed since the directory was trusted. docs/AGENTS.md lists the exceptions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::conversation::OpenInput;
use super::process::unavailable;
use crate::config::{AgentKind, HostedAgent};
use crate::error::{Error, Result};
use crate::process::Command;
use crate::runtime::Services;
use crate::workspace::{create_private_dir, read_small, read_small_text, replace_private};

/// Gemini CLI ignores the settings, the `.env` files and the MCP servers of an untrusted directory.
const GEMINI: &str = "GEMINI_CLI_TRUST_WORKSPACE";
/// OpenCode ignores the project's configuration, and also its instructions such as AGENTS.md.
const OPENCODE: &str = "OPENCODE_DISABLE_PROJECT_CONFIG";
/// The variable with the configuration that OpenCode reads last, as JSON.
pub(super) const OPENCODE_CONFIG: &str = "OPENCODE_CONFIG_CONTENT";
/// Qwen Code loads no hooks, settings, extensions and MCP servers of the project, as with
/// `--safe-mode`; a wrapper may refuse the flag.
const QWEN: &str = "QWEN_CODE_SAFE_MODE";
/// The directory of Codex's configuration, login and sessions.
const CODEX: &str = "CODEX_HOME";

/// The instructions that OpenCode reads in each project: the first name that exists.
const OPENCODE_INSTRUCTIONS: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];
/// Plugin directories that OpenCode 1.18 loads even if the project's configuration is disabled.
const OPENCODE_PLUGINS: [&str; 2] = [".opencode/plugin", ".opencode/plugins"];
/// Files that may name such plugins.
const OPENCODE_FILES: [&str; 4] = ["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"];
/// Files in which codex-acp 2 finds MCP servers and hooks, because it trusts each directory itself.
const CODEX_FILES: [&str; 2] = [".codex/config.toml", ".codex/hooks.json"];
/// The directory of hooks that Copilot runs in each repository, also with its setting
/// `disableAllHooks`.
const COPILOT_HOOKS: &str = ".github/hooks";
/// The user's files that codex-acp uses through links, so that both homes share them: a copied
/// login would become invalid, because its token can be refreshed only once.
const CODEX_LINKS: [&str; 8] =
    ["auth.json", "sessions", "archived_sessions", "history.jsonl", "AGENTS.md", "prompts", "rules", "skills"];

/// Completes the command of an agent, so that it does not load the configuration of the project.
/// Variables in the agent's settings take precedence. Fails if the agent cannot be prevented from
/// loading it.
pub(super) fn exclude(services: &Services, name: &str, agent: &HostedAgent, command: Command, data: &Path) -> Result<Command> {
    if !agent.kind.protocol().loads_project_config {
        return Ok(command);
    }
    let home = services.places.home.as_deref();
    let is_set = |variable: &str| command.env_set.iter().any(|(set, _)| set == variable);
    let runs = |program: &str| agent.command_line().iter().any(|word| word.contains(program));
    let (gemini, opencode, qwen) = (!is_set(GEMINI), !is_set(OPENCODE), !is_set(QWEN));
    let codex = !is_set(CODEX) && runs("codex-acp");
    let cwd = command.cwd.clone();
    let mut command = command;
    if gemini {
        command = command.env(GEMINI, "false");
    }
    if qwen {
        command = command.env(QWEN, "1");
    }
    if runs("copilot") {
        check_hooks(name, &cwd, home)?;
    }
    if opencode {
        if agent.kind == AgentKind::Opencode || runs("opencode") {
            check(name, &cwd, home, opencode_plugins, &allow(name, &format!("{OPENCODE} = \"false\"")))?;
        }
        let given = command.env_set.iter().rev().find(|(set, _)| set == OPENCODE_CONFIG).and_then(|(_, value)| value.to_str());
        if let Some(config) = with_instructions(given, &cwd) {
            command = command.env(OPENCODE_CONFIG, config);
        }
        command = command.env(OPENCODE, "1");
    }
    if codex && let Some(user) = codex_home(services, &command) {
        check(name, &cwd, home, codex_files, &allow(name, &format!("{CODEX} = \"{}\"", user.display())))?;
        command = command.env(CODEX, copied_codex_home(&user, &data.join("codex"))?);
    }
    Ok(command)
}

/// Returns the value of `projects` in a thread's configuration that marks `cwd` and its parent
/// directories as untrusted. With it, Codex ignores the project's configuration and does not add
/// the project to the user's configuration.
pub(super) fn untrusted_projects(cwd: &Path) -> Value {
    let real = std::fs::canonicalize(cwd).unwrap_or_default();
    let directories: BTreeSet<&Path> = cwd.ancestors().chain(real.ancestors()).collect();
    let untrusted = |directory: &Path| (directory.to_string_lossy().into_owned(), json!({ "trust_level": "untrusted" }));
    directories.into_iter().map(untrusted).collect::<Map<_, _>>().into()
}

/// Returns the directory of Codex's configuration for a command.
pub(super) fn codex_home(services: &Services, command: &Command) -> Option<PathBuf> {
    let set = command.env_set.iter().rev().find(|(set, _)| set == CODEX).map(|(_, value)| PathBuf::from(value));
    let user = || services.environment.get(CODEX).map(PathBuf::from);
    set.or_else(user).or_else(|| Some(services.places.home.as_ref()?.join(".codex")))
}

/// Fails if Copilot, which an agent of any command can be, would run hooks of the project.
pub(super) fn check_identity(opening: &OpenInput, agent: &Value) -> Result<()> {
    let is_copilot = agent["name"].as_str().is_some_and(|name| name.to_lowercase().contains("copilot"));
    let mut directories = std::iter::once(&opening.setup.cwd).chain(&opening.setup.directories).filter(|_| is_copilot);
    directories.try_for_each(|directory| check_hooks(&opening.start.name, directory, opening.home.as_deref()))
}

/// Fails if `cwd` or a directory above it has hooks of Copilot, in whatever state.
fn check_hooks(name: &str, cwd: &Path, home: Option<&Path>) -> Result<()> {
    let hooks = |directory: &Path| Some(directory.join(COPILOT_HOOKS)).filter(|hooks| !is_absent(hooks));
    let hint = format!("Copilot cannot be started without them: use another agent, or a checkout without {COPILOT_HOOKS}");
    check(name, cwd, home, hooks, &hint)
}

/// Returns whether nothing has this path. What cannot be examined may exist.
fn is_absent(path: &Path) -> bool {
    let absent = [std::io::ErrorKind::NotFound, std::io::ErrorKind::NotADirectory];
    path.symlink_metadata().is_err_and(|error| absent.contains(&error.kind()))
}

/// Returns a hint that names the setting of an agent's environment with which it loads the files.
fn allow(name: &str, setting: &str) -> String {
    format!("to allow it, set in [agents.{name}.env]: {setting}")
}

/// Fails if `found` returns a file in `cwd` or above it. The user's home is not part of a project.
fn check(name: &str, cwd: &Path, home: Option<&Path>, found: impl Fn(&Path) -> Option<PathBuf>, hint: &str) -> Result<()> {
    let Some(file) = cwd.ancestors().filter(|directory| Some(*directory) != home).find_map(found) else { return Ok(()) };
    let message = format_args!("it would run programs that {} names", file.display());
    Err(unavailable(name, message).hint(hint))
}

/// Returns a file of `directory` that may name plugins of OpenCode.
fn opencode_plugins(directory: &Path) -> Option<PathBuf> {
    let has_entry = |path: &PathBuf| std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    // The key may be written with escapes, and the file may contain comments.
    let may_name = |path: &PathBuf| match read_small(path) {
        Ok(text) => ["plugin", "\\u"].iter().any(|word| memchr::memmem::find(&text, word.as_bytes()).is_some()),
        Err(_) => path.exists(),
    };
    let directories = OPENCODE_PLUGINS.iter().map(|path| directory.join(path)).find(has_entry);
    directories.or_else(|| OPENCODE_FILES.iter().map(|path| directory.join(path)).find(may_name))
}

/// Returns a file of `directory` that codex-acp reads.
fn codex_files(directory: &Path) -> Option<PathBuf> {
    CODEX_FILES.iter().map(|path| directory.join(path)).find(|path| !is_absent(path))
}

/// Returns the configuration of OpenCode with the instructions of the project; `None` if there are
/// none, or if `given` is not an object.
fn with_instructions(given: Option<&str>, cwd: &Path) -> Option<String> {
    let mut config: Map<String, Value> = serde_json::from_str(given.unwrap_or("{}")).ok()?;
    let repository = cwd.ancestors().position(|directory| directory.join(".git").exists()).unwrap_or(0);
    let files = |name: &&str| -> Vec<Value> {
        let paths = cwd.ancestors().take(repository + 1).map(|directory| directory.join(name));
        paths.filter(|path| path.is_file()).filter_map(|path| Some(path.to_str()?.into())).collect()
    };
    let found = OPENCODE_INSTRUCTIONS.iter().map(files).find(|files| !files.is_empty())?;
    config.entry("instructions").or_insert_with(|| json!([])).as_array_mut()?.extend(found);
    Some(Value::from(config).to_string())
}

/// Creates the directory of Codex's configuration for codex-acp, which writes to it that the
/// project is trusted: a copy of the user's configuration, and links to the user's other files.
fn copied_codex_home(user: &Path, ours: &Path) -> Result<PathBuf> {
    create_private_dir(ours)?;
    create_private_dir(&user.join("sessions"))?;
    let prepare = || {
        for name in CODEX_LINKS {
            let (target, link) = (user.join(name), ours.join(name));
            // The login may be created later, through the link.
            if link.symlink_metadata().is_err() && (target.exists() || name == "auth.json") {
                std::os::unix::fs::symlink(target, link)?;
            }
        }
        let config = match read_small_text(&user.join("config.toml")) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        replace_private(&ours.join("config.toml"), config.as_bytes())
    };
    prepare().map_err(|error| Error::io(format_args!("preparing {}", ours.display()), error))?;
    Ok(ours.to_owned())
}
