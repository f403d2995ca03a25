//! What the settings file of an untrusted project may change.

use nuncio::internal::config::{PROJECT_RIGHTS, ProjectRight, Settings, narrow};
use serde_json::Value as Json;
use toml::Table;

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
                    session_max_tokens = 1\nsession_max_cost = 0.5\nsession_max_wall_s = 1\n[permissions]\ndefault = \"deny\"\ntimeout_s = 1\nbackground_timeout_s = 1\nrules = [{ policy = \"deny\" }]\n\
                    [sandbox]\nmode = \"read-only\"\nnetwork = false\n[lsp.x]\ncommand = []\n";
    let mut table: Table = toml::from_str(narrower).expect("settings");
    let expected = table.clone();
    assert_eq!(narrow(&mut table, &user), Vec::<String>::new());
    assert_eq!(table, expected);
    let narrower = toml::Value::Table(expected);
    let narrows = |path: &&str| path.split('.').try_fold(&narrower, |value, name| value.get(name)).is_some();
    let declared = PROJECT_RIGHTS.iter().filter(|(_, right)| *right == ProjectRight::Narrow);
    assert_eq!(declared.map(|(path, _)| *path).filter(|path| !narrows(path)).collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn an_undeclared_setting_of_a_project_is_ignored() {
    let mut table: Table = toml::from_str("new = 1\n[tools]\nmax_concurrency = 2\nnew = 3\n").expect("settings");
    let ignored = narrow(&mut table, &Settings::default());
    assert_eq!(ignored, ["new", "tools.new"]);
    assert_eq!(table, toml::from_str("[tools]\nmax_concurrency = 2\n").expect("settings"));
}
