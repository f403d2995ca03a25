//! Changes of a settings file by commands. Comments and the order of the file are kept, and a file
//! is replaced only by valid settings.

use std::fs::File;
use std::path::Path;

use toml_edit::{Array, DocumentMut, Item, Key, Table, TableLike, Value};

use super::data_paths::DataPaths;
use super::parse::check_settings;
use super::rule_paths::add_resolved_paths;
use super::settings::Rule;
use crate::error::{Error, Result};
use crate::workspace::{create_private_dir, lock_files, read_small_text, real_path, replace_private};

/// A settings file and its content; an absent file is empty.
pub(crate) struct SettingsFile<'a> {
    path: &'a Path,
    pub document: DocumentMut,
    /// Makes other commands that change the file wait.
    _lock: Option<File>,
}

impl<'a> SettingsFile<'a> {
    /// Reads the file, which no other command changes until the value is dropped.
    pub(crate) fn read(path: &'a Path) -> Result<SettingsFile<'a>> {
        let lock = real_path(path).parent().map(lock_files).transpose()?;
        let text = text(path)?.unwrap_or_default();
        let document = text.parse::<DocumentMut>();
        // The error message contains the lines of the file.
        let document = document.map_err(|error| Error::invalid_params(format!("{}: {}", path.display(), error.message())));
        Ok(SettingsFile {
            path,
            _lock: lock,
            document: document.map_err(|error| error.hint("correct the file: nuncio config edit"))?,
        })
    }

    /// Returns the table of this name, which is created if it does not exist.
    pub(crate) fn table(&mut self, name: &str) -> Result<&mut dyn TableLike> {
        inner_table(self.document.as_table_mut(), name)
    }

    pub(crate) fn add(&mut self, group: &str, name: &str, table: Table) -> Result<()> {
        self.table(group)?.insert(name, Item::Table(table));
        Ok(())
    }

    /// Removes `name` from the table `group`, and the table if it is then empty. Returns whether it
    /// existed.
    pub(crate) fn remove(&mut self, group: &str, name: &str) -> bool {
        let Some(table) = self.document.get_mut(group).and_then(Item::as_table_like_mut) else { return false };
        let existed = table.remove(name).is_some();
        if existed && table.is_empty() {
            self.document.remove(group);
        }
        existed
    }

    /// Sets the value of a dotted key, such as `budget.max_cost` or `models."work/big".price`, and
    /// saves the file.
    pub(crate) fn set(&mut self, key: &str, value: Value) -> Result<()> {
        let keys = keys(key)?;
        // The comments of a file without settings stay at its start.
        let comments = match self.document.is_empty() {
            true => std::mem::take(&mut self.document).to_string(),
            false => String::new(),
        };
        set_value(self.document.as_table_mut(), &keys, value)?;
        replace(self.path, &format!("{comments}{}", self.document))
    }

    /// Removes a dotted key and the tables that are empty without it. Returns whether it existed.
    pub(crate) fn unset(&mut self, key: &str) -> Result<bool> {
        Ok(remove(self.document.as_table_mut(), &keys(key)?))
    }

    /// Replaces the file, or the file to which a link leads. Fails if the settings would be
    /// invalid.
    pub(crate) fn save(&self) -> Result<()> {
        replace(self.path, &self.document.to_string())
    }
}

/// Replaces a settings file by `text`, as [`replace`] does, unless its content is no longer
/// `before`.
pub(crate) fn replace_if(path: &Path, before: Option<&str>, after: &str) -> Result<()> {
    let _lock = real_path(path).parent().map(lock_files).transpose()?;
    if text(path)?.as_deref() != before {
        return Err(Error::invalid_params(format!("{} was changed by another program", path.display())));
    }
    replace(path, after)
}

/// Returns the text of a settings file, `None` if there is no such file.
pub(crate) fn text(path: &Path) -> Result<Option<String>> {
    match read_small_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(format_args!("reading {}", path.display()), error)),
    }
}

/// Replaces a settings file, or the file to which a link leads, by `text`. Fails if `text` is not
/// valid settings.
fn replace(path: &Path, text: &str) -> Result<()> {
    check_settings(path, text)?;
    let file = &real_path(path);
    if let Some(parent) = file.parent() {
        create_private_dir(parent)?;
    }
    replace_private(file, text.as_bytes()).map_err(|error| Error::io(format_args!("writing {}", file.display()), error))
}

/// Returns a table in `outer`, which is created if it does not exist.
fn inner_table<'t>(outer: &'t mut dyn TableLike, name: &str) -> Result<&'t mut dyn TableLike> {
    let mut created = Table::new();
    // Without settings of its own, the table has no header.
    created.set_implicit(true);
    let item = outer.entry(name).or_insert(Item::Table(created));
    item.as_table_like_mut().ok_or_else(|| Error::invalid_params(format!("the setting {name} has a value, and is not a table")))
}

pub(crate) fn list(texts: &[String]) -> Item {
    Item::Value(Value::Array(texts.iter().collect::<Array>()))
}

/// Appends a text to a list. What follows the last item, such as a comment, then follows the text.
pub(crate) fn append(list: &mut Array, text: &str) {
    let mut added = Value::from(text);
    let last = list.len().checked_sub(1).and_then(|last| list.get_mut(last));
    if let Some(last) = last {
        added.decor_mut().set_prefix(" ");
        move_suffix(last, &mut added);
    }
    list.push_formatted(added);
}

/// Moves what follows the value `from` in its line to `to`.
pub(crate) fn move_suffix(from: &mut Value, to: &mut Value) {
    if let Some(suffix) = from.decor().suffix().cloned() {
        to.decor_mut().set_suffix(suffix);
        from.decor_mut().set_suffix("");
    }
}

/// Fails if `name` cannot be the name of a table without quotes.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
        return Err(Error::invalid_params(format!("invalid name \"{name}\"")).hint("use letters, digits, `_` and `-`"));
    }
    Ok(())
}

/// Parses a dotted key, such as `budget.max_cost` or `models."work/big".price`.
fn keys(key: &str) -> Result<Vec<Key>> {
    Key::parse(key).map_err(|_| {
        Error::invalid_params(format!("invalid key \"{key}\"")).hint("quote names with other characters: models.\"work/big\".price")
    })
}

/// Sets a value. The comments at a value that it replaces are kept.
fn set_value(mut table: &mut dyn TableLike, keys: &[Key], mut value: Value) -> Result<()> {
    let Some((last, outer)) = keys.split_last() else { return Ok(()) };
    for key in outer {
        table = inner_table(table, key.get())?;
    }
    match table.get_mut(last.get()) {
        Some(item) if item.is_table() || item.is_array_of_tables() => {
            return Err(Error::invalid_params(format!("{} is a table", last.get())).hint("set its values, or: nuncio config edit"));
        }
        Some(item) => {
            if let Some(old) = item.as_value() {
                *value.decor_mut() = old.decor().clone();
            }
            *item = Item::Value(value);
        }
        None => {
            // The blank before the `}` of an inline table. Comments stay at their value.
            let is_blank = |old: &&mut Value| old.decor().suffix().and_then(|suffix| suffix.as_str()) == Some(" ");
            if let Some(old) = table.iter_mut().last().and_then(|(_, item)| item.as_value_mut()).filter(is_blank) {
                value.decor_mut().set_prefix(" ");
                move_suffix(old, &mut value);
            }
            table.insert(last.get(), Item::Value(value));
        }
    }
    Ok(())
}

/// Removes a key and the tables that are empty without it. Returns whether the key existed.
fn remove(table: &mut dyn TableLike, keys: &[Key]) -> bool {
    let Some((first, inner)) = keys.split_first() else { return false };
    if inner.is_empty() {
        return table.remove(first.get()).is_some();
    }
    let Some(below) = table.get_mut(first.get()).and_then(Item::as_table_like_mut) else { return false };
    let removed = remove(below, inner);
    if removed && below.is_empty() {
        table.remove(first.get());
    }
    removed
}

/// Appends a permission rule to the settings file at `path`.
pub(crate) fn add_rule(path: &Path, rule: &Rule) -> Result<()> {
    let mut settings = SettingsFile::read(path)?;
    let text = toml::to_string(rule).map_err(|error| Error::internal(format!("writing a rule: {error}")))?;
    let table: DocumentMut = text.parse().map_err(|_| Error::internal("writing a rule"))?;
    let rules = settings.table("permissions")?.entry("rules").or_insert(list(&[]));
    match rules {
        Item::ArrayOfTables(tables) => tables.push(table.as_table().clone()),
        Item::Value(Value::Array(rules)) => {
            let mut rule = table.as_table().clone().into_inline_table();
            rule.fmt();
            rules.push_formatted(Value::InlineTable(rule).decorated("\n  ", ""));
            rules.set_trailing("\n");
            rules.set_trailing_comma(true);
        }
        _ => return Err(Error::invalid_params("permissions.rules is not a list")),
    }
    settings.save()
}

/// Removes the permission rules that mean the same as `rule` from the settings file at `path`.
/// Returns whether there were any.
pub(crate) fn remove_rule(path: &Path, rule: &Rule, places: &DataPaths) -> Result<bool> {
    let mut settings = SettingsFile::read(path)?;
    let is_rule = |text: String| {
        let mut rules: Vec<Rule> = toml::from_str(&text).into_iter().collect();
        add_resolved_paths(&mut rules, places);
        rules.contains(rule)
    };
    let permissions = settings.document.get_mut("permissions").and_then(Item::as_table_like_mut);
    let removed = match permissions.and_then(|permissions| permissions.get_mut("rules")) {
        Some(Item::ArrayOfTables(tables)) => {
            let before = tables.len();
            tables.retain(|table| !is_rule(table.to_string()));
            before - tables.len()
        }
        Some(Item::Value(Value::Array(rules))) => {
            let before = rules.len();
            let text = |value: &Value| value.as_inline_table().map(|table| table.clone().into_table().to_string());
            rules.retain(|value| !text(value).is_some_and(is_rule));
            before - rules.len()
        }
        _ => 0,
    };
    if removed > 0 {
        settings.save()?;
    }
    Ok(removed > 0)
}
