//! Tree-sitter queries for the definitions of each language. `@definition` captures a definition,
//! `@name` its name.

pub(crate) const RUST: &str = "
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

pub(crate) const PYTHON: &str = "
(class_definition name: (_) @name) @definition
(function_definition name: (_) @name) @definition
(module (expression_statement (assignment left: (identifier) @name) @definition))
";

pub(crate) const JAVASCRIPT: &str = "
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

/// Query for definitions in TypeScript, in addition to those in JavaScript.
pub(crate) const TYPESCRIPT: &str = "
(interface_declaration name: (_) @name) @definition
(type_alias_declaration name: (_) @name) @definition
(enum_declaration name: (_) @name) @definition
(abstract_class_declaration name: (_) @name) @definition
(function_signature name: (_) @name) @definition
(method_signature name: (property_identifier) @name) @definition
(abstract_method_signature name: (property_identifier) @name) @definition
(internal_module name: (_) @name) @definition
";

pub(crate) const GO: &str = "
(function_declaration name: (_) @name) @definition
(method_declaration name: (_) @name) @definition
(type_spec name: (_) @name) @definition
(type_alias name: (_) @name) @definition
(const_spec name: (identifier) @name) @definition
(source_file (var_declaration (var_spec name: (identifier) @name) @definition))
";

pub(crate) const C: &str = "
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

/// Query for definitions in C++, in addition to those in C.
pub(crate) const CPP: &str = "
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

pub(crate) const JAVA: &str = "
(class_declaration name: (_) @name) @definition
(interface_declaration name: (_) @name) @definition
(enum_declaration name: (_) @name) @definition
(record_declaration name: (_) @name) @definition
(annotation_type_declaration name: (_) @name) @definition
(method_declaration name: (_) @name) @definition
(constructor_declaration name: (_) @name) @definition
";
