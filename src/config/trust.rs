//! Directories whose project files may widen what is allowed: a list of paths, one a line, in the data directory.

use std::fs;
use std::path::{Path, PathBuf};

use super::places::Places;
use crate::error::{Error, Result};

#[derive(Clone, Debug, Default)]
pub struct Trust {
    directories: Vec<PathBuf>,
}

impl Trust {
    pub fn load(places: &Places) -> Trust {
        let text = fs::read_to_string(file(places)).unwrap_or_default();
        Trust { directories: text.lines().filter(|line| !line.is_empty()).map(PathBuf::from).collect() }
    }

    /// Whether `dir`, or a directory above it, is trusted. Compared without symlinks.
    pub fn covers(&self, dir: &Path) -> bool {
        let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.into());
        self.directories.iter().any(|trusted| dir.starts_with(trusted))
    }

    /// Adds `dir` and writes the list. Returns the directory as it was remembered.
    pub fn add(places: &Places, dir: &Path) -> Result<PathBuf> {
        let dir = fs::canonicalize(dir).map_err(|error| Error::io(format_args!("trusting {}", dir.display()), error))?;
        let mut trust = Trust::load(places);
        if !trust.directories.contains(&dir) {
            trust.directories.push(dir.clone());
        }
        let lines: String = trust.directories.iter().map(|dir| format!("{}\n", dir.display())).collect();
        let path = file(places);
        let write = || {
            fs::create_dir_all(&places.data)?;
            fs::write(path.with_extension("new"), lines)?;
            fs::rename(path.with_extension("new"), &path)
        };
        write().map_err(|error| Error::io(format_args!("writing {}", path.display()), error))?;
        Ok(dir)
    }
}

fn file(places: &Places) -> PathBuf {
    places.data.join("trusted")
}
