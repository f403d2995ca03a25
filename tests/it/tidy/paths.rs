//! Paths in Rust code: the leaves of `use` declarations, paths named inline, and calls of macros.

use std::collections::BTreeSet;

/// A path that code names, such as `super::queue::Entry`.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedPath {
    /// The inline modules (`mod name { … }`) around the path.
    pub within: Vec<String>,
    /// The names of the path; the last one is `*` for a glob import.
    pub segments: Vec<String>,
}

/// A leaf of a `use` declaration.
#[derive(Debug)]
pub struct UseLeaf {
    pub path: NamedPath,
    /// The name that it binds; `*` for a glob import.
    pub name: String,
    pub exported: bool,
}

/// The names in the code of a file.
#[derive(Default)]
pub struct Names {
    pub uses: Vec<UseLeaf>,
    /// Paths of at least two names outside of `use` declarations.
    pub mentions: BTreeSet<NamedPath>,
    /// Macros that are called by their name alone.
    pub macro_calls: BTreeSet<String>,
    /// Items that the file declares, at any depth.
    pub declared: BTreeSet<String>,
    /// Macros that the file declares with `macro_rules!`.
    pub macros: BTreeSet<String>,
    /// Words outside of paths and `use` declarations.
    pub words: BTreeSet<String>,
}

impl Names {
    /// Reads `code`, from which comments and the contents of literals were removed.
    pub fn new(code: &str) -> Names {
        let mut names = Names::default();
        let mut reader = Reader { tokens: tokens(code), at: 0, blocks: Vec::new(), names: &mut names };
        while reader.at < reader.tokens.len() {
            reader.step();
        }
        names
    }
}

/// Splits `code` into words, `::`, `..` and other characters.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(rest.len());
        let length = match word {
            0 if rest.starts_with("::") || rest.starts_with("..") => 2,
            0 => first.len_utf8(),
            word => word,
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Keywords before the name of an item.
const ITEMS: [&str; 9] = ["const", "enum", "fn", "mod", "static", "struct", "trait", "type", "union"];

struct Reader<'a> {
    tokens: Vec<&'a str>,
    at: usize,
    /// The open blocks; with a name if the block is an inline module.
    blocks: Vec<Option<String>>,
    names: &'a mut Names,
}

impl<'a> Reader<'a> {
    /// Returns the token at a distance from the current one; an empty text outside of the code.
    fn token(&self, distance: isize) -> &'a str {
        self.at.checked_add_signed(distance).and_then(|at| self.tokens.get(at).copied()).unwrap_or_default()
    }

    fn step(&mut self) {
        match self.token(0) {
            "{" => {
                let module = (self.token(-2) == "mod").then(|| self.token(-1).to_string());
                self.blocks.push(module);
            }
            "}" => drop(self.blocks.pop()),
            // A visibility such as `pub(in crate::hub)` is not an import.
            "pub" if self.token(1) == "(" && self.token(2) == "in" => {
                while !["", ")"].contains(&self.token(1)) {
                    self.at += 1;
                }
            }
            // `impl Trait + use<'a>` declares captured lifetimes.
            "use" if self.token(1) != "<" => {
                let exported = self.is_exported();
                self.at += 1;
                return self.leaves(&mut Vec::new(), exported);
            }
            word if is_word(word) => return self.word(word),
            _ => {}
        }
        self.at += 1;
    }

    /// Returns whether a visibility precedes the current token.
    fn is_exported(&self) -> bool {
        let before = &self.tokens[..self.at];
        let visibility = match before {
            [.., ")"] => before.iter().rposition(|token| *token == "(").unwrap_or_default(),
            _ => before.len(),
        };
        before[..visibility].last() == Some(&"pub") && before[visibility..] != ["(", "self", ")"]
    }

    /// Reads a word outside of `use` declarations, and the path that starts with it.
    fn word(&mut self, word: &str) {
        if ITEMS.contains(&word) && is_word(self.token(1)) {
            self.names.declared.insert(self.token(1).into());
        }
        if word == "macro_rules" && self.token(1) == "!" {
            self.names.declared.insert(self.token(2).into());
            self.names.macros.insert(self.token(2).into());
        }
        // The rest of a path, a method, a lifetime, or a variable of a macro.
        let is_part = ["::", ".", "'"].contains(&self.token(-1)) || self.token(-1) == "$" && word != "crate";
        let is_call = self.token(1) == "!" && ["(", "[", "{"].contains(&self.token(2));
        let mut segments = vec![word.to_string()];
        self.at += 1;
        while self.token(0) == "::" && is_word(self.token(1)) {
            segments.push(self.token(1).into());
            self.at += 2;
        }
        if is_part {
            return;
        }
        if segments.len() > 1 {
            let path = self.path(segments);
            self.names.mentions.insert(path);
            return;
        }
        self.names.words.insert(word.into());
        if is_call {
            self.names.macro_calls.insert(word.into());
        }
    }

    /// Reads one tree of a `use` declaration (`a::b`, `{a, b::c}`, `*`), which `path` precedes.
    fn leaves(&mut self, path: &mut Vec<String>, exported: bool) {
        loop {
            match self.token(0) {
                "::" => {
                    // `use ::name` names another crate.
                    if path.is_empty() {
                        path.push(String::new());
                    }
                    self.at += 1;
                }
                "{" => {
                    self.at += 1;
                    while !["", ";", "}"].contains(&self.token(0)) {
                        let before = self.at;
                        self.leaves(&mut path.clone(), exported);
                        self.at += usize::from(self.token(0) == "," || self.at == before);
                    }
                    self.at += 1;
                    return;
                }
                word if word == "*" || is_word(word) && word != "as" => {
                    path.push(word.into());
                    self.at += 1;
                }
                _ => break,
            }
        }
        let mut name = path.iter().rfind(|name| *name != "self").cloned().unwrap_or_default();
        if self.token(0) == "as" {
            name = self.token(1).into();
            self.at += 2;
        }
        if !path.is_empty() {
            let path = self.path(path.clone());
            self.names.uses.push(UseLeaf { path, name, exported });
        }
    }

    fn path(&self, segments: Vec<String>) -> NamedPath {
        NamedPath { within: self.blocks.iter().flatten().cloned().collect(), segments }
    }
}

#[test]
fn use_trees_are_flattened() {
    // Names that a `use` binds follow `=`, or `<` if they are exported; a macro call ends in `!`.
    let cases = [
        ("use crate::event::Body;", "crate::event::Body=Body"),
        ("use crate::{a::{b, c}, d, e::f,};", "crate::a::b=b crate::a::c=c crate::d=d crate::e::f=f"),
        ("use {a::b, c as d}; let x = y as z::T;", "a::b=b c=d z::T"),
        ("let x = crate::one::two(crate::three);", "crate::one::two crate::three"),
        ("use super::x::*; use ::other::x;", "super::x::*=* ::other::x=x"),
        ("use crate::a::{self, B as C, D};", "crate::a::self=a crate::a::B=C crate::a::D=D"),
        ("pub use a::B; pub(crate) use c::{D as E}; pub(in crate::f) use g; pub(self) use h;", "a::B<B c::D<E g<g h=h"),
        ("let v = super::list::<u8>(); v.a::<b::C>().d(); <e::F as G>::h()", "b::C e::F super::list"),
        ("$crate::a!($name); $name::b; c![d::e!()]; f::g!{}; h != i", "crate::a d::e f::g c!"),
        ("pub(in crate::hub) struct A; pub(super) fn f() -> impl T + use<'a> { 'b::c() }", ""),
        ("A { ..b::c() }; 0..=d::E; f..g::H; i.j::<K>()", "b::c d::E g::H"),
        ("use a::\n    b; a ::c()", "a::b=b a::c"),
        ("mod a { use super::b; mod c { d::e() } } mod f; g::h()", "a/super::b=b a/c/d::e g::h"),
    ];
    for (code, expected) in cases {
        let names = Names::new(code);
        let show = |path: &NamedPath| {
            let within: String = path.within.iter().map(|name| format!("{name}/")).collect();
            format!("{within}{}", path.segments.join("::"))
        };
        let uses =
            names.uses.iter().map(|leaf| format!("{}{}{}", show(&leaf.path), if leaf.exported { "<" } else { "=" }, leaf.name));
        let calls = names.macro_calls.iter().map(|name| format!("{name}!"));
        let mut found: Vec<String> = uses.chain(names.mentions.iter().map(show)).chain(calls).collect();
        let mut expected: Vec<&str> = expected.split_whitespace().collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{code}");
    }
}

#[test]
fn declarations_and_words_are_read() {
    let names = Names::new("struct A; pub(crate) const fn b() { c(D::E).f } macro_rules! g { () => {} } use h::I;");
    let set = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<BTreeSet<String>>();
    assert!(names.declared.is_superset(&set(&["A", "b", "g"])), "{:?}", names.declared);
    assert_eq!(names.macros, set(&["g"]));
    assert!(names.words.is_superset(&set(&["A", "c"])), "{:?}", names.words);
    assert!(names.words.is_disjoint(&set(&["D", "E", "f", "h", "I"])), "{:?}", names.words);
}
