//! Cycles of imports inside a module: none between files.

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
