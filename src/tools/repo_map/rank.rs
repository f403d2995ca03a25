//! Ranks definitions by how often other files mention their names. Pure.

use std::path::Path;
use std::sync::Arc;

use super::file::{Definition, FileMap, WordMap};

/// Position in a file's definitions, ranked by score, at which a definition's score is halved.
const MAP_FILE_EVEN: f64 = 10.0;

#[derive(Clone, Copy, Debug)]
pub(crate) struct RankedDefinition {
    /// Index of the file.
    pub file: usize,
    /// Index in [`FileMap::definitions`].
    pub definition: usize,
    pub score: f64,
}

#[derive(Default)]
struct NameUses {
    /// Indices of the files that define the name, ascending.
    definers: Vec<usize>,
    /// Number of other files that mention the name.
    mentioning: usize,
    /// Sum of their mentions; a file with n mentions counts as the square root of n.
    mentions: f64,
}

/// Ranks all definitions of `files`, highest score first. A mention counts less if the same file
/// repeats it, if many files define the name, and if many files mention it. Each further definition
/// in a file counts less than the previous one, so that no single file fills the whole output.
pub(crate) fn rank(files: &[(&Path, Arc<FileMap>)]) -> Vec<RankedDefinition> {
    let mut names: WordMap<NameUses> = WordMap::default();
    for (index, (_, file)) in files.iter().enumerate() {
        for definition in &file.definitions {
            let definers = &mut names.entry(definition.word).or_default().definers;
            if definers.last() != Some(&index) {
                definers.push(index);
            }
        }
    }
    for (index, (_, file)) in files.iter().enumerate() {
        for (word, count) in &file.words {
            if let Some(name) = names.get_mut(word)
                && name.definers.binary_search(&index).is_err()
            {
                name.mentioning += 1;
                name.mentions += f64::from(*count).sqrt();
            }
        }
    }
    let mut all = Vec::new();
    for (index, (path, file)) in files.iter().enumerate() {
        let place = if is_secondary(path) { 0.3 } else { 1.0 };
        let score = |word, weight: f64| {
            let name = &names[&word];
            let rarity = (1.0 + files.len() as f64 / (1.0 + name.mentioning as f64)).ln();
            place * weight * rarity * name.mentions / (name.definers.len() as f64).powi(2)
        };
        let scored = |(definition, one): (usize, &Definition)| RankedDefinition {
            file: index,
            definition,
            score: score(one.word, one.weight),
        };
        let mut own: Vec<RankedDefinition> = file.definitions.iter().enumerate().map(scored).collect();
        own.sort_by(|one, other| other.score.total_cmp(&one.score));
        for (position, ranked) in own.iter_mut().enumerate() {
            ranked.score /= 1.0 + position as f64 / MAP_FILE_EVEN;
        }
        all.extend(own);
    }
    all.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| (one.file, one.definition).cmp(&(other.file, other.definition)))
    });
    all
}

/// Returns true for the paths of tests, examples and third-party code.
fn is_secondary(path: &Path) -> bool {
    const DIRECTORIES: [&str; 9] =
        ["test", "tests", "__tests__", "spec", "examples", "fixtures", "testdata", "vendor", "third_party"];
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    path.iter().any(|part| DIRECTORIES.iter().any(|name| part == *name))
        || stem.starts_with("test_")
        || [".test", ".spec", "_test", "Test"].iter().any(|end| stem.ends_with(end))
}
