//! Cycles of imports inside a module: none between files, and between folders only those that a
//! list has.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Modules, top};
use super::source::{assert_none, sources};

/// A module, and the names of folders with spaces between them.
type ListedCycle = (&'static str, &'static str);

/// Folders of a module that import each other in a cycle. A folder is the files below
/// `src/MODULE/NAME/` and `src/MODULE/NAME.rs`. The list only shrinks, until the folders of each
/// module can be read from the lowest to the highest.
const FOLDER_CYCLES: &[ListedCycle] = &[
    ("cli", "agents chat errors flags projects prompt_runner run run_options servers sessions terminal"),
    ("hub", "conversation opencode"),
];

/// Each node of a graph, and what it imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Returns the strongly connected components of at least two nodes, sorted.
pub fn cycles(graph: &Graph) -> BTreeSet<BTreeSet<String>> {
    let reached = |from: &str| {
        let (mut found, mut open) = (BTreeSet::new(), vec![from.to_string()]);
        while let Some(node) = open.pop() {
            open.extend(graph.get(&node).into_iter().flatten().filter(|next| found.insert(next.to_string())).cloned());
        }
        found
    };
    let reached: Graph = graph.keys().map(|node| (node.clone(), reached(node))).collect();
    let component = |(node, reached_from): (&String, &BTreeSet<String>)| {
        let back = |other: &&String| reached.get(*other).is_some_and(|reached| reached.contains(node));
        reached_from.iter().filter(back).cloned().collect::<BTreeSet<String>>()
    };
    reached.iter().map(component).filter(|component| component.len() > 1).collect()
}

/// Returns what each file imports from its own module.
fn files() -> Graph {
    let modules = Modules::new(&sources("src"));
    let imports = |file: &str| modules.imports(file).into_iter().filter(|other| top(other) == top(file)).collect();
    modules.paths().map(|file| (file.to_string(), imports(file))).collect()
}

/// Returns the folder of a file inside its module; `None` for the root of the module.
fn folder(file: &str) -> Option<&str> {
    file.split("::").nth(1)
}

/// Returns what the folders of each module import from each other.
fn folders(files: &Graph) -> BTreeMap<String, Graph> {
    let mut modules: BTreeMap<String, Graph> = BTreeMap::new();
    for (file, imports) in files {
        let Some(from) = folder(file) else { continue };
        let to = imports.iter().filter_map(|other| folder(other)).filter(|to| *to != from).map(String::from);
        modules.entry(top(file).into()).or_default().entry(from.into()).or_default().extend(to);
    }
    modules
}

/// Compares the cycles of folders with a list of them.
fn differences(files: &Graph, list: &[ListedCycle]) -> Vec<String> {
    let in_module = |(module, graph): (String, Graph)| cycles(&graph).into_iter().map(move |cycle| (module.clone(), cycle));
    let found: Vec<(String, BTreeSet<String>)> = folders(files).into_iter().flat_map(in_module).collect();
    let entry = |(module, folders): &ListedCycle| (module.to_string(), folders.split(' ').map(String::from).collect());
    let listed: Vec<(String, BTreeSet<String>)> = list.iter().map(entry).collect();
    let show = |cycle: &BTreeSet<String>| cycle.iter().cloned().collect::<Vec<_>>().join(", ");
    let mut findings = Vec::new();
    for (module, cycle) in &found {
        let entries = || listed.iter().filter(|(other, _)| other == module).map(|(_, folders)| folders);
        if !entries().any(|entry| entry.is_superset(cycle)) {
            findings.push(format!("{module}: not in the list: {}", show(cycle)));
            let is_listed = |from: &String, to: &String| entries().any(|entry| entry.contains(from) && entry.contains(to));
            findings.extend(imports_within(files, module, cycle, is_listed));
        }
    }
    for (module, entry) in &listed {
        // An entry that became larger is reported as a new cycle.
        let is_grown = found.iter().any(|(other, cycle)| other == module && cycle.is_superset(entry));
        if !is_grown {
            let rest = found.iter().filter(|(other, cycle)| other == module && cycle.is_subset(entry));
            let rest: Vec<String> = rest.map(|(_, cycle)| show(cycle)).collect();
            findings.push(match rest.is_empty() {
                true => format!("{module}: no longer a cycle, remove it from the list: {}", show(entry)),
                false => format!("{module}: {} in the list is now: {}", show(entry), rest.join("; ")),
            });
        }
    }
    findings
}

/// Describes the imports between the folders of a cycle, except those that are listed.
fn imports_within(
    files: &Graph,
    module: &str,
    cycle: &BTreeSet<String>,
    is_listed: impl Fn(&String, &String) -> bool,
) -> Vec<String> {
    let folder = |file: &str| folder(file).and_then(|folder| cycle.get(folder));
    let mut found = Vec::new();
    for (file, imports) in files.iter().filter(|(file, _)| top(file) == module) {
        for other in imports {
            if let (Some(from), Some(to)) = (folder(file), folder(other))
                && from != to
                && !is_listed(from, to)
            {
                found.push(format!("    {file} imports {other}"));
            }
        }
    }
    found
}

#[test]
fn files_of_a_module_do_not_import_each_other_in_a_cycle() {
    let files = files();
    let mut findings = Vec::new();
    for cycle in cycles(&files) {
        for file in &cycle {
            let to: Vec<&str> = files[file].intersection(&cycle).map(String::as_str).collect();
            findings.push(format!("{file} imports {}", to.join(", ")));
        }
    }
    assert_none("no cycle of files", findings);
}

#[test]
fn folders_of_a_module_import_each_other_only_in_listed_cycles() {
    assert_none("cycles of folders", differences(&files(), FOLDER_CYCLES));
}

/// A graph in the form `a>b b>c`.
fn graph(text: &str) -> Graph {
    let mut graph = Graph::new();
    for (from, to) in text.split_whitespace().map(|arrow| arrow.split_once('>').unwrap()) {
        graph.entry(to.into()).or_default();
        graph.entry(from.into()).or_default().insert(to.into());
    }
    graph
}

#[test]
fn strongly_connected_components_are_found() {
    let cases = [
        ("", ""),
        ("a>b b>c a>c", ""),
        ("a>b b>a", "ab"),
        ("a>b b>c c>a", "abc"),
        ("a>b b>a b>c c>d d>c", "ab cd"),
        ("a>b b>a b>c c>d d>b", "abcd"),
        ("x>a a>b b>a b>y", "ab"),
        ("a>b b>c c>b c>d d>a e>a", "abcd"),
    ];
    for (arrows, expected) in cases {
        let found: Vec<String> = cycles(&graph(arrows)).into_iter().map(|cycle| cycle.into_iter().collect()).collect();
        assert_eq!(found.join(" "), expected, "{arrows}");
    }
}

#[test]
fn list_of_cycles_only_shrinks() {
    let files = graph("m::a::x>m::b m::b::x>m::a::y m::b>m::c m::c>m::d::x m::d>m::e m::e>m::d n::a>n::b m>m::a m::c>m");
    let cases: [(&[ListedCycle], &[&str]); 6] = [
        (&[("m", "a b"), ("m", "d e")], &[]),
        (&[("m", "a b")], &["m: not in the list: d, e", "    m::d imports m::e", "    m::e imports m::d"]),
        (
            &[("m", "a"), ("m", "d e"), ("n", "a b c")],
            &[
                "m: not in the list: a, b",
                "    m::a::x imports m::b",
                "    m::b::x imports m::a::y",
                "n: no longer a cycle, remove it from the list: a, b, c",
            ],
        ),
        (&[("m", "a b c"), ("m", "d e")], &["m: a, b, c in the list is now: a, b"]),
        (&[("m", "a b d e")], &["m: a, b, d, e in the list is now: a, b; d, e"]),
        (&[("m", "a b"), ("m", "d e"), ("n", "a b")], &["n: no longer a cycle, remove it from the list: a, b"]),
    ];
    for (list, expected) in cases {
        assert_eq!(differences(&files, list), *expected, "{list:?}");
    }
}
