//! `nuncio man`: the man pages, generated from the flags.

use std::path::Path;

use clap::CommandFactory;

use super::flags::Flags;
use crate::error::{Error, Result};

/// Writes `nuncio.1` and a page for each command into a directory.
pub(super) fn write_pages(dir: &Path) -> Result<u8> {
    let written = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Flags::command(), dir));
    written.map_err(|error| Error::io(format!("writing man pages to {}", dir.display()), error))?;
    Ok(0)
}
