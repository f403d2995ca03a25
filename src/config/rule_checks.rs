//! Checks that permission rules and hooks can match: the tools that they name, and the properties
//! that calls of these tools have.

use std::path::Path;

use globset::Glob;
use serde_json::json;

use super::data_paths::{DataPaths, project_file};
use super::load::{LoadedSettings, Origin};
use super::parse::{closest, invalid};
use super::settings::{AccessKind, Rule};
use crate::error::Result;

/// A kind of access that calls of a tool can have, with the fields of a rule that can match it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessShape {
    pub kind: AccessKind,
    /// Calls have a path.
    pub path: bool,
    /// Calls have a shell command or a URL.
    pub pattern: bool,
}

impl AccessShape {
    /// Calls that read nothing but the session.
    pub(crate) const NOTHING: &[AccessShape] = &[AccessShape::new(AccessKind::Read, false, false)];
    /// Calls that read a path.
    pub(crate) const READ: &[AccessShape] = &[AccessShape::new(AccessKind::Read, true, false)];
    /// Calls that write a path.
    pub(crate) const WRITE: &[AccessShape] = &[AccessShape::new(AccessKind::Write, true, false)];
    /// Calls that run a command in a directory. Its redirections write files.
    pub(crate) const COMMAND: &[AccessShape] =
        &[AccessShape::new(AccessKind::Exec, true, true), AccessShape::new(AccessKind::Write, true, false)];
    /// Calls that read a path, run a command, or write a path.
    pub(crate) const READ_COMMAND_OR_WRITE: &[AccessShape] =
        &[AccessShape::READ[0], AccessShape::COMMAND[0], AccessShape::WRITE[0]];
    /// Calls that request a URL.
    pub(crate) const NETWORK: &[AccessShape] = &[AccessShape::new(AccessKind::Network, false, true)];
    /// Calls of MCP servers, whose arguments rules do not match.
    pub(crate) const MCP: &[AccessShape] = &[AccessShape::new(AccessKind::Mcp, false, false)];

    const fn new(kind: AccessKind, path: bool, pattern: bool) -> AccessShape {
        AccessShape { kind, path, pattern }
    }

    /// Returns whether the rule can match calls of this shape.
    fn fits(&self, rule: &Rule) -> bool {
        rule.kind.is_none_or(|kind| kind == self.kind)
            && (self.path || rule.path.is_none())
            && (self.pattern || rule.pattern.is_none())
    }

    /// Lists the fields that a rule about such calls can have, as an error message shows them.
    fn fields(&self) -> Vec<String> {
        let kind = format!("kind = {}", json!(self.kind));
        let optional = [(self.path, "path"), (self.pattern, "pattern")];
        std::iter::once(kind).chain(optional.iter().filter(|(has, _)| *has).map(|(_, name)| (*name).to_owned())).collect()
    }
}

/// A tool that rules and hooks can name.
pub(crate) struct KnownTool<'a> {
    pub name: &'a str,
    /// Other names that models use; rules and hooks must use `name`.
    pub aliases: &'a [&'a str],
    pub access: &'static [AccessShape],
}

impl LoadedSettings {
    /// Fails if a rule or a hook can never match: it names an unknown tool, or a rule has a field
    /// that calls of its tool do not have.
    pub(crate) fn check_tools(&self, tools: &[KnownTool<'_>], places: &DataPaths, cwd: &Path) -> Result<()> {
        let project = project_file(cwd);
        let rules = [(&self.settings.permissions.rules, &places.file), (&self.project_rules, &project)];
        for (rule, file) in rules.into_iter().flat_map(|(rules, file)| rules.iter().map(move |rule| (rule, file))) {
            check_name(rule.tool.as_deref(), tools, file, "permissions.rules")?;
            check_fields(rule, tools, file)?;
        }
        let file = match self.origins.get("hooks") {
            Some(Origin::Project(file) | Origin::TrustedProject(file)) => file,
            _ => &places.file,
        };
        let mut hooks = self.settings.hooks.iter().filter(|hook| hook.event.is_about_tools());
        hooks.try_for_each(|hook| check_name(hook.r#match.as_deref(), tools, file, "hooks"))
    }
}

fn is_glob(name: &str) -> bool {
    name.contains(['*', '?', '[', '{'])
}

fn is_mcp(name: &str) -> bool {
    name.starts_with("mcp__")
}

/// Fails if the tool is unknown. Globs and the tools of MCP servers are not checked.
fn check_name(name: Option<&str>, tools: &[KnownTool<'_>], file: &Path, setting: &str) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    if is_glob(name) || is_mcp(name) || tools.iter().any(|tool| tool.name == name) {
        return Ok(());
    }
    let aliased = tools.iter().find(|tool| tool.aliases.contains(&name)).map(|tool| format!("did you mean `{}`?", tool.name));
    let names: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
    let mut error = invalid(file, format!("{setting}: unknown tool `{name}`"));
    error.hint = aliased.or_else(|| closest(name, &names)).or_else(|| Some(format!("the tools are {}", names.join(", "))));
    Err(error)
}

/// Fails if no call of the rule's tools has the fields of the rule.
fn check_fields(rule: &Rule, tools: &[KnownTool<'_>], file: &Path) -> Result<()> {
    let shapes = shapes(rule.tool.as_deref(), tools);
    if rule.is_exact() || shapes.is_empty() || shapes.iter().any(|shape| shape.fits(rule)) {
        return Ok(());
    }
    let without = |change: fn(&mut Rule)| {
        let mut rule = rule.clone();
        change(&mut rule);
        shapes.iter().any(|shape| shape.fits(&rule))
    };
    let field = match rule.kind {
        _ if rule.pattern.is_some() && without(|rule| rule.pattern = None) => "pattern".to_owned(),
        _ if rule.path.is_some() && without(|rule| rule.path = None) => "path".to_owned(),
        Some(kind) if without(|rule| rule.kind = None) => format!("kind = {}", json!(kind)),
        _ => "a combination of kind, path and pattern".to_owned(),
    };
    let calls = match (&rule.tool, rule.kind) {
        (Some(tool), _) => format!("calls of `{tool}`"),
        (None, Some(kind)) => format!("calls of kind {}", json!(kind)),
        (None, None) => "calls".to_owned(),
    };
    let known: Vec<String> = shapes.iter().map(|shape| shape.fields().join(", ")).collect();
    let message = format!("permissions.rules: the rule never matches: {calls} do not have {field}");
    Err(invalid(file, message).hint(format!("{calls} have: {}", known.join("; or "))))
}

/// Returns the shapes of the calls that a rule for the tool or pattern `name` can be about; `None`
/// stands for all tools. Empty if the shapes are not known.
fn shapes(name: Option<&str>, tools: &[KnownTool<'_>]) -> Vec<AccessShape> {
    let Some(name) = name else {
        // Hosted agents have tools of their own, whose calls can have a path or a URL.
        let own = AccessShape::new(AccessKind::Mcp, true, true);
        return distinct(tools.iter().flat_map(|tool| tool.access).chain([&own]));
    };
    if is_mcp(name) {
        return AccessShape::MCP.to_vec();
    }
    match Glob::new(name).map(|glob| glob.compile_matcher()) {
        Ok(glob) if is_glob(name) && glob.is_match("mcp__server__tool") => shapes(None, tools),
        Ok(glob) => distinct(tools.iter().filter(|tool| glob.is_match(tool.name)).flat_map(|tool| tool.access)),
        Err(_) => Vec::new(),
    }
}

fn distinct<'a>(shapes: impl Iterator<Item = &'a AccessShape>) -> Vec<AccessShape> {
    shapes.fold(Vec::new(), |mut found, shape| {
        if !found.contains(shape) {
            found.push(*shape);
        }
        found
    })
}
