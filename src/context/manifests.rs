//! Entry points of a project, from its manifests. Pure.

use serde_json::Value as Json;
use toml::{Table, Value};

/// The manifests that are read, in the order in which they are shown.
pub(crate) const MANIFESTS: [&str; 6] = ["Cargo.toml", "package.json", "pyproject.toml", "go.mod", "Makefile", "makefile"];

/// Maximum number of names that are taken from one list of a manifest.
const NAMES_MAX: usize = 20;

/// Returns what the manifest `name` declares, one line for each kind of entry point.
pub(crate) fn entry_points(name: &str, text: &str) -> Vec<String> {
    match name {
        "Cargo.toml" => toml::from_str(text).map(|table| cargo(&table)).unwrap_or_default(),
        "pyproject.toml" => toml::from_str(text).map(|table| python(&table)).unwrap_or_default(),
        "package.json" => serde_json::from_str(text).map(|json| node(&json)).unwrap_or_default(),
        "go.mod" => text.lines().filter(|line| line.starts_with("module ")).map(str::to_owned).take(1).collect(),
        _ => list("targets", make(text)).into_iter().collect(),
    }
}

fn list(what: &str, names: Vec<String>) -> Option<String> {
    let more = if names.len() > NAMES_MAX { ", …" } else { "" };
    let shown: Vec<String> = names.into_iter().take(NAMES_MAX).collect();
    (!shown.is_empty()).then(|| format!("{what} {}{more}", shown.join(", ")))
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

fn cargo(table: &Table) -> Vec<String> {
    let package = table.get("package").and_then(|package| text(package.get("name")));
    let members = table.get("workspace").and_then(|workspace| workspace.get("members")?.as_array());
    let members = members.into_iter().flatten().filter_map(|member| text(Some(member))).collect();
    let targets = |kind: &str| {
        let one = |target: &Value| {
            let (name, path) = (text(target.get("name"))?, text(target.get("path")));
            Some(path.map_or(name.clone(), |path| format!("{name} ({path})")))
        };
        table.get(kind).and_then(Value::as_array).into_iter().flatten().filter_map(one).collect()
    };
    [package.map(|name| format!("package {name}")), list("bin", targets("bin")), list("members", members)]
        .into_iter()
        .flatten()
        .collect()
}

fn python(table: &Table) -> Vec<String> {
    let at = |names: &[&str]| {
        let mut value = table.get(names[0])?;
        for name in &names[1..] {
            value = value.get(name)?;
        }
        value.as_table()
    };
    let scripts = |table: Option<&Table>| -> Vec<String> {
        let scripts = table.into_iter().flatten();
        scripts.filter_map(|(name, value)| Some(format!("{name} ({})", value.as_str()?))).collect()
    };
    let name = at(&["project"]).and_then(|project| text(project.get("name")));
    let all = [scripts(at(&["project", "scripts"])), scripts(at(&["tool", "poetry", "scripts"]))].concat();
    [name.map(|name| format!("project {name}")), list("scripts", all)].into_iter().flatten().collect()
}

fn node(json: &Json) -> Vec<String> {
    let main = ["main", "module"].iter().find_map(|key| Some(format!("{key} {}", json[*key].as_str()?)));
    let bin: Vec<String> = match &json["bin"] {
        Json::String(path) => vec![path.clone()],
        Json::Object(all) => all.iter().filter_map(|(name, path)| Some(format!("{name} ({})", path.as_str()?))).collect(),
        _ => Vec::new(),
    };
    let scripts = json["scripts"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    [main, list("bin", bin), list("scripts", scripts)].into_iter().flatten().collect()
}

/// Returns the targets of a makefile, each once, in order.
fn make(text: &str) -> Vec<String> {
    let mut targets: Vec<String> = Vec::new();
    for line in text.lines() {
        let Some((target, rest)) = line.split_once(':') else { continue };
        let is_name = target.starts_with(|first: char| first.is_ascii_alphanumeric())
            && target.chars().all(|character| character.is_ascii_alphanumeric() || "_-.".contains(character));
        if is_name && !rest.starts_with('=') && !targets.iter().any(|known| known == target) {
            targets.push(target.to_owned());
        }
    }
    targets
}
