//! The table of supported languages: file extensions, grammar, and queries for definitions.

use std::path::Path;
use std::sync::OnceLock;

use tree_sitter::{Language, Query};

/// A supported language.
pub struct LanguageRow {
    /// Displayed name.
    pub name: &'static str,
    extensions: &'static [&'static str],
    grammar: fn() -> Language,
    /// Tree-sitter queries, concatenated. `@definition` captures a definition, `@name` its name.
    definitions: &'static [&'static str],
}

/// The supported languages.
pub const LANGUAGES: &[LanguageRow] = &[
    LanguageRow { name: "Rust", extensions: &["rs"], grammar: || tree_sitter_rust::LANGUAGE.into(), definitions: &[RUST] },
    LanguageRow {
        name: "Python",
        extensions: &["py", "pyi"],
        grammar: || tree_sitter_python::LANGUAGE.into(),
        definitions: &[PYTHON],
    },
    LanguageRow {
        name: "TypeScript",
        extensions: &["ts", "mts", "cts"],
        grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        definitions: &[JAVASCRIPT, TYPESCRIPT],
    },
    LanguageRow {
        name: "TSX",
        extensions: &["tsx"],
        grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
        definitions: &[JAVASCRIPT, TYPESCRIPT],
    },
    LanguageRow {
        name: "JavaScript",
        extensions: &["js", "jsx", "mjs", "cjs"],
        grammar: || tree_sitter_javascript::LANGUAGE.into(),
        definitions: &[JAVASCRIPT],
    },
    LanguageRow { name: "Go", extensions: &["go"], grammar: || tree_sitter_go::LANGUAGE.into(), definitions: &[GO] },
    LanguageRow { name: "C", extensions: &["c"], grammar: || tree_sitter_c::LANGUAGE.into(), definitions: &[C] },
    LanguageRow {
        name: "C++",
        // Headers may be C or C++; the C++ grammar covers the definitions of both.
        extensions: &["h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "inl"],
        grammar: || tree_sitter_cpp::LANGUAGE.into(),
        definitions: &[C, CPP],
    },
    LanguageRow { name: "Java", extensions: &["java"], grammar: || tree_sitter_java::LANGUAGE.into(), definitions: &[JAVA] },
];

const RUST: &str = "
(struct_item name: (_) @name) @definition
(enum_item name: (_) @name) @definition
(union_item name: (_) @name) @definition
(type_item name: (_) @name) @definition
(trait_item name: (_) @name) @definition
(function_item name: (identifier) @name) @definition
(function_signature_item name: (identifier) @name) @definition
(mod_item name: (_) @name body: (_)) @definition
(macro_definition name: (_) @name) @definition
(const_item name: (_) @name) @definition
(static_item name: (_) @name) @definition
";

const PYTHON: &str = "
(class_definition name: (_) @name) @definition
(function_definition name: (_) @name) @definition
(module (expression_statement (assignment left: (identifier) @name) @definition))
";

const JAVASCRIPT: &str = "
(class_declaration name: (_) @name) @definition
(function_declaration name: (_) @name) @definition
(generator_function_declaration name: (_) @name) @definition
(method_definition name: (property_identifier) @name) @definition
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (class)]) @definition
(program (lexical_declaration (variable_declarator name: (identifier) @name)) @definition)
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name)) @definition))
(assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: [(arrow_function) (function_expression)]) @definition
";

const TYPESCRIPT: &str = "
(interface_declaration name: (_) @name) @definition
(type_alias_declaration name: (_) @name) @definition
(enum_declaration name: (_) @name) @definition
(abstract_class_declaration name: (_) @name) @definition
(function_signature name: (_) @name) @definition
(method_signature name: (property_identifier) @name) @definition
(abstract_method_signature name: (property_identifier) @name) @definition
(internal_module name: (_) @name) @definition
";

const GO: &str = "
(function_declaration name: (_) @name) @definition
(method_declaration name: (_) @name) @definition
(type_spec name: (_) @name) @definition
(type_alias name: (_) @name) @definition
(const_spec name: (identifier) @name) @definition
(source_file (var_declaration (var_spec name: (identifier) @name) @definition))
";

const C: &str = "
(function_definition declarator: (function_declarator declarator: (identifier) @name)) @definition
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @definition
(declaration declarator: (function_declarator declarator: (identifier) @name)) @definition
(declaration declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @definition
(struct_specifier name: (type_identifier) @name body: (_)) @definition
(union_specifier name: (type_identifier) @name body: (_)) @definition
(enum_specifier name: (type_identifier) @name body: (_)) @definition
(type_definition declarator: (type_identifier) @name) @definition
(preproc_function_def name: (_) @name) @definition
(preproc_def name: (_) @name value: (_)) @definition
";

const CPP: &str = "
(class_specifier name: (type_identifier) @name body: (_)) @definition
(function_definition declarator: (function_declarator declarator: (field_identifier) @name)) @definition
(function_definition declarator: (function_declarator declarator: (qualified_identifier name: (_) @name))) @definition
(function_definition declarator: (pointer_declarator
  declarator: (function_declarator declarator: (qualified_identifier name: (_) @name)))) @definition
(function_definition declarator: (reference_declarator
  (function_declarator declarator: [(identifier) (field_identifier)] @name))) @definition
(function_definition declarator: (reference_declarator
  (function_declarator declarator: (qualified_identifier name: (_) @name)))) @definition
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @definition
(alias_declaration name: (_) @name) @definition
(concept_definition name: (_) @name) @definition
";

const JAVA: &str = "
(class_declaration name: (_) @name) @definition
(interface_declaration name: (_) @name) @definition
(enum_declaration name: (_) @name) @definition
(record_declaration name: (_) @name) @definition
(annotation_type_declaration name: (_) @name) @definition
(method_declaration name: (_) @name) @definition
(constructor_declaration name: (_) @name) @definition
";

/// The index in [`LANGUAGES`] of a file's language, by its extension.
pub fn language_of(path: &Path) -> Option<usize> {
    let extension = path.extension()?.to_str()?;
    LANGUAGES.iter().position(|row| row.extensions.contains(&extension))
}

/// A loaded grammar with its compiled query.
pub struct Grammar {
    pub language: Language,
    pub query: Query,
    /// Index of the capture `@name`.
    pub name: u32,
    /// Index of the capture `@definition`.
    pub definition: u32,
}

/// The grammars. Each is loaded for the first file of its language, which takes some milliseconds.
#[derive(Default)]
pub struct Grammars([OnceLock<Grammar>; LANGUAGES.len()]);

impl Grammars {
    /// The grammar of the language with this index in [`LANGUAGES`].
    pub fn get(&self, index: usize) -> &Grammar {
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
