//! `nuncio config init`, `edit`, `set` and `unset`. They work with a settings file that is not
//! valid, and write only valid settings.

use std::io::IsTerminal;
use std::path::Path;

use toml_edit::{Item, Key, TableLike, Value};

use crate::cli::errors::report;
use crate::cli::flags::config_flags::ConfigFileCommand;
use crate::cli::terminal::editor::editor_command;
use crate::cli::terminal::lines::TerminalLines;
use crate::cli::terminal::output::print;
use crate::config::Environment;
use crate::config::settings_file::{SettingsFile, inner_table, move_suffix, replace_if, text};
use crate::error::{Error, Result};
use crate::process::ProcessLauncher;
use crate::workspace::write_private;

/// The file that `init` writes: comments with the settings that most users change.
const TEMPLATE: &str = include_str!("config.toml");

/// Runs a command for the settings file.
pub(in crate::cli) async fn run(environment: &Environment, path: &Path, command: ConfigFileCommand) -> Result<u8> {
    match command {
        ConfigFileCommand::Path => print(format!("{}\n", path.display())),
        ConfigFileCommand::Init => init(path),
        ConfigFileCommand::Edit => edit(path, environment).await,
        ConfigFileCommand::Set { key, value } => set(path, &key, &value),
        ConfigFileCommand::Unset { key } => unset(path, &key),
    }
    .map(|()| 0)
}

/// Writes a settings file of comments. Fails if there is a file.
fn init(path: &Path) -> Result<()> {
    if text(path)?.is_some() {
        return Err(Error::invalid_params(format!("{} exists", path.display())).hint("change it: nuncio config edit"));
    }
    replace_if(path, None, TEMPLATE)?;
    print(format!("created {}\n", path.display()))
}

/// Sets the value of a dotted key. `text` is a TOML value, else a string.
fn set(path: &Path, key: &str, text: &str) -> Result<()> {
    let keys = keys(key)?;
    let set = |value: Value| {
        let mut settings = SettingsFile::read(path)?;
        // The comments of a file without settings stay at its start.
        let comments = match settings.document.is_empty() {
            true => std::mem::take(&mut settings.document).to_string(),
            false => String::new(),
        };
        set_value(settings.document.as_table_mut(), &keys, value)?;
        settings.save_after(&comments)
    };
    match text.parse::<Value>() {
        Err(_) => set(text.into()),
        Ok(value) => set(value).or_else(|error| set(text.into()).map_err(|_| error)),
    }
}

/// Removes a dotted key, and the tables that are empty without it.
fn unset(path: &Path, key: &str) -> Result<()> {
    let mut settings = SettingsFile::read(path)?;
    if !remove(settings.document.as_table_mut(), &keys(key)?) {
        return Err(Error::invalid_params(format!("{key} is not set in {}", path.display())));
    }
    settings.save()
}

/// Opens the file in the user's editor, and replaces it when the editor has ended. If the text is
/// not valid settings, asks whether to edit it again.
async fn edit(path: &Path, environment: &Environment) -> Result<()> {
    let before = text(path)?;
    let directory = environment.get("TMPDIR").unwrap_or("/tmp");
    let copy = Path::new(directory).join(format!("nuncio-config-{}.toml", std::process::id()));
    let _ = std::fs::remove_file(&copy);
    write_private(&copy, before.as_deref().unwrap_or(TEMPLATE).as_bytes())
        .map_err(|error| Error::io(format_args!("writing {}", copy.display()), error))?;
    let lines = TerminalLines::default();
    loop {
        let (command, program) = editor_command(environment, &copy, Path::new("."));
        let launcher = ProcessLauncher::of_this_binary();
        let ended = crate::task::blocking("running the editor", move || launcher.run_on_terminal(&command)).await?;
        if !ended.map_err(|error| error.hint("set $VISUAL or $EDITOR"))? {
            let _ = std::fs::remove_file(&copy);
            return Err(Error::invalid_params(format!("{program} failed; the settings are unchanged")));
        }
        let after = text(&copy)?.unwrap_or_default();
        if before.as_deref() == Some(after.as_str()) {
            let _ = std::fs::remove_file(&copy);
            return print("the settings are unchanged\n");
        }
        let Err(error) = replace_if(path, before.as_deref(), &after) else {
            let _ = std::fs::remove_file(&copy);
            return print(format!("changed {}\n", path.display()));
        };
        let kept = format!("the settings are unchanged; the edited text is {}", copy.display());
        if !std::io::stdin().is_terminal() {
            return Err(error.hint(kept));
        }
        report(&error);
        if !lines.lock().await.confirm("Edit again?").await {
            return Err(Error::invalid_params(kept));
        }
    }
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
