//! Finds the files of a source tree that fit a prompt: by the paths and names that the prompt
//! contains, and by the references between files.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tree_sitter::Parser;

use super::cache::MapCache;
use super::file::{self, FileMap, WordHash};
use super::languages::{LANGUAGES, language_of};
use super::rank::rank;
use crate::limits;
use crate::toolkit::ToolContext;

/// Maximum number of files that are found for the description.
const BUNDLE_FILES_MAX: usize = 50_000;
/// Maximum number of definitions of a found file.
const BUNDLE_DEFINITIONS_MAX: usize = 3;
/// Maximum number of words of a prompt that are compared with the files.
const BUNDLE_WORDS_MAX: usize = 500;

/// The files below a directory.
pub(crate) struct Survey {
    pub files: usize,
    /// Number of files by language, or by extension, most first.
    pub languages: Vec<(String, usize)>,
    /// The files that fit the prompt best.
    pub relevant: Vec<RelevantFile>,
    /// The time ended before all files were found and read.
    pub partial: bool,
}

/// A file that fits the prompt.
pub(crate) struct RelevantFile {
    /// Relative to the directory.
    pub path: PathBuf,
    /// Its definitions that fit best.
    pub definitions: Vec<String>,
    score: f64,
}

/// The words of a prompt that may name files or definitions.
struct PromptWords {
    /// Words with a slash or a dot.
    paths: Vec<String>,
    /// Names in lower case, and whether they look like names of code.
    names: Vec<(String, bool)>,
    hashes: Vec<(WordHash, bool)>,
}

impl PromptWords {
    fn new(prompt: &str) -> PromptWords {
        let part_of_path = |character: char| character.is_alphanumeric() || "_-./".contains(character);
        let words = prompt.split(|character| !part_of_path(character)).map(|word| word.trim_matches(['.', '/', '-']));
        let words: HashSet<&str> = words.filter(|word| word.len() >= 3).take(BUNDLE_WORDS_MAX).collect();
        let (mut paths, mut names, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
        for word in words {
            if word.contains(['/', '.']) {
                paths.push(word.to_owned());
            }
            for name in word.split(['/', '.', '-']).filter(|name| name.len() >= 3) {
                let inner_capital = name.chars().skip(1).any(char::is_uppercase) && name.chars().any(char::is_lowercase);
                let code = name.contains('_') || inner_capital || word.contains(['/', '.']);
                names.push((name.to_lowercase(), code));
                hashes.push((file::word(name.as_bytes()), code));
            }
        }
        PromptWords { paths, names, hashes }
    }

    /// Calculates how well the path, which is relative, fits the prompt.
    fn path_score(&self, path: &Path) -> f64 {
        let (text, name) = (path.to_string_lossy(), path.file_name().unwrap_or_default().to_string_lossy());
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
        let of_path = |word: &String| match () {
            () if text == word.as_str() || text.ends_with(&format!("/{word}")) => 100.0,
            () if name == word.as_str() => 60.0,
            () if text.starts_with(&format!("{word}/")) => 10.0,
            () => 0.0,
        };
        let of_name = |(word, code): &(String, bool)| match () {
            () if stem == *word => {
                if *code {
                    40.0
                } else {
                    8.0
                }
            }
            () if *code && stem.contains(word.as_str()) => 5.0,
            () => 0.0,
        };
        self.paths.iter().map(of_path).sum::<f64>() + self.names.iter().map(of_name).sum::<f64>()
    }

    /// Calculates how well the content fits the prompt. Also returns the indices of the definitions
    /// that the prompt names.
    fn content_score(&self, file: &FileMap) -> (f64, Vec<usize>) {
        let (mut score, mut named) = (0.0, Vec::new());
        for (hash, code) in &self.hashes {
            let defined = file.definitions.iter().enumerate().filter(|(_, definition)| definition.word == *hash);
            let before = named.len();
            named.extend(defined.map(|(index, _)| index));
            if named.len() > before {
                score += if *code { 30.0 } else { 4.0 };
            } else if *code && let Ok(at) = file.words.binary_search_by_key(hash, |(word, _)| *word) {
                score += f64::from(file.words[at].1).sqrt().min(10.0);
            }
        }
        (score, named)
    }
}

/// Surveys the files below `root` until `until`, and returns at most `count` of them.
pub(crate) fn survey(root: &Path, prompt: &str, cache: &MapCache, context: &ToolContext, until: Instant, count: usize) -> Survey {
    let words = PromptWords::new(prompt);
    // Half of the time is for finding the files.
    let now = Instant::now();
    let (mut paths, whole) = find(root, context, now + until.saturating_duration_since(now) / 2);
    paths.sort_unstable();
    let relative = |path: &PathBuf| path.strip_prefix(root).unwrap_or(path).to_owned();
    let mut scored: Vec<(f64, PathBuf)> = paths.iter().map(|path| (words.path_score(&relative(path)), path.clone())).collect();
    // The files whose path fits are read first, because there may be no time for the others.
    scored.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let (maps, all_read) = read_all(&scored, cache, context, until);
    let sources: Vec<(&Path, Arc<FileMap>)> =
        maps.iter().map(|(index, map)| (scored[*index].1.strip_prefix(root).unwrap_or(&scored[*index].1), map.clone())).collect();
    let ranked = rank(&sources);
    let mut references = vec![0.0; sources.len()];
    let mut first = vec![Vec::new(); sources.len()];
    for one in &ranked {
        references[one.file] += one.score;
        first[one.file].push(one.definition);
    }
    let most = references.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut relevant: Vec<RelevantFile> = Vec::new();
    let mut has_map = HashSet::new();
    for (position, (index, map)) in maps.iter().enumerate() {
        has_map.insert(*index);
        let (content, mut shown) = words.content_score(map);
        shown.extend(first[position].iter().copied());
        let mut seen = HashSet::new();
        shown.retain(|definition| seen.insert(*definition));
        shown.truncate(BUNDLE_DEFINITIONS_MAX);
        let definitions = shown.into_iter().map(|definition| map.definitions[definition].signature.clone()).collect();
        let score = scored[*index].0 + content + 5.0 * references[position] / most;
        relevant.push(RelevantFile { path: relative(&scored[*index].1), definitions, score });
    }
    let others = scored.iter().enumerate().filter(|(index, (score, _))| *score > 0.0 && !has_map.contains(index));
    relevant.extend(others.map(|(_, (score, path))| RelevantFile { path: relative(path), definitions: Vec::new(), score: *score }));
    relevant.retain(|file| file.score > 0.0);
    relevant.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.path.cmp(&other.path)));
    relevant.truncate(count);
    Survey { files: paths.len(), languages: languages(&paths), relevant, partial: !(whole && all_read) }
}

/// Finds the files. Returns false if the time ended before.
fn find(root: &Path, context: &ToolContext, until: Instant) -> (Vec<PathBuf>, bool) {
    let (found, whole): (Mutex<Vec<PathBuf>>, _) = (Mutex::default(), AtomicBool::new(true));
    context.walk(root).parallel(|| {
        let (found, whole) = (&found, &whole);
        move |entry| {
            let mut found = found.lock();
            let room = found.len() < BUNDLE_FILES_MAX && Instant::now() < until;
            match room {
                true => found.push(entry.path),
                false => whole.store(false, Ordering::Relaxed),
            }
            room
        }
    });
    (found.into_inner(), whole.into_inner())
}

/// Parses the source files, in order, on several threads. Returns them with their indices, and
/// false if the time ended before.
fn read_all(
    files: &[(f64, PathBuf)],
    cache: &MapCache,
    context: &ToolContext,
    until: Instant,
) -> (Vec<(usize, Arc<FileMap>)>, bool) {
    let (next, late) = (AtomicUsize::new(0), AtomicBool::new(false));
    let parsed: Mutex<Vec<(usize, Arc<FileMap>)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get()).min(limits::WALK_THREADS_MAX);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut parser = Parser::new();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((_, path)) = files.get(index) else { return };
                    let Some(language) = language_of(path) else { continue };
                    if Instant::now() > until || context.cancel.is_cancelled() {
                        return late.store(true, Ordering::Relaxed);
                    }
                    if let Some(map) = path
                        .metadata()
                        .ok()
                        .and_then(|metadata| super::read(path, &metadata, language, &mut parser, until, cache, context))
                    {
                        parsed.lock().push((index, map));
                    }
                }
            });
        }
    });
    let mut parsed = parsed.into_inner();
    parsed.sort_unstable_by_key(|(index, _)| *index);
    (parsed, !late.into_inner())
}

/// Counts the files by language, or by extension, most first.
fn languages(paths: &[PathBuf]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for path in paths {
        let extension = || path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
        let name = language_of(path).map(|language| LANGUAGES[language].name.to_owned()).or_else(extension);
        *counts.entry(name.unwrap_or_else(|| "other".into())).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|(one_name, one), (other_name, other)| other.cmp(one).then_with(|| one_name.cmp(other_name)));
    counts
}
