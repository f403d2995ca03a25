//! Cycles of imports inside a module: none between files, and none between folders, so that the
//! folders of each module can be read from the lowest to the highest.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Modules, top};
use super::source::{assert_none, sources};

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

/// Returns the cycles of folders, and the imports in each of them. A folder is the files below
/// `src/MODULE/NAME/` and `src/MODULE/NAME.rs`.
fn folder_cycles(files: &Graph) -> Vec<String> {
    let mut findings = Vec::new();
    for (module, graph) in folders(files) {
        for cycle in cycles(&graph) {
            findings.push(format!("{module}: {}", cycle.iter().cloned().collect::<Vec<_>>().join(", ")));
            findings.extend(imports_within(files, &module, &cycle));
        }
    }
    findings
}

/// Describes the imports between the folders of a cycle.
fn imports_within(files: &Graph, module: &str, cycle: &BTreeSet<String>) -> Vec<String> {
    let folder = |file: &str| folder(file).and_then(|folder| cycle.get(folder));
    let mut found = Vec::new();
    for (file, imports) in files.iter().filter(|(file, _)| top(file) == module) {
        for other in imports {
            if let (Some(from), Some(to)) = (folder(file), folder(other))
                && from != to
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
fn folders_of_a_module_do_not_import_each_other_in_a_cycle() {
    assert_none("no cycle of folders", folder_cycles(&files()));
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
fn cycles_of_folders_are_found() {
    let cases: [(&str, &[&str]); 4] = [
        ("m::a::x>m::b m::b>m::c n::a>n::b m>m::a m::c>m", &[]),
        ("m::a::x>m::a::y m::a::y>m::a::x", &[]),
        (
            "m::a::x>m::b m::b::x>m::a::y m::b>m::c m::c>m::d::x n::b>m::a",
            &["m: a, b", "    m::a::x imports m::b", "    m::b::x imports m::a::y"],
        ),
        (
            "m::d>m::e m::e>m::d n::a>n::b n::b::x>n::a::y",
            &[
                "m: d, e",
                "    m::d imports m::e",
                "    m::e imports m::d",
                "n: a, b",
                "    n::a imports n::b",
                "    n::b::x imports n::a::y",
            ],
        ),
    ];
    for (arrows, expected) in cases {
        assert_eq!(folder_cycles(&graph(arrows)), expected, "{arrows}");
    }
}
