//! The table of supported languages: file extensions, grammar, and queries for definitions.

use std::path::Path;
use std::sync::OnceLock;

use tree_sitter::{Language, Query};

#[cfg(feature = "grammars")]
use super::queries;

/// A supported language.
pub(crate) struct LanguageRow {
    /// Displayed name.
    pub name: &'static str,
    extensions: &'static [&'static str],
    grammar: fn() -> Language,
    /// Queries for definitions, which are concatenated.
    definitions: &'static [&'static str],
}

/// The supported languages; empty without the Cargo feature `grammars`.
#[cfg(not(feature = "grammars"))]
pub(crate) const LANGUAGES: &[LanguageRow] = &[];

#[cfg(feature = "grammars")]
pub(crate) const LANGUAGES: &[LanguageRow] = &[
    LanguageRow { name: "Rust", extensions: &["rs"], grammar: || tree_sitter_rust::LANGUAGE.into(), definitions: &[queries::RUST] },
    LanguageRow {
        name: "Python",
        extensions: &["py", "pyi"],
        grammar: || tree_sitter_python::LANGUAGE.into(),
        definitions: &[queries::PYTHON],
    },
    LanguageRow {
        name: "TypeScript",
        extensions: &["ts", "mts", "cts"],
        grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        definitions: &[queries::JAVASCRIPT, queries::TYPESCRIPT],
    },
    LanguageRow {
        name: "TSX",
        extensions: &["tsx"],
        grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
        definitions: &[queries::JAVASCRIPT, queries::TYPESCRIPT],
    },
    LanguageRow {
        name: "JavaScript",
        extensions: &["js", "jsx", "mjs", "cjs"],
        grammar: || tree_sitter_javascript::LANGUAGE.into(),
        definitions: &[queries::JAVASCRIPT],
    },
    LanguageRow { name: "Go", extensions: &["go"], grammar: || tree_sitter_go::LANGUAGE.into(), definitions: &[queries::GO] },
    LanguageRow { name: "C", extensions: &["c"], grammar: || tree_sitter_c::LANGUAGE.into(), definitions: &[queries::C] },
    LanguageRow {
        name: "C++",
        // Headers may be C or C++; the C++ grammar covers the definitions of both.
        extensions: &["h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "inl"],
        grammar: || tree_sitter_cpp::LANGUAGE.into(),
        definitions: &[queries::C, queries::CPP],
    },
    LanguageRow {
        name: "Java",
        extensions: &["java"],
        grammar: || tree_sitter_java::LANGUAGE.into(),
        definitions: &[queries::JAVA],
    },
];

/// Returns the index in [`LANGUAGES`] of a file's language, by its extension.
pub(crate) fn language_of(path: &Path) -> Option<usize> {
    let extension = path.extension()?.to_str()?;
    LANGUAGES.iter().position(|row| row.extensions.contains(&extension))
}

/// A loaded grammar with its compiled query.
pub(crate) struct Grammar {
    pub language: Language,
    pub query: Query,
    /// Index of the capture `@name`.
    pub name: u32,
    /// Index of the capture `@definition`.
    pub definition: u32,
}

/// The grammars. Each grammar is loaded when the first file of its language is parsed, which takes
/// a few milliseconds.
#[derive(Default)]
pub(crate) struct Grammars([OnceLock<Grammar>; LANGUAGES.len()]);

impl Grammars {
    /// Returns the grammar of the language with this index in [`LANGUAGES`].
    pub(crate) fn get(&self, index: usize) -> &Grammar {
        self.0[index].get_or_init(|| {
            let row = &LANGUAGES[index];
            let language = (row.grammar)();
            let query =
                Query::new(&language, &row.definitions.concat()).expect("the queries of the table are valid for their grammars");
            let capture = |name| query.capture_index_for_name(name).expect("every query has both captures");
            Grammar { name: capture("name"), definition: capture("definition"), language, query }
        })
    }
}
