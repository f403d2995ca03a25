//! The language identifiers of LSP.

use std::path::Path;

/// Returns the language identifier of a file (LSP 3.17, TextDocumentItem). Defaults to the
/// extension, or to `plaintext` without one.
pub(crate) fn language_id(path: &Path) -> String {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name = match extension.as_str() {
        "rs" => "rust",
        "py" | "pyi" => "python",
        "ts" | "mts" | "cts" => "typescript",
        "tsx" => "typescriptreact",
        "js" | "mjs" | "cjs" => "javascript",
        "jsx" => "javascriptreact",
        "cc" | "cpp" | "cxx" | "hpp" | "hh" => "cpp",
        "h" => "c",
        "rb" => "ruby",
        "sh" | "bash" => "shellscript",
        "cs" => "csharp",
        "md" => "markdown",
        "yml" => "yaml",
        _ => return if extension.is_empty() { "plaintext".into() } else { extension },
    };
    name.into()
}
