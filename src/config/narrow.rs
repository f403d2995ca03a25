//! Reduces the settings of an untrusted project to those that the project may change.

use toml::{Table, Value};

use super::sandbox_settings::SandboxMode;
use super::settings::{PROJECT_RIGHTS, Policy, ProjectRight, Rule, Settings};

/// Keeps only the settings that [`PROJECT_RIGHTS`] lists and permits in the table of a project's
/// settings file. An unlisted setting is removed. Returns the names of the removed settings, which
/// are shown in a notice.
pub fn narrow(table: &mut Table, user: &Settings) -> Vec<String> {
    let mut given = std::mem::take(table);
    let mut ignored = Vec::new();
    for (path, right) in PROJECT_RIGHTS {
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

/// Removes what a trusted project may not widen either: the sandbox, the grants of the user, and
/// the chat. Returns the names of the removed settings.
pub(super) fn narrow_trusted(table: &mut Table, user: &Settings) -> Vec<String> {
    let mut limited = Table::new();
    for section in ["sandbox", "trust", "chat"] {
        limited.extend(table.remove_entry(section));
    }
    let ignored = narrow(&mut limited, user);
    table.extend(limited);
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
        "permissions.background_timeout_s" => {
            read(value).is_some_and(|seconds: u64| seconds <= user.permissions.background_timeout_s)
        }
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
