//! `repo_map`: shows the highest-ranked definitions of a source tree, as many as fit into a token
//! budget.

mod cache;
mod file;
mod languages;
#[cfg(feature = "grammars")]
mod queries;
mod rank;
mod relevance;

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::time::Instant;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tree_sitter::Parser;

pub(super) use self::cache::MapCache;
use self::file::FileMap;
use self::languages::{LANGUAGES, language_of};
pub(super) use self::relevance::survey;
pub(crate) use self::relevance::{RelevantFile, Survey};
use crate::content::ToolKind;
use crate::limits;
use crate::permission::Access;
use crate::toolkit::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use crate::workspace::{self, ResolvedPath, Workspace};

/// Default size of a `repo_map` result, in tokens.
const MAP_TOKENS: usize = 2_000;
/// Maximum size of a `repo_map` result, in tokens.
const MAP_TOKENS_MAX: usize = 20_000;
/// Maximum number of source files that `repo_map` reads.
const MAP_FILES_MAX: usize = 20_000;
/// Maximum size of a source file that `repo_map` reads, in bytes.
const MAP_FILE_BYTES_MAX: u64 = 512 << 10;
/// Time limit for parsing one file for a `repo_map`.
const MAP_FILE_TIME: Duration = Duration::from_secs(5);
/// Time limit for reading all files for a `repo_map`.
const MAP_TIME: Duration = Duration::from_secs(30);

/// The tool, with a cache of the source files that calls have parsed.
pub(super) struct RepoMap {
    cache: Arc<MapCache>,
}

/// Shows the most referenced definitions of a source tree, by file, within a budget. Use it first
/// in a repository that you do not know.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct RepoMapInput {
    /// Default: the working directory.
    #[serde(default, alias = "directory", alias = "dir")]
    path: Option<String>,
    /// Default 2000, at most 20000.
    #[serde(default, alias = "max_tokens", alias = "budget")]
    budget_tokens: Option<usize>,
}

impl RepoMap {
    pub(super) fn new(cache: Arc<MapCache>) -> RepoMap {
        RepoMap { cache }
    }
}

impl RepoMapInput {
    fn path(&self) -> &str {
        self.path.as_deref().unwrap_or(".")
    }
}

/// The details of the result of a `repo_map` call.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RepoMapDetails {
    /// Source files found.
    files: usize,
    /// Definitions found.
    definitions: usize,
    /// Definitions in the result.
    shown: usize,
    truncated: bool,
}

impl Tool for RepoMap {
    type Input = RepoMapInput;
    type Details = RepoMapDetails;
    const NAME: &'static str = "repo_map";
    const LABEL: &'static str = "Map repository";
    const KIND: ToolKind = ToolKind::Search;
    const PROPERTIES: ToolProperties = ToolProperties { lists_files: true, ..ToolProperties::NONE };

    fn title(&self, input: &RepoMapInput, workspace: &Workspace) -> String {
        format!("Map {}", workspace.show(&workspace.resolve(input.path()).path))
    }

    fn access(&self, input: &RepoMapInput) -> Access {
        Access::read(input.path())
    }

    async fn run(&self, input: RepoMapInput, context: &ToolContext) -> Result<ToolOutput<RepoMapDetails>, ToolError> {
        if LANGUAGES.is_empty() {
            return Err(ToolError("this build of nuncio has no grammars for repo_map; use list, glob and grep".into()));
        }
        let resolved = context.workspace.resolve(input.path());
        let budget = input.budget_tokens.unwrap_or(MAP_TOKENS).clamp(1, MAP_TOKENS_MAX);
        let (inner, cache) = (context.clone(), self.cache.clone());
        context.search(move || map(&resolved, budget, &cache, &inner)).await
    }
}

/// Returns the output for the directory or file `resolved`.
fn map(
    resolved: &ResolvedPath,
    budget_tokens: usize,
    cache: &MapCache,
    context: &ToolContext,
) -> Result<ToolOutput<RepoMapDetails>, ToolError> {
    std::fs::metadata(&resolved.real).map_err(|error| context.failed("mapping", &resolved.path, error))?;
    let Sources { files, skipped } = Sources::read(&resolved.real, cache, context);
    if files.is_empty() {
        let known: Vec<&str> = LANGUAGES.iter().map(|row| row.name).collect();
        return Err(ToolError(format!(
            "{} has no source files in a supported language ({}); use list",
            context.workspace.show(&resolved.path),
            known.join(", ")
        )));
    }
    let below: Vec<(&Path, Arc<FileMap>)> =
        files.iter().map(|(path, file)| (path.strip_prefix(&resolved.real).unwrap_or(path), file.clone())).collect();
    let ranked = rank::rank(&below);
    let shown = |index: usize| context.workspace.show(resolved.path.join(below[index].0).components().as_path());
    let mut room = budget_tokens * limits::BYTES_PER_TOKEN;
    let mut chosen: BTreeMap<usize, (f64, Vec<usize>)> = BTreeMap::new();
    for one in &ranked {
        let definition = &below[one.file].1.definitions[one.definition];
        let head = if chosen.contains_key(&one.file) { 0 } else { shown(one.file).len() + 2 };
        let cost = head + line(definition).len();
        if cost > room {
            break;
        }
        room -= cost;
        let (score, definitions) = chosen.entry(one.file).or_default();
        *score += one.score;
        definitions.push(one.definition);
    }
    let mut by_file: Vec<(usize, (f64, Vec<usize>))> = chosen.into_iter().collect();
    by_file.sort_by(|(_, (one, _)), (_, (other, _))| other.total_cmp(one));
    let mut text = String::new();
    let mut count = 0;
    for (file, (_, mut definitions)) in by_file {
        definitions.sort_unstable();
        count += definitions.len();
        text.push_str(&format!("{}:\n", shown(file)));
        definitions.into_iter().for_each(|index| text.push_str(&line(&below[file].1.definitions[index])));
    }
    let truncated = count < ranked.len() || skipped > 0;
    let (all, files) = (ranked.len(), below.len());
    let notes = [
        (count < all)
            .then(|| format!("{count} of {all} definitions in {files} files; set path or raise budget_tokens to see more")),
        (skipped > 0).then(|| format!("{skipped} files were skipped: too large, too many or too slow to read; set path")),
    ];
    let details = RepoMapDetails { files: below.len(), definitions: ranked.len(), shown: count, truncated };
    Ok(ToolOutput::text(text, details).notes(notes.into_iter().flatten()))
}

fn line(definition: &file::Definition) -> String {
    format!("  {}: {}\n", definition.line, definition.signature)
}

/// The source files below a directory, by real path.
struct Sources {
    files: Vec<(PathBuf, Arc<FileMap>)>,
    /// Number of source files that were not read.
    skipped: usize,
}

impl Sources {
    fn read(root: &Path, cache: &MapCache, context: &ToolContext) -> Sources {
        let until = Instant::now() + MAP_TIME;
        let found: Mutex<Vec<(PathBuf, Arc<FileMap>)>> = Mutex::default();
        let (seen, skipped) = (AtomicUsize::new(0), AtomicUsize::new(0));
        context.walk(root).parallel(|| {
            let mut parser = Parser::new();
            let (found, seen, skipped) = (&found, &seen, &skipped);
            move |entry| {
                let Some(language) = language_of(&entry.path) else { return true };
                let room = seen.fetch_add(1, Ordering::Relaxed) < MAP_FILES_MAX && Instant::now() < until;
                match room
                    .then(|| read(&entry.path, &entry.metadata().ok()?, language, &mut parser, until, cache, context))
                    .flatten()
                {
                    Some(file) => found.lock().push((entry.path, file)),
                    None => drop(skipped.fetch_add(1, Ordering::Relaxed)),
                }
                true
            }
        });
        let mut files = found.into_inner();
        files.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        cache.trim(&files.iter().map(|(path, _)| path.as_path()).collect());
        Sources { files, skipped: skipped.into_inner() }
    }
}

/// Returns a parsed file, from the cache if possible. `None` if the file is too large or cannot be
/// read.
fn read(
    path: &Path,
    metadata: &Metadata,
    language: usize,
    parser: &mut Parser,
    until: Instant,
    cache: &MapCache,
    context: &ToolContext,
) -> Option<Arc<FileMap>> {
    if metadata.len() > MAP_FILE_BYTES_MAX {
        return None;
    }
    let stamp = cache::stamp(metadata);
    if let Some(known) = cache.get(path, stamp) {
        return Some(known);
    }
    let mut source = Vec::with_capacity(metadata.len() as usize + 1);
    workspace::open(path).ok()?.take(MAP_FILE_BYTES_MAX).read_to_end(&mut source).ok()?;
    // The grammar is loaded before the time limit starts, because the first file of a language has
    // to wait until the queries are compiled.
    let grammar = cache.grammars.get(language);
    let until = until.min(Instant::now() + MAP_FILE_TIME);
    let stop = || context.cancel.is_cancelled() || Instant::now() > until;
    let file = Arc::new(file::read(parser, grammar, &source, &stop));
    if !context.cancel.is_cancelled() {
        cache.put(path, stamp, file.clone());
    }
    Some(file)
}
