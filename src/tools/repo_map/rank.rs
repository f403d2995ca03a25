//! Which definitions matter: those whose names other files mention, and not everybody's. Pure.

use std::path::Path;
use std::sync::Arc;

use super::file::{FileMap, Words};
use crate::limits;

/// A definition by its place in the files, and how much it matters.
#[derive(Clone, Copy, Debug)]
pub struct Ranked {
    pub file: usize,
    pub definition: usize,
    pub score: f64,
}

/// A name that is defined somewhere.
#[derive(Default)]
struct Name {
    /// The files that define it, in their order.
    definers: Vec<usize>,
    /// Other files that mention it, and how much they do.
    mentioning: usize,
    mentions: f64,
}

/// All definitions, those that matter most first. A mention counts less the more often the same file repeats it, the more files
/// define such a name, and the more mention it; the next definition of a file counts less than the one before, so that none crowds out the rest.
pub fn rank(files: &[(&Path, Arc<FileMap>)]) -> Vec<Ranked> {
    let mut names: Words<Name> = Words::default();
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
        let place = if is_aside(path) { 0.3 } else { 1.0 };
        let score = |word, weight: f64| {
            let name = &names[&word];
            let rarity = (1.0 + files.len() as f64 / (1.0 + name.mentioning as f64)).ln();
            place * weight * rarity * name.mentions / (name.definers.len() as f64).powi(2)
        };
        let scored = |(definition, one): (usize, &super::file::Definition)| Ranked {
            file: index,
            definition,
            score: score(one.word, one.weight),
        };
        let mut own: Vec<Ranked> = file.definitions.iter().enumerate().map(scored).collect();
        own.sort_by(|one, other| other.score.total_cmp(&one.score));
        for (position, ranked) in own.iter_mut().enumerate() {
            ranked.score /= 1.0 + position as f64 / limits::MAP_FILE_EVEN;
        }
        all.extend(own);
    }
    all.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| (one.file, one.definition).cmp(&(other.file, other.definition)))
    });
    all
}

/// Tests, examples and what others wrote.
fn is_aside(path: &Path) -> bool {
    const ASIDE: [&str; 9] = ["test", "tests", "__tests__", "spec", "examples", "fixtures", "testdata", "vendor", "third_party"];
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    path.iter().any(|part| ASIDE.iter().any(|name| part == *name))
        || stem.starts_with("test_")
        || [".test", ".spec", "_test", "Test"].iter().any(|end| stem.ends_with(end))
}
