//! Reads and joins the layers. A project's file may narrow what is allowed; the rest of it counts only in a trusted directory.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use toml::{Table, Value};

use super::places::{Environment, Places};
use super::secret::{CREDENTIALS_HINT, has_credentials, mask_urls};
use super::settings::{Policy, Provider, Rule, SandboxMode, Settings};
use super::trust::{Trust, Trusted};
use crate::error::{Error, Kind, Result, out_of_files};
use crate::workspace::read_small_text;

/// Where a value comes from.
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

/// What flags say; each stands above all files.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    pub model: Option<String>,
    /// Instead of the base URL of the model's provider.
    pub base_url: Option<String>,
    pub mode: Option<String>,
    pub thinking: Option<String>,
    pub system_prompt: Option<String>,
    pub sandbox: Option<String>,
    /// More roots.
    pub roots: Vec<PathBuf>,
}

/// All layers joined.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    pub settings: Settings,
    /// Rules of the project's file; those of the user's are in `settings`.
    pub project_rules: Vec<Rule>,
    /// Dotted name of each value that is no default, and where it comes from.
    pub origins: BTreeMap<String, Origin>,
    /// What was left out of the project's file, for a notice.
    pub ignored: Vec<String>,
    /// Why a project that was trusted once is not.
    pub distrusted: Option<&'static str>,
    table: Table,
}

/// Defaults, the user's file (which may be missing unless it is `required`), the environment and the flags.
pub fn load_user(places: &Places, required: bool, environment: &Environment, overrides: &Overrides) -> Result<Loaded> {
    if overrides.base_url.as_deref().is_some_and(has_credentials) {
        return Err(Error::invalid_params("--base-url has a user name or password").hint(CREDENTIALS_HINT));
    }
    let path = places.file.clone();
    let mut loaded = Loaded::default();
    if let Some((mut table, _)) = read(&path, required)? {
        absolute_prompts(&mut table, path.parent().unwrap_or(Path::new(".")));
        loaded.lay(table, &Origin::User(path.clone()));
    }
    loaded.top(environment, overrides);
    loaded.settings = parse(&loaded.table, &path)?;
    known_by_all_names(&mut loaded.settings.permissions.rules, places);
    Ok(loaded)
}

/// A path in a rule may begin with `~`, and may lead through links: the rule then stands there by the name without them, too.
fn known_by_all_names(rules: &mut Vec<Rule>, places: &Places) {
    let mut all = Vec::with_capacity(rules.len());
    for mut rule in rules.drain(..) {
        let below_home = rule.path.as_deref().and_then(|path| path.strip_prefix("~/"));
        if let (Some(rest), Some(home)) = (below_home, &places.home) {
            rule.path = Some(home.join(rest).to_string_lossy().into_owned());
        }
        rule.path = rule.path.as_deref().map(|path| whole_glob(path, rule.policy));
        let real = rule.path.as_deref().and_then(real_glob);
        all.push(rule.clone());
        all.extend(real.filter(|real| Some(real) != rule.path.as_ref()).map(|real| Rule { path: Some(real), ..rule }));
    }
    *rules = all;
}

/// The glob as paths are named: `./src/` is `src`. What it keeps from being touched it keeps with all that is below.
fn whole_glob(glob: &str, policy: Policy) -> String {
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

/// An absolute glob with the part before its first wildcard resolved.
fn real_glob(glob: &str) -> Option<String> {
    let wild = glob.find(['*', '?', '[', '{', '\\']).unwrap_or(glob.len());
    let literal = if wild == glob.len() { wild } else { glob[..wild].rfind('/')? };
    let real = std::fs::canonicalize(Path::new(glob).is_absolute().then_some(&glob[..literal])?).ok()?;
    Some(format!("{}{}", real.to_str()?, &glob[literal..]))
}

/// The same, with the project's file of `cwd` between the user's file and the environment.
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
    known_by_all_names(&mut loaded.project_rules, places);
    if let Some(Value::Table(permissions)) = table.get_mut("permissions") {
        permissions.remove("rules");
    }
    absolute_prompts(&mut table, cwd);
    loaded.lay(table, &Origin::Project(path.clone()));
    loaded.top(environment, overrides);
    loaded.settings = parse(&loaded.table, &path)?;
    known_by_all_names(&mut loaded.settings.permissions.rules, places);
    Ok(loaded)
}

/// Takes out of an untrusted project's file whatever could widen what is allowed, and says so.
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
        // One that is turned off runs nothing.
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
        // Where all is denied that no rule speaks of, being asked is more.
        project.permissions.rules.retain(|rule| !asks(rule));
        ignored.push("permissions.rules that ask, as the default is to deny".into());
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
    /// Lays a table over what is there: tables are joined, other values replaced.
    fn lay(&mut self, table: Table, origin: &Origin) {
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

    /// Fails for a rule about a tool that does not exist, which would match nothing. `tools`: their names, each with its aliases, which
    /// rules do not know. Patterns, and the tools of MCP servers, are not checked.
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

    fn top(&mut self, environment: &Environment, overrides: &Overrides) {
        let one = |name: &str, value: Value| Table::from_iter([(name.to_string(), value)]);
        let mut set = |value: Option<&str>, origin: Origin| {
            if let Some(value) = value {
                self.lay(one("model", Value::String(value.into())), &origin);
            }
        };
        set(environment.get("NUNCIO_MODEL"), Origin::Environment("NUNCIO_MODEL"));
        set(overrides.model.as_deref(), Origin::Flag("model"));
        if let Some(mode) = &overrides.sandbox {
            self.lay(one("sandbox", Value::Table(one("mode", Value::String(mode.clone())))), &Origin::Flag("sandbox"));
        }
    }
}

/// The settings that a project in `directory` brings.
pub(super) fn project_file(directory: &Path) -> PathBuf {
    directory.join(".nuncio").join("config.toml")
}

/// The settings of a file, and its text. None: there is no such file, and it need not be there.
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
        let place = error.path().to_string();
        let message = error.into_inner().to_string();
        let hint = nearest(&message);
        let mut error = invalid(path, if place == "." { message.trim().into() } else { format!("{place}: {}", message.trim()) });
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

/// A language server that could never be used is a mistake.
fn check_servers(settings: &Settings) -> Result<(), String> {
    for (name, server) in &settings.lsp {
        if !server.command.is_empty() && server.files.is_empty() {
            return Err(format!("lsp.{name}.files: name the files that it knows, as in files = [\"*.rs\"]"));
        }
        for glob in &server.files {
            globset::Glob::new(glob).map_err(|error| format!("lsp.{name}.files: {error}"))?;
        }
    }
    Ok(())
}

fn invalid(path: &Path, problem: impl fmt::Display) -> Error {
    // The problem may quote the file.
    let problem = mask_urls(&problem.to_string());
    Error::new(Kind::InvalidParams, format!("reading config {}: {problem}", path.display()))
}

/// For serde's "unknown field `x`, expected one of `a`, `b`", and the same for variants: the name that was probably meant.
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
