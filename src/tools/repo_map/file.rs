//! Extracts the definitions and the words from one source file.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, Parser, QueryCursor, QueryCursorOptions, StreamingIterator};

use super::languages::Grammar;

/// Maximum number of definitions per file in a `repo_map`.
const MAP_DEFINITIONS_MAX: usize = 2_000;
/// Maximum number of matches in progress in a tree-sitter query.
const MAP_MATCHES_MAX: u32 = 4_096;
/// Maximum length of a signature in the result of `repo_map`, in bytes.
const MAP_SIGNATURE_BYTES_MAX: usize = 160;

/// The hash of a word; the words themselves are not stored, to save memory.
pub(crate) type WordHash = u64;

/// A hash map with word hashes as keys.
pub(crate) type WordMap<V> = HashMap<WordHash, V, BuildHasherDefault<IdentityHasher>>;

/// A hasher for keys that are already hashes.
#[derive(Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = word(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// A parsed source file.
#[derive(Debug, Default)]
pub(crate) struct FileMap {
    /// The definitions, in file order.
    pub definitions: Vec<Definition>,
    /// Each distinct word and its number of occurrences, sorted by word.
    pub words: Vec<(WordHash, u32)>,
}

/// A definition in a source file.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The defined name.
    pub word: WordHash,
    /// Line of the name, from 1.
    pub line: usize,
    /// The definition up to its body, in one line.
    pub signature: String,
    /// Factor for the rank, see [`weight`]; usually 1.
    pub weight: f64,
}

impl FileMap {
    /// Returns the approximate memory used, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let texts: usize = self.definitions.iter().map(|definition| definition.signature.capacity()).sum();
        size_of::<FileMap>() + texts + self.definitions.capacity() * size_of::<Definition>() + self.words.capacity() * 16
    }
}

/// Parses a source file. `stop` is called often; once it returns true, the definitions found so far
/// are returned.
pub(crate) fn read(parser: &mut Parser, grammar: &Grammar, source: &[u8], stop: &dyn Fn() -> bool) -> FileMap {
    let definitions = definitions(parser, grammar, source, stop).unwrap_or_default();
    FileMap { definitions, words: words(source) }
}

fn definitions(parser: &mut Parser, grammar: &Grammar, source: &[u8], stop: &dyn Fn() -> bool) -> Option<Vec<Definition>> {
    let go_on = || if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    parser.set_language(&grammar.language).ok()?;
    parser.reset();
    let mut parsing = |_: &_| go_on();
    let options = ParseOptions::new().progress_callback(&mut parsing);
    let tree = parser.parse_with_options(&mut |at, _| &source[at.min(source.len())..], None, Some(options))?;
    let mut cursor = QueryCursor::new();
    cursor.set_match_limit(MAP_MATCHES_MAX);
    let mut asking = |_: &_| go_on();
    let options = QueryCursorOptions::new().progress_callback(&mut asking);
    let mut matches = cursor.matches_with_options(&grammar.query, tree.root_node(), source, options);
    let mut found: Vec<(usize, Definition)> = Vec::new();
    while let Some(matched) = matches.next() {
        let node = |index| matched.nodes_for_capture_index(index).next();
        let (Some(name), Some(definition)) = (node(grammar.name), node(grammar.definition)) else { continue };
        if found.len() == MAP_DEFINITIONS_MAX {
            break;
        }
        let text = &source[name.byte_range()];
        // `a::b` defines `b`.
        let text = text.rsplit(|byte| *byte == b':').next().unwrap_or(text);
        let line = name.start_position().row + 1;
        let signature = signature(definition, text, source);
        found.push((name.start_byte(), Definition { word: word(text), line, signature, weight: weight(text) }));
    }
    found.sort_by_key(|(at, _)| *at);
    // Several patterns may match the same name.
    found.dedup_by_key(|(at, _)| *at);
    Some(found.into_iter().map(|(_, definition)| definition).collect())
}

/// Returns the text of a definition up to its body, in one line that contains its name.
fn signature(definition: Node<'_>, name: &[u8], source: &[u8]) -> String {
    let mut range = definition.byte_range();
    if let Some(export) = definition.parent().filter(|parent| parent.kind() == "export_statement") {
        range.start = export.start_byte();
    }
    let text = match definition.child_by_field_name("body") {
        Some(body) => &source[range.start..body.start_byte()],
        None => source[range].split(|byte| *byte == b'\n').next().unwrap_or_default(),
    };
    let text = &text[..text.len().min(4 * MAP_SIGNATURE_BYTES_MAX)];
    let text = String::from_utf8_lossy(text);
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.truncate(line.trim_end_matches(['{', ':', '=', ';', ' ']).len());
    if line.len() > MAP_SIGNATURE_BYTES_MAX {
        line.truncate(line.floor_char_boundary(MAP_SIGNATURE_BYTES_MAX));
        line.push('…');
    }
    let name = String::from_utf8_lossy(name);
    if !line.contains(&*name) {
        line.push_str(&format!(" … {name}"));
    }
    line
}

/// Returns the weight of a name: short names are often mentioned by coincidence, names with a
/// leading underscore are private, long names are specific.
fn weight(name: &[u8]) -> f64 {
    match name {
        [_] | [_, _] | [_, _, _] => 0.3,
        [b'_', ..] => 0.3,
        _ if name.len() >= 8 => 1.5,
        _ => 1.0,
    }
}

/// Hashes a word with FNV-1a, 64 bits.
pub(super) fn word(text: &[u8]) -> WordHash {
    text.iter().fold(FNV_BASIS, |hash, byte| step(hash, *byte))
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// Counts all words (runs of letters, digits and underscores, also in comments and strings).
/// Returns the counts sorted by the hash of the word.
fn words(source: &[u8]) -> Vec<(WordHash, u32)> {
    let mut counts: WordMap<u32> = WordMap::default();
    let mut open = None;
    for byte in source.iter().chain(b" ") {
        if byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80 {
            open = Some(step(open.unwrap_or(FNV_BASIS), *byte));
        } else if let Some(word) = open.take() {
            *counts.entry(word).or_default() += 1;
        }
    }
    let mut words: Vec<_> = counts.into_iter().collect();
    words.sort_unstable();
    words
}
