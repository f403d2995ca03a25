//! `nuncio config init`, `edit`, `set` and `unset`. They work with a settings file that is not
//! valid, and write only valid settings.

use std::io::IsTerminal;
use std::path::Path;

use toml_edit::Value;

use crate::cli::errors::report;
use crate::cli::flags::config_flags::ConfigFileCommand;
use crate::cli::terminal::editor::editor_command;
use crate::cli::terminal::lines::TerminalLines;
use crate::cli::terminal::output::print;
use crate::config::Environment;
use crate::config::settings_file::{SettingsFile, replace_if, text};
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
    let set = |value: Value| SettingsFile::read(path)?.set(key, value);
    match text.parse::<Value>() {
        Err(_) => set(text.into()),
        Ok(value) => set(value).or_else(|error| set(text.into()).map_err(|_| error)),
    }
}

/// Removes a dotted key, and the tables that are empty without it.
fn unset(path: &Path, key: &str) -> Result<()> {
    let mut settings = SettingsFile::read(path)?;
    if !settings.unset(key)? {
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
