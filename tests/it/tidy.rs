//! Rules of the house that a machine can hold: who imports whom, how long a file is, what stands only in one place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Longest file.
const LINES_MAX: usize = 400;

/// Files that may be longer: path, reason.
const LONG: &[(&str, &str)] = &[];

/// Imports on one floor: who, whom, reason. None of them makes a circle.
const SIDEWAYS: &[(&str, &str, &str)] = &[
    ("config", "workspace", "settings are read as all files that nuncio reads by itself"),
    ("main", "cli", "the binary is one call of the command line"),
    ("cli", "app", "the command line opens the house"),
    ("context", "model", "events become messages of a model's request"),
    ("context", "permission", "the prompt names the mode"),
    ("event", "content", "a body is made of parts"),
    ("event", "id", "an event has ids"),
    ("protocol", "content", "ACP's shapes are made from ours"),
];

struct Source {
    /// Relative to the package, with `/`.
    path: String,
    text: String,
}

impl Source {
    /// The module below `src` that it belongs to.
    fn module(&self) -> &str {
        let inner = self.path.trim_start_matches("src/");
        inner.split('/').next().unwrap().trim_end_matches(".rs")
    }

    /// Its lines of code with their numbers, without comments and what stands in tests of its own.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().take_while(|(_, line)| !line.contains("#[cfg(test)]"));
        lines.map(|(number, line)| (number + 1, line.split("//").next().unwrap()))
    }
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(dir: &str) -> Vec<Source> {
    fn gather(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                gather(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut paths = Vec::new();
    gather(&package().join(dir), &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        Source { path: path.strip_prefix(package()).unwrap().to_str().unwrap().into(), text }
    };
    let sources: Vec<Source> = paths.into_iter().map(read).collect();
    assert!(!sources.is_empty(), "nothing in {dir}");
    sources
}

/// Fails with all findings at once.
fn assert_none(rule: &str, findings: Vec<String>) {
    assert!(findings.is_empty(), "{rule}:\n{}", findings.join("\n"));
}

/// The table of docs/ARCHITECTURE.md: module → floor.
fn floors() -> BTreeMap<String, u32> {
    let text = std::fs::read_to_string(package().join("docs/ARCHITECTURE.md")).unwrap();
    let mut floors = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, floor, modules, ..] = cells.as_slice()
            && let Ok(floor) = floor.parse()
        {
            for module in modules.split(',').map(|module| module.trim().trim_matches('`')) {
                floors.insert(module.to_string(), floor);
            }
        }
    }
    assert!(floors.len() > 10, "no table of floors: {floors:?}");
    floors
}

/// Modules that a line names: after `crate::`, one or a list in braces; the binary says `nuncio::`.
fn named(code: &str, in_main: bool) -> Vec<String> {
    let prefix = if in_main { "nuncio::" } else { "crate::" };
    let word =
        |text: &str| text.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect::<String>();
    let mut found = Vec::new();
    for (place, _) in code.match_indices(prefix) {
        let rest = &code[place + prefix.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            found.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = true;
        for (place, character) in list.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                ' ' | '\n' => {}
                _ if start => {
                    found.push(word(&list[place..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn modules_import_only_from_lower_floors() {
    let floors = floors();
    let sources: Vec<Source> = sources("src").into_iter().filter(|source| source.module() != "lib").collect();
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for source in &sources {
        let module = source.module();
        let Some(floor) = floors.get(module) else {
            findings.push(format!("{} is on no floor", source.path));
            continue;
        };
        let code: Vec<&str> = source.code().map(|(_, line)| line).collect();
        for other in named(&code.join("\n"), module == "main").iter().filter(|other| *other != module) {
            let Some(below) = floors.get(other) else { continue };
            let known = SIDEWAYS.iter().position(|(who, whom, _)| *who == module && whom == other);
            match known {
                Some(known) if below == floor => drop(used.insert(known)),
                _ if below >= floor => findings.push(format!("{} (floor {floor}) imports {other} (floor {below})", source.path)),
                _ => {}
            }
        }
    }
    let modules: BTreeSet<&str> = sources.iter().map(Source::module).collect();
    findings.extend(
        floors.keys().filter(|module| !modules.contains(module.as_str())).map(|module| format!("there is no module {module}")),
    );
    let idle = SIDEWAYS.iter().enumerate().filter(|(index, _)| !used.contains(index));
    findings.extend(idle.map(|(_, (who, whom, _))| format!("{who} does not import {whom} any more: take it off the list")));
    assert_none("imports go down", findings);
}

#[test]
fn lists_of_modules_are_read() {
    let cases = [
        ("use crate::event::Body;", vec!["event"]),
        ("use crate::{a::{b, c}, d, e::f};", vec!["a", "d", "e"]),
        ("let x = crate::one::two(crate::three);", vec!["one", "three"]),
        ("use super::x; use other::crates;", vec![]),
    ];
    for (code, modules) in cases {
        assert_eq!(named(code, false), modules, "{code}");
    }
}

#[test]
fn files_say_what_they_are_and_are_not_long() {
    let mut findings = Vec::new();
    for source in sources("src").iter().chain(&sources("tests")) {
        if !source.text.starts_with("//! ") {
            findings.push(format!("{} does not begin with //!", source.path));
        }
        let lines = source.text.lines().count();
        let allowed = LONG.iter().any(|(path, _)| *path == source.path);
        if allowed != (lines > LINES_MAX) {
            findings.push(format!("{} has {lines} lines, and is {}on the list", source.path, if allowed { "" } else { "not " }));
        }
    }
    assert_none("files", findings);
}

/// What may stand only in some modules.
#[test]
fn things_have_their_one_place() {
    let rules: &[(&str, &[&str], &[&str])] = &[
        ("SQL", &["rusqlite", "SELECT ", "INSERT INTO", "UPDATE sessions", "DELETE FROM", "PRAGMA "], &["store"]),
        ("the environment", &["std::env::var", "env::vars", "env::set_var"], &["config", "main"]),
        (
            "spawning",
            &["std::process::Command", "tokio::process", "process::Command::new", "libc::fork", "posix_spawn"],
            &["process"],
        ),
        ("hosts", &["reqwest::"], &["model", "web"]),
        ("unwrap", &[".unwrap()", ".unwrap_err()"], &[]),
        ("statics", &["static mut ", "lazy_static!", "LazyLock<", "static CELL", "::global()"], &[]),
        ("terminals", &["is_terminal()", "std::io::stdin()"], &["cli", "process"]),
        ("unbounded queues", &["unbounded_channel", "unbounded("], &[]),
        ("leftovers", &["dbg!(", "todo!(", "unimplemented!("], &[]),
    ];
    let mut findings = Vec::new();
    for source in sources("src") {
        for (number, line) in source.code() {
            for (what, words, places) in rules {
                if words.iter().any(|word| line.contains(word)) && !places.contains(&source.module()) {
                    findings.push(format!("{what} at {}:{number}: {}", source.path, line.trim()));
                }
            }
        }
    }
    assert_none("things have their place", findings);
}

#[test]
fn tests_do_not_sleep_and_none_is_left_out() {
    // In pieces, so that this file is no finding.
    let words =
        [["thread::", "sleep"], ["time::", "sleep"], ["#[", "ignore"], ["time::", "interval"]].map(|pieces| pieces.concat());
    let mut findings = Vec::new();
    for source in sources("tests/it") {
        for (number, line) in source.code().filter(|(_, line)| words.iter().any(|word| line.contains(word.as_str()))) {
            findings.push(format!("{}:{number}: {}", source.path, line.trim()));
        }
    }
    assert_none("tests wait for what happens", findings);
}

/// The ACP registry takes icons of 16 x 16 whose only colour is `currentColor`.
#[test]
fn registry_icon_is_small_and_monochrome() {
    let icon = std::fs::read_to_string(package().join("editors/registry/icon.svg")).unwrap();
    for size in ["width=\"16\"", "height=\"16\"", "viewBox=\"0 0 16 16\""] {
        assert!(icon.contains(size), "{size}: {icon}");
    }
    let paints = |name: &str| {
        let attribute = format!(" {name}=\"");
        icon.split(&attribute).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all: Vec<String> = ["fill", "stroke", "color", "stop-color", "style"].iter().flat_map(|name| paints(name)).collect();
    assert!(all.contains(&"currentColor".to_owned()), "{icon}");
    assert!(all.iter().all(|paint| ["none", "currentColor"].contains(&paint.as_str())), "{all:?}");
}
