//! Reads and merges the layers of settings. The settings of an untrusted project are narrowed first
//! (narrow.rs).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::data_paths::{DataPaths, Environment, project_file};
use super::hook_settings::script_word;
use super::narrow::narrow;
use super::parse::{parse, read};
use super::rule_paths::add_resolved_paths;
use super::secret::{CREDENTIALS_HINT, has_credentials};
use super::settings::{Rule, Settings};
use super::trust::{Trust, Trusted};
use crate::error::{Error, Result};
use crate::options::{Mode, Thinking};

/// The layer that the value of a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    User(PathBuf),
    Project(PathBuf),
    Environment(&'static str),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::User(path) | Origin::Project(path) => write!(f, "{}", path.display()),
            Origin::Environment(name) => write!(f, "${name}"),
            Origin::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// Values of command-line flags; they take precedence over all files.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub model: Option<String>,
    /// The hosted agent of new sessions; several only for a comparison.
    pub agents: Vec<String>,
    /// Replaces the base URL of the model's provider.
    pub base_url: Option<String>,
    pub mode: Option<Mode>,
    pub thinking: Option<Thinking>,
    pub system_prompt: Option<String>,
    pub sandbox: Option<String>,
    /// Additional roots.
    pub roots: Vec<PathBuf>,
}

impl Overrides {
    /// Returns whether an override applies only to turns in this process. The others can be set for
    /// a session.
    pub(crate) fn apply_to_process(&self) -> bool {
        let Overrides { base_url, system_prompt, sandbox, roots, model: _, agents: _, mode: _, thinking: _ } = self;
        base_url.is_some() || system_prompt.is_some() || sandbox.is_some() || !roots.is_empty()
    }
}

/// The settings of all layers, merged.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    pub settings: Settings,
    /// Permission rules of the project's file. The user's rules are in `settings`.
    pub project_rules: Vec<Rule>,
    /// Origin of each value that is not a default, by dotted name.
    pub origins: BTreeMap<String, Origin>,
    /// Names of the settings in the project's file that were ignored, which are shown in a notice.
    pub ignored: Vec<String>,
    /// The reason why a formerly trusted project is no longer trusted.
    pub distrusted: Option<&'static str>,
    table: Table,
}

/// Merges the defaults, the user's file, the environment and the flags. A missing file is an error
/// only if it is `required`.
pub(crate) fn load_user(places: &DataPaths, required: bool, environment: &Environment, overrides: &Overrides) -> Result<Loaded> {
    if overrides.base_url.as_deref().is_some_and(has_credentials) {
        return Err(Error::invalid_params("--base-url has a user name or password").hint(CREDENTIALS_HINT));
    }
    let path = places.file.clone();
    let mut loaded = Loaded::default();
    if let Some((mut table, _)) = read(&path, required)? {
        make_paths_absolute(&mut table, path.parent().unwrap_or(Path::new(".")));
        loaded.merge(table, &Origin::User(path.clone()));
    }
    loaded.apply_overrides(environment, overrides);
    loaded.settings = parse(&loaded.table, &path)?;
    add_resolved_paths(&mut loaded.settings.permissions.rules, places);
    Ok(loaded)
}

/// Like [`load_user`], with the project file of `cwd` between the user's file and the environment.
pub(crate) fn load_project(
    user: &Loaded,
    places: &DataPaths,
    cwd: &Path,
    environment: &Environment,
    overrides: &Overrides,
) -> Result<Loaded> {
    let path = project_file(cwd);
    // The settings of another user's directory have no effect.
    if path.ancestors().skip(1).take(2).any(|directory| places.is_of_other_user(directory)) {
        return Ok(user.clone());
    }
    let Some((mut table, text)) = read(&path, false)? else { return Ok(user.clone()) };
    let mut project = parse(&table, &path)?;
    let mut loaded = Loaded { table: user.table.clone(), origins: user.origins.clone(), ..Loaded::default() };
    let trusted = Trust::load(places).settings(cwd, Some(text.as_bytes()));
    if trusted != Trusted::Yes {
        loaded.distrusted = trusted.why_not();
        loaded.ignored = narrow(&mut table, &user.settings);
        project = parse(&table, &path)?;
    }
    loaded.project_rules = std::mem::take(&mut project.permissions.rules);
    add_resolved_paths(&mut loaded.project_rules, places);
    if let Some(Value::Table(permissions)) = table.get_mut("permissions") {
        permissions.remove("rules");
    }
    make_paths_absolute(&mut table, cwd);
    prepend_hooks(&mut table, &user.table);
    loaded.merge(table, &Origin::Project(path.clone()));
    loaded.apply_overrides(environment, overrides);
    loaded.settings = parse(&loaded.table, &path)?;
    add_resolved_paths(&mut loaded.settings.permissions.rules, places);
    Ok(loaded)
}

impl Loaded {
    /// Merges a table over the current one: tables are merged recursively, other values replaced.
    fn merge(&mut self, table: Table, origin: &Origin) {
        fn join(below: &mut Table, above: Table, prefix: &str, origins: &mut BTreeMap<String, Origin>, origin: &Origin) {
            for (name, value) in above {
                let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                match (below.get_mut(&name), value) {
                    (Some(Value::Table(below)), Value::Table(above)) => join(below, above, &path, origins, origin),
                    (_, Value::Table(above)) => {
                        let mut fresh = Table::new();
                        join(&mut fresh, above, &path, origins, origin);
                        below.insert(name, Value::Table(fresh));
                    }
                    (_, value) => {
                        origins.insert(path, origin.clone());
                        below.insert(name, value);
                    }
                }
            }
        }
        join(&mut self.table, table, "", &mut self.origins, origin);
    }

    fn apply_overrides(&mut self, environment: &Environment, overrides: &Overrides) {
        let one = |name: &str, value: Value| Table::from_iter([(name.to_string(), value)]);
        let mut set = |value: Option<&str>, origin: Origin| {
            if let Some(value) = value {
                self.merge(one("model", Value::String(value.into())), &origin);
            }
        };
        set(environment.get("NUNCIO_MODEL"), Origin::Environment("NUNCIO_MODEL"));
        set(overrides.model.as_deref(), Origin::Flag("model"));
        if let Some(mode) = &overrides.sandbox {
            self.merge(one("sandbox", Value::Table(one("mode", Value::String(mode.clone())))), &Origin::Flag("sandbox"));
        }
    }
}

/// Puts the user's hooks before those of the project, because a list replaces the list below it.
fn prepend_hooks(project: &mut Table, user: &Table) {
    if let (Some(Value::Array(hooks)), Some(Value::Array(before))) = (project.get_mut("hooks"), user.get("hooks")) {
        hooks.splice(..0, before.iter().cloned());
    }
}

/// Makes the paths of prompt files, certificates and hooks absolute. A word of a hook's command is
/// a path if it is a program with a directory or a script, or if `dir` has a file of this name.
fn make_paths_absolute(table: &mut Table, dir: &Path) {
    let absolute = |file: &mut Value| {
        if let Value::String(file) = file {
            *file = dir.join(&*file).to_string_lossy().into_owned();
        }
    };
    if let Some(Value::Table(prompts)) = table.get_mut("prompts") {
        prompts.iter_mut().for_each(|(_, file)| absolute(file));
    }
    if let Some(Value::Array(hooks)) = table.get_mut("hooks") {
        for command in hooks.iter_mut().filter_map(|hook| hook.get_mut("command")?.as_array_mut()) {
            let words: Vec<String> = command.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect();
            let script = script_word(&words);
            let is_path =
                |index: usize, word: &str| script == Some(index) || (index == 0 && word.contains('/')) || dir.join(word).is_file();
            command
                .iter_mut()
                .zip(&words)
                .enumerate()
                .filter(|(index, (_, word))| is_path(*index, word))
                .for_each(|(_, (value, _))| absolute(value));
        }
    }
    if let Some(Value::Table(providers)) = table.get_mut("providers") {
        providers.iter_mut().filter_map(|(_, provider)| provider.get_mut("ca_file")).for_each(absolute);
    }
}
