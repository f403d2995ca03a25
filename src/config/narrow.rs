//! Reduces the settings of an untrusted project to those that the project may change.

use toml::{Table, Value};

use super::sandbox_settings::SandboxMode;
use super::settings::{PROJECT_RIGHTS, Policy, ProjectRight, Rule, Settings};

/// Removes the settings that [`PROJECT_RIGHTS`] does not permit from the table of a project's
/// settings file. Returns the names of the removed settings, which are shown in a notice.
pub(super) fn narrow(table: &mut Table, user: &Settings) -> Vec<String> {
    narrow_by(PROJECT_RIGHTS, table, user)
}

/// Removes what a trusted project may not widen either: the sandbox, and the grants of the user.
/// Returns the names of the removed settings.
pub(super) fn narrow_trusted(table: &mut Table, user: &Settings) -> Vec<String> {
    let mut limited = Table::new();
    for section in ["sandbox", "trust"] {
        limited.extend(table.remove_entry(section));
    }
    let ignored = narrow(&mut limited, user);
    table.extend(limited);
    ignored
}

/// Keeps only the settings that `rights` lists and permits, so that an unlisted setting is removed.
fn narrow_by(rights: &[(&str, ProjectRight)], table: &mut Table, user: &Settings) -> Vec<String> {
    let mut given = std::mem::take(table);
    let mut ignored = Vec::new();
    for (path, right) in rights {
        let Some(mut value) = remove(&mut given, path) else { continue };
        let kept = match right {
            ProjectRight::Set => true,
            ProjectRight::Narrow => narrow_value(path, &mut value, user, &mut ignored),
            ProjectRight::Nothing => false,
        };
        if kept {
            insert(table, path, value);
        } else {
            ignored.push((*path).to_owned());
        }
    }
    undeclared(&given, "", &mut ignored);
    ignored
}

/// Removes the parts of a value that are less strict than the user's settings, and lists the
/// removed parts in `ignored`. Returns false if no part of the value may be used.
fn narrow_value(path: &str, value: &mut Value, user: &Settings, ignored: &mut Vec<String>) -> bool {
    match path {
        "permissions.default" => match (read(value), user.permissions.default) {
            (Some(Policy::Deny), _) => true,
            (Some(Policy::Ask), default) => default != Policy::Deny,
            (Some(Policy::Allow) | None, _) => false,
        },
        "permissions.timeout_s" => read(value).is_some_and(|seconds: u64| seconds <= user.permissions.timeout_s),
        "permissions.rules" => {
            remove_rules(value, Policy::Allow, "permissions.rules that allow", ignored);
            if user.permissions.default == Policy::Deny {
                // An ask rule would widen permissions, because the default is `deny`.
                remove_rules(value, Policy::Ask, "permissions.rules that ask, because the default is deny", ignored);
            }
            true
        }
        "sandbox.mode" => {
            read(value).is_some_and(|mode: SandboxMode| mode >= user.sandbox.mode.unwrap_or(SandboxMode::WorkspaceWrite))
        }
        "sandbox.network" => read(value).is_some_and(|network: bool| !network || user.sandbox.network),
        "lsp" => {
            // An empty command turns a server off, which is always permitted.
            let is_off = |server: &Value| server.get("command").and_then(Value::as_array).is_some_and(Vec::is_empty);
            let Value::Table(servers) = value else { return false };
            let before = servers.len();
            servers.retain(|_, server| is_off(server));
            if servers.len() < before {
                ignored.push(path.to_owned());
            }
            true
        }
        _ => path.strip_prefix("budget.").is_some_and(|name| user.budget.allows(name, value)),
    }
}

fn read<'de, T: serde::Deserialize<'de>>(value: &Value) -> Option<T> {
    value.clone().try_into().ok()
}

fn remove_rules(rules: &mut Value, policy: Policy, name: &str, ignored: &mut Vec<String>) {
    let Value::Array(rules) = rules else { return };
    let before = rules.len();
    rules.retain(|rule| read(rule).is_some_and(|rule: Rule| rule.policy != policy));
    if rules.len() < before {
        ignored.push(name.to_owned());
    }
}

/// Removes the value with a dotted name from a table, and returns the value.
fn remove(table: &mut Table, path: &str) -> Option<Value> {
    match path.split_once('.') {
        Some((name, rest)) => remove(table.get_mut(name)?.as_table_mut()?, rest),
        None => table.remove(path),
    }
}

fn insert(table: &mut Table, path: &str, value: Value) {
    match path.split_once('.') {
        Some((name, rest)) => {
            if let Value::Table(inner) = table.entry(name).or_insert_with(|| Value::Table(Table::new())) {
                insert(inner, rest, value);
            }
        }
        None => drop(table.insert(path.to_owned(), value)),
    }
}

/// Adds the dotted names of all settings in a table to `ignored`.
fn undeclared(table: &Table, prefix: &str, ignored: &mut Vec<String>) {
    for (name, value) in table {
        match value {
            Value::Table(inner) => undeclared(inner, &format!("{prefix}{name}."), ignored),
            _ => ignored.push(format!("{prefix}{name}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value as Json;

    use super::*;

    /// Adds the dotted names of all settings to `names`. A map or a list counts as one setting.
    fn settings(schema: &Json, root: &Json, prefix: &str, names: &mut Vec<String>) {
        let target = schema["$ref"].as_str().and_then(|target| root.pointer(target.trim_start_matches('#')));
        let section = target.unwrap_or(schema);
        match section["properties"].as_object() {
            Some(fields) => {
                for (name, field) in fields {
                    let prefix = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                    settings(field, root, &prefix, names);
                }
            }
            None => names.push(prefix.to_owned()),
        }
    }

    #[test]
    fn each_setting_declares_what_a_project_may_do_with_it() {
        let schema = schemars::schema_for!(Settings).to_value();
        let mut names = Vec::new();
        settings(&schema, &schema, "", &mut names);
        assert!(names.len() > 20, "{names:?}");
        // Only a section whose settings are all ignored is declared as a whole.
        let declares = |declared: &str, right: ProjectRight, name: &str| {
            let in_section = name.strip_prefix(declared).is_some_and(|rest| rest.starts_with('.'));
            declared == name || (in_section && right == ProjectRight::Nothing)
        };
        let count = |name: &str| PROJECT_RIGHTS.iter().filter(|(declared, right)| declares(declared, *right, name)).count();
        let undeclared: Vec<&String> = names.iter().filter(|name| count(name) != 1).collect();
        assert!(undeclared.is_empty(), "not declared once in PROJECT_RIGHTS: {undeclared:?}");
        let unknown = PROJECT_RIGHTS.iter().filter(|(declared, right)| !names.iter().any(|name| declares(declared, *right, name)));
        assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&(&str, ProjectRight)>::new());
    }

    #[test]
    fn each_right_to_narrow_is_implemented() {
        let user = Settings::default();
        let narrower = "[budget]\nmax_requests = 1\nmax_tokens = 1\nmax_cost = 0.5\nmax_wall_s = 1\nsession_max_requests = 1\n\
                        session_max_tokens = 1\nsession_max_cost = 0.5\nsession_max_wall_s = 1\n[permissions]\ndefault = \"deny\"\ntimeout_s = 1\nrules = [{ policy = \"deny\" }]\n\
                        [sandbox]\nmode = \"read-only\"\nnetwork = false\n[lsp.x]\ncommand = []\n";
        let mut table: Table = toml::from_str(narrower).expect("settings");
        let expected = table.clone();
        assert_eq!(narrow(&mut table, &user), Vec::<String>::new());
        assert_eq!(table, expected);
        let narrows = |path: &&str| remove(&mut expected.clone(), path).is_some();
        let declared = PROJECT_RIGHTS.iter().filter(|(_, right)| *right == ProjectRight::Narrow);
        assert_eq!(declared.map(|(path, _)| *path).filter(|path| !narrows(path)).collect::<Vec<_>>(), Vec::<&str>::new());
    }

    #[test]
    fn an_undeclared_setting_of_a_project_is_ignored() {
        let mut table: Table = toml::from_str("new = 1\n[tools]\nmax_concurrency = 2\nnew = 3\n").expect("settings");
        let ignored = narrow_by(&[("tools.max_concurrency", ProjectRight::Set)], &mut table, &Settings::default());
        assert_eq!(ignored, ["new", "tools.new"]);
        assert_eq!(table, toml::from_str("[tools]\nmax_concurrency = 2\n").expect("settings"));
    }
}
