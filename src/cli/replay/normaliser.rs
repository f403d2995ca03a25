//! Replaces what differs from one run of a session to the next, such as paths, ids and times, by
//! names; and names by the values of a run.

use std::sync::Arc;

use regex::{Captures, Regex};

use super::mask::Masker;
use super::recording::map_strings;
use crate::content::Part;
use crate::event::timestamp;
use serde_json::Value;

/// The names of directories.
pub(super) const CWD: &str = "<@cwd>";
pub(super) const HOME: &str = "<@home>";
pub(super) const TMP: &str = "<@tmp>";
pub(super) const DATA: &str = "<@data>";
pub(super) const CONFIG: &str = "<@config>";

/// Ids of nuncio, UUIDs, and hexadecimal words that can be ids of commits.
const IDS: &str =
    "(?-u:\\b)(?:(?:sess|turn|msg|perm|call)_[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{7,64})(?-u:\\b)";
/// A numbered id.
const NUMBERED: &str = "<@id:([0-9]+)>";
/// Rules for all texts, in order: the key of a session in the tag of notes, where the environment
/// context or the note about a summary tells it, the date in the environment context, and the
/// directory for temporary files of a process.
const RULES: [(&str, &str); 4] = [
    ("<nuncio [a-z]+>", "<nuncio <@key>>"),
    ("Key: [a-z]+(\n</environment>|</nuncio>)", "Key: <@key>${1}"),
    ("Date: [0-9]{4}-[0-9]{2}-[0-9]{2} \\(UTC\\)", "Date: <@date> (UTC)"),
    ("/temp-[0-9]+", "/temp-<@pid>"),
];
/// Rules for the outputs of commands, in order. The first one is about a line of `ls -l`: owner,
/// group and time.
const OUTPUT_RULES: [(&str, &str); 9] = [
    (
        "(?m)^([-dlcbsp][-rwxsStT]{9}[.+@]?) +[0-9]+ +[^ ]+ +[^ ]+ +([0-9]+) +[A-Z][a-z]{2} +[0-9]+ +[0-9:]{4,5} ",
        "$1 <@owner> $2 <@time> ",
    ),
    ("[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]+)?)?( ?Z| ?[-+][0-9]{2}:?[0-9]{2})?", "<@time>"),
    ("(?-u:\\b)[0-9]{4}-[0-9]{2}-[0-9]{2}(?-u:\\b)", "<@date>"),
    ("(Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [A-Z0-9][a-z0-9]{1,2} +[A-Z0-9][a-z0-9]* +[0-9:A-Z ]+( [-+][0-9]{4}| [0-9]{4})?", "<@time>"),
    ("(?-u:\\b)[0-9]+(\\.[0-9]+)? ?(ms|s|sec|secs|seconds|m[0-9.]+s)(?-u:\\b)", "<@duration>"),
    ("(?-u:\\b)(127\\.0\\.0\\.1|localhost|\\[::1\\]|port):? ?[0-9]{4,5}(?-u:\\b)", "$1:<@port>"),
    ("(?-u:\\b)(pid|PID|process)([ :=]+)[0-9]+(?-u:\\b)", "$1$2<@pid>"),
    ("(?m)^\\[([0-9]+)\\] [0-9]+$", "[$1] <@pid>"),
    ("(?-u:\\b)(git|bash|nuncio|version|Python|python)[ ,]+(version )?v?[0-9]+(\\.[0-9]+)+[^ \\n]*", "$1 <@version>"),
];

/// The rules, compiled.
struct Patterns {
    ids: Regex,
    numbered: Regex,
    rules: Vec<(Regex, &'static str)>,
    output: Vec<(Regex, &'static str)>,
}

impl Patterns {
    fn new() -> Patterns {
        let pattern = |text: &str| Regex::new(text).expect("the patterns of this file are valid");
        let all = |rules: &[(&str, &'static str)]| rules.iter().map(|(text, name)| (pattern(text), *name)).collect();
        Patterns { ids: pattern(IDS), numbered: pattern(NUMBERED), rules: all(&RULES), output: all(&OUTPUT_RULES) }
    }
}

/// The names of the values of one run.
#[derive(Clone)]
pub(super) struct Normaliser {
    /// Texts and their names, the longest text first.
    named: Vec<(String, String)>,
    patterns: Arc<Patterns>,
    /// Ids by order of appearance.
    ids: Vec<String>,
    /// Masks secrets of the machine on which a session was recorded.
    masker: Option<Arc<Masker>>,
    /// The user of this run, whom outputs name.
    user: Option<String>,
}

impl Normaliser {
    /// Creates a normaliser that replaces these texts by their names.
    pub(super) fn new(named: impl IntoIterator<Item = (String, String)>) -> Normaliser {
        let mut named: Vec<_> = named.into_iter().filter(|(text, _)| text.len() > 1).collect();
        named.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Normaliser { named, patterns: Arc::new(Patterns::new()), ids: Vec::new(), masker: None, user: None }
    }

    /// Sets the name of the user, which is masked if it is all that a line has.
    pub(super) fn with_user(self, user: Option<String>) -> Normaliser {
        Normaliser { user, ..self }
    }

    /// Adds a masker, whose secrets are masked in all texts.
    pub(super) fn with_masker(self, masker: Arc<Masker>) -> Normaliser {
        Normaliser { masker: Some(masker), ..self }
    }

    pub(super) fn without_ids(&self) -> Normaliser {
        Normaliser { ids: Vec::new(), ..self.clone() }
    }

    /// Replaces known texts by their names, and masks secrets.
    fn without_named(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (value, name) in &self.named {
            if text.contains(value.as_str()) {
                text = replace_whole(&text, value, name);
            }
        }
        self.masker.as_ref().map(|masker| masker.text(&text)).unwrap_or(text)
    }

    /// Replaces known texts and ids by their names.
    pub(super) fn known(&self, text: &str) -> String {
        let text = self.without_named(text);
        let id = |found: &Captures<'_>| match self.ids.iter().position(|id| *id == found[0]) {
            Some(index) => format!("<@id:{}>", index + 1),
            None => found[0].to_owned(),
        };
        self.patterns.ids.replace_all(&text, id).into_owned()
    }

    /// Replaces the texts and ids of a request by their names. New ids get numbers.
    pub(super) fn text(&mut self, text: &str) -> String {
        let text = self.without_named(text);
        for id in self.patterns.clone().ids.find_iter(&text) {
            // A number or an English word such as `defaced` is no id of a commit.
            let has = |kind: fn(&u8) -> bool| id.as_str().bytes().any(|byte| kind(&byte));
            let is_id = id.as_str().contains(['_', '-']) || has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase);
            if is_id && !self.ids.iter().any(|known| known == id.as_str()) {
                self.ids.push(id.as_str().to_owned());
            }
        }
        let text = self.known(&text);
        self.patterns.rules.iter().fold(text, |text, (pattern, name)| pattern.replace_all(&text, *name).into_owned())
    }

    /// Replaces what an output of a command contains, such as times and durations, by names.
    pub(super) fn output(&mut self, text: &str) -> String {
        let mut text = self.text(text);
        for (pattern, name) in &self.patterns.output {
            text = pattern.replace_all(&text, *name).into_owned();
        }
        match &self.user {
            Some(user) if text.lines().any(|line| line.trim() == user) => text
                .split('\n')
                .map(|line| if line.trim() == user { super::mask::USER } else { line })
                .collect::<Vec<_>>()
                .join("\n"),
            _ => text,
        }
    }

    /// Returns a value in which [`Normaliser::text`] has replaced the strings.
    pub(super) fn value(&mut self, value: Value) -> Value {
        map_strings(value, &mut |text| self.text(text))
    }

    /// Returns parts of a message with known texts replaced.
    pub(super) fn parts(&self, parts: &[Part]) -> Vec<Part> {
        mapped(parts, &mut |text| self.known(text))
    }

    /// Replaces names by the values of this run.
    pub(super) fn actual(&self, text: &str) -> String {
        if !text.contains("<@") {
            return text.to_owned();
        }
        let id = |found: &Captures<'_>| {
            let number: usize = found[1].parse().unwrap_or_default();
            self.ids.get(number.wrapping_sub(1)).cloned().unwrap_or_else(|| found[0].to_owned())
        };
        let mut text = self.patterns.numbered.replace_all(text, id).into_owned();
        for (value, name) in self.named.iter().rev() {
            text = text.replace(name.as_str(), value);
        }
        text
    }
}

/// Returns parts of a message with their texts replaced.
pub(super) fn mapped(parts: &[Part], replace: &mut dyn FnMut(&str) -> String) -> Vec<Part> {
    let map = |part: &Part| {
        let value = serde_json::to_value(part).ok()?;
        serde_json::from_value(map_strings(value, replace)).ok()
    };
    let (mut map, mut all) = (map, Vec::new());
    parts.iter().for_each(|part| all.push(map(part).unwrap_or_else(|| part.clone())));
    all
}

/// Returns the date of a time, in UTC.
pub(super) fn date(ms: u64) -> String {
    timestamp(ms).chars().take(10).collect()
}

/// Replaces a text where it is not a part of a longer word or path component.
fn replace_whole(text: &str, value: &str, name: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let (mut result, mut left) = (String::with_capacity(text.len()), text);
    let mut before = None;
    while let Some(at) = left.find(value) {
        let (start, rest) = (&left[..at], &left[at + value.len()..]);
        let before_it = start.chars().next_back().or(before);
        let starts = value.starts_with('/')
            && (start.ends_with("://") || before_it.is_none_or(|c| !is_word(c) && c != '.' && c != '/'))
            || !value.starts_with('/') && before_it.is_none_or(|c| !is_word(c));
        result.push_str(start);
        let whole = starts && rest.chars().next().is_none_or(|c| !is_word(c));
        result.push_str(if whole { name } else { value });
        before = value.chars().next_back();
        left = rest;
    }
    result + left
}
