//! Imports between modules go down, by the table of docs/ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};

use super::cycles::cycles;
use super::imports::{Modules, top};
use super::source::{assert_none, package, sources};

/// Imports within one layer: importer, imported, reason. None of them makes a cycle.
const SIDEWAYS: &[(&str, &str, &str)] = &[
    ("config", "workspace", "settings are read by the bounded reader of small files"),
    ("process", "workspace", "temporary directories of processes are private"),
    ("process", "documents", "documents are read in a child process"),
    ("process", "config", "a program of a project starts only while the project is trusted"),
    ("main", "internal", "the binary is one call of the command line"),
    ("internal", "cli", "the binary reaches it through the library"),
    ("cli", "app", "the command line builds the application"),
    ("library", "app", "an agent of another program is an application, too"),
    ("http", "peer", "other nodes connect to the port of the HTTP server"),
    ("http", "mcp_server", "MCP clients of nuncio connect over HTTP, too"),
    ("mcp_server", "client", "its tools call methods in this process"),
    ("http", "acp", "the methods of /rpc have the form of ACP"),
    ("local_socket", "cluster", "other processes are nodes on other machines, too"),
    ("hub", "agent", "the hub creates nuncio's own agents, too"),
    ("context", "model", "events become messages of a model request"),
    ("hooks", "model", "a hook may change the messages of a request"),
    ("event", "content", "an event body consists of content parts"),
    ("event", "id", "an event has ids"),
    ("event", "options", "an event names the mode and the thinking level"),
    ("options", "error", "an unknown mode is an error"),
    ("task", "error", "a panic of a task is an error"),
    ("protocol", "content", "ACP content is converted from ours"),
    ("web", "workspace", "certificates are read by the bounded reader of small files"),
    ("store", "web", "connections to PostgreSQL can accept any certificate"),
    ("store", "workspace", "the database is created as a private file"),
    ("tools", "toolkit", "each tool uses what tools share"),
];

/// The table of docs/ARCHITECTURE.md: module to layer.
fn layers() -> BTreeMap<String, u32> {
    let text = std::fs::read_to_string(package().join("docs/ARCHITECTURE.md")).unwrap();
    let mut layers = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, layer, modules, ..] = cells.as_slice()
            && let Ok(layer) = layer.parse()
        {
            for module in modules.split(',').map(|module| module.trim().trim_matches('`')) {
                layers.insert(module.to_string(), layer);
            }
        }
    }
    assert!(layers.len() > 10, "no table of layers: {layers:?}");
    layers
}

#[test]
fn modules_import_only_from_lower_layers() {
    let layers = layers();
    let modules = Modules::new(&sources("src"));
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for module in modules.paths() {
        let top = top(module);
        let Some(layer) = layers.get(top) else {
            findings.push(format!("{module} has no layer"));
            continue;
        };
        for other in modules.top_imports(module).iter().filter(|other| *other != top) {
            let Some(below) = layers.get(other) else { continue };
            let listed = SIDEWAYS.iter().position(|(from, to, _)| *from == top && to == other);
            match listed {
                Some(listed) if below == layer => drop(used.insert(listed)),
                _ if below >= layer => findings.push(format!("{module} (layer {layer}) imports {other} (layer {below})")),
                _ => {}
            }
        }
    }
    let tops: BTreeSet<&str> = modules.paths().map(top).collect();
    findings.extend(layers.keys().filter(|module| !tops.contains(module.as_str())).map(|module| format!("no module {module}")));
    let idle = SIDEWAYS.iter().enumerate().filter(|(index, _)| !used.contains(index));
    findings.extend(idle.map(|(_, (from, to, _))| format!("{from} no longer imports {to}: remove it from the list")));
    assert_none("imports go down", findings);
}

#[test]
fn imports_within_a_layer_make_no_cycle() {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (from, to, _) in SIDEWAYS {
        graph.entry(from.to_string()).or_default().insert(to.to_string());
    }
    assert_eq!(cycles(&graph), BTreeSet::new());
}
