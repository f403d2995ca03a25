//! Imports go down: between modules by the table of docs/ARCHITECTURE.md, and inside a module
//! without a cycle of files.

use std::collections::{BTreeMap, BTreeSet};

use super::paths;
use super::source::{Source, assert_none, package, sources};

/// Imports within one layer: importer, imported, reason. None of them makes a cycle.
const SIDEWAYS: &[(&str, &str, &str)] = &[
    ("config", "workspace", "settings are read by the bounded reader of small files"),
    ("process", "config", "a program of a project starts only while the project is trusted"),
    ("main", "internal", "the binary is one call of the command line"),
    ("internal", "cli", "the binary reaches it through the library"),
    ("cli", "app", "the command line builds the application"),
    ("library", "app", "an agent of another program is an application, too"),
    ("http", "peer", "other nodes connect to the port of the HTTP server"),
    ("http", "mcp_server", "MCP clients of nuncio connect over HTTP, too"),
    ("mcp_server", "local", "its tools call methods in this process"),
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

/// The code of a file without its unit tests, with line breaks kept.
fn code(source: &Source) -> String {
    source.lines().map(|(_, line)| format!("{line}\n")).collect()
}

#[test]
fn modules_import_only_from_lower_layers() {
    let layers = layers();
    let sources: Vec<Source> = sources("src").into_iter().filter(|source| source.module() != "lib").collect();
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for source in &sources {
        let module = source.module();
        let Some(layer) = layers.get(module) else {
            findings.push(format!("{} has no layer", source.path));
            continue;
        };
        let prefix = if module == "main" { "nuncio::" } else { "crate::" };
        let others: BTreeSet<String> = paths::after(&code(source), prefix).into_iter().map(|path| path[0].clone()).collect();
        for other in others.iter().filter(|other| *other != module) {
            let Some(below) = layers.get(other) else { continue };
            let listed = SIDEWAYS.iter().position(|(from, to, _)| *from == module && to == other);
            match listed {
                Some(listed) if below == layer => drop(used.insert(listed)),
                _ if below >= layer => findings.push(format!("{} (layer {layer}) imports {other} (layer {below})", source.path)),
                _ => {}
            }
        }
    }
    let modules: BTreeSet<&str> = sources.iter().map(Source::module).collect();
    findings.extend(layers.keys().filter(|module| !modules.contains(module.as_str())).map(|module| format!("no module {module}")));
    let idle = SIDEWAYS.iter().enumerate().filter(|(index, _)| !used.contains(index));
    findings.extend(idle.map(|(_, (from, to, _))| format!("{from} no longer imports {to}: remove it from the list")));
    assert_none("imports go down", findings);
}

/// The files of one module: module path (`session::queue`) to file.
struct Files<'a>(BTreeMap<String, &'a Source>);

impl<'a> Files<'a> {
    fn new(module: &str, sources: &'a [Source]) -> Files<'a> {
        let path = |source: &Source| source.path.trim_start_matches("src/").trim_end_matches(".rs").replace('/', "::");
        Files(sources.iter().filter(|source| source.module() == module).map(|source| (path(source), source)).collect())
    }

    /// The file that defines what `path` names; a name that a file re-exports is defined further below.
    fn defining(&self, path: &[String]) -> Option<String> {
        let file = (1..=path.len()).rev().map(|length| path[..length].join("::")).find(|file| self.0.contains_key(file))?;
        let rest = &path[file.split("::").count()..];
        let Some(name) = rest.first() else { return Some(file) };
        let exported = self.exports(&file).into_iter().find(|exported| exported.last() == Some(name));
        match exported {
            // A macro is defined in the file that exports it.
            Some(exported) if exported.len() > 1 && exported != path => self.defining(&exported),
            _ => Some(file),
        }
    }

    /// Paths that a file re-exports from its children, from the crate's root.
    fn exports(&self, file: &str) -> Vec<Vec<String>> {
        let text = code(self.0[file]);
        let statements = text.split(';').filter_map(|statement| {
            let at = statement
                .find("pub use ")
                .or_else(|| statement.find("pub(crate) use "))
                .or_else(|| statement.find("pub(super) use "))?;
            Some(statement[at..].split_once(" use ")?.1.to_string())
        });
        let parent: Vec<String> = file.split("::").map(String::from).collect();
        let rooted = statements.flat_map(|statement| paths::after(&format!(" root::{statement}"), "root::"));
        rooted.map(|path| parent.iter().cloned().chain(path.into_iter().filter(|name| name != "self")).collect()).collect()
    }

    /// Files that a file imports from, itself left out.
    fn imports(&self, file: &str) -> BTreeSet<String> {
        // A visibility such as `pub(in crate::hub)` is not an import.
        let text = without_exports(&code(self.0[file])).replace("pub(in crate::", "pub(in ");
        let here: Vec<String> = file.split("::").map(String::from).collect();
        let mut named: Vec<Vec<String>> = paths::after(&text, "crate::");
        for path in paths::after(&text, "super::") {
            let up = 1 + path.iter().take_while(|name| *name == "super").count();
            let parent = &here[..here.len().saturating_sub(up)];
            named.push(parent.iter().cloned().chain(path.into_iter().skip_while(|name| name == "super")).collect());
        }
        let children = self.0.keys().filter_map(|other| other.strip_prefix(file)?.strip_prefix("::"));
        for child in children.filter(|child| !child.contains("::")) {
            for path in paths::after(&text, &format!("{child}::")) {
                named.push(here.iter().cloned().chain([child.to_string()]).chain(path).collect());
            }
        }
        named.iter().filter_map(|path| self.defining(path)).filter(|other| other != file).collect()
    }
}

/// `code` without the statements that re-export.
fn without_exports(code: &str) -> String {
    let exports =
        |statement: &&str| !["pub use ", "pub(crate) use ", "pub(super) use "].iter().any(|word| statement.contains(word));
    code.split_inclusive(';').filter(exports).collect()
}

#[test]
fn files_of_a_module_do_not_import_each_other_in_a_cycle() {
    let sources = sources("src");
    let mut findings = Vec::new();
    let modules: BTreeSet<&str> = sources.iter().map(Source::module).collect();
    for module in modules {
        let files = Files::new(module, &sources);
        let mut imports: BTreeMap<String, BTreeSet<String>> =
            files.0.keys().map(|file| (file.clone(), files.imports(file))).collect();
        // Files that import nothing of what remains are removed until only cycles remain.
        while let Some(free) =
            imports.iter().find(|(_, to)| to.iter().all(|to| !imports.contains_key(to))).map(|(file, _)| file.clone())
        {
            imports.remove(&free);
        }
        // Files that only lead into a cycle are removed as well.
        while let Some(free) = imports.keys().find(|file| !imports.values().any(|to| to.contains(*file))).cloned() {
            imports.remove(&free);
        }
        for (file, to) in &imports {
            let to: Vec<&str> = to.iter().filter(|to| imports.contains_key(*to)).map(String::as_str).collect();
            findings.push(format!("{file} imports {}", to.join(", ")));
        }
    }
    assert_none("no cycle of files", findings);
}
