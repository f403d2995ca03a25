//! docs/TROUBLESHOOTING.md has every error code, with the numbers of the program, and quotes only
//! messages that the program has.

use nuncio::error::KINDS;

use super::package;

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

/// All Rust sources, with string literals that continue on the next line joined, and `…` in place
/// of the parts in braces of a format string.
fn sources() -> String {
    let mut text = String::new();
    let mut open = vec![package("src")];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() => open.push(path),
                Some("rs") => text += &std::fs::read_to_string(path).unwrap(),
                _ => {}
            }
        }
    }
    let joined = regex::Regex::new(r"\\\n *").unwrap().replace_all(&text, "");
    regex::Regex::new(r"\{[^{}\n]*\}").unwrap().replace_all(&joined.replace("\\\"", "\""), "…").into_owned()
}

/// The messages in the first column of the tables are format strings of the program.
#[test]
fn quoted_messages_are_those_of_the_program() {
    let (page, sources) = (page(), sources());
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
