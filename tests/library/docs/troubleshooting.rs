//! docs/TROUBLESHOOTING.md has every error code, with the numbers of the program, and every hint,
//! and quotes only messages that the program has.

use std::path::PathBuf;

use nuncio::internal::error::KINDS;
use regex::Regex;

use harness::package;
use harness::pages::{MARKER, check_generated};

fn page() -> String {
    std::fs::read_to_string(package("docs/TROUBLESHOOTING.md")).unwrap()
}

/// The cells of the table below a heading.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let section = page.split_once(heading).unwrap_or_else(|| panic!("no section {heading}")).1;
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[test]
fn page_has_every_error_code() {
    let listed: Vec<Vec<String>> = rows(&page(), "\n## Error codes\n").into_iter().map(|row| row[..4].to_vec()).collect();
    let number = |rpc: i32| if rpc == 0 { String::new() } else { rpc.to_string() };
    let expected: Vec<Vec<String>> = KINDS
        .iter()
        .map(|row| vec![format!("`{}`", row.code), number(row.rpc), row.http.to_string(), row.exit.to_string()])
        .collect();
    assert_eq!(listed, expected);
}

/// The Rust sources in the order of their paths, without comments, and with the string literals
/// that continue on the next line joined.
fn sources() -> Vec<String> {
    let (mut files, mut open) = (Vec::new(), vec![package("src")]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() => open.push(path),
                Some("rs") => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    let (continued, comment) = (Regex::new(r"\\\n *").unwrap(), Regex::new(r"(?m)^ *//.*$").unwrap());
    let read = |path: PathBuf| comment.replace_all(&std::fs::read_to_string(path).unwrap(), "").into_owned();
    files.into_iter().map(read).map(|text| continued.replace_all(&text, "").into_owned()).collect()
}

/// Returns a format string as the page shows it: with `…` in place of the parts in braces.
fn shown(literal: &str) -> String {
    Regex::new(r"\{[^{}\n]*\}").unwrap().replace_all(&literal.replace("\\\"", "\""), "…").into_owned()
}

/// A string literal.
const LITERAL: &str = r#""((?:[^"\\\n]|\\.)*)""#;

/// Returns the rows of the generated table: a hint, and the literal before it, which is its message.
fn hints() -> Vec<String> {
    let literal = Regex::new(LITERAL).unwrap();
    let hint = Regex::new(&format!(r"\.hint\((?:format!\()?{LITERAL}")).unwrap();
    let mut rows = Vec::new();
    for source in sources() {
        let mut end = 0;
        for found in hint.captures_iter(&source) {
            let whole = found.get(0).unwrap();
            let before = &source[end..whole.start()];
            end = whole.end();
            let messages = literal.captures_iter(before).map(|found| shown(&found[1]));
            // Names and separators are no messages.
            let is_message = |text: &String| text.contains(' ') && text.chars().filter(char::is_ascii_alphabetic).count() > 4;
            let message = match messages.filter(is_message).last() {
                Some(message) if message.contains('`') => format!("`` {message} ``"),
                Some(message) => format!("`{message}`"),
                None => String::new(),
            };
            let row = format!("| {message} | {} |\n", shown(&found[1]));
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
    }
    rows
}

#[test]
fn page_has_every_hint() {
    let rows = hints();
    assert!(rows.len() > 100, "{rows:?}");
    let text = format!("\n| message | hint |\n|---|---|\n{}", rows.concat());
    check_generated("docs/TROUBLESHOOTING.md", &text);
}

/// The messages in the first column of the tables are format strings of the program.
#[test]
fn quoted_messages_are_those_of_the_program() {
    let (page, sources) = (page(), shown(&sources().concat()));
    let (page, _) = page.split_once(MARKER).unwrap();
    let mut quoted = 0;
    let sections = page.split("\n## ").filter(|section| section.contains("\n| message |"));
    for section in sections {
        for row in section.lines().filter(|line| line.starts_with("| `")) {
            let message = row.split('`').nth(1).unwrap();
            assert!(sources.contains(message), "no source contains: {message}");
            quoted += 1;
        }
    }
    assert!(quoted >= 30, "only {quoted} messages are quoted");
}
