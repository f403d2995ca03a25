//! Decides about a tool call: a pure function of rules, mode and access. Unclear cases require a
//! permission request.

use std::path::Path;

use super::paths::{AccessPath, PathGlob, glob_matches};
use super::shell::{CommandLine, Match, ShellCommand, escape, wildcard};
use crate::config::{AccessKind, Policy, Rule};
use crate::options::Mode;

/// The rules of all scopes. Within a scope, later rules take precedence.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub user: Vec<Rule>,
    pub project: Vec<Rule>,
    /// Rules remembered from answers; see [`remembered`].
    pub session: Vec<Rule>,
}

impl Rules {
    /// Returns the scopes, outermost first.
    fn scopes(&self) -> [&Vec<Rule>; 3] {
        [&self.user, &self.project, &self.session]
    }

    fn filter(&self, keeps: impl Fn(&Rule) -> bool) -> Rules {
        let kept = |scope: &Vec<Rule>| scope.iter().filter(|rule| keeps(rule)).cloned().collect();
        Rules { user: kept(&self.user), project: kept(&self.project), session: kept(&self.session) }
    }
}

/// A tool call as rules see it.
#[derive(Clone, Debug)]
pub struct PermissionRequest<'a> {
    pub tool: &'a str,
    pub kind: AccessKind,
    /// The accessed paths. For a command, the directory of the shell if it is not the session's
    /// directory.
    pub paths: Vec<AccessPath>,
    /// The command line, if a shell is to run one.
    pub line: Option<CommandLine>,
    /// The files that the shell writes through redirections; `None` for a file that cannot be
    /// determined.
    pub writes: Vec<Option<AccessPath>>,
    pub url: Option<&'a str>,
}

impl PermissionRequest<'_> {
    /// Returns whether a remembered rule is about exactly this line in this directory.
    fn is_remembered_by(&self, rule: &Rule) -> bool {
        let exactly = |(line, pattern): (&CommandLine, &String)| line.is_exactly(pattern);
        let there = rule.path.is_some() || self.paths.iter().all(|place| place.real == place.cwd);
        there && self.line.as_ref().zip(rule.pattern.as_ref()).is_some_and(exactly)
    }
}

/// The decision about a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub policy: Policy,
    /// The rule that decided; `None` if the mode did.
    pub rule: Option<Rule>,
}

/// Decides about a call, in this order: a deny rule of any scope, the mode `plan`, the last allow
/// or ask rule, the mode. `default` replaces `ask` in the mode `ask`. Each command of a line is
/// decided separately; the strictest decision wins.
pub fn decide(rules: &Rules, mode: Mode, default: Policy, request: &PermissionRequest<'_>) -> Decision {
    let about = rules.filter(|rule| concerns(rule, request));
    let strictness = |decision: &Decision| match decision.policy {
        Policy::Deny => 2,
        Policy::Ask => 1,
        Policy::Allow => 0,
    };
    let decide_one = |command| decide_one(&about, mode, default, request, command);
    let commands = request.line.iter().flat_map(|line| &line.commands);
    let decisions = commands
        .map(|command| decide_one(Some(command)))
        .chain(request.writes.iter().filter_map(|place| decide_redirect(rules, request, place)));
    decisions
        .reduce(|one, other| if strictness(&other) > strictness(&one) { other } else { one })
        .unwrap_or_else(|| decide_one(None))
}

/// Applies the rules about files to a redirection. Rules that allow the file do not allow the
/// command.
fn decide_redirect(rules: &Rules, request: &PermissionRequest<'_>, place: &Option<AccessPath>) -> Option<Decision> {
    let about = |rule: &Rule| rule.pattern.is_none() && (rule.path.is_some() || rule.kind == Some(AccessKind::Write));
    let rule = match place {
        Some(place) => {
            let paths = vec![place.clone()];
            let write = PermissionRequest { kind: AccessKind::Write, paths, line: None, writes: Vec::new(), ..request.clone() };
            let about = rules.filter(|rule| about(rule) && concerns(rule, &write));
            let decisive = about.scopes().into_iter().filter_map(|scope| scope.last().cloned());
            decisive.reduce(|one, other| if one.policy == Policy::Deny { one } else { other })?
        }
        // The file is unknown and may be any of the restricted ones.
        None => {
            let kind = |rule: &Rule| rule.kind.is_none_or(|kind| kind == AccessKind::Write);
            let restricts = |rule: &&Rule| about(rule) && kind(rule) && rule.policy != Policy::Allow;
            Rule { policy: Policy::Ask, ..rules.scopes().into_iter().flatten().find(restricts)?.clone() }
        }
    };
    let known = rules.session.iter().any(|rule| rule.policy == Policy::Allow && request.is_remembered_by(rule));
    let stands = rule.policy == Policy::Deny || (rule.policy == Policy::Ask && !known);
    stands.then_some(Decision { policy: rule.policy, rule: Some(rule) })
}

/// Decides about one command of the line, or about the call if it has none. `rules` are those that
/// concern the call.
fn decide_one(
    rules: &Rules,
    mode: Mode,
    default: Policy,
    request: &PermissionRequest<'_>,
    command: Option<&ShellCommand>,
) -> Decision {
    // A rule that may restrict the parts of the command that cannot be analysed.
    let mut uncertain = None;
    let mut last = |scope: &[Rule], remembered: bool| {
        scope.iter().rev().find_map(|rule| match fit(rule, request, command, remembered) {
            Match::Yes => Some(rule.clone()),
            Match::Maybe => {
                uncertain.get_or_insert_with(|| rule.clone());
                None
            }
            Match::No => None,
        })
    };
    let decisive = [last(&rules.user, false), last(&rules.project, false), last(&rules.session, true)];
    let mut decisive = decisive.into_iter().flatten();
    if let Some(rule) = decisive.clone().find(|rule| rule.policy == Policy::Deny) {
        return Decision { policy: Policy::Deny, rule: Some(rule) };
    }
    let outside = request.paths.iter().any(|place| !place.inside);
    let harmless = request.kind == AccessKind::Read && !outside;
    if mode == Mode::Plan && !harmless {
        return Decision { policy: Policy::Deny, rule: None };
    }
    let rule = decisive.next_back();
    let policy = match (&rule, mode, request.kind) {
        (Some(rule), ..) => rule.policy,
        _ if harmless || command.is_some_and(ShellCommand::only_runs_another) => Policy::Allow,
        (None, Mode::Ask, _) => default,
        _ if outside => Policy::Ask,
        (None, Mode::AcceptEdits, AccessKind::Write) | (None, Mode::Auto, _) => Policy::Allow,
        (None, Mode::AcceptEdits | Mode::Plan, _) => Policy::Ask,
    };
    match uncertain {
        // An exact-match rule that allows the line overrides the uncertainty.
        Some(uncertain) if policy == Policy::Allow && !rule.as_ref().is_some_and(|rule| request.is_remembered_by(rule)) => {
            Decision { policy: Policy::Ask, rule: Some(uncertain) }
        }
        _ => Decision { policy, rule },
    }
}

/// Returns whether an ask rule concerns this call. Allowing the call then covers everything that it
/// reads.
pub(crate) fn asks_about(rules: &Rules, request: &PermissionRequest<'_>) -> bool {
    rules.scopes().into_iter().flatten().any(|rule| rule.policy == Policy::Ask && concerns(rule, request))
}

/// Returns whether an answer can be remembered. A rule has one path, so calls with several paths
/// cannot.
pub(crate) fn can_be_remembered(request: &PermissionRequest<'_>) -> bool {
    request.paths.len() < 2
}

/// Returns the rule for an answer with `always`: this tool, with only this path or this command in
/// this directory.
pub(crate) fn remembered(policy: Policy, request: &PermissionRequest<'_>) -> Rule {
    Rule {
        tool: Some(escape(request.tool)),
        kind: Some(request.kind),
        path: request.paths.first().map(|place| escape(&place.real.to_string_lossy())),
        pattern: request.line.as_ref().map(CommandLine::exactly).or_else(|| request.url.map(escape)),
        policy,
    }
}

/// Returns whether a rule concerns the call, whatever its command. A rule that denies or asks has
/// to match any part of the call, a rule that allows has to match all of it.
fn concerns(rule: &Rule, request: &PermissionRequest<'_>) -> bool {
    let cautious = rule.policy != Policy::Allow;
    let tool = rule.tool.as_ref().is_none_or(|glob| glob_matches(glob, Path::new(request.tool), cautious));
    let kind = rule.kind.is_none_or(|kind| kind == request.kind);
    let path = match &rule.path {
        Some(glob) => {
            let glob = PathGlob::new(glob);
            let fits = |place: &AccessPath| place.names(cautious).any(|name| glob.fits(name, cautious));
            let mut places = request.paths.iter();
            if cautious { places.any(fits) } else { !request.paths.is_empty() && places.all(fits) }
        }
        // Without a path, a rule allows commands only in the session's directories, and guarded
        // paths not at all.
        None => cautious || request.paths.iter().all(|place| !place.guarded && (rule.pattern.is_none() || place.inside)),
    };
    let pattern =
        rule.pattern.as_ref().is_none_or(|pattern| request.line.is_some() || request.url.is_some_and(|url| wildcard(pattern, url)));
    tool && kind && path && pattern
}

/// Returns whether a rule that concerns the call matches this command. A remembered rule allows
/// exactly the command that was shown.
fn fit(rule: &Rule, request: &PermissionRequest<'_>, command: Option<&ShellCommand>, remembered: bool) -> Match {
    let inside = rule.path.is_some() || request.paths.iter().all(|place| place.inside);
    if remembered && rule.policy == Policy::Allow && !inside {
        return Match::No;
    }
    let (Some(pattern), Some(line), Some(command)) = (&rule.pattern, &request.line, command) else { return Match::Yes };
    if rule.policy != Policy::Allow {
        line.match_command(command, pattern)
    } else if (remembered && request.is_remembered_by(rule))
        || (!remembered && (line.is_exactly(pattern) || command.is_allowed_by(pattern)))
    {
        Match::Yes
    } else {
        Match::No
    }
}
