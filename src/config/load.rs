//! Reads and merges the layers of settings. The settings of an untrusted project are narrowed first
//! (narrow.rs).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::changed_project::Restrictions;
use super::data_paths::{DataPaths, Environment, project_file};
use super::hook_settings::script_word;
use super::named_files::{files_in_command, named_files};
use super::narrow::{narrow, narrow_trusted};
use super::overrides::Overrides;
use super::parse::{invalid, parse, read};
use super::project_program::{ProgramKind, ProjectProgram};
use super::rule_paths::{add_resolved_paths, retain_rules_for};
use super::secret::{CREDENTIALS_HINT, has_credentials};
use super::settings::{Rule, Settings};
use super::trust::{Trust, TrustStatus};
use crate::error::{Error, Result};
use crate::workspace::real_path;

/// The layer that the value of a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    User(PathBuf),
    Project(PathBuf),
    /// The project's file as it was when it was trusted.
    TrustedProject(PathBuf),
    Environment(&'static str),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::User(path) | Origin::Project(path) => write!(f, "{}", path.display()),
            Origin::TrustedProject(path) => write!(f, "{}, as it was trusted", path.display()),
            Origin::Environment(name) => write!(f, "${name}"),
            Origin::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// The name of [`Overrides::settings`] in messages.
const GIVEN: &str = "given by the program";

/// The settings of all layers, merged.
#[derive(Clone, Debug, Default)]
pub struct LoadedSettings {
    pub settings: Settings,
    /// Permission rules of the project's file. The user's rules are in `settings`.
    pub project_rules: Vec<Rule>,
    /// Deny and ask rules that the project's file had when it was trusted, if it changed since.
    pub trusted_rules: Vec<Rule>,
    /// Origin of each value that is not a default, by dotted name.
    pub origins: BTreeMap<String, Origin>,
    /// Names of the settings in the project's file that were ignored, which are shown in a notice.
    pub ignored: Vec<String>,
    /// The project's file is trusted.
    pub trusted: bool,
    /// The files that the trusted project's file names.
    pub project_files: Vec<PathBuf>,
    /// The reason why a formerly trusted project is no longer trusted.
    pub distrusted: Option<&'static str>,
    table: Table,
}

/// Merges the defaults, the user's file, the environment and the flags. A missing file is an error
/// only if it is `required`.
pub(crate) fn load_user(
    places: &DataPaths,
    required: bool,
    environment: &Environment,
    overrides: &Overrides,
) -> Result<LoadedSettings> {
    if overrides.base_url.as_deref().is_some_and(has_credentials) {
        return Err(Error::invalid_params("--base-url has a user name or password").hint(CREDENTIALS_HINT));
    }
    let directory = places.file.parent().unwrap_or(Path::new("."));
    let (path, found) = match &overrides.settings {
        Some(text) => {
            let path = PathBuf::from(GIVEN);
            let table = toml::from_str(text).map_err(|error| invalid(&path, error))?;
            (path, Some(table))
        }
        None => (places.file.clone(), read(&places.file, required)?.map(|(table, _)| table)),
    };
    let mut loaded = LoadedSettings::default();
    if let Some(mut table) = found {
        make_paths_absolute(&mut table, directory);
        loaded.merge(table, &Origin::User(path.clone()));
    }
    loaded.apply_overrides(environment, overrides);
    loaded.settings = parse(&loaded.table, &path)?;
    add_resolved_paths(&mut loaded.settings.permissions.rules, places);
    Ok(loaded)
}

/// Merges the settings like [`load_user`], with the project file of `cwd` between the user's file
/// and the environment. Without the rules for other directories.
pub(crate) fn load_project(
    user: &LoadedSettings,
    places: &DataPaths,
    cwd: &Path,
    environment: &Environment,
    overrides: &Overrides,
) -> Result<LoadedSettings> {
    let mut loaded = merge_project(user, places, cwd, environment, overrides)?;
    retain_rules_for(&mut loaded.settings.permissions.rules, cwd);
    retain_rules_for(&mut loaded.project_rules, cwd);
    retain_rules_for(&mut loaded.trusted_rules, cwd);
    Ok(loaded)
}

fn merge_project(
    user: &LoadedSettings,
    places: &DataPaths,
    cwd: &Path,
    environment: &Environment,
    overrides: &Overrides,
) -> Result<LoadedSettings> {
    if overrides.settings.is_some() {
        let mut loaded = user.clone();
        loaded.mark_own_tokens(user, places, cwd);
        return Ok(loaded);
    }
    let (path, trust) = (project_file(cwd), Trust::load(places));
    // The settings of another user's directory have no effect.
    let foreign = path.ancestors().skip(1).take(2).any(|directory| places.is_of_other_user(directory));
    let found = if foreign { None } else { read(&path, false)? };
    let status = match foreign {
        true if trust.lists(cwd) => TrustStatus::Changed,
        true => TrustStatus::No,
        false => trust.settings(cwd, found.as_ref().map(|(_, text)| text.as_bytes())),
    };
    if found.is_none() && status.why_not().is_none() {
        let mut loaded = user.clone();
        loaded.mark_own_tokens(user, places, cwd);
        return Ok(loaded);
    }
    let (mut table, text) = found.unwrap_or_default();
    parse(&table, &path)?;
    let mut loaded = LoadedSettings { table: user.table.clone(), origins: user.origins.clone(), ..LoadedSettings::default() };
    loaded.distrusted = status.why_not();
    if status == TrustStatus::Yes {
        loaded.trusted = true;
        let real = real_path(cwd);
        loaded.project_files = named_files(&real, Some(text.as_bytes())).into_iter().map(|file| file.path).collect();
        loaded.ignored = narrow_trusted(&mut table, &user.settings);
        prepend_hooks(&mut table, &user.table);
    } else if status.why_not().is_some() {
        let Restrictions { table: mut remaining, rules } = Restrictions::new(&trust, status, places, cwd, &table, &user.settings);
        loaded.trusted_rules = rules;
        add_resolved_paths(&mut loaded.trusted_rules, places);
        if remaining.contains_key("hooks") {
            // The trusted hooks are in effect, as failures.
            table.remove("hooks");
        }
        make_paths_absolute(&mut remaining, cwd);
        prepend_hooks(&mut remaining, &user.table);
        loaded.merge(remaining, &Origin::TrustedProject(path.clone()));
        loaded.ignored = narrow(&mut table, &parse(&loaded.table, &path)?);
    } else {
        loaded.ignored = narrow(&mut table, &user.settings);
    }
    loaded.project_rules = parse(&table, &path)?.permissions.rules;
    add_resolved_paths(&mut loaded.project_rules, places);
    if let Some(Value::Table(permissions)) = table.get_mut("permissions") {
        permissions.remove("rules");
    }
    make_paths_absolute(&mut table, cwd);
    loaded.merge(table, &Origin::Project(path.clone()));
    loaded.apply_overrides(environment, overrides);
    loaded.settings = parse(&loaded.table, &path)?;
    add_resolved_paths(&mut loaded.settings.permissions.rules, places);
    loaded.mark_project_programs(user, places, cwd);
    loaded.mark_own_tokens(user, places, cwd);
    Ok(loaded)
}

/// Returns all settings in a project's file, as if it was trusted, and the table of those that only
/// a trusted project may set. They must not be applied. `text` is the content of the file in `cwd`.
pub(crate) fn project_settings(user: &Settings, cwd: &Path, text: &[u8]) -> Result<(Settings, Table)> {
    let path = project_file(cwd);
    let text = std::str::from_utf8(text).map_err(|_| invalid(&path, "it is not valid UTF-8"))?;
    let all: Table = toml::from_str(text).map_err(|error| invalid(&path, error))?;
    let mut narrowed = all.clone();
    narrow(&mut narrowed, user);
    Ok((parse(&all, &path)?, without(all, &narrowed)))
}

/// Removes the settings from a table that another table also has.
fn without(table: Table, other: &Table) -> Table {
    let differing = table.into_iter().filter_map(|(name, value)| match (value, other.get(&name)) {
        (Value::Table(inner), Some(Value::Table(same))) => {
            Some(without(inner, same)).filter(|inner| !inner.is_empty()).map(|inner| (name, Value::Table(inner)))
        }
        (value, same) => (Some(&value) != same).then_some((name, value)),
    });
    differing.collect()
}

impl LoadedSettings {
    /// Returns the merged settings as a table.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Returns these sections as the text of a settings file.
    pub(crate) fn sections(&self, names: &[&str]) -> String {
        let named = self.table.iter().filter(|(name, _)| names.contains(&name.as_str()));
        named.map(|(name, value)| (name.clone(), value.clone())).collect::<Table>().to_string()
    }

    /// Returns whether the project's file sets `name` or a setting below it.
    pub(crate) fn set_by_project(&self, name: &str) -> bool {
        let within = |path: &str| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let project = |origin: &Origin| matches!(origin, Origin::Project(_) | Origin::TrustedProject(_));
        self.origins.iter().any(|(path, origin)| project(origin) && within(path))
    }

    /// Returns the title and the text of a notice about settings of the project in `cwd` that have
    /// no effect, if there are some.
    pub(crate) fn ignored_notice(&self, cwd: &Path) -> Option<(&'static str, String)> {
        let hint = self.ignored_hint(cwd);
        let changed = self.distrusted.map(|why| format!(" ({why})")).unwrap_or_default();
        match (self.distrusted, self.ignored.is_empty()) {
            (None, true) => None,
            (Some(why), true) => {
                let remains = "what they restrict remains in effect, and the programs that they name do not start";
                Some(("The project's settings are not trusted", format!("{why}: {remains}. {hint}")))
            }
            (_, false) => {
                let names = self.ignored.join(", ");
                let text = format!("{names} in .nuncio/config.toml would allow more than the user settings{changed}: {hint}");
                Some(("Some project settings are ignored", text))
            }
        }
    }

    /// Returns how the user can apply the ignored settings of the project in `cwd`.
    pub(crate) fn ignored_hint(&self, cwd: &Path) -> String {
        match (self.trusted, self.distrusted) {
            (true, _) => "only your own settings can set them".into(),
            (false, None) => format!("to apply all project settings, run `nuncio trust {}`", cwd.display()),
            (false, Some(_)) => {
                format!("to see the changes, run `nuncio trust --diff {0}`, then `nuncio trust {0}`", cwd.display())
            }
        }
    }

    /// Marks the programs that the project's file names.
    fn mark_project_programs(&mut self, user: &LoadedSettings, places: &DataPaths, cwd: &Path) {
        let program = |kind| Some(ProjectProgram::new(places, &user.settings.trust, cwd, kind, true));
        let mut settings = std::mem::take(&mut self.settings);
        if self.set_by_project("hooks") {
            let own = user.settings.hooks.len();
            settings.hooks.iter_mut().skip(own).for_each(|hook| hook.project = program(ProgramKind::Hook));
        }
        for (name, server) in settings.mcp.iter_mut().filter(|(name, _)| self.set_by_project(&format!("mcp.{name}"))) {
            server.project = program(ProgramKind::Mcp(name));
        }
        for (name, server) in settings.lsp.iter_mut().filter(|(name, _)| self.set_by_project(&format!("lsp.{name}"))) {
            server.project = program(ProgramKind::Lsp(name));
        }
        for (_, provider) in settings.providers.iter_mut().filter(|(name, _)| self.set_by_project(&format!("providers.{name}"))) {
            provider.project = program(ProgramKind::Token);
        }
        self.settings = settings;
    }

    /// Marks the commands of the user that print keys, if a file that they name is in the project.
    fn mark_own_tokens(&mut self, user: &LoadedSettings, places: &DataPaths, cwd: &Path) {
        let here = real_path(cwd);
        for provider in self.settings.providers.values_mut().filter(|provider| provider.project.is_none()) {
            let files = provider.api_key_command.iter().flat_map(|command| files_in_command(Path::new("/"), command));
            let inside = |file: &Path| file.canonicalize().is_ok_and(|real| real.starts_with(&here));
            if files.into_iter().any(|file| inside(&file) || file.parent().is_some_and(inside)) {
                provider.project = Some(ProjectProgram::new(places, &user.settings.trust, cwd, ProgramKind::Token, false));
            }
        }
    }

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
