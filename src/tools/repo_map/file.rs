//! One file as the map knows it: what it defines, and which words stand in it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, Parser, QueryCursor, QueryCursorOptions, StreamingIterator};

use super::languages::Grammar;
use crate::limits;

/// A word, by its hash: maps are made of many words, and each is as good as its hash.
pub type Word = u64;

/// A map by word.
pub type Words<V> = HashMap<Word, V, BuildHasherDefault<AsItIs>>;

/// A hasher for what is a hash already.
#[derive(Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
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

#[derive(Debug, Default)]
pub struct FileMap {
    pub definitions: Vec<Definition>,
    /// Every word of the file and how often it stands there, in the order of the words.
    pub words: Vec<(Word, u32)>,
}

#[derive(Debug)]
pub struct Definition {
    pub word: Word,
    /// From 1.
    pub line: usize,
    /// Its beginning up to the body, in one line.
    pub signature: String,
    /// How much a name says by itself: 1 is usual.
    pub weight: f64,
}

impl FileMap {
    /// Bytes that it takes, about.
    pub fn bytes(&self) -> usize {
        let texts: usize = self.definitions.iter().map(|definition| definition.signature.capacity()).sum();
        size_of::<FileMap>() + texts + self.definitions.capacity() * size_of::<Definition>() + self.words.capacity() * 16
    }

    pub fn count(&self, word: Word) -> u32 {
        self.words.binary_search_by_key(&word, |(other, _)| *other).map_or(0, |place| self.words[place].1)
    }
}

/// Reads a source file. `stop` is looked at often; once it says so, what was found up to there is given.
pub fn read(parser: &mut Parser, grammar: &Grammar, source: &[u8], stop: &dyn Fn() -> bool) -> FileMap {
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
    cursor.set_match_limit(limits::MAP_MATCHES_MAX);
    let mut asking = |_: &_| go_on();
    let options = QueryCursorOptions::new().progress_callback(&mut asking);
    let mut matches = cursor.matches_with_options(&grammar.query, tree.root_node(), source, options);
    let mut found: Vec<(usize, Definition)> = Vec::new();
    while let Some(matched) = matches.next() {
        let node = |index| matched.nodes_for_capture_index(index).next();
        let (Some(name), Some(definition)) = (node(grammar.name), node(grammar.definition)) else { continue };
        if found.len() == limits::MAP_DEFINITIONS_MAX {
            break;
        }
        let text = &source[name.byte_range()];
        // `a::b` is a definition of b.
        let text = text.rsplit(|byte| *byte == b':').next().unwrap_or(text);
        let line = name.start_position().row + 1;
        let signature = signature(definition, text, source);
        found.push((name.start_byte(), Definition { word: word(text), line, signature, weight: weight(text) }));
    }
    found.sort_by_key(|(at, _)| *at);
    // Two patterns may know the same name.
    found.dedup_by_key(|(at, _)| *at);
    Some(found.into_iter().map(|(_, definition)| definition).collect())
}

fn signature(definition: Node<'_>, name: &[u8], source: &[u8]) -> String {
    let mut range = definition.byte_range();
    if let Some(export) = definition.parent().filter(|parent| parent.kind() == "export_statement") {
        range.start = export.start_byte();
    }
    let text = match definition.child_by_field_name("body") {
        Some(body) => &source[range.start..body.start_byte()],
        None => source[range].split(|byte| *byte == b'\n').next().unwrap_or_default(),
    };
    let text = &text[..text.len().min(4 * limits::MAP_SIGNATURE_BYTES_MAX)];
    let text = String::from_utf8_lossy(text);
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.truncate(line.trim_end_matches(['{', ':', '=', ';', ' ']).len());
    if line.len() > limits::MAP_SIGNATURE_BYTES_MAX {
        line.truncate(line.floor_char_boundary(limits::MAP_SIGNATURE_BYTES_MAX));
        line.push('…');
    }
    let name = String::from_utf8_lossy(name);
    if !line.contains(&*name) {
        line.push_str(&format!(" … {name}"));
    }
    line
}

/// Short names are accidents, those with an underscore before them private, long ones are meant.
fn weight(name: &[u8]) -> f64 {
    match name {
        [_] | [_, _] | [_, _, _] => 0.3,
        [b'_', ..] => 0.3,
        _ if name.len() >= 8 => 1.5,
        _ => 1.0,
    }
}

/// FNV-1a, 64 bits.
fn word(text: &[u8]) -> Word {
    text.iter().fold(FNV_BASIS, |hash, byte| step(hash, *byte))
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// All words: letters, digits and underscores, whatever they mean.
fn words(source: &[u8]) -> Vec<(Word, u32)> {
    let mut counts: Words<u32> = Words::default();
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
