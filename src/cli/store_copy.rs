//! `nuncio store copy`: copies all sessions between an SQLite and a PostgreSQL database.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::app::Bootstrap;
use crate::cli::terminal::amounts::duration;
use crate::cli::terminal::output::{print, print_json, print_stderr};
use crate::error::{Error, Result};
use crate::session::check_unowned;
use crate::session::shared_files::copy_files;
use crate::store::{CopyReport, Store, copy};
use crate::workspace::real_path;

/// Number of copied events after which the progress is printed.
const PROGRESS_EVENTS: u64 = 100_000;

const EXAMPLES: &str = "\
Examples:
  nuncio store copy sqlite postgres://USER@HOST/nuncio
  NUNCIO_STORE=postgres://USER:PASSWORD@HOST/nuncio nuncio store copy configured /backup/nuncio

End all processes that use one of the stores. After an interruption, the same command continues.
Attachments and artifacts are copied too: the files of an SQLite database are in its data directory.";

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum StoreCommand {
    /// Copy all sessions and workspaces of a store to another one, and compare both
    #[command(after_help = EXAMPLES)]
    Copy(CopyOptions),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CopyOptions {
    /// Store to read: sqlite (nuncio.db in the data directory), another data directory, a URL, or
    /// configured (the one of --store, NUNCIO_STORE or the settings)
    from: String,
    /// Store to write, in the same forms; empty, or with a part of the same copy
    to: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A store that the command line names.
enum StorePlace {
    /// The data directory that contains the database.
    Sqlite(PathBuf),
    /// The URL of the database.
    Postgres(String),
}

impl StorePlace {
    /// Parses an argument.
    fn parse(given: String, bootstrap: &Bootstrap) -> Result<StorePlace> {
        let own = || StorePlace::Sqlite(real_path(&bootstrap.places.data));
        Ok(match given.as_str() {
            "sqlite" => own(),
            "configured" => bootstrap.loaded.settings.store.postgres().map_or_else(own, |url| StorePlace::Postgres(url.to_owned())),
            url if url.contains("://") => StorePlace::Postgres(given),
            path => {
                let dir = real_path(&bootstrap.cwd.join(path));
                if dir.is_file() {
                    return Err(Error::invalid_params(format!("{path} is not a directory"))
                        .hint("name the directory that contains nuncio.db"));
                }
                StorePlace::Sqlite(dir)
            }
        })
    }

    /// Returns the data directory of an SQLite database.
    fn dir(&self) -> Option<PathBuf> {
        match self {
            StorePlace::Sqlite(dir) => Some(dir.clone()),
            StorePlace::Postgres(_) => None,
        }
    }

    /// Opens the store. Fails if a live process owns one of its sessions.
    async fn open(&self) -> Result<Store> {
        let (dir, url) = match self {
            StorePlace::Postgres(url) => (Path::new(""), Some(url.as_str())),
            StorePlace::Sqlite(dir) => (dir.as_path(), None),
        };
        let store = Store::open(dir, url).await?;
        check_unowned(dir, &store).await.map(|()| store)
    }
}

/// Runs `nuncio store`. Returns the exit code.
pub(in crate::cli) async fn run(bootstrap: Bootstrap, command: StoreCommand) -> Result<u8> {
    let StoreCommand::Copy(CopyOptions { from, to, json }) = command;
    let started = Instant::now();
    let (from, to) = (StorePlace::parse(from, &bootstrap)?, StorePlace::parse(to, &bootstrap)?);
    if let StorePlace::Sqlite(dir) = &from
        && !dir.join("nuncio.db").exists()
    {
        return Err(Error::not_found(format!("{} does not exist", dir.join("nuncio.db").display())));
    }
    let (from_dir, to_dir) = (from.dir(), to.dir());
    let (from, to) = (from.open().await?, to.open().await?);
    if from.place() == to.place() {
        return Err(Error::invalid_params(format!("both stores are {}", to.place())));
    }
    let mut printed = 0;
    let progress = move |copied: u64, all: u64| {
        if copied / PROGRESS_EVENTS > printed {
            printed = copied / PROGRESS_EVENTS;
            print_stderr(format!("copied {copied} of {all} events\n"));
        }
    };
    let report = copy(&from, &to, progress).await?;
    for id in from.session_ids("", usize::MAX / 2).await? {
        copy_files(&id, (&from, from_dir.as_deref()), (&to, to_dir.as_deref())).await?;
    }
    let (from, to) = (from.place(), to.place());
    let CopyReport { totals, written_rows, written_events } = report;
    if json {
        let line = json!({
            "from": from,
            "to": to,
            "sessions": totals.sessions,
            "events": totals.events,
            "workspaces": totals.workspaces,
            "responses": totals.answers,
            "copiedEvents": written_events,
            "verified": true,
        });
        return print_json(format!("{line}\n")).map(|()| 0);
    }
    let first = match written_rows + written_events {
        0 => format!("nothing to copy: {to} has all rows of {from}"),
        _ => format!("copied {from} to {to} in {}: {written_events} of {} events", duration(started.elapsed()), totals.events),
    };
    print(format!(
        "{first}\nverified: sessions {}, events {}, workspaces {}, stored responses {}\n",
        totals.sessions, totals.events, totals.workspaces, totals.answers
    ))?;
    Ok(0)
}
