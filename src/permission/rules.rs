//! Who decides about a tool call: a pure function of rules, mode and what the call touches. Whatever is unclear asks.

use std::path::Path;

use globset::GlobBuilder;

use super::paths::{PathGlob, Place};
use super::shell::{Command, Fit, Line, escape, wildcard};
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
    /// What is remembered of answers: see [`remembered`].
    pub session: Vec<Rule>,
}

impl Rules {
    /// Outermost first.
    fn scopes(&self) -> [&Vec<Rule>; 3] {
        [&self.user, &self.project, &self.session]
    }

    fn filter(&self, keeps: impl Fn(&Rule) -> bool) -> Rules {
        let kept = |scope: &Vec<Rule>| scope.iter().filter(|rule| keeps(rule)).cloned().collect();
        Rules { user: kept(&self.user), project: kept(&self.project), session: kept(&self.session) }
    }
}

/// A call as rules see it.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    pub tool: &'a str,
    pub kind: AccessKind,
    /// Of a command: where the shell is, if that is not the session's directory.
    pub paths: Vec<Place>,
    /// What is to be run by a shell.
    pub line: Option<Line>,
    /// The files that the shell itself writes then; none where it cannot be known which.
    pub writes: Vec<Option<Place>>,
    pub url: Option<&'a str>,
}

impl Subject<'_> {
    /// Whether what is remembered of an answer is about this line, where it was shown.
    fn is_remembered_by(&self, rule: &Rule) -> bool {
        let exactly = |(line, pattern): (&Line, &String)| line.is_exactly(pattern);
        let there = rule.path.is_some() || self.paths.iter().all(|place| place.real == place.cwd);
        there && self.line.as_ref().zip(rule.pattern.as_ref()).is_some_and(exactly)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub policy: Policy,
    /// None: the mode decided.
    pub rule: Option<Rule>,
}

/// INTERFACE "Who decides": a deny rule of any scope, the mode `plan`, the last allow or ask rule, the mode.
/// `default` is what `ask` means in the mode `ask`. Each command of a line is judged by itself, and the strictest decision stands.
pub fn decide(rules: &Rules, mode: Mode, default: Policy, subject: &Subject<'_>) -> Decision {
    let about = rules.filter(|rule| concerns(rule, subject));
    let strictness = |decision: &Decision| match decision.policy {
        Policy::Deny => 2,
        Policy::Ask => 1,
        Policy::Allow => 0,
    };
    let judge = |command| judge(&about, mode, default, subject, command);
    let commands = subject.line.iter().flat_map(|line| &line.commands);
    let decisions = commands
        .map(|command| judge(Some(command)))
        .chain(subject.writes.iter().filter_map(|place| written(rules, subject, place)));
    decisions.reduce(|one, other| if strictness(&other) > strictness(&one) { other } else { one }).unwrap_or_else(|| judge(None))
}

/// What rules about files forbid a shell to write; what they allow is no command yet.
fn written(rules: &Rules, subject: &Subject<'_>, place: &Option<Place>) -> Option<Decision> {
    let about = |rule: &Rule| rule.pattern.is_none() && (rule.path.is_some() || rule.kind == Some(AccessKind::Write));
    let rule = match place {
        Some(place) => {
            let paths = vec![place.clone()];
            let write = Subject { kind: AccessKind::Write, paths, line: None, writes: Vec::new(), ..subject.clone() };
            let about = rules.filter(|rule| about(rule) && concerns(rule, &write));
            let decisive = about.scopes().into_iter().filter_map(|scope| scope.last().cloned());
            decisive.reduce(|one, other| if one.policy == Policy::Deny { one } else { other })?
        }
        // It might be any of those that are forbidden.
        None => {
            let kind = |rule: &Rule| rule.kind.is_none_or(|kind| kind == AccessKind::Write);
            let forbids = |rule: &&Rule| about(rule) && kind(rule) && rule.policy != Policy::Allow;
            Rule { policy: Policy::Ask, ..rules.scopes().into_iter().flatten().find(forbids)?.clone() }
        }
    };
    let known = rules.session.iter().any(|rule| rule.policy == Policy::Allow && subject.is_remembered_by(rule));
    let stands = rule.policy == Policy::Deny || (rule.policy == Policy::Ask && !known);
    stands.then_some(Decision { policy: rule.policy, rule: Some(rule) })
}

/// About a single command of the line, if there is one. `rules`: those that speak of the call.
fn judge(rules: &Rules, mode: Mode, default: Policy, subject: &Subject<'_>, command: Option<&Command>) -> Decision {
    // A rule that might forbid what cannot be read in the command.
    let mut doubt = None;
    let mut last = |scope: &[Rule], remembered: bool| {
        scope.iter().rev().find_map(|rule| match fit(rule, subject, command, remembered) {
            Fit::Yes => Some(rule.clone()),
            Fit::Maybe => {
                doubt.get_or_insert_with(|| rule.clone());
                None
            }
            Fit::No => None,
        })
    };
    let decisive = [last(&rules.user, false), last(&rules.project, false), last(&rules.session, true)];
    let mut decisive = decisive.into_iter().flatten();
    if let Some(rule) = decisive.clone().find(|rule| rule.policy == Policy::Deny) {
        return Decision { policy: Policy::Deny, rule: Some(rule) };
    }
    let outside = subject.paths.iter().any(|place| !place.inside);
    let harmless = subject.kind == AccessKind::Read && !outside;
    if mode == Mode::Plan && !harmless {
        return Decision { policy: Policy::Deny, rule: None };
    }
    let rule = decisive.next_back();
    let policy = match (&rule, mode, subject.kind) {
        (Some(rule), ..) => rule.policy,
        _ if harmless || command.is_some_and(Command::only_runs_another) => Policy::Allow,
        (None, Mode::Ask, _) => default,
        _ if outside => Policy::Ask,
        (None, Mode::AcceptEdits, AccessKind::Write) | (None, Mode::Auto, _) => Policy::Allow,
        (None, Mode::AcceptEdits | Mode::Plan, _) => Policy::Ask,
    };
    match doubt {
        // Who allowed the line to the letter knew what it says.
        Some(doubt) if policy == Policy::Allow && !rule.as_ref().is_some_and(|rule| subject.is_remembered_by(rule)) => {
            Decision { policy: Policy::Ask, rule: Some(doubt) }
        }
        _ => Decision { policy, rule },
    }
}

/// Whether a rule wants just this call to be asked about: who allows it then has been asked about all that it shows.
pub fn asks_about(rules: &Rules, subject: &Subject<'_>) -> bool {
    rules.scopes().into_iter().flatten().any(|rule| rule.policy == Policy::Ask && concerns(rule, subject))
}

/// Whether an answer can be remembered: a rule is about one path.
pub fn can_be_remembered(subject: &Subject<'_>) -> bool {
    subject.paths.len() < 2
}

/// The rule that `always` makes of an answer: this tool, and only this command (where the shell is then) or this path.
pub fn remembered(policy: Policy, subject: &Subject<'_>) -> Rule {
    Rule {
        tool: Some(escape(subject.tool)),
        kind: Some(subject.kind),
        path: subject.paths.first().map(|place| escape(&place.real.to_string_lossy())),
        pattern: subject.line.as_ref().map(Line::exactly).or_else(|| subject.url.map(escape)),
        policy,
    }
}

/// Whether a rule speaks of this call, whatever its command is. One that denies or asks speaks if it fits any part of it, one that allows
/// only if it fits all of it.
fn concerns(rule: &Rule, subject: &Subject<'_>) -> bool {
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
    let pattern =
        rule.pattern.as_ref().is_none_or(|pattern| subject.line.is_some() || subject.url.is_some_and(|url| wildcard(pattern, url)));
    tool && kind && path && pattern
}

/// Whether a rule that speaks of the call speaks of this command. What is remembered of an answer allows what was shown, and no more.
fn fit(rule: &Rule, subject: &Subject<'_>, command: Option<&Command>, remembered: bool) -> Fit {
    let inside = rule.path.is_some() || subject.paths.iter().all(|place| place.inside);
    if remembered && rule.policy == Policy::Allow && !inside {
        return Fit::No;
    }
    let (Some(pattern), Some(line), Some(command)) = (&rule.pattern, &subject.line, command) else { return Fit::Yes };
    if rule.policy != Policy::Allow {
        line.fit(command, pattern)
    } else if (remembered && subject.is_remembered_by(rule))
        || (!remembered && (line.is_exactly(pattern) || command.is_allowed_by(pattern)))
    {
        Fit::Yes
    } else {
        Fit::No
    }
}

/// A glob that cannot be read fits everything, but nothing when it would allow.
pub(super) fn glob_matches(glob: &str, path: &Path, cautious: bool) -> bool {
    let glob = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    glob.map_or(cautious, |glob| glob.compile_matcher().is_match(path))
}
