//! Pages of docs that repeat facts of the program.

use super::package;

/// The line after which a page is generated; the text before it is written by hand.
pub const MARKER: &str = "<!-- generated: NUNCIO_UPDATE=1 cargo test docs:: -->\n";

/// Compares the generated part of a page; `NUNCIO_UPDATE=1` rewrites it.
pub fn check_generated(page: &str, generated: &str) {
    let path = package(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let (written, rest) = text.split_once(MARKER).unwrap_or_else(|| panic!("{page} has no line {MARKER:?}"));
    if std::env::var_os("NUNCIO_UPDATE").is_some() {
        std::fs::write(&path, format!("{written}{MARKER}{generated}")).unwrap();
    } else {
        assert!(rest == generated, "{page} is stale: run the tests once with NUNCIO_UPDATE=1");
    }
}
