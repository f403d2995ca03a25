//! The restrictions of trusted settings remain in effect if the project changes: a change must not
//! remove a guard.

use std::path::Path;

use toml::{Table, Value};

use super::data_paths::DataPaths;
use super::narrow::narrow;
use super::parse::parse;
use super::settings::{Rule, Settings};
use super::trust::{Trust, TrustStatus};
use super::trust_record::TrustRecord;

/// The restrictions of trusted settings.
#[derive(Default)]
pub(super) struct Restrictions {
    /// The settings that an untrusted project may set, and the hooks. The hooks do not start, and
    /// each run is a failure.
    pub table: Table,
    /// Deny and ask rules.
    pub rules: Vec<Rule>,
}

impl Restrictions {
    /// Returns the restrictions of the settings with which `cwd` was trusted. If those are not
    /// known, returns the hooks of its `current` settings, with one that blocks all calls of tools.
    pub(super) fn new(
        trust: &Trust,
        status: TrustStatus,
        places: &DataPaths,
        cwd: &Path,
        current: &Table,
        user: &Settings,
    ) -> Restrictions {
        let record = trust.record(places, cwd).and_then(|record| Restrictions::from_record(record, user));
        record.unwrap_or_else(|| {
            let mut hooks = current.get("hooks").and_then(Value::as_array).cloned().unwrap_or_default();
            if status == TrustStatus::Changed {
                hooks.push(unknown_hooks());
            }
            Restrictions { table: Table::from_iter([("hooks".to_owned(), Value::Array(hooks))]), rules: Vec::new() }
        })
    }

    /// Returns the restrictions of recorded settings; `None` if this version cannot read them.
    fn from_record(record: TrustRecord, user: &Settings) -> Option<Restrictions> {
        let mut table: Table = toml::from_str(&record.settings.unwrap_or_default()).ok()?;
        let hooks = table.remove("hooks");
        narrow(&mut table, user);
        table.extend(hooks.map(|hooks| ("hooks".to_owned(), hooks)));
        let rules = parse(&table, Path::new("trusted settings")).ok()?.permissions.rules;
        if let Some(Value::Table(permissions)) = table.get_mut("permissions") {
            permissions.remove("rules");
        }
        Some(Restrictions { table, rules })
    }
}

/// Creates a hook that runs before each tool call, in place of trusted hooks whose record is lost.
/// Like each hook of a changed project, it fails, which blocks the call.
fn unknown_hooks() -> Value {
    let command = ["true", "(the hooks that were trusted are not known)"].map(|word| Value::String(word.into()));
    let event = Value::String("tool.execute.before".into());
    Value::Table(Table::from_iter([("event".to_owned(), event), ("command".to_owned(), Value::Array(command.into()))]))
}
