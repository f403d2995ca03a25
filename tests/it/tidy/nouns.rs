//! One noun per fact: structs that repeat the fields of another struct are listed, and the list only
//! shrinks.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, assert_none, sources};

/// Two structs share a noun if so many fields have equal names.
const EQUAL_MIN: usize = 4;

/// Pairs of structs of which the smaller one has two thirds of its fields in common with the other.
/// A pair with types of another protocol or another store is a translation at an edge.
const PAIRS: &[(&str, &str)] = &[
    ("Ancestor", "Turn"),
    ("Budget", "BudgetLimits"),
    ("CallRecord", "HookTool"),
    ("ChatQuestion", "PermissionQuestion"),
    ("Choice", "Event"),
    ("Choice", "TextChoice"),
    ("ConfigureParams", "SessionView"),
    ("DelegateInput", "SessionInfo"),
    ("Delta", "TextDelta"),
    ("Event", "TextChoice"),
    ("Event", "TextEvent"),
    ("ListSessionsParams", "SessionFilter"),
    ("ListedSession", "SessionView"),
    ("ListedWorktree", "WorkspaceInfo"),
    ("McpAddOptions", "McpServer"),
    ("MessageParams", "QueuedMessage"),
    ("ModelRequestRecord", "Request"),
    ("NewSessionParams", "SessionChange"),
    ("NewSessionParams", "SessionInfo"),
    ("Part", "Part"),
    ("PermissionRequest", "TurnQuestion"),
    ("PreparedCall", "ToolChange"),
    ("Price", "PriceAbove"),
    ("Price", "PriceView"),
    ("PriceAbove", "PriceView"),
    ("SessionChange", "TerminalSession"),
    ("SessionInfo", "SessionView"),
    ("SessionInfo", "UsageUpdate"),
    ("ToolChange", "ToolStart"),
    ("TurnRecord", "TurnView"),
];

/// The name of a struct, and the names of its fields.
type Fields = (String, BTreeSet<String>);

/// Returns an item without its visibility, such as `pub(in crate::api)`.
fn without_visibility(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else { return line };
    rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest).trim_start()
}

/// Returns the structs of a file.
fn structs(source: &Source) -> Vec<Fields> {
    let mut found: Vec<Fields> = Vec::new();
    let mut is_open = false;
    for (_, line) in source.lines() {
        let declared = without_visibility(line).strip_prefix("struct ");
        match declared {
            Some(rest) if line.ends_with('{') => {
                let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
                found.push((name.into(), BTreeSet::new()));
                is_open = true;
            }
            _ if line.starts_with('}') => is_open = false,
            _ if is_open => {
                // A field is indented by one level.
                let field = line.strip_prefix("    ").filter(|rest| !rest.starts_with([' ', '#', '/']));
                let field = field.and_then(|field| field.split_once(": ")).map(|(name, _)| name);
                let name = field.and_then(|name| name.rsplit(' ').next()).filter(|name| !name.is_empty());
                found.last_mut().unwrap().1.extend(name.map(String::from));
            }
            _ => {}
        }
    }
    found
}

/// How often each pair of names occurs: several structs can have the same name.
type Counts = BTreeMap<(String, String), usize>;

/// Returns the pairs of structs that share a noun.
fn pairs(structs: &[Fields]) -> Counts {
    let mut found = Counts::new();
    for (index, (name, fields)) in structs.iter().enumerate() {
        for (other, more) in &structs[index + 1..] {
            let equal = fields.intersection(more).count();
            if equal >= EQUAL_MIN && equal * 3 >= fields.len().min(more.len()) * 2 {
                let (first, second) = if name < other { (name, other) } else { (other, name) };
                *found.entry((first.clone(), second.clone())).or_default() += 1;
            }
        }
    }
    found
}

/// Returns the pairs that occur more often in `one` than in `other`.
fn beyond(one: &Counts, other: &Counts) -> Vec<(String, String)> {
    let more = one.iter().filter(|(pair, count)| **count > other.get(*pair).copied().unwrap_or_default());
    more.map(|(pair, _)| pair.clone()).collect()
}

#[test]
fn a_fact_has_one_struct() {
    let structs: Vec<Fields> = sources("src").iter().flat_map(structs).collect();
    let (found, mut listed) = (pairs(&structs), Counts::new());
    for (one, other) in PAIRS {
        *listed.entry((one.to_string(), other.to_string())).or_default() += 1;
    }
    let new = beyond(&found, &listed).into_iter().map(|(one, other)| format!("{one} and {other} have the same fields"));
    let gone =
        beyond(&listed, &found).into_iter().map(|(one, other)| format!("{one} and {other} are no longer a pair: remove them"));
    assert_none("one noun per fact", new.chain(gone).collect());
}

#[test]
fn pairs_of_structs_are_found() {
    let text = "pub(in crate::a) struct A<'a> {\n    /// A: doc\n    pub one: u8,\n    pub(super) two: u8,\n    three: &'a str,\n    four: Vec<u8>,\n}\n\
                struct B {\n    one: u8,\n    two: u8,\n    three: u8,\n    four: u8,\n    five: u8,\n    six: u8,\n}\n\
                struct C {\n    one: u8,\n    two: u8,\n    three: u8,\n    x: u8,\n}\nstruct D(u8);\n\
                fn f() {\n    let one: u8 = 1;\n}\nstruct E {\n    one: u8,\n    two: u8,\n    three: u8,\n    four: u8,\n    a: u8,\n    b: u8,\n    c: u8,\n}\n";
    let found = pairs(&structs(&Source::new("src/a.rs", text)));
    let names: Vec<(&str, &str, usize)> =
        found.iter().map(|((one, other), count)| (one.as_str(), other.as_str(), *count)).collect();
    assert_eq!(names, [("A", "B", 1), ("A", "E", 1), ("B", "E", 1)]);
    let twice = Counts::from([(("A".into(), "B".into()), 2)]);
    assert_eq!(beyond(&twice, &found), [("A".to_string(), "B".to_string())]);
    assert_eq!(beyond(&found, &twice).len(), 2);
}
