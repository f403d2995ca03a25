//! Finds the user's global Git ignore file (`core.excludesFile`, gitignore(5)), which searches
//! honour.

use std::path::PathBuf;

use super::data_paths::Environment;
use crate::workspace::read_small;

/// Returns the path in `core.excludesFile` of the user's Git configuration, or Git's default path.
/// The file need not exist.
pub(crate) fn excludes(environment: &Environment) -> Option<PathBuf> {
    let home = environment.get("HOME").map(PathBuf::from);
    let settings = environment.get("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(".config")));
    let files = [home.as_ref().map(|home| home.join(".gitconfig")), settings.as_ref().map(|settings| settings.join("git/config"))];
    let named = files.into_iter().flatten().find_map(|file| excludes_file(&String::from_utf8_lossy(&read_small(&file).ok()?)));
    match named {
        Some(named) => match named.strip_prefix("~/") {
            Some(rest) => Some(home?.join(rest)),
            None => Some(named.into()),
        },
        None => Some(settings?.join("git/ignore")),
    }
}

/// Returns the last value of `excludesfile`. Sections are ignored: only `core` has a key of this
/// name.
fn excludes_file(settings: &str) -> Option<String> {
    let value = |line: &str| {
        let (name, value) = line.split_once('=')?;
        let value = value.trim().trim_matches('"').trim();
        (name.trim().eq_ignore_ascii_case("excludesfile") && !value.is_empty()).then(|| value.to_owned())
    };
    settings.lines().filter_map(value).next_back()
}
