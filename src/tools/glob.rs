//! `glob`: finds files by path pattern, newest first.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use globset::GlobSet;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::content::ToolKind;
use crate::permission::Access;
use crate::toolkit::ignored_files::IgnoredFiles;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties, path_patterns};
use crate::workspace::{ResolvedPath, Walk, Workspace};

const GLOB_PATHS_MAX: usize = 200;

pub(super) struct Glob;

/// Finds files by path pattern, such as `src/**/*.{ts,tsx}`, newest first. A pattern without a
/// slash matches names at any depth. Skips git-ignored files.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct GlobInput {
    pattern: String,
    /// Default: the working directory.
    #[serde(default, alias = "directory", alias = "dir")]
    path: Option<String>,
}

impl GlobInput {
    /// Returns the directory to search, and the pattern relative to it. If the pattern is an
    /// absolute path or starts with `~/` or `../`, the directory is taken from the part of the
    /// pattern before the first wildcard.
    fn place(&self) -> (String, String) {
        let base = self.path.clone().unwrap_or_else(|| ".".into());
        if !["/", "~/", "../"].iter().any(|begin| self.pattern.starts_with(begin)) {
            return (base, self.pattern.trim_start_matches("./").to_owned());
        }
        let literal = self.pattern.find(['*', '?', '[', '{']).unwrap_or(self.pattern.len());
        let cut = self.pattern[..literal].rfind('/').unwrap_or(0);
        let place = &self.pattern[..cut.max(1)];
        let place = if place.starts_with("..") { format!("{base}/{place}") } else { place.to_owned() };
        (place, self.pattern[cut + 1..].to_owned())
    }
}

/// The details of the result of a `glob` call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct GlobDetails {
    /// Files found.
    count: usize,
    /// Not all of them are shown.
    truncated: bool,
}

impl Tool for Glob {
    type Input = GlobInput;
    type Details = GlobDetails;
    const NAME: &'static str = "glob";
    const LABEL: &'static str = "Find files";
    const ALIASES: &'static [&'static str] = &["fs_glob", "search_files"];
    const KIND: ToolKind = ToolKind::Search;
    const PROPERTIES: ToolProperties = ToolProperties { lists_files: true, ..ToolProperties::NONE };

    fn title(&self, input: &GlobInput, workspace: &Workspace) -> String {
        let (base, pattern) = input.place();
        match workspace.show(&workspace.resolve(&base).path).as_str() {
            "." => format!("Find {pattern}"),
            shown => format!("Find {pattern} in {shown}"),
        }
    }

    fn access(&self, input: &GlobInput) -> Access {
        Access::read(input.place().0)
    }

    async fn run(&self, input: GlobInput, context: &ToolContext) -> Result<ToolOutput<GlobDetails>, ToolError> {
        let (base, pattern) = input.place();
        let resolved = context.workspace.resolve(&base);
        let inner = context.clone();
        context.search(move || glob(&resolved, &pattern, &inner)).await
    }
}

fn glob(resolved: &ResolvedPath, pattern: &str, context: &ToolContext) -> Result<ToolOutput<GlobDetails>, ToolError> {
    std::fs::read_dir(&resolved.real).map_err(|error| context.failed("searching", &resolved.path, error))?;
    let matcher = path_patterns::matcher([pattern])?;
    let walk = context.walk(&resolved.real).hidden(path_patterns::names_hidden(pattern));
    let mut found = find(&walk, &resolved.real, &matcher);
    found.sort_by(|(one_time, one), (other_time, other)| other_time.cmp(one_time).then_with(|| one.cmp(other)));
    if !found.is_empty() {
        return Ok(output(&resolved.path, &found, context));
    }
    let deadline = IgnoredFiles::deadline();
    let ignored = find(&walk.only_ignored(deadline), &resolved.real, &matcher);
    let files = ignored.into_iter().map(|(_, path)| context.workspace.show(&resolved.path.join(path)));
    let note = IgnoredFiles::new(files, deadline).note("match").unwrap_or_default();
    Ok(ToolOutput::text(format!("no files found\n{note}"), GlobDetails { count: 0, truncated: false }))
}

/// Returns the files that match, relative to `root`, with their times of modification.
fn find(walk: &Walk, root: &Path, matcher: &GlobSet) -> Vec<(SystemTime, PathBuf)> {
    let found: Mutex<Vec<(SystemTime, PathBuf)>> = Mutex::default();
    walk.parallel(|| {
        |entry| {
            let path = entry.path.strip_prefix(root).unwrap_or(&entry.path);
            if matcher.is_match(path) {
                let modified =
                    entry.metadata().ok().and_then(|metadata| metadata.modified().ok()).unwrap_or(SystemTime::UNIX_EPOCH);
                found.lock().push((modified, path.to_owned()));
            }
            true
        }
    });
    found.into_inner()
}

fn output(base: &Path, found: &[(SystemTime, PathBuf)], context: &ToolContext) -> ToolOutput<GlobDetails> {
    let mut text = String::new();
    for (_, path) in found.iter().take(GLOB_PATHS_MAX) {
        text.push_str(&context.workspace.show(&base.join(path)));
        text.push('\n');
    }
    let truncated = found.len() > GLOB_PATHS_MAX;
    let count = found.len();
    let note = truncated.then(|| format!("the {GLOB_PATHS_MAX} newest of {count} files; use a narrower pattern or path"));
    ToolOutput::text(text, GlobDetails { count, truncated }).notes(note)
}
