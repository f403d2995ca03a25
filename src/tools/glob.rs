//! `glob`: finds files by path pattern, newest first.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::SystemTime;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::list::directory;
use super::{Output, Tool, ToolContext, ToolError};
use crate::content::ToolKind;
use crate::limits;
use crate::permission::Access;
use crate::workspace::{Placed, Workspace};

pub struct Glob;

/// Finds files by path pattern, such as `src/**/*.{ts,tsx}`, newest first. A pattern without a
/// slash matches names at any depth. Skips git-ignored files.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    pattern: String,
    /// Directory to search, default the working directory.
    #[serde(default, alias = "directory", alias = "dir")]
    path: Option<String>,
}

impl Input {
    /// The directory to search, and the pattern relative to it. If the pattern is an absolute path
    /// or starts with `~/` or `../`, the directory is its part before the first wildcard.
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

impl Tool for Glob {
    type Input = Input;
    const NAME: &'static str = "glob";
    const ALIASES: &'static [&'static str] = &["fs_glob", "search_files"];
    const KIND: ToolKind = ToolKind::Search;

    fn title(&self, input: &Input, workspace: &Workspace) -> String {
        let (base, pattern) = input.place();
        match workspace.show(&workspace.resolve(&base).path).as_str() {
            "." => format!("Find {pattern}"),
            shown => format!("Find {pattern} in {shown}"),
        }
    }

    fn access(&self, input: &Input) -> Access {
        Access::read(input.place().0)
    }

    /// details: `{count, truncated}`.
    async fn run(&self, input: Input, context: &ToolContext) -> Result<Output, ToolError> {
        let (base, pattern) = input.place();
        let placed = context.workspace.resolve(&base);
        let inner = context.clone();
        context.search(move || glob(&placed, &pattern, &inner)).await
    }
}

/// Patterns without a slash match names at any depth. A `GlobSet` is faster than a single `Glob`
/// for common patterns.
fn matcher<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<GlobSet, ToolError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
        set.add(
            GlobBuilder::new(&pattern).literal_separator(true).build().map_err(|error| ToolError(format!("pattern: {error}")))?,
        );
    }
    set.build().map_err(|error| ToolError(format!("pattern: {error}")))
}

/// A filter of files by path: `*.rs`, `src/**,*.toml`, `!*.lock`.
pub struct Names {
    wanted: Option<GlobSet>,
    unwanted: GlobSet,
}

impl Names {
    /// `patterns` are separated by commas; those that start with `!` exclude files.
    pub fn new(patterns: &str) -> Result<Names, ToolError> {
        let mut depth = 0;
        let apart = |character: char| {
            depth += i32::from(character == '{') - i32::from(character == '}');
            character == ',' && depth == 0
        };
        let patterns = patterns.split(apart).map(str::trim).filter(|pattern| !pattern.is_empty());
        let (unwanted, wanted): (Vec<&str>, Vec<&str>) = patterns.partition(|pattern| pattern.starts_with('!'));
        let plain = |pattern: &'_ str| pattern.trim_start_matches('!').trim_start_matches("./").to_owned();
        let (wanted, unwanted): (Vec<String>, Vec<String>) =
            (wanted.into_iter().map(plain).collect(), unwanted.into_iter().map(plain).collect());
        if let Some(pattern) = wanted.iter().chain(&unwanted).find(|pattern| pattern.starts_with("../") || pattern.starts_with('~'))
        {
            return Err(ToolError(format!("glob: {pattern} is outside the searched directory; pass that directory as path")));
        }
        let set = |patterns: &[String]| matcher(patterns.iter().map(String::as_str));
        Ok(Names { wanted: (!wanted.is_empty()).then(|| set(&wanted)).transpose()?, unwanted: set(&unwanted)? })
    }

    /// Returns whether the filter includes `path`, which is relative to the searched directory.
    pub fn fit(&self, path: &Path) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.is_match(path)) && !self.unwanted.is_match(path)
    }
}

fn glob(placed: &Placed, pattern: &str, context: &ToolContext) -> Result<Output, ToolError> {
    directory(&placed.real).map_err(|error| context.failed("searching", &placed.path, error))?;
    let matcher = matcher([pattern])?;
    let names_hidden = pattern.split('/').any(|part| part.starts_with('.'));
    let found: Mutex<Vec<(SystemTime, PathBuf)>> = Mutex::default();
    context.walk(&placed.real).hidden(names_hidden).parallel(|| {
        |entry| {
            let path = entry.path().strip_prefix(&placed.real).unwrap_or(entry.path());
            if matcher.is_match(path) {
                let modified =
                    entry.metadata().ok().and_then(|metadata| metadata.modified().ok()).unwrap_or(SystemTime::UNIX_EPOCH);
                found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((modified, path.to_owned()));
            }
            true
        }
    });
    let mut found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    found.sort_by(|(one_time, one), (other_time, other)| other_time.cmp(one_time).then_with(|| one.cmp(other)));
    Ok(output(&placed.path, &found, context))
}

fn output(base: &Path, found: &[(SystemTime, PathBuf)], context: &ToolContext) -> Output {
    let mut text = String::new();
    for (_, path) in found.iter().take(limits::GLOB_PATHS_MAX) {
        text.push_str(&context.workspace.show(&base.join(path)));
        text.push('\n');
    }
    let truncated = found.len() > limits::GLOB_PATHS_MAX;
    if truncated {
        let most = limits::GLOB_PATHS_MAX;
        text.push_str(&format!("[the {most} newest of {} files; use a narrower pattern or path]\n", found.len()));
    } else if found.is_empty() {
        text.push_str("no files found\n");
    }
    Output::text(text, json!({ "count": found.len(), "truncated": truncated }))
}
