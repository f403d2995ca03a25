//! Changes of the user's settings file by commands. Comments and the order of the file are kept: a
//! change edits the text, and is made only if the text then has the expected settings.

use std::path::Path;

use toml::{Table, Value};

use crate::error::{Error, Result};
use crate::workspace::{create_private_dir, read_small_text, real_path, replace_private};

/// The user's settings file and its text; an absent file is empty.
pub(in crate::cli) struct SettingsFile<'a> {
    path: &'a Path,
    pub text: String,
}

impl<'a> SettingsFile<'a> {
    /// Reads the file.
    pub(in crate::cli) fn read(path: &'a Path) -> Result<SettingsFile<'a>> {
        match read_small_text(path) {
            Ok(text) => Ok(SettingsFile { path, text }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(SettingsFile { path, text: String::new() }),
            Err(error) => Err(Error::io(format_args!("reading {}", path.display()), error)),
        }
    }

    /// Parses the text.
    pub(in crate::cli) fn table(&self) -> Result<Table> {
        table(&self.text)
    }

    /// Replaces the file, or the file to which a link leads, by `text`. Fails if the settings in
    /// `text` are not the `expected` ones, which means that the layout of the file was
    /// misunderstood.
    pub(in crate::cli) fn replace(&self, text: &str, expected: &Table) -> Result<()> {
        if table(text).ok().as_ref() != Some(expected) {
            let message = format!("{} is written in a way that cannot be changed automatically", self.path.display());
            return Err(Error::invalid_params(message).hint("change it in an editor"));
        }
        let file = &real_path(self.path);
        if let Some(parent) = file.parent() {
            create_private_dir(parent)?;
        }
        replace_private(file, text.as_bytes()).map_err(|error| Error::io(format_args!("writing {}", file.display()), error))
    }
}

/// Parses settings.
pub(in crate::cli) fn table(text: &str) -> Result<Table> {
    text.parse().map_err(|error: toml::de::Error| Error::invalid_params(format!("the settings file: {}", error.message())))
}

/// Appends a section after a blank line.
pub(in crate::cli) fn appended(text: &str, section: &str) -> String {
    let separator = match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{separator}{section}")
}

/// Formats a setting that is a list of texts.
pub(in crate::cli) fn list(texts: &[String]) -> Value {
    Value::Array(texts.iter().cloned().map(Value::String).collect())
}

/// Fails if `name` cannot be the name of a table without quotes.
pub(in crate::cli) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
        return Err(Error::invalid_params(format!("invalid name \"{name}\"")).hint("use letters, digits, `_` and `-`"));
    }
    Ok(())
}
