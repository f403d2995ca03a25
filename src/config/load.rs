//! Reads and merges the layers. A project's file may always narrow permissions; settings that could
//! widen them apply only in a trusted directory.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use toml::{Table, Value};

use super::places::{Environment, Places};
use super::secret::{CREDENTIALS_HINT, has_credentials, mask_urls};
use super::settings::{Policy, Provider, Rule, SandboxMode, Settings};
use super::trust::{Trust, Trusted};
use crate::error::{Error, Kind, Result, out_of_files};
use crate::options::{Mode, Thinking};
use crate::workspace::read_small_text;

/// The layer that a value comes from.
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
    /// Replaces the base URL of the model's provider.
    pub base_url: Option<String>,
    pub mode: Option<Mode>,
    pub thinking: Option<Thinking>,
    pub system_prompt: Option<String>,
    pub sandbox: Option<String>,
    /// Additional roots.
    pub roots: Vec<PathBuf>,
}

/// The settings of all layers, merged.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    pub settings: Settings,
    /// Permission rules of the project's file. The user's rules are in `settings`.
    pub project_rules: Vec<Rule>,
    /// Origin of each value that is not a default, by dotted name.
    pub origins: BTreeMap<String, Origin>,
    /// Settings of the project's file that were ignored, for a notice.
    pub ignored: Vec<String>,
    /// Why a formerly trusted project is no longer trusted.
    pub distrusted: Option<&'static str>,
    table: Table,
}

/// Merges the defaults, the user's file, the environment and the flags. A missing file is an error
/// only if it is `required`.
pub fn load_user(places: &Places, required: bool, environment: &Environment, overrides: &Overrides) -> Result<Loaded> {
    if overrides.base_url.as_deref().is_some_and(has_credentials) {
        return Err(Error::invalid_params("--base-url has a user name or password").hint(CREDENTIALS_HINT));
    }
    let path = places.file.clone();
    let mut loaded = Loaded::default();
    if let Some((mut table, _)) = read(&path, required)? {
        absolute_prompts(&mut table, path.parent().unwrap_or(Path::new(".")));
        loaded.merge(table, &Origin::User(path.clone()));
    }
    loaded.apply_overrides(environment, overrides);
    loaded.settings = parse(&loaded.table, &path)?;
    add_resolved_paths(&mut loaded.settings.permissions.rules, places);
    Ok(loaded)
}

/// Expands `~/` in the paths of rules and adds a copy of each rule whose path contains symlinks,
/// with the resolved path.
fn add_resolved_paths(rules: &mut Vec<Rule>, places: &Places) {
    let mut all = Vec::with_capacity(rules.len());
    for mut rule in rules.drain(..) {
        let below_home = rule.path.as_deref().and_then(|path| path.strip_prefix("~/"));
        if let (Some(rest), Some(home)) = (below_home, &places.home) {
            rule.path = Some(home.join(rest).to_string_lossy().into_owned());
        }
        rule.path = rule.path.as_deref().map(|path| normalize_glob(path, rule.policy));
        let real = rule.path.as_deref().and_then(resolve_glob);
        all.push(rule.clone());
        all.extend(real.filter(|real| Some(real) != rule.path.as_ref()).map(|real| Rule { path: Some(real), ..rule }));
    }
    *rules = all;
}

/// Normalizes a glob: `./src/` becomes `src`. A glob that denies or asks also matches everything
/// below its path.
fn normalize_glob(glob: &str, policy: Policy) -> String {
    let names = Path::new(glob).components().filter(|name| *name != Component::CurDir);
    let plain = names.collect::<PathBuf>().to_string_lossy().into_owned();
    match (plain.as_str(), policy) {
        ("" | "/", Policy::Allow) => glob.into(),
        (_, Policy::Allow) => plain,
        ("" | "/", _) => format!("{plain}**"),
        _ if plain.ends_with('*') => plain,
        _ => format!("{plain}/**"),
    }
}

/// Resolves symlinks in the part of an absolute glob that precedes its first wildcard.
fn resolve_glob(glob: &str) -> Option<String> {
    let wild = glob.find(['*', '?', '[', '{', '\\']).unwrap_or(glob.len());
    let literal = if wild == glob.len() { wild } else { glob[..wild].rfind('/')? };
    let real = std::fs::canonicalize(Path::new(glob).is_absolute().then_some(&glob[..literal])?).ok()?;
    Some(format!("{}{}", real.to_str()?, &glob[literal..]))
}

/// Like [`load_user`], with the project file of `cwd` between the user's file and the environment.
pub fn load_project(
    user: &Loaded,
    places: &Places,
    cwd: &Path,
    environment: &Environment,
    overrides: &Overrides,
) -> Result<Loaded> {
    let path = project_file(cwd);
    let Some((mut table, text)) = read(&path, false)? else { return Ok(user.clone()) };
    let mut project = parse(&table, &path)?;
    let mut loaded = Loaded { table: user.table.clone(), origins: user.origins.clone(), ..Loaded::default() };
    let trusted = Trust::load(places).settings(cwd, Some(text.as_bytes()));
    if trusted != Trusted::Yes {
        loaded.distrusted = trusted.why_not();
        narrow(&mut table, &mut project, &user.settings, &mut loaded.ignored);
    }
    loaded.project_rules = std::mem::take(&mut project.permissions.rules);
    add_resolved_paths(&mut loaded.project_rules, places);
    if let Some(Value::Table(permissions)) = table.get_mut("permissions") {
        permissions.remove("rules");
    }
    absolute_prompts(&mut table, cwd);
    loaded.merge(table, &Origin::Project(path.clone()));
    loaded.apply_overrides(environment, overrides);
    loaded.settings = parse(&loaded.table, &path)?;
    add_resolved_paths(&mut loaded.settings.permissions.rules, places);
    Ok(loaded)
}

/// Removes the settings that could widen permissions from an untrusted project's file, and lists
/// them in `ignored`.
fn narrow(table: &mut Table, project: &mut Settings, user: &Settings, ignored: &mut Vec<String>) {
    for name in ["providers", "allowed_paths", "durability", "prompts", "model", "http", "telemetry"] {
        if table.remove(name).is_some() {
            ignored.push(name.into());
        }
    }
    if let Some(Value::Table(tools)) = table.get_mut("tools") {
        for name in ["client_files", "client_terminal", "fetch_allowed_hosts"] {
            if tools.remove(name).is_some() {
                ignored.push(format!("tools.{name}"));
            }
        }
    }
    if let Some(Value::Table(servers)) = table.get_mut("lsp") {
        // An empty command turns a server off, which is always allowed.
        servers.retain(|name, _| project.lsp.get(name).is_some_and(|server| server.command.is_empty()));
        if servers.len() < project.lsp.len() {
            ignored.push("lsp".into());
        }
    }
    let rules = project.permissions.rules.len();
    project.permissions.rules.retain(|rule| rule.policy != Policy::Allow);
    if project.permissions.rules.len() < rules {
        ignored.push("permissions.rules that allow".into());
    }
    let asks = |rule: &Rule| rule.policy == Policy::Ask;
    if user.permissions.default == Policy::Deny && project.permissions.rules.iter().any(asks) {
        // With a default of `deny`, a rule that asks would widen permissions.
        project.permissions.rules.retain(|rule| !asks(rule));
        ignored.push("permissions.rules that ask, because the default is deny".into());
    }
    if let Some(Value::Table(sandbox)) = table.get_mut("sandbox") {
        let open = project.sandbox.mode.is_some_and(|mode| mode < user.sandbox.mode.unwrap_or(SandboxMode::WorkspaceWrite));
        let widens = [("mode", open), ("network", project.sandbox.network && !user.sandbox.network), ("writable", true)];
        for (name, _) in widens.into_iter().filter(|(_, widens)| *widens) {
            if sandbox.remove(name).is_some() {
                ignored.push(format!("sandbox.{name}"));
            }
        }
    }
    let Some(Value::Table(permissions)) = table.get_mut("permissions") else { return };
    let narrower = |policy: Policy| {
        matches!((policy, user.permissions.default), (Policy::Deny, _) | (Policy::Ask, Policy::Allow | Policy::Ask))
    };
    if permissions.contains_key("default") && !narrower(project.permissions.default) {
        permissions.remove("default");
        ignored.push("permissions.default".into());
    }
    if permissions.contains_key("timeout_s") && project.permissions.timeout_s > user.permissions.timeout_s {
        permissions.remove("timeout_s");
        ignored.push("permissions.timeout_s".into());
    }
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

    /// Fails if a rule names an unknown tool, because it would never match. `tools` lists each name
    /// with its aliases; rules must use the name. Globs and the tools of MCP servers are not
    /// checked.
    pub fn check_tools(&self, tools: &[(&str, &[&str])], places: &Places, cwd: &Path) -> Result<()> {
        let project = project_file(cwd);
        let rules = [(&self.settings.permissions.rules, &places.file), (&self.project_rules, &project)];
        for (name, file) in rules.into_iter().flat_map(|(rules, file)| rules.iter().map(move |rule| (rule.tool.as_deref(), file))) {
            let Some(name) = name else { continue };
            if name.contains(['*', '?', '[', '{']) || name.starts_with("mcp__") || tools.iter().any(|(tool, _)| *tool == name) {
                continue;
            }
            let aliased =
                tools.iter().find(|(_, aliases)| aliases.contains(&name)).map(|(tool, _)| format!("did you mean `{tool}`?"));
            let names: Vec<&str> = tools.iter().map(|(tool, _)| *tool).collect();
            let mut error = invalid(file, format!("permissions.rules: unknown tool `{name}`"));
            error.hint = aliased.or_else(|| closest(name, &names)).or_else(|| Some(format!("the tools are {}", names.join(", "))));
            return Err(error);
        }
        Ok(())
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

/// Path of the settings file of a project in `directory`.
pub(super) fn project_file(directory: &Path) -> PathBuf {
    directory.join(".nuncio").join("config.toml")
}

/// Parses a file and returns its table and text, or `None` if it is missing and not `required`.
fn read(path: &Path, required: bool) -> Result<Option<(Table, String)>> {
    let text = match read_small_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => return Ok(None),
        Err(error) if out_of_files(&error) => return Err(Error::io(format_args!("reading config {}", path.display()), error)),
        Err(error) => return Err(invalid(path, error)),
    };
    toml::from_str(&text).map(|table| Some((table, text))).map_err(|error| invalid(path, error))
}

fn parse(table: &Table, path: &Path) -> Result<Settings> {
    let settings: Settings = serde_path_to_error::deserialize(Value::Table(table.clone())).map_err(|error| {
        let field = error.path().to_string();
        let message = error.into_inner().to_string();
        let hint = nearest(&message);
        let mut error = invalid(path, if field == "." { message.trim().into() } else { format!("{field}: {}", message.trim()) });
        error.hint = hint;
        error
    })?;
    check_servers(&settings).map_err(|problem| invalid(path, problem))?;
    let has_credentials = |provider: &Provider| provider.base_url.as_deref().is_some_and(has_credentials);
    if let Some((name, _)) = settings.providers.iter().find(|(_, provider)| has_credentials(provider)) {
        return Err(invalid(path, format!("providers.{name}.base_url has a user name or password")).hint(CREDENTIALS_HINT));
    }
    Ok(settings)
}

/// Rejects a language server that has a command but no files, and invalid globs.
fn check_servers(settings: &Settings) -> Result<(), String> {
    for (name, server) in &settings.lsp {
        if !server.command.is_empty() && server.files.is_empty() {
            return Err(format!("lsp.{name}.files: list the files that it handles, e.g. files = [\"*.rs\"]"));
        }
        for glob in &server.files {
            globset::Glob::new(glob).map_err(|error| format!("lsp.{name}.files: {error}"))?;
        }
    }
    Ok(())
}

fn invalid(path: &Path, problem: impl fmt::Display) -> Error {
    // The problem may quote the file, including URLs with credentials.
    let problem = mask_urls(&problem.to_string());
    Error::new(Kind::InvalidParams, format!("reading config {}: {problem}", path.display()))
}

/// Suggests the closest known name for serde's "unknown field `x`, expected one of `a`, `b`", and
/// for unknown variants.
fn nearest(message: &str) -> Option<String> {
    let rest = ["unknown field ", "unknown variant "].iter().find_map(|start| message.strip_prefix(start))?;
    let mut names = rest.lines().next()?.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    let known: Vec<&str> = names.collect();
    closest(unknown, &known)
}

fn closest(unknown: &str, known: &[&str]) -> Option<String> {
    let best = similar::get_close_matches(unknown, known, 1, 0.5);
    best.first().map(|name| format!("did you mean `{name}`?"))
}

fn absolute_prompts(table: &mut Table, dir: &Path) {
    let Some(Value::Table(prompts)) = table.get_mut("prompts") else { return };
    for (_, file) in prompts.iter_mut() {
        if let Value::String(file) = file {
            *file = dir.join(&*file).to_string_lossy().into_owned();
        }
    }
}
