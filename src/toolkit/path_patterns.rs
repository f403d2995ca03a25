//! Glob patterns for file paths.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use super::output::ToolError;
use crate::permission::paths::with_literal_brackets;

/// Compiles glob patterns. Patterns without a slash match file names at any depth. The result is a
/// `GlobSet`, which is faster than a single `Glob` for common patterns.
pub(crate) fn matcher<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Result<GlobSet, ToolError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
        let build = |pattern: &str| GlobBuilder::new(pattern).literal_separator(true).build();
        // Brackets also stand for a path that is written so. As a pattern, they may be invalid.
        let literal: Vec<Glob> = with_literal_brackets(&pattern).filter_map(|pattern| build(&pattern).ok()).collect();
        match build(&pattern) {
            Err(error) if !pattern.contains('[') => return Err(ToolError(format!("pattern: {error}"))),
            built => built.into_iter().chain(literal).for_each(|glob| {
                set.add(glob);
            }),
        }
    }
    set.build().map_err(|error| ToolError(format!("pattern: {error}")))
}

/// Returns whether a part of the pattern begins with a dot, so that it means hidden files.
pub(crate) fn names_hidden(pattern: &str) -> bool {
    let mut begins = true;
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        if begins && character == '.' && !matches!(rest.as_str().trim_start_matches('.').chars().next(), None | Some('/')) {
            return true;
        }
        begins = matches!(character, '/' | '{' | ',' | '[' | ' ');
    }
    false
}

/// A filter of files by path: `*.rs`, `src/**,*.toml`, `!*.lock`.
pub(crate) struct PathPatterns {
    wanted: Option<GlobSet>,
    unwanted: GlobSet,
    /// True if a pattern names hidden files.
    pub(crate) hidden: bool,
}

impl PathPatterns {
    /// Parses `patterns`, which are separated by commas. Patterns that start with `!` exclude
    /// files.
    pub(crate) fn new(patterns: &str) -> Result<PathPatterns, ToolError> {
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
        let hidden = wanted.iter().any(|pattern| names_hidden(pattern));
        let set = |patterns: &[String]| matcher(patterns.iter().map(String::as_str));
        Ok(PathPatterns { wanted: (!wanted.is_empty()).then(|| set(&wanted)).transpose()?, unwanted: set(&unwanted)?, hidden })
    }

    /// Returns whether the filter includes `path`, which is relative to the searched directory.
    pub(crate) fn fit(&self, path: &Path) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.is_match(path)) && !self.unwanted.is_match(path)
    }
}
