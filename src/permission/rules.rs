//! Who decides about a tool call: a pure function of rules, mode and what the call touches. Whatever is unclear asks.

use std::path::Path;

use globset::GlobBuilder;

use super::paths::{PathGlob, Place};
use crate::config::{AccessKind, Policy, Rule};

/// How much a session may do unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Ask,
    AcceptEdits,
    Plan,
    Auto,
}

/// A row of the table of modes.
pub struct ModeRow {
    pub mode: Mode,
    pub id: &'static str,
    pub name: &'static str,
    pub description: &'static str,
}

pub const MODES: &[ModeRow] = &[
    ModeRow { mode: Mode::Ask, id: "ask", name: "Ask", description: "Reads freely, asks before it changes or runs anything" },
    ModeRow {
        mode: Mode::AcceptEdits,
        id: "accept-edits",
        name: "Accept edits",
        description: "Edits files of the project, asks before it runs anything",
    },
    ModeRow { mode: Mode::Plan, id: "plan", name: "Plan", description: "Only reads: nothing is changed or run" },
    ModeRow { mode: Mode::Auto, id: "auto", name: "Auto", description: "Works without asking inside the project" },
];

impl Mode {
    pub fn parse(id: &str) -> Option<Mode> {
        MODES.iter().find(|row| row.id == id).map(|row| row.mode)
    }

    pub fn id(self) -> &'static str {
        MODES[self as usize].id
    }
}

/// Rules of all scopes; within one, later rules stand above earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub user: Vec<Rule>,
    pub project: Vec<Rule>,
    pub session: Vec<Rule>,
}

/// A call as rules see it.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    pub tool: &'a str,
    pub kind: AccessKind,
    pub paths: Vec<Place>,
    pub command: Option<&'a str>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub policy: Policy,
    /// None: the mode decided.
    pub rule: Option<Rule>,
}

/// INTERFACE "Who decides": a deny rule of any scope, the mode `plan`, the last allow or ask rule, the mode.
/// `default` is what `ask` means in the mode `ask`.
pub fn decide(rules: &Rules, mode: Mode, default: Policy, subject: &Subject<'_>) -> Decision {
    let scopes = [&rules.user, &rules.project, &rules.session];
    let last = |scope: &Vec<Rule>| scope.iter().rev().find(|rule| matches(rule, subject)).cloned();
    let decisive: Vec<Rule> = scopes.into_iter().filter_map(last).collect();
    if let Some(rule) = decisive.iter().find(|rule| rule.policy == Policy::Deny) {
        return Decision { policy: Policy::Deny, rule: Some(rule.clone()) };
    }
    let outside = subject.paths.iter().any(|place| !place.inside);
    let harmless = subject.kind == AccessKind::Read && !outside;
    if mode == Mode::Plan && !harmless {
        return Decision { policy: Policy::Deny, rule: None };
    }
    if let Some(rule) = decisive.into_iter().next_back() {
        return Decision { policy: rule.policy, rule: Some(rule) };
    }
    let policy = match (mode, subject.kind) {
        _ if harmless => Policy::Allow,
        (Mode::Ask, _) => default,
        _ if outside => Policy::Ask,
        (Mode::AcceptEdits, AccessKind::Write) | (Mode::Auto, _) => Policy::Allow,
        (Mode::AcceptEdits | Mode::Plan, _) => Policy::Ask,
    };
    Decision { policy, rule: None }
}

/// The rule that `always` makes of an answer: this tool, and only this command (where it was given, in that directory) or this path.
pub fn remembered(policy: Policy, subject: &Subject<'_>) -> Rule {
    let path = match subject.paths.as_slice() {
        [place] => Some(escape(&place.real.to_string_lossy())),
        _ => None,
    };
    Rule { tool: Some(escape(subject.tool)), kind: Some(subject.kind), path, pattern: subject.command.map(escape), policy }
}

/// Whether a rule speaks of this call. One that denies or asks speaks if it fits any part of it, one that allows only if it fits all of it.
fn matches(rule: &Rule, subject: &Subject<'_>) -> bool {
    let cautious = rule.policy != Policy::Allow;
    let tool = rule.tool.as_ref().is_none_or(|glob| glob_matches(glob, Path::new(subject.tool), cautious));
    let kind = rule.kind.is_none_or(|kind| kind == subject.kind);
    let path = match &rule.path {
        Some(glob) => {
            let glob = PathGlob::new(glob);
            let fits = |place: &Place| place.names(cautious).any(|name| glob.fits(name, cautious));
            let mut places = subject.paths.iter();
            if cautious { places.any(fits) } else { !subject.paths.is_empty() && places.all(fits) }
        }
        // A command is allowed where the session works, not wherever it says.
        None => cautious || rule.pattern.is_none() || subject.paths.iter().all(|place| place.inside),
    };
    let pattern = rule.pattern.as_ref().is_none_or(|pattern| {
        subject.command.is_some_and(
            |command| {
                if cautious { denies_command(pattern, command) } else { allows_command(pattern, command) }
            },
        )
    });
    tool && kind && path && pattern
}

/// A glob that cannot be read fits everything, but nothing when it would allow.
pub(super) fn glob_matches(glob: &str, path: &Path, cautious: bool) -> bool {
    let glob = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    glob.map_or(cautious, |glob| glob.compile_matcher().is_match(path))
}

/// What could make one command into more than one, or put another word in its place.
const SHELL_SPECIAL: &[char] = &[';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '\n', '\r', '\\'];

/// Only a command that is plain words can be allowed by a pattern with `*`; any other must be the pattern to the letter.
fn allows_command(pattern: &str, command: &str) -> bool {
    let command = command.trim();
    if unescape(pattern) == command && escape(&unescape(pattern)) == pattern {
        return true;
    }
    !command.contains(SHELL_SPECIAL) && wildcard(pattern, command)
}

/// A pattern that denies or asks is looked for in every part of a command, whatever variables are set before it.
fn denies_command(pattern: &str, command: &str) -> bool {
    let parts = command.split([';', '&', '|', '\n', '(', ')', '{', '}', '`']);
    wildcard(pattern, command.trim()) || parts.map(|part| without_assignments(part.trim())).any(|part| wildcard(pattern, part))
}

/// `A=b C='d e' make` as `make`.
fn without_assignments(mut part: &str) -> &str {
    loop {
        let name = part.find(|character: char| !character.is_ascii_alphanumeric() && character != '_').unwrap_or(part.len());
        let Some(value) = part[name..].strip_prefix('=').filter(|_| name > 0) else { return part };
        let mut quote = None;
        let end = value.find(|character: char| match (quote, character) {
            (None, '\'' | '"') => {
                quote = Some(character);
                false
            }
            (Some(open), character) if open == character => {
                quote = None;
                false
            }
            (None, character) => character.is_whitespace(),
            (Some(_), _) => false,
        });
        match end {
            Some(end) => part = value[end..].trim_start(),
            None => return part,
        }
    }
}

/// `*` stands for any text, `\` takes the meaning from what follows; `git status *` fits `git status` too.
fn wildcard(pattern: &str, text: &str) -> bool {
    if pattern.strip_suffix(" *").is_some_and(|bare| wildcard(bare, text)) {
        return true;
    }
    let mut tokens = Vec::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            '*' => None,
            '\\' => Some(characters.next().unwrap_or('\\')),
            character => Some(character),
        });
    }
    let text: Vec<char> = text.chars().collect();
    let (mut token, mut place, mut star) = (0, 0, None);
    while place < text.len() {
        match tokens.get(token) {
            Some(None) => {
                star = Some((token, place));
                token += 1;
            }
            Some(Some(character)) if *character == text[place] => {
                token += 1;
                place += 1;
            }
            _ => {
                let Some((star_token, star_place)) = star else { return false };
                star = Some((star_token, star_place + 1));
                token = star_token + 1;
                place = star_place + 1;
            }
        }
    }
    tokens[token..].iter().all(Option::is_none)
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}
