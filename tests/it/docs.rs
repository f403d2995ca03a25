//! The pages of docs that repeat facts of the program: docs/SETTINGS.md from the schema of the
//! settings, docs/CLI.md from the help of the commands, docs/TROUBLESHOOTING.md with the error
//! codes. The example blocks of all pages are run by tests/docs/run.

mod command_line;
mod settings;
mod troubleshooting;

use std::path::{Path, PathBuf};

/// The line after which a page is generated; the text before it is written by hand.
const MARKER: &str = "<!-- generated: NUNCIO_UPDATE=1 cargo test docs:: -->\n";

/// The path of a file of the package.
fn package(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compares the generated part of a page; `NUNCIO_UPDATE=1` rewrites it.
fn check_generated(page: &str, generated: &str) {
    let path = package(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let (written, rest) = text.split_once(MARKER).unwrap_or_else(|| panic!("{page} has no line {MARKER:?}"));
    if std::env::var_os("NUNCIO_UPDATE").is_some() {
        std::fs::write(&path, format!("{written}{MARKER}{generated}")).unwrap();
    } else {
        assert!(rest == generated, "{page} is stale: run the tests once with NUNCIO_UPDATE=1");
    }
}

/// Breaks text into lines of at most 100 columns.
fn wrap(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().unwrap();
        match line.is_empty() {
            true => line.push_str(word),
            false if line.chars().count() + 1 + word.chars().count() <= 100 => *line += &format!(" {word}"),
            false => lines.push(word.into()),
        }
    }
    lines.join("\n")
}
