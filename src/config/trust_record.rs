//! The stored record of a trusted directory: its settings and checks, whose restrictions remain in
//! effect after a change, and the texts of its files, for `nuncio trust --diff`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::data_paths::DataPaths;
use super::trusted_content::{TrustedContent, entry};
use crate::error::{Error, Kind, Result};
use crate::workspace::{create_private_dir, read_bounded, replace_private};

/// Maximum size of a stored record of trusted settings, or of the files that they name, in bytes.
const TRUST_RECORD_BYTES_MAX: u64 = 64 << 20;

/// The settings and checks of a directory when it was trusted. Unknown fields are refused: a record
/// of another version must not count as a project without settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrustRecord {
    /// The text of `.nuncio/config.toml`. `None` if the file did not exist.
    #[serde(deserialize_with = "Option::deserialize")]
    pub settings: Option<String>,
    /// The check commands of AGENTS.md.
    pub checks: Vec<String>,
}

impl TrustRecord {
    /// Reads the record of `directory`. Returns `None` if there is no record, or if its digest is
    /// not `digest`.
    pub(super) fn read(places: &DataPaths, directory: &Path, digest: &str) -> Option<TrustRecord> {
        stored(&path(places, directory), digest)
    }

    /// Reads the texts of the files of `directory`, as [`TrustRecord::read`] does.
    pub(super) fn files(places: &DataPaths, directory: &Path, digest: &str) -> Option<BTreeMap<String, String>> {
        stored(&files_path(places, directory), digest)
    }

    pub(super) fn store(places: &DataPaths, directory: &Path, digest: &str, content: &TrustedContent) -> Result<()> {
        create_private_dir(&base(places))?;
        let settings = content.settings.as_deref().map(|text| String::from_utf8_lossy(text).into_owned());
        let record = TrustRecord { settings, checks: content.checks.clone() };
        write(&path(places, directory), digest, &record)?;
        write(&files_path(places, directory), digest, &content.file_texts())
    }
}

fn base(places: &DataPaths) -> PathBuf {
    places.data.join("trusted-content")
}

fn path(places: &DataPaths, directory: &Path) -> PathBuf {
    entry(&base(places), directory)
}

fn files_path(places: &DataPaths, directory: &Path) -> PathBuf {
    path(places, directory).with_extension("files")
}

/// Reads a value that [`write`] wrote for this digest.
fn stored<T: DeserializeOwned>(path: &Path, digest: &str) -> Option<T> {
    let text = String::from_utf8(read_bounded(path, TRUST_RECORD_BYTES_MAX).ok()?).ok()?;
    let (recorded, value) = text.split_once('\n')?;
    serde_json::from_str(value).ok().filter(|_| recorded == digest)
}

/// Writes a value with the digest of the content that it belongs to.
fn write(path: &Path, digest: &str, value: &impl Serialize) -> Result<()> {
    let doing = format!("writing {}", path.display());
    let value = serde_json::to_string(value).map_err(|error| Error::internal(format!("{doing}: {error}")))?;
    let text = format!("{digest}\n{value}");
    if text.len() as u64 > TRUST_RECORD_BYTES_MAX {
        let most = TRUST_RECORD_BYTES_MAX >> 20;
        return Err(Error::new(
            Kind::InvalidParams,
            format!("{doing}: the files that the settings name have more than {most} MiB"),
        ));
    }
    replace_private(path, text.as_bytes()).map_err(|error| Error::io(doing, error))
}
