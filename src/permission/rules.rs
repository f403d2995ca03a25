//! Who decides about a tool call: a pure function of rules, mode and what the call touches. Whatever is unclear asks.

use std::path::Path;

use globset::GlobBuilder;

use super::commands::{CommandLine, escape, wildcard};
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
    pub command: Option<CommandLine<'a>>,
    pub url: Option<&'a str>,
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

/// Whether a rule wants just this call to be asked about: who allows it then has been asked about all that it shows.
pub fn asks_about(rules: &Rules, subject: &Subject<'_>) -> bool {
    [&rules.user, &rules.project, &rules.session]
        .into_iter()
        .flatten()
        .any(|rule| rule.policy == Policy::Ask && matches(rule, subject))
}

/// The rule that `always` makes of an answer: this tool, and only this command (where it was given, in that directory) or this path.
pub fn remembered(policy: Policy, subject: &Subject<'_>) -> Rule {
    let path = match subject.paths.as_slice() {
        [place] => Some(escape(&place.real.to_string_lossy())),
        _ => None,
    };
    Rule {
        tool: Some(escape(subject.tool)),
        kind: Some(subject.kind),
        path,
        pattern: subject.command.map(|command| command.exactly()).or_else(|| subject.url.map(escape)),
        policy,
    }
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
        // A command is allowed where the session works, not wherever it says; and what is guarded, by its name alone.
        None => cautious || subject.paths.iter().all(|place| !place.guarded && (rule.pattern.is_none() || place.inside)),
    };
    let pattern = rule.pattern.as_ref().is_none_or(|pattern| {
        let command =
            |command: CommandLine<'_>| if cautious { command.is_denied_by(pattern) } else { command.is_allowed_by(pattern) };
        subject.command.is_some_and(command) || subject.url.is_some_and(|url| wildcard(pattern, url))
    });
    tool && kind && path && pattern
}

/// A glob that cannot be read fits everything, but nothing when it would allow.
pub(super) fn glob_matches(glob: &str, path: &Path, cautious: bool) -> bool {
    let glob = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    glob.map_or(cautious, |glob| glob.compile_matcher().is_match(path))
}
