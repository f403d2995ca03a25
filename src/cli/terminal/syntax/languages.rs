//! The languages with syntax colours.

use tree_sitter::Language;

/// A language, and where the colours of its code come from.
pub(super) struct SyntaxRow {
    /// Its name, other names, and the extensions of its files, in lower case.
    names: &'static [&'static str],
    pub grammar: fn() -> Language,
    /// Queries of names, which are joined: those of some languages only add to another's.
    pub queries: &'static [&'static str],
    /// The names of properties are coloured: the language has data, not code.
    pub has_keys: bool,
}

/// Declares a row.
macro_rules! row {
    ($names:expr, $grammar:expr, $queries:expr, $has_keys:expr) => {
        SyntaxRow { names: &$names, grammar: || $grammar.into(), queries: &$queries, has_keys: $has_keys }
    };
}

const BASH: SyntaxRow =
    row!(["bash", "sh", "shell", "zsh", "console"], tree_sitter_bash::LANGUAGE, [tree_sitter_bash::HIGHLIGHT_QUERY], false);

/// The languages; without the Cargo feature `grammars`, only that of shells.
#[cfg(not(feature = "grammars"))]
pub(super) const LANGUAGES: &[SyntaxRow] = &[BASH];

#[cfg(feature = "grammars")]
pub(super) const LANGUAGES: &[SyntaxRow] = &[
    BASH,
    row!(["rust", "rs"], tree_sitter_rust::LANGUAGE, [tree_sitter_rust::HIGHLIGHTS_QUERY], false),
    row!(["python", "py", "pyi", "python3"], tree_sitter_python::LANGUAGE, [tree_sitter_python::HIGHLIGHTS_QUERY], false),
    row!(
        ["typescript", "ts", "mts", "cts"],
        tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        [tree_sitter_javascript::HIGHLIGHT_QUERY, tree_sitter_typescript::HIGHLIGHTS_QUERY],
        false
    ),
    row!(
        ["tsx"],
        tree_sitter_typescript::LANGUAGE_TSX,
        [
            tree_sitter_javascript::HIGHLIGHT_QUERY,
            tree_sitter_typescript::HIGHLIGHTS_QUERY,
            tree_sitter_javascript::JSX_HIGHLIGHT_QUERY
        ],
        false
    ),
    row!(
        ["javascript", "js", "jsx", "mjs", "cjs", "node"],
        tree_sitter_javascript::LANGUAGE,
        [tree_sitter_javascript::HIGHLIGHT_QUERY, tree_sitter_javascript::JSX_HIGHLIGHT_QUERY],
        false
    ),
    row!(["go", "golang"], tree_sitter_go::LANGUAGE, [tree_sitter_go::HIGHLIGHTS_QUERY], false),
    row!(["c"], tree_sitter_c::LANGUAGE, [tree_sitter_c::HIGHLIGHT_QUERY], false),
    row!(
        ["c++", "cpp", "h", "cc", "cxx", "hh", "hpp", "hxx", "inl"],
        tree_sitter_cpp::LANGUAGE,
        [tree_sitter_c::HIGHLIGHT_QUERY, tree_sitter_cpp::HIGHLIGHT_QUERY],
        false
    ),
    row!(["java"], tree_sitter_java::LANGUAGE, [tree_sitter_java::HIGHLIGHTS_QUERY], false),
    row!(["json", "jsonc"], tree_sitter_json::LANGUAGE, [tree_sitter_json::HIGHLIGHTS_QUERY, JSON_KEYS], true),
    row!(["toml"], tree_sitter_toml_ng::LANGUAGE, [TOML], true),
    row!(["yaml", "yml"], tree_sitter_yaml::LANGUAGE, [tree_sitter_yaml::HIGHLIGHTS_QUERY], true),
    row!(["html", "htm"], tree_sitter_html::LANGUAGE, [tree_sitter_html::HIGHLIGHTS_QUERY], true),
    row!(["css"], tree_sitter_css::LANGUAGE, [tree_sitter_css::HIGHLIGHTS_QUERY], true),
];

/// The query of the grammar gives whole lines the colour of keys.
#[cfg(feature = "grammars")]
const TOML: &str = "[(bare_key) (quoted_key)] @property\n(comment) @comment\n(string) @string\n\
    [(integer) (float) (boolean) (offset_date_time) (local_date_time) (local_date) (local_time)] @number\n";

/// Follows the pattern of strings, which keys are, too.
#[cfg(feature = "grammars")]
const JSON_KEYS: &str = "\n(pair key: (_) @string.special.key)\n";

/// Returns the index of a language, by one of its names or the extension of a file.
pub(super) fn find(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    LANGUAGES.iter().position(|row| row.names.contains(&name.as_str()))
}
