//! Paths in Rust code: `use` trees flattened, and paths named inline.

/// Every path that follows `prefix` (such as `crate::`) in `code`, as its segments; a list in braces
/// gives one path for each of its leaves.
pub fn after(code: &str, prefix: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (place, _) in code.match_indices(prefix) {
        if code[..place].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':') {
            continue;
        }
        tree(&code[place + prefix.len()..], &mut Vec::new(), &mut found);
    }
    found
}

/// Reads one tree (`a::b`, `{a, b::c}`, `*`) and returns what follows it.
fn tree<'a>(text: &'a str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut list) = text.strip_prefix('{') {
        loop {
            list = list.trim_start().trim_start_matches(',').trim_start();
            if let Some(rest) = list.strip_prefix('}') {
                return rest;
            }
            let rest = tree(list, &mut before.clone(), found);
            let next = rest.find([',', '}']).unwrap_or(rest.len());
            if rest.is_empty() || rest.len() == list.len() {
                return "";
            }
            list = &rest[next..];
        }
    }
    let end = text.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let (name, rest) = if name.is_empty() { ("*", rest.strip_prefix('*').unwrap_or(rest)) } else { (name, rest) };
    before.push(name.into());
    let next =
        rest.strip_prefix("::").filter(|next| next.starts_with(|first: char| first.is_alphanumeric() || "_{*".contains(first)));
    match next {
        Some(next) => tree(next, before, found),
        None => {
            found.push(before.clone());
            rest
        }
    }
}

#[test]
fn use_trees_are_flattened() {
    let cases = [
        ("use crate::event::Body;", "crate::", vec!["event::Body"]),
        ("use crate::{a::{b, c}, d, e::f};", "crate::", vec!["a::b", "a::c", "d", "e::f"]),
        ("let x = crate::one::two(crate::three);", "crate::", vec!["one::two", "three"]),
        ("use super::x::*; use othercrate::x;", "super::", vec!["x::*"]),
        ("use crate::a::{self, B as C, D};", "crate::", vec!["a::self", "a::B", "a::D"]),
        ("let v = super::list::<u8>();", "super::", vec!["list"]),
    ];
    for (code, prefix, expected) in cases {
        let found: Vec<String> = after(code, prefix).iter().map(|path| path.join("::")).collect();
        assert_eq!(found, expected, "{code}");
    }
}
