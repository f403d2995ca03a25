//! Parses command lines with tree-sitter's bash grammar.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

/// Maximum number of parser steps per shell command.
const SHELL_PARSE_STEPS_MAX: usize = 50_000;

/// Parses `source`. Returns `None` if parsing takes too long or splits a character. Bash treats all
/// non-ASCII bytes as parts of words, so the parser receives a letter in place of each of these
/// bytes. The grammar's scanner crashes on large character codes (`isdigit` in tree-sitter-bash
/// 0.25).
pub(crate) fn parse(source: &str) -> Option<Tree> {
    let ascii: Vec<u8> = source.bytes().map(|byte| if byte.is_ascii() { byte } else { b'x' }).collect();
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let mut steps = 0;
    let mut bounded = |_: &ParseState| {
        steps += 1;
        if steps > SHELL_PARSE_STEPS_MAX { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut bounded);
    let tree = parser.parse_with_options(&mut |place, _| ascii.get(place..).unwrap_or_default(), None, Some(options));
    tree.filter(|tree| source.is_ascii() || has_whole_characters(tree, source))
}

fn has_whole_characters(tree: &Tree, source: &str) -> bool {
    let mut cursor = tree.walk();
    loop {
        let range = cursor.node().byte_range();
        if !source.is_char_boundary(range.start) || !source.is_char_boundary(range.end) {
            return false;
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return true;
            }
        }
    }
}

/// Returns whether a node of this kind is a word or a part of one.
pub(crate) fn is_literal(kind: &str) -> bool {
    matches!(
        kind,
        "word"
            | "concatenation"
            | "string"
            | "raw_string"
            | "translated_string"
            | "ansi_c_string"
            | "number"
            | "expansion"
            | "simple_expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion"
            | "brace_expression"
    )
}
