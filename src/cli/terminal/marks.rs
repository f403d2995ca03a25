//! The marks of nuncio in ASCII, for terminals whose locale is not UTF-8.

use crate::config::Environment;

/// Marks, and what stands in their place.
const MARKS: &[(char, &str)] = &[
    ('●', "*"),
    ('✗', "x"),
    ('•', "*"),
    ('│', "|"),
    ('┃', "|"),
    ('─', "-"),
    ('┼', "+"),
    ('☐', "[ ]"),
    ('☑', "[x]"),
    ('▸', ">"),
    ('▶', ">"),
    ('✔', "x"),
    ('■', "#"),
    ('·', "-"),
    ('…', "..."),
    ('−', "-"),
    ('→', "->"),
    ('◐', "|"),
    ('◓', "/"),
    ('◑', "-"),
    ('◒', "\\"),
];

/// Returns whether the locale is not UTF-8 (POSIX: the first variable that is set counts).
pub(crate) fn needs_ascii(environment: &Environment) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| environment.get(name)).find(|value| !value.is_empty());
    set.is_some_and(|locale| !locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}

/// Replaces the marks in a text.
pub(crate) fn in_ascii(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match MARKS.iter().find(|(mark, _)| *mark == character) {
            Some((_, ascii)) => shown.push_str(ascii),
            None => shown.push(character),
        }
    }
    shown
}
