//! Sizes of files and functions, names of types, and doc comments.

use std::collections::BTreeMap;

use super::source::{Source, assert_none, sources};

/// Longest file, in lines.
const FILE_MAX: usize = 400;

/// Files that may be longer, and why.
const LONGER: &[(&str, &str)] = &[("src/event/body.rs", "one enum, mostly the reference of the events and their fields")];

/// Longest function, in lines.
const FUNCTION_MAX: usize = 70;

#[test]
fn files_start_with_a_header_and_fit_their_limit() {
    let mut findings = Vec::new();
    for source in sources("src").iter().chain(&sources("tests")) {
        if !source.text.starts_with("//! ") {
            findings.push(format!("{} does not start with //!", source.path));
        }
        let lines = source.text.lines().count();
        if lines > FILE_MAX && !LONGER.iter().any(|(path, _)| *path == source.path) {
            findings.push(format!("{} has {lines} lines", source.path));
        }
    }
    assert_none("files", findings);
}

/// Name, first line and number of lines of each function. Further alternatives of a pattern do not
/// count: a match that lists all variants of an enum may be long.
fn functions(source: &Source) -> Vec<(String, usize, usize)> {
    let code: String = source.lines().map(|(_, line)| format!("{line}\n")).collect();
    let mut found = Vec::new();
    for (place, _) in code.match_indices("fn ") {
        if code[..place].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
            continue;
        }
        let name: String =
            code[place + 3..].chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect();
        let Some(open) = code[place..].find(['{', ';']).filter(|open| !name.is_empty() && code[place + open..].starts_with('{'))
        else {
            continue;
        };
        let mut depth = 0;
        let body = code[place + open..].char_indices().find(|(_, character)| {
            depth += match character {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0
        });
        let Some((length, _)) = body else { continue };
        let first = code[..place].matches('\n').count() + 1;
        // The alternatives of a pattern count as one line.
        let text = &code[place..place + open + length];
        let alternatives = text.lines().filter(|line| line.trim_start().starts_with("| ")).count();
        found.push((name, first, text.matches('\n').count() + 1 - alternatives));
    }
    found
}

#[test]
fn functions_fit_a_screen() {
    let mut findings = Vec::new();
    for source in sources("src") {
        for (name, line, length) in functions(&source) {
            if length > FUNCTION_MAX {
                findings.push(format!("{}:{line}: {name} has {length} lines", source.path));
            }
        }
    }
    assert_none("functions fit a screen", findings);
}

/// The kind and name of the item that a line declares after its visibility.
fn item(line: &str) -> Option<(&str, String)> {
    let words = line.trim_start_matches("const fn ").trim_start_matches("async ").trim_start_matches("unsafe ");
    let kinds = ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "static ", "union "];
    let kind = kinds.iter().find(|kind| words.starts_with(**kind))?;
    let name = words[kind.len()..].chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect();
    Some((kind.trim(), name))
}

#[test]
fn public_items_have_a_doc_comment() {
    let mut findings = Vec::new();
    for source in &sources("src") {
        let text: Vec<&str> = source.text.lines().collect();
        for (number, line) in source.lines() {
            // A macro documents the item whose name is its parameter.
            let declared = line.trim_start().strip_prefix("pub ").and_then(item);
            let Some((_, name)) = declared.filter(|(_, name)| !name.is_empty()) else { continue };
            let attribute = |line: &str| line.starts_with("#[") || line.ends_with(")]") && !line.starts_with("//");
            let before = text[..number - 1].iter().rev().map(|line| line.trim()).find(|line| !attribute(line));
            if !before.is_some_and(|before| before.starts_with("///")) {
                findings.push(format!("{}:{number}: {name} has no doc comment", source.path));
            }
        }
    }
    assert_none("public items are documented", findings);
}

#[test]
fn a_type_name_means_one_type() {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // The names of `library` are those of the public interface, where the other modules are hidden.
    // A file `NAME_disabled.rs` replaces `NAME.rs` where a Cargo feature is missing.
    let replaces = |source: &Source| source.path.ends_with("_disabled.rs");
    for source in sources("src").iter().filter(|source| source.module() != "library" && !replaces(source)) {
        for (number, line) in source.lines() {
            let line = line.trim_start();
            let shared = ["pub(crate) ", "pub(super) ", "pub "].iter().find_map(|visible| line.strip_prefix(visible));
            if let Some((kind, name)) = shared.and_then(item)
                && ["struct", "enum", "trait", "union"].contains(&kind)
            {
                names.entry(name).or_default().push(format!("{}:{number}", source.path));
            }
        }
    }
    let twice = names.into_iter().filter(|(_, places)| places.len() > 1);
    assert_none("one name, one type", twice.map(|(name, places)| format!("{name}: {}", places.join(", "))).collect());
}

/// Nouns that end like a participle.
const NOUNS: &[&str] = &["Binding", "Encoding", "Feed", "Finding", "Framing", "Reasoning", "Setting", "Spending", "Thinking"];

/// Past participles that do not end in -ed.
const PARTICIPLES: &[&str] = &["Chosen", "Done", "Found", "Known", "Made", "Ran", "Sent", "Shown", "Spent"];

/// Returns whether the last word of a type's name is a participle. A name such as `StartedServer`
/// ends in a noun.
fn ends_in_a_participle(name: &str) -> bool {
    let word = name.rfind(char::is_uppercase).map_or(name, |start| &name[start..]);
    PARTICIPLES.contains(&word) || (word.ends_with("ing") || word.ends_with("ed")) && !NOUNS.contains(&word)
}

#[test]
fn names_of_types_are_nouns() {
    let mut findings = Vec::new();
    for source in sources("src").iter().chain(&sources("tests")) {
        for (number, line) in source.lines() {
            let line = line.trim_start();
            let line = line.strip_prefix("pub").map_or(line, |rest| rest.trim_start_matches(|c| c != ' ').trim_start());
            let declared = item(line).filter(|(kind, _)| ["struct", "enum", "trait", "type", "union"].contains(kind));
            if let Some((_, name)) = declared.filter(|(_, name)| ends_in_a_participle(name)) {
                findings.push(format!("{}:{number}: {name}", source.path));
            }
        }
    }
    assert_none("names of types are nouns", findings);
}

#[test]
fn participles_are_told_from_nouns() {
    for name in ["Waiting", "TurnStarted", "Shared", "Found"] {
        assert!(ends_in_a_participle(name), "{name}");
    }
    for name in ["StartedServer", "SessionFeed", "Thinking", "Err", "SentPrompt"] {
        assert!(!ends_in_a_participle(name), "{name}");
    }
}

#[test]
fn functions_are_measured() {
    let source = Source::new(
        "src/a.rs",
        "fn a() {\n    b(\"}\");\n}\ntrait T { fn c(); }\npub(crate) fn d() {}\nfn e() {\n    A\n    | B => {}\n}\n",
    );
    assert_eq!(functions(&source), [("a".to_string(), 1, 3), ("d".to_string(), 5, 1), ("e".to_string(), 6, 3)]);
}
