//! `nuncio trust`.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use super::trust_report::TrustReport;
use crate::app::Bootstrap;
use crate::cli::flags::TrustCommand;
use crate::cli::terminal::lines::TerminalLines;
use crate::cli::terminal::output::print;
use crate::config::{Trust, TrustStatus, TrustedContent};
use crate::error::{Error, Kind, Result};
use crate::patch::{Side, unified_diff};
use crate::terminal_text::{output, output_line};

/// The flags of `nuncio trust DIR`.
pub(in crate::cli) struct TrustFlags {
    pub yes: bool,
    pub json: bool,
    pub diff: bool,
}

/// Runs the command, or trusts `dir` without one. Returns the exit code.
pub(in crate::cli) async fn run(bootstrap: &Bootstrap, dir: &Path, view: TrustFlags, command: Option<TrustCommand>) -> Result<u8> {
    match command {
        None if view.diff => diff(bootstrap, dir),
        None => add(bootstrap, dir, &view).await,
        Some(TrustCommand::List) => list(bootstrap),
        Some(TrustCommand::Remove { dir }) => remove(bootstrap, &dir),
    }
}

/// Shows what a directory starts and allows, and trusts it. Asks first at a terminal.
async fn add(bootstrap: &Bootstrap, dir: &Path, view: &TrustFlags) -> Result<u8> {
    let directory = directory(bootstrap, dir)?;
    let failed = |error| Error::io(format_args!("reading the settings of {}", directory.display()), error);
    // The list is built from the content that is recorded, so that nothing else is trusted if a
    // file changes before the answer.
    let content = TrustedContent::read(&directory).map_err(failed)?;
    let report = TrustReport::new(bootstrap, &directory, &content)?;
    if view.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| Error::internal(format!("encoding the list: {error}")))?;
        print(text + "\n")?;
    } else {
        print(report.text())?;
    }
    let asks = !view.yes && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if asks && !TerminalLines::default().lock().await.confirm("Trust it?").await {
        return Err(Error::new(Kind::Cancelled, "the directory was not trusted"));
    }
    Trust::add(&bootstrap.places, &directory, &content)?;
    if !view.json {
        let trusted = output_line(&directory.display().to_string());
        print(format!("{trusted} is trusted, until its settings or the files that they name change\n"))?;
    }
    Ok(0)
}

/// Shows what changed since a directory was trusted.
fn diff(bootstrap: &Bootstrap, dir: &Path) -> Result<u8> {
    let directory = directory(bootstrap, dir)?;
    let shown = output_line(&directory.display().to_string());
    let trust = Trust::load(&bootstrap.places);
    let Some(before) = trust.trusted_parts(&bootstrap.places, &directory) else {
        let why = match trust.status(&directory) {
            TrustStatus::No => "is not trusted",
            TrustStatus::Yes | TrustStatus::Changed | TrustStatus::NoDigest => {
                "was trusted with an older version of nuncio, without the content"
            }
        };
        return Err(
            Error::not_found(format!("{shown} {why}")).hint(format!("to see what would run, and trust it: nuncio trust {shown}"))
        );
    };
    let now =
        TrustedContent::read(&directory).map_err(|error| Error::io(format_args!("reading the settings of {shown}"), error))?;
    let now = now.by_name();
    let mut names: Vec<&String> = before.keys().chain(now.keys()).collect();
    names.sort();
    names.dedup();
    let mut changed = false;
    for name in names {
        let side = |parts: &'_ BTreeMap<String, String>| parts.get(name).cloned();
        let (old, new) = (side(&before), side(&now));
        let diff =
            unified_diff(old.as_deref().map(|text| Side::text(name, text)), new.as_deref().map(|text| Side::text(name, text)));
        changed |= !diff.text.is_empty();
        print(output(&diff.text))?;
    }
    if !changed {
        print(format!("{shown}: nothing changed since it was trusted\n"))?;
    }
    Ok(0)
}

fn directory(bootstrap: &Bootstrap, dir: &Path) -> Result<PathBuf> {
    let doing = format!("trusting {}", dir.display());
    std::fs::canonicalize(bootstrap.cwd.join(dir)).map_err(|error| Error::io(&doing, error))
}

fn list(bootstrap: &Bootstrap) -> Result<u8> {
    for (directory, status) in Trust::load(&bootstrap.places).list() {
        let directory = output_line(&directory.display().to_string());
        let note = match status {
            TrustStatus::Yes | TrustStatus::No => "",
            TrustStatus::Changed => "  (not in effect: its settings have changed)",
            TrustStatus::NoDigest => "  (not in effect: trusted with an older version of nuncio, without the content)",
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
