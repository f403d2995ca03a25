//! Automatic checks of the rules of this codebase: layers, sizes, names, language, restricted
//! calls.

mod cycles;
mod extension;
mod imports;
mod language;
mod layers;
mod nouns;
mod paths;
mod shape;
mod source;

use source::{assert_none, package, sources};

/// Calls that are allowed only in some modules: subject, words, modules.
#[test]
fn restricted_calls_stay_in_their_modules() {
    let rules: &[(&str, &[&str], &[&str])] = &[
        ("SQL", &["rusqlite", "SELECT ", "INSERT INTO", "UPDATE sessions", "DELETE FROM", "PRAGMA "], &["store"]),
        ("the environment", &["std::env::var", "env::vars", "env::set_var"], &["build", "config", "main"]),
        (
            "spawning",
            &["std::process::Command", "tokio::process", "process::Command::new", "libc::fork", "posix_spawn"],
            &["process"],
        ),
        ("hosts", &["reqwest::"], &["client", "hub", "model", "web"]),
        ("unwrap", &[".unwrap()", ".unwrap_err()"], &[]),
        ("statics", &["static mut ", "lazy_static!", "LazyLock<", "static CELL", "::global()"], &[]),
        ("terminals", &["is_terminal()", "std::io::stdin()"], &["cli", "process"]),
        ("output that panics if its reader has ended", &["println!(", "print!("], &["build", "main", "process"]),
        ("tasks, which are spawned boxed", &["tokio::spawn(", "tokio_util::task::TaskTracker"], &["task"]),
        ("locks that can be poisoned", &["PoisonError", "std::sync::Mutex", "std::sync::RwLock"], &[]),
        ("unbounded queues", &["unbounded_channel", "unbounded("], &[]),
        ("unit tests, for which the library would be compiled again", &["cfg(test)"], &[]),
        ("leftovers", &["dbg!(", "todo!(", "unimplemented!("], &[]),
    ];
    let mut findings = Vec::new();
    for source in sources("src") {
        let text: Vec<&str> = source.text.lines().collect();
        for (number, line) in source.lines() {
            // SQL is in string literals, which `line` omits.
            let whole = text[number - 1].split("//").next().unwrap();
            for (what, words, modules) in rules {
                let line = if *what == "SQL" { whole } else { line };
                if words.iter().any(|word| line.contains(word)) && !modules.contains(&source.module()) {
                    findings.push(format!("{what} at {}:{number}: {}", source.path, line.trim()));
                }
            }
        }
    }
    assert_none("restricted calls", findings);
}

#[test]
fn tests_neither_sleep_nor_are_ignored() {
    let words = ["thread::sleep", "time::sleep", "#[ignore", "time::interval"];
    let mut findings = Vec::new();
    for source in
        sources("tests/it").iter().chain(&sources("tests/library")).filter(|source| source.path != "tests/it/harness/poll.rs")
    {
        for (number, line) in source.lines().filter(|(_, line)| words.iter().any(|word| line.contains(word))) {
            findings.push(format!("{}:{number}: {}", source.path, line.trim()));
        }
    }
    assert_none("tests wait for events, not for time", findings);
}

/// The ACP registry accepts icons of 16 x 16 whose only colour is `currentColor`.
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
