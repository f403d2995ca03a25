//! `nuncio config`.

use crate::app::Bootstrap;
use crate::cli::editors;
use crate::cli::errors::{exit_code, report};
use crate::cli::flags::config_flags::ConfigCommand;
use crate::cli::projects::config_check::findings;
use crate::cli::projects::rule_matches::rule_matches;
use crate::cli::terminal::output::print;
use crate::config::{LoadedSettings, load_project, mask_urls};
use crate::error::{Error, Result};

/// Loads the settings of the current directory, and checks the names of tools in them.
pub(in crate::cli) fn with_project(bootstrap: &Bootstrap) -> Result<LoadedSettings> {
    let loaded = load_project(&bootstrap.loaded, &bootstrap.places, &bootstrap.cwd, &bootstrap.environment, &bootstrap.overrides)?;
    loaded.check_tools(&bootstrap.tools.known(), &bootstrap.places, &bootstrap.cwd)?;
    Ok(loaded)
}

/// Runs `nuncio config`.
pub(crate) fn config(bootstrap: &Bootstrap, command: Option<ConfigCommand>) -> Result<u8> {
    match command.unwrap_or(ConfigCommand::Show) {
        ConfigCommand::File(_) => unreachable!("needs no valid settings"),
        ConfigCommand::Editor { name, write } => editors::run(bootstrap, &name, write)?,
        ConfigCommand::Check => {
            let loaded = with_project(bootstrap)?;
            for name in &loaded.ignored {
                print(format!("not used: {name} of this project ({})\n", loaded.ignored_hint(&bootstrap.cwd)))?;
            }
            if let Some(why) = loaded.distrusted {
                print(format!("the settings of this project cannot grant permissions: {why}\n"))?;
            }
            let findings = findings(bootstrap, &loaded);
            if !findings.is_empty() {
                findings.iter().for_each(report);
                return Ok(exit_code(&findings[0]));
            }
            for line in rule_matches(&loaded, &bootstrap.cwd) {
                print(format!("{line}\n"))?;
            }
            print("the settings are valid\n")?;
        }
        ConfigCommand::Show => {
            let loaded = with_project(bootstrap)?;
            let text = toml::to_string_pretty(&loaded.settings)
                .map_err(|error| Error::internal(format!("serializing the settings: {error}")))?;
            print(mask_urls(&text))?;
            for (name, origin) in &loaded.origins {
                print(format!("# {name}: {origin}\n"))?;
            }
        }
    }
    Ok(0)
}
