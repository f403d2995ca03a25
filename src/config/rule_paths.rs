//! Prepares the paths of permission rules for matching: expands and normalises the paths, and
//! resolves symlinks.

use std::path::{Component, Path, PathBuf};

use super::data_paths::DataPaths;
use super::parse::{parse, read};
use super::settings::{Policy, Rule};
use crate::workspace::real_path;

/// Expands `~/` in the paths of rules, and normalises the paths. For each rule whose path contains
/// symlinks, adds a copy of the rule with the resolved path.
pub(super) fn add_resolved_paths(rules: &mut Vec<Rule>, places: &DataPaths) {
    let mut all = Vec::with_capacity(rules.len());
    for mut rule in rules.drain(..) {
        let below_home = rule.path.as_deref().and_then(|path| path.strip_prefix("~/"));
        if let (Some(rest), Some(home)) = (below_home, &places.home) {
            rule.path = Some(home.join(rest).to_string_lossy().into_owned());
        }
        rule.directory = rule.directory.map(|directory| {
            let below_home = directory.strip_prefix("~").ok().zip(places.home.as_ref());
            real_path(&below_home.map_or_else(|| directory.clone(), |(rest, home)| home.join(rest)))
        });
        if rule.is_exact() {
            all.push(rule);
            continue;
        }
        rule.path = rule.path.as_deref().map(|path| normalize_glob(path, rule.policy));
        let real = rule.path.as_deref().and_then(resolve_glob);
        all.push(rule.clone());
        all.extend(real.filter(|real| Some(real) != rule.path.as_ref()).map(|real| Rule { path: Some(real), ..rule }));
    }
    *rules = all;
}

/// Removes the rules for other directories than `cwd` and those above it.
pub(crate) fn retain_rules_for(rules: &mut Vec<Rule>, cwd: &Path) {
    // Most users have no rule for a directory, which must be looked up.
    if rules.iter().any(|rule| rule.directory.is_some()) {
        let real = real_path(cwd);
        rules.retain(|rule| match &rule.directory {
            None => true,
            Some(directory) if rule.is_exact() => real == *directory,
            Some(directory) => real.starts_with(directory),
        });
    }
}

/// Normalizes a glob: `./src/` becomes `src`. The glob of a deny or ask rule also matches
/// everything below its path.
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

/// Returns the exact permission rules of the user's settings file; `None` if it cannot be read.
pub(crate) fn exact_rules(places: &DataPaths) -> Option<Vec<Rule>> {
    let (table, _) = read(&places.file, true).ok()??;
    let mut rules = parse(&table, &places.file).ok()?.permissions.rules;
    rules.retain(Rule::is_exact);
    add_resolved_paths(&mut rules, places);
    Some(rules)
}
