//! The content that a trust covers: a project's settings, the files inside the project that they
//! name, and the check commands of its AGENTS.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Result};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256, digest};

use super::data_paths::project_file;
use super::declared_checks::declared_checks;
use super::named_files::named_files;
use crate::workspace::{open_regular, read_small, read_small_text};

/// Name of the part with the settings.
pub(super) const SETTINGS: &str = ".nuncio/config.toml";
/// Name of the part with the check commands.
pub(super) const CHECKS: &str = "AGENTS.md (checks)";

/// The parts of a project that a trust covers.
#[derive(Clone, Debug)]
pub(crate) struct TrustedContent {
    /// The settings file; `None` if it is absent.
    pub settings: Option<Vec<u8>>,
    /// Name and content of the files.
    pub files: Vec<(String, FileContent)>,
    /// The check commands of AGENTS.md. They are compared by themselves, so that a new check does
    /// not stop the hooks.
    pub checks: Vec<String>,
}

/// The content of a file that settings name.
#[derive(Clone, Debug)]
pub(crate) enum FileContent {
    Bytes(Vec<u8>),
    /// A file that is too large to be kept.
    Large {
        bytes: u64,
        sha256: String,
    },
    /// A symlink that leads out of the project, to this path.
    Outside(PathBuf),
    /// The reason why the file cannot be read.
    Unreadable(String),
}

impl TrustedContent {
    /// Reads the content of `directory`, which is free of symlinks.
    pub(crate) fn read(directory: &Path) -> Result<TrustedContent> {
        match read_small(&project_file(directory)) {
            Ok(settings) => Ok(TrustedContent::read_with(directory, Some(settings))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(TrustedContent::read_with(directory, None)),
            Err(error) => Err(error),
        }
    }

    pub(super) fn read_with(directory: &Path, settings: Option<Vec<u8>>) -> TrustedContent {
        let files = named_files(directory, settings.as_deref());
        let files = files.into_iter().map(|file| (file.name, FileContent::read(&file.path, file.outside))).collect();
        let checks = read_small_text(&directory.join("AGENTS.md")).map(|text| declared_checks(&text)).unwrap_or_default();
        TrustedContent { settings, files, checks }
    }

    /// Returns the hexadecimal SHA-256 of the settings and of the files. Fails if a file cannot be
    /// read, so that such a file never equals a trusted one. The error is a message.
    pub(super) fn digest(&self) -> std::result::Result<String, String> {
        let mut all = Context::new(&SHA256);
        let mut add = |length: u64, bytes: &[u8]| {
            // Hash the length of each part, so that moving bytes from one part to another changes
            // the digest.
            all.update(&length.to_le_bytes());
            all.update(bytes);
        };
        match &self.settings {
            Some(settings) => add(settings.len() as u64, settings),
            None => add(u64::MAX, &[]),
        }
        for (name, content) in &self.files {
            add(name.len() as u64, name.as_bytes());
            // No file has one of the largest lengths, which mark the other kinds of content.
            match content {
                FileContent::Bytes(bytes) => add(bytes.len() as u64, bytes),
                FileContent::Large { bytes, sha256 } => add(u64::MAX - 1, format!("{bytes} {sha256}").as_bytes()),
                FileContent::Outside(path) => add(u64::MAX - 2, path.as_os_str().as_bytes()),
                FileContent::Unreadable(reason) => return Err(format!("{name}: {reason}")),
            }
        }
        Ok(hexadecimal(all.finish().as_ref()))
    }

    /// Returns the text of the files by name, for people.
    pub(super) fn file_texts(&self) -> BTreeMap<String, String> {
        self.files.iter().map(|(name, content)| (name.clone(), content.text())).collect()
    }

    /// Returns the text of all parts by name. Bytes that are not UTF-8 are replaced.
    pub(crate) fn by_name(&self) -> BTreeMap<String, String> {
        let settings = self.settings.as_deref().map(|content| String::from_utf8_lossy(content).into_owned());
        parts(settings, &self.checks, self.file_texts())
    }
}

/// Joins the parts of a trusted content by name.
pub(super) fn parts(settings: Option<String>, checks: &[String], files: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let settings = settings.map(|text| (SETTINGS.to_owned(), text));
    let checks = (!checks.is_empty()).then(|| (CHECKS.to_owned(), checks.join("\n") + "\n"));
    settings.into_iter().chain(files).chain(checks).collect()
}

impl FileContent {
    /// Reads the file at `path`. `outside` is set if it lies outside of the project.
    fn read(path: &Path, outside: Option<PathBuf>) -> FileContent {
        if let Some(outside) = outside {
            return FileContent::Outside(outside);
        }
        match read_small(path) {
            Ok(bytes) => FileContent::Bytes(bytes),
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                FileContent::hashed(path).unwrap_or_else(|error| FileContent::Unreadable(error.to_string()))
            }
            Err(error) => FileContent::Unreadable(error.to_string()),
        }
    }

    /// Hashes a large file.
    fn hashed(path: &Path) -> Result<FileContent> {
        let (mut file, _) = open_regular(path)?;
        let (mut all, mut bytes, mut buffer) = (Context::new(&SHA256), 0, vec![0; 1 << 16]);
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            all.update(&buffer[..read]);
            bytes += read as u64;
        }
        Ok(FileContent::Large { bytes, sha256: hexadecimal(all.finish().as_ref()) })
    }

    /// Returns the content, or a description of it. Bytes that are not UTF-8 are replaced.
    fn text(&self) -> String {
        match self {
            FileContent::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            FileContent::Large { bytes, sha256 } => format!("{bytes} bytes, SHA-256 {sha256}\n"),
            FileContent::Outside(path) => format!("symlink to {}\n", path.display()),
            FileContent::Unreadable(reason) => format!("unreadable: {reason}\n"),
        }
    }

    /// Describes the size on one line.
    pub(crate) fn size(&self) -> String {
        match self {
            FileContent::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => format!("{} lines", text.lines().count()),
                Err(_) => format!("{} bytes", bytes.len()),
            },
            FileContent::Large { bytes, .. } => format!("{bytes} bytes"),
            FileContent::Outside(path) => format!("symlink to {}", path.display()),
            FileContent::Unreadable(reason) => format!("unreadable: {reason}"),
        }
    }
}

/// Returns the directory for the data of `project` below `base`.
pub(super) fn entry(base: &Path, project: &Path) -> PathBuf {
    base.join(&hexadecimal(digest(&SHA256, project.as_os_str().as_bytes()).as_ref())[..32])
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
