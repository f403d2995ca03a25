//! `nuncio trust`.

use std::path::Path;

use super::flags::TrustCommand;
use super::output::print;
use crate::app::Bootstrap;
use crate::config::{Trust, Trusted};
use crate::error::{Error, Result};
use crate::terminal_text::output_line;

/// Runs the command, or trusts `dir` without one. Returns the exit code.
pub(super) fn run(bootstrap: &Bootstrap, dir: &Path, command: Option<TrustCommand>) -> Result<u8> {
    match command {
        None => add(bootstrap, dir),
        Some(TrustCommand::List) => list(bootstrap),
        Some(TrustCommand::Remove { dir }) => remove(bootstrap, &dir),
    }
}

fn add(bootstrap: &Bootstrap, dir: &Path) -> Result<u8> {
    let trusted = Trust::add(&bootstrap.places, &bootstrap.cwd.join(dir))?;
    print(format!(
        "{} is trusted: its .nuncio/config.toml applies in full until the file changes, and language servers and hosted agents may run\n",
        output_line(&trusted.display().to_string())
    ))?;
    Ok(0)
}

fn list(bootstrap: &Bootstrap) -> Result<u8> {
    for (directory, status) in Trust::load(&bootstrap.places).list() {
        let directory = output_line(&directory.display().to_string());
        let note = match status {
            Trusted::Yes | Trusted::No => "",
            Trusted::Changed => "  (not in effect: its settings have changed)",
            Trusted::NoDigest => "  (not in effect: trusted with an older version of nuncio, without the content)",
        };
        print(format!("{directory}{note}\n"))?;
    }
    Ok(0)
}

fn remove(bootstrap: &Bootstrap, dir: &Path) -> Result<u8> {
    let Some(removed) = Trust::remove(&bootstrap.places, &bootstrap.cwd.join(dir))? else {
        let message = format!("{} is not in the list of trusted directories", dir.display());
        return Err(Error::not_found(message).hint("to see the list: nuncio trust list"));
    };
    print(format!("{} is no longer trusted\n", output_line(&removed.display().to_string())))?;
    if let Some(above) = Trust::load(&bootstrap.places).covering(&removed) {
        print(format!("{} is trusted, so hosted agents may still run below it\n", output_line(&above.display().to_string())))?;
    }
    Ok(0)
}
