//! What each file of `src` imports. Names are resolved as the compiler does it: through `self`,
//! `super`, child modules, names that a `use` binds, glob imports and re-exports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::paths::{NamedPath, Names, UseLeaf};
use super::source::{Source, assert_none};

/// Longest chain of names that `use` declarations bind to each other.
const MAX_DEPTH: usize = 6;

/// Modules of the crate that have a file, by their path (`session::queue`); `src/lib.rs` has the
/// empty path. Files that replace each other (`#[path]` and `#[cfg]`) are one module.
pub struct Modules(BTreeMap<String, Names>);

impl Modules {
    pub fn new(sources: &[Source]) -> Modules {
        let renamed: BTreeMap<String, String> = sources.iter().flat_map(declared_paths).collect();
        let mut modules: BTreeMap<String, Names> = BTreeMap::new();
        for source in sources {
            let module = renamed.get(&source.path).cloned().unwrap_or_else(|| module_path(&source.path));
            let (names, module) = (read(source), modules.entry(module).or_default());
            module.uses.extend(names.uses);
            module.mentions.extend(names.mentions);
            module.macro_calls.extend(names.macro_calls);
            module.declared.extend(names.declared);
            module.macros.extend(names.macros);
            module.words.extend(names.words);
        }
        Modules(modules)
    }

    /// Returns the paths of all modules but the crate's root.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str).filter(|module| !module.is_empty())
    }

    /// Returns the modules at the root of the crate that `module` names. A name that `src/lib.rs`
    /// re-exports counts as its module.
    pub fn top_imports(&self, module: &str) -> BTreeSet<String> {
        let names = &self.0[module];
        let paths = names.uses.iter().map(|leaf| &leaf.path).chain(&names.mentions);
        let mut named: Vec<Vec<String>> = paths.flat_map(|path| self.absolute(module, path, MAX_DEPTH)).collect();
        for path in &mut named {
            if path.first().is_some_and(|first| !self.0.contains_key(first))
                && let Some(defining) = self.defining(path, MAX_DEPTH).first()
            {
                *path = split(defining);
            }
        }
        named.into_iter().filter_map(|path| path.into_iter().next()).collect()
    }

    /// Returns the modules whose files define what the file of `module` imports. A re-export is an
    /// import only if the file itself uses the name.
    pub fn imports(&self, module: &str) -> BTreeSet<String> {
        let names = &self.0[module];
        let mut found = BTreeSet::new();
        for leaf in &names.uses {
            let mut paths = self.absolute(module, &leaf.path, MAX_DEPTH);
            // The name of a module imports nothing, but paths through it do.
            paths.retain(|path| names.words.contains(&leaf.name) || !leaf.exported && !self.0.contains_key(&path.join("::")));
            found.extend(paths.iter().flat_map(|path| self.targets(path, MAX_DEPTH)));
        }
        for path in names.mentions.iter().flat_map(|path| self.absolute(module, path, MAX_DEPTH)) {
            found.extend(self.targets(&path, MAX_DEPTH));
        }
        // A macro is in scope without an import in the modules that its file declares below it.
        let is_imported = |name: &String| names.macros.contains(name) || names.uses.iter().any(|leaf| leaf.name == *name);
        for name in names.macro_calls.iter().filter(|name| !is_imported(name)) {
            found.extend(self.0.iter().filter(|(_, names)| names.macros.contains(name)).map(|(module, _)| module.clone()));
        }
        found.remove(module);
        found
    }

    /// Returns the modules that an import of `path` reaches. A glob import reaches the module itself
    /// and those that define the names which it exports.
    fn targets(&self, path: &[String], depth: usize) -> BTreeSet<String> {
        let Some((_, target)) = path.split_last().filter(|(last, _)| *last == "*") else { return self.defining(path, depth) };
        let mut found = self.defining(target, depth);
        let module = target.join("::");
        if found.contains(&module) && depth > 0 {
            for export in self.exports(&module) {
                let absolute = self.absolute(&module, &export.path, depth - 1);
                found.extend(absolute.iter().flat_map(|path| self.targets(path, depth - 1)));
            }
        }
        found
    }

    fn exports(&self, module: &str) -> impl Iterator<Item = &UseLeaf> {
        self.0[module].uses.iter().filter(|leaf| leaf.exported)
    }

    /// Returns the module whose file defines what `path` names: the longest module in the path, or
    /// the one from which that module re-exports the name. Declarations that replace each other can
    /// have several.
    fn defining(&self, path: &[String], depth: usize) -> BTreeSet<String> {
        let mut lengths = (0..=path.len()).rev();
        let Some(length) = lengths.find(|length| self.0.contains_key(&path[..*length].join("::"))) else {
            return BTreeSet::new();
        };
        let (module, rest) = (path[..length].join("::"), &path[length..]);
        let mut targets = match rest.split_first().filter(|_| depth > 0) {
            Some((name, rest)) => self.exported(&module, name, rest, depth - 1),
            None => Vec::new(),
        };
        targets.retain(|target| target != path);
        match targets.is_empty() {
            true => BTreeSet::from([module]),
            false => targets.iter().flat_map(|target| self.defining(target, depth - 1)).collect(),
        }
    }

    /// Returns the paths from which `module` re-exports `name`, followed by `rest`.
    fn exported(&self, module: &str, name: &String, rest: &[String], depth: usize) -> Vec<Vec<String>> {
        let binding = |wanted: &str| {
            let exports = self.exports(module).filter(|leaf| leaf.name == wanted);
            exports.flat_map(|leaf| self.absolute(module, &leaf.path, depth)).collect::<Vec<_>>()
        };
        let mut targets = binding(name);
        if targets.is_empty() && !self.0[module].declared.contains(name) {
            targets = binding("*");
            targets.retain_mut(|target| {
                target.pop();
                let provides = self.provides(&target.join("::"), name, depth);
                target.push(name.clone());
                provides
            });
        }
        targets.into_iter().map(|target| [&target, rest].concat()).collect()
    }

    /// Returns whether other modules can import `name` from `module`.
    fn provides(&self, module: &str, name: &str, depth: usize) -> bool {
        let Some(names) = self.0.get(module).filter(|_| depth > 0) else { return false };
        let in_glob = |leaf: &UseLeaf| {
            let targets = self.absolute(module, &leaf.path, depth - 1);
            targets.iter().any(|target| self.provides(&target[..target.len() - 1].join("::"), name, depth - 1))
        };
        names.declared.contains(name)
            || self.exports(module).any(|leaf| if leaf.name == "*" { in_glob(leaf) } else { leaf.name == name })
    }

    /// Returns the path from the crate's root for a path in the file of `module`: none for names of
    /// other crates and of the file itself, several if declarations replace each other.
    fn absolute(&self, module: &str, path: &NamedPath, depth: usize) -> Vec<Vec<String>> {
        let mut here = split(module);
        here.extend(path.within.iter().cloned());
        self.resolved(module, here, &path.segments, depth)
    }

    fn resolved(&self, module: &str, here: Vec<String>, segments: &[String], depth: usize) -> Vec<Vec<String>> {
        let rest: Vec<String> = segments.iter().filter(|name| *name != "self").cloned().collect();
        let from = |base: &[String], rest: &[String]| vec![[base, rest].concat()];
        match segments[0].as_str() {
            "crate" | "nuncio" => from(&[], &rest[1..]),
            "self" | "super" => {
                let up = rest.iter().take_while(|name| *name == "super").count();
                from(&here[..here.len().saturating_sub(up)], &rest[up..])
            }
            first if self.is_child(&here, first) => from(&here, &rest),
            first if depth > 0 => self.bound(module, first, depth - 1).iter().flat_map(|base| from(base, &rest[1..])).collect(),
            _ => Vec::new(),
        }
    }

    fn is_child(&self, parent: &[String], name: &str) -> bool {
        self.0.contains_key(&[parent, &[name.to_string()]].concat().join("::"))
    }

    /// Returns the paths that a `use` in the file of `module` binds to `name`.
    fn bound(&self, module: &str, name: &str, depth: usize) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        for leaf in self.0[module].uses.iter().filter(|leaf| leaf.name == name || leaf.name == "*") {
            for mut target in self.absolute(module, &leaf.path, depth) {
                if leaf.name == name {
                    found.push(target);
                    continue;
                }
                target.pop();
                let source = target.join("::");
                if self.is_child(&target, name) {
                    found.push([target, vec![name.to_string()]].concat());
                } else if depth > 0 && source != module && self.0.contains_key(&source) {
                    found.extend(self.bound(&source, name, depth - 1));
                }
            }
        }
        found
    }
}

/// Returns the module at the root of the crate that contains `module`.
pub fn top(module: &str) -> &str {
    module.split("::").next().unwrap()
}

fn split(module: &str) -> Vec<String> {
    module.split("::").filter(|name| !name.is_empty()).map(String::from).collect()
}

/// Returns the module of a file, `session::queue` for `src/session/queue.rs`.
fn module_path(path: &str) -> String {
    let inner = path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
    if inner == "lib" { String::new() } else { inner.replace('/', "::") }
}

/// Returns the files that a file declares with `#[path]`, and their modules.
fn declared_paths(source: &Source) -> Vec<(String, String)> {
    let parent = Path::new(&source.path).parent().unwrap();
    let mut found = Vec::new();
    let mut file = None;
    for (number, line) in source.lines() {
        if line.trim_start().starts_with("#[") && line.contains("path = \"") {
            file = source.strings.iter().find(|(at, text)| *at == number && text.ends_with(".rs")).map(|(_, text)| text);
        }
        if let Some((_, name)) = line.trim_end().trim_end_matches(';').split_once("mod ")
            && let Some(file) = file.take()
        {
            found.push((parent.join(file).to_str().unwrap().to_string(), format!("{}::{name}", module_path(&source.path))));
        }
    }
    found
}

/// Returns the names and paths of a file. Also reads string literals that are a path, as in
/// `#[serde(with = "super::base64")]`.
fn read(source: &Source) -> Names {
    let mut names = Names::new(&source.code);
    let is_path = |text: &str| text.contains("::") && text.chars().all(|letter| letter.is_alphanumeric() || "_:".contains(letter));
    for (_, text) in source.strings.iter().filter(|(_, text)| is_path(text)) {
        names.mentions.extend(Names::new(text).mentions);
    }
    names
}

/// The imports of a module, with spaces between them, in a crate of the files `texts`.
fn imports_of(module: &str, texts: &[(&str, &str)]) -> String {
    let sources: Vec<Source> = texts.iter().map(|(path, text)| Source::new(&format!("src/{path}.rs"), text)).collect();
    Modules::new(&sources).imports(module).into_iter().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_form_of_an_import_is_found() {
    // The importing file, its code, the text of m/b.rs, the imported files.
    let cases = [
        ("m", "use self::b::B;", "", "m::b"),
        ("m", "use self::{a::A, b::B};", "", "m::a m::b"),
        ("m", "use {a::A, self::b::B};", "", "m::a m::b"),
        ("m", "fn f() { self::b::f() }", "", "m::b"),
        ("m", "fn f() { use b; b::f() }", "", "m::b"),
        ("m", "fn f() { m!(b::f()); }", "", "m::b"),
        ("m", "use b::*;", "", "m::b"),
        ("m", "use self::b::{deep::*, self}; fn f() { b::f() }", "", "m::b m::b::deep"),
        ("m", "use b as other; fn f() { other::f() }", "", "m::b"),
        ("m", "mod b; fn f() { self::script(b) }", "", ""),
        ("m", "use b as other; pub(crate) use other::B; pub use a::A;", "", ""),
        ("m", "pub(crate) use self::b::B; fn f() -> B { B::new() }", "", "m::b"),
        ("m", "pub(crate) use self::b::table; fn f() { table!() }", "macro_rules! table { () => {} }", "m::b"),
        ("m/a", "use crate::{self, m::b::B};", "", "m::b"),
        ("m/a", "use crate as root; fn f() { root::m::b::f() }", "", "m::b"),
        ("m/a", "use crate::m::{self, b::deep}; fn f() { deep::f(); }", "", "m::b::deep"),
        ("m/a", "use super::{self as parent}; fn f() { parent::b::deep::f(); }", "", "m::b::deep"),
        ("m/a", "use super::b; fn f() { b::deep::f(); }", "", "m::b::deep"),
        ("m/a", "use super::b as other; fn f() { other::f(); }", "", "m::b"),
        ("m/a", "use super::*; fn f() { b::deep::f(); }", "", "m m::b::deep"),
        ("m/a", "use self::super::b::B;", "", "m::b"),
        ("m/a", "mod inner { use super::super::b::B; }", "", "m::b"),
        ("m/a", "use super::b::Deep;", EXPORTS, "m::b::deep"),
        ("m/a", "use super::b::Level;", EXPORTS, "m::b::flat"),
        ("m/a", "use super::b::B;", EXPORTS, "m::b"),
        ("m/a", "use super::b::*;", EXPORTS, "m::b m::b::deep m::b::flat"),
        ("m/a", "use super::b::Deep;", "pub use self::deep::*; pub use flat::*;", "m::b::deep"),
        ("m/a", "use super::b::Deep;", "pub(in crate::m) use deep::Deep;", "m::b::deep"),
        ("m/a", "use super::b::Deep;", "use deep as other; pub use other::Deep;", "m::b::deep"),
        ("m/a", "use super::b::other::Deep;", "pub use deep as other;", "m::b::deep"),
        ("m/a", "use super::b::Deep;", "use deep as x; use flat as x; pub use x::Deep;", "m::b::deep m::b::flat"),
        ("m/a", "use super::b::table;", "macro_rules! table { () => {} } pub(crate) use table;", "m::b"),
        ("m/a", "fn f() { table!(); }", "macro_rules! table { () => {} }", "m::b"),
        ("m/a", "macro_rules! x { () => { $crate::m::b::f() } }", "", "m::b"),
        ("m/a", "#[serde(with = \"super::b::deep\")] struct A;", "", "m::b::deep"),
        ("m/a", "pub(in super::super) struct A; pub(in crate::m::b) struct B; pub(super) struct C;", "", ""),
        ("m/a", "use b::B; use ::m::b::B; use other::b::B; fn f(b: &'b str) { x.b::<B>() }", "", ""),
    ];
    let mut findings = Vec::new();
    for (file, code, b, expected) in cases {
        let mut texts =
            vec![("m", ""), ("m/a", ""), ("m/b", b), ("m/b/deep", "pub struct Deep;"), ("m/b/flat", "pub struct Flat;")];
        texts.iter_mut().filter(|(path, _)| *path == file).for_each(|(_, text)| *text = code);
        let found = imports_of(&file.replace('/', "::"), &texts);
        if found != expected {
            findings.push(format!("{file}: {code} m/b: {b} imports {found}, not {expected}"));
        }
    }
    assert_none("imports", findings);
}

/// Re-exports of the file `m/b.rs` in the cases.
const EXPORTS: &str = "mod deep; pub(crate) use self::deep::Deep; pub(super) use flat::{Flat as Level}; pub struct B;";

#[test]
fn files_that_replace_each_other_are_one_module() {
    let parent = "#[cfg(x)]\nmod b;\n#[cfg(not(x))]\n#[path = \"m/b_disabled.rs\"]\nmod b;\nuse b::B;";
    let texts = [("m", parent), ("m/a", ""), ("m/b", "use super::a::A;"), ("m/b_disabled", "use super::c::C;"), ("m/c", "")];
    assert_eq!(imports_of("m", &texts), "m::b");
    assert_eq!(imports_of("m::b", &texts), "m::a m::c");
}

#[test]
fn imports_of_other_modules_are_found() {
    let sources = [
        ("lib", "pub use low::{Error, deep::Kind as Sort};"),
        ("low", "pub struct Error;"),
        ("low/deep", ""),
        ("high", ""),
        ("m", ""),
        ("m/a", "CODE"),
    ];
    let cases = [
        ("use super::super::low::X;", "low"),
        ("use crate::{self, high::X};", "high"),
        ("use crate::Error;", "low"),
        ("use crate::{Sort, m::x};", "low m"),
        ("use crate as root; fn f() { root::high::f(); nuncio::low::f() }", "high low"),
        ("use low::X; use serde::high;", ""),
    ];
    for (code, expected) in cases {
        let sources: Vec<Source> =
            sources.iter().map(|(path, text)| Source::new(&format!("src/{path}.rs"), &text.replace("CODE", code))).collect();
        let found: Vec<String> = Modules::new(&sources).top_imports("m::a").into_iter().collect();
        assert_eq!(found.join(" "), expected, "{code}");
    }
}
