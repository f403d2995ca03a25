//! Decides whether a tool call is allowed, is denied or needs a permission request: a pure function
//! of the rules, the session mode and the access. Unclear cases need a permission request.

use std::path::Path;

use super::git_acts::GitActs;
use super::paths::{AccessPath, PathGlob, glob_matches};
use super::shell::{CommandLine, Match, ShellCommand, escape, wildcard};
use crate::config::{AccessKind, LoadedSettings, Policy, Rule};
use crate::options::Mode;

/// The permission rules of all scopes. Within a scope, later rules take precedence.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub user: Vec<Rule>,
    /// Deny and ask rules of the trusted settings of a project that changed since then.
    pub trusted: Vec<Rule>,
    pub project: Vec<Rule>,
    /// Rules remembered from the user's answers to permission requests, in the settings or in the
    /// session; see [`remembered`].
    pub session: Vec<Rule>,
}

impl Rules {
    /// Returns the rules in effect. `session` contains the rules remembered from earlier answers.
    pub(crate) fn new(loaded: &LoadedSettings, session: Vec<Rule>) -> Rules {
        Rules::with_user(loaded.settings.permissions.rules.clone(), loaded, session)
    }

    /// Returns the rules in effect, with these of the user's settings.
    pub(crate) fn with_user(user: Vec<Rule>, loaded: &LoadedSettings, session: Vec<Rule>) -> Rules {
        let (kept, user): (Vec<Rule>, Vec<Rule>) = user.into_iter().partition(Rule::is_exact);
        let (trusted, project) = (loaded.trusted_rules.clone(), loaded.project_rules.clone());
        Rules { user, trusted, project, session: [kept, session].concat() }
    }

    /// Returns the scopes, outermost first.
    pub(super) fn scopes(&self) -> [&Vec<Rule>; 4] {
        [&self.user, &self.trusted, &self.project, &self.session]
    }

    fn filter(&self, keeps: impl Fn(&Rule) -> bool) -> Rules {
        let kept = |scope: &Vec<Rule>| scope.iter().filter(|rule| keeps(rule)).cloned().collect();
        Rules { user: kept(&self.user), trusted: kept(&self.trusted), project: kept(&self.project), session: kept(&self.session) }
    }
}

/// The properties of a tool call that rules are matched against.
#[derive(Clone, Debug)]
pub struct AccessRequest<'a> {
    pub tool: &'a str,
    pub kind: AccessKind,
    /// The accessed paths. For a shell command, the directory in which the shell runs, if it
    /// differs from the session's directory.
    pub paths: Vec<AccessPath>,
    /// The command line, if the tool call runs one in a shell.
    pub line: Option<CommandLine>,
    /// The files that the shell writes through redirections; `None` for a file that cannot be
    /// determined.
    pub writes: Vec<Option<AccessPath>>,
    pub url: Option<&'a str>,
    /// Digest of the server and the definition of an MCP tool.
    pub definition: Option<&'a str>,
    /// Acts of git that need a question, unless a rule allows them.
    pub unasked: GitActs,
}

impl<'a> AccessRequest<'a> {
    /// Creates a request about a call that accesses nothing that a rule can name.
    pub fn new(tool: &'a str, kind: AccessKind) -> AccessRequest<'a> {
        AccessRequest {
            tool,
            kind,
            paths: Vec::new(),
            line: None,
            writes: Vec::new(),
            url: None,
            definition: None,
            unasked: GitActs::NONE,
        }
    }

    /// Returns what the git commands of the call do that only the user decides about.
    pub(crate) fn git_acts(&self) -> GitActs {
        self.line.as_ref().map_or(GitActs::NONE, CommandLine::git_acts)
    }

    /// Returns whether `rule` was remembered for exactly this command line in this directory.
    fn is_remembered_by(&self, rule: &Rule) -> bool {
        let exactly = |(line, pattern): (&CommandLine, &String)| line.is_exactly(pattern);
        let there = rule.path.is_some() || self.paths.iter().all(|place| place.real == place.cwd);
        there && self.line.as_ref().zip(rule.pattern.as_ref()).is_some_and(exactly)
    }
}

/// The permission decision about a tool call.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub policy: Policy,
    /// The rule that determined the policy; `None` if the session mode determined it.
    pub rule: Option<Rule>,
}

/// Returns the stricter of two modes: the one that allows less without asking. `default` is the
/// policy of the mode `ask`.
pub(crate) fn stricter(one: Mode, other: Mode, default: Policy) -> Mode {
    let allows = |mode: Mode| match (mode, default) {
        (Mode::Plan, _) => 0,
        (Mode::Ask, Policy::Deny) => 1,
        (Mode::Ask, Policy::Ask) => 2,
        (Mode::AcceptEdits, _) => 3,
        (Mode::Auto, _) => 4,
        (Mode::Ask, Policy::Allow) => 5,
    };
    if allows(other) < allows(one) { other } else { one }
}

/// Decides about a tool call. In order of precedence: a deny rule in any scope, the mode `plan`,
/// the last allow or ask rule, the session mode. In the mode `ask`, `default` applies to calls that
/// no rule matches, except reads inside the roots. Each command in a command line is decided
/// separately, and the strictest decision applies.
pub fn decide(rules: &Rules, mode: Mode, default: Policy, request: &AccessRequest<'_>) -> Decision {
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

/// Applies the rules about files to the target file of a redirection. A rule that allows writing
/// the file does not allow the command.
fn decide_redirect(rules: &Rules, request: &AccessRequest<'_>, place: &Option<AccessPath>) -> Option<Decision> {
    let about = |rule: &Rule| rule.pattern.is_none() && (rule.path.is_some() || rule.kind == Some(AccessKind::Write));
    let rule = match place {
        Some(place) => {
            let paths = vec![place.clone()];
            let write = AccessRequest { kind: AccessKind::Write, paths, line: None, writes: Vec::new(), ..request.clone() };
            let about = rules.filter(|rule| about(rule) && concerns(rule, &write));
            let decisive = about.scopes().into_iter().filter_map(|scope| scope.last().cloned());
            decisive.reduce(|one, other| if one.policy == Policy::Deny { one } else { other })?
        }
        // The file is unknown, so it may be any of the restricted files.
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

/// Decides about one command in the command line, or about the tool call itself if it runs no
/// command. `rules` contains only the rules that concern the call.
fn decide_one(rules: &Rules, mode: Mode, default: Policy, request: &AccessRequest<'_>, command: Option<&ShellCommand>) -> Decision {
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
    let settings = [&rules.user, &rules.trusted, &rules.project].map(|scope| last(scope, false));
    let mut decisive = settings.into_iter().chain([last(&rules.session, true)]).flatten();
    if let Some(rule) = decisive.clone().find(|rule| rule.policy == Policy::Deny) {
        return Decision { policy: Policy::Deny, rule: Some(rule) };
    }
    let outside = request.paths.iter().any(|place| !place.inside);
    let harmless = request.kind == AccessKind::Read && !outside;
    if mode == Mode::Plan && !harmless {
        return Decision { policy: Policy::Deny, rule: None };
    }
    let rule = decisive.next_back();
    let read_only = request.paths.iter().any(|place| place.read_only);
    let policy = match (&rule, mode, request.kind) {
        (Some(rule), ..) => rule.policy,
        _ if harmless || command.is_some_and(ShellCommand::only_runs_another) => Policy::Allow,
        // A file that is read-only is asked about in every mode.
        (None, Mode::Ask, _) if default == Policy::Allow && read_only => Policy::Ask,
        (None, Mode::Ask, _) if default != Policy::Allow => default,
        _ if command.is_some_and(|command| command.git_acts().meets(request.unasked)) => Policy::Ask,
        (None, Mode::Ask, _) => default,
        _ if outside => Policy::Ask,
        (None, Mode::AcceptEdits, AccessKind::Write) | (None, Mode::Auto, _) => Policy::Allow,
        (None, Mode::AcceptEdits | Mode::Plan, _) => Policy::Ask,
    };
    match uncertain {
        // A rule that allows exactly this command line overrides the uncertainty.
        Some(uncertain) if policy == Policy::Allow && !rule.as_ref().is_some_and(|rule| request.is_remembered_by(rule)) => {
            Decision { policy: Policy::Ask, rule: Some(uncertain) }
        }
        _ => Decision { policy, rule },
    }
}

/// Returns whether the mode or a rule may allow, without a question, a call of one of `tools`,
/// which write files.
pub(crate) fn allows_writes(rules: &Rules, mode: Mode, default: Policy, tools: &[&str]) -> bool {
    let allows = |rule: &Rule| {
        let kind = rule.kind.is_none_or(|kind| kind == AccessKind::Write);
        let fits = |glob: &String| tools.iter().any(|tool| glob_matches(glob, Path::new(tool), true));
        rule.policy == Policy::Allow && kind && rule.pattern.is_none() && rule.tool.as_ref().is_none_or(fits)
    };
    match mode {
        Mode::Plan => false,
        Mode::AcceptEdits | Mode::Auto => true,
        Mode::Ask => default == Policy::Allow || rules.scopes().into_iter().flatten().any(allows),
    }
}

/// Returns the first rule that may deny a call of `tool`, whatever it runs or accesses.
pub(crate) fn denies_some(rules: &Rules, tool: &str, kind: AccessKind) -> Option<Rule> {
    let fits = |rule: &&Rule| kind == AccessKind::Exec || rule.pattern.is_none();
    let denies = |rule: &&Rule| rule.policy == Policy::Deny && is_about(rule, tool, kind);
    rules.scopes().into_iter().flatten().filter(denies).find(fits).cloned()
}

/// Returns whether an ask rule concerns this call. If so, the user's approval of the call covers
/// everything that the call reads.
pub(crate) fn asks_about(rules: &Rules, request: &AccessRequest<'_>) -> bool {
    rules.scopes().into_iter().flatten().any(|rule| rule.policy == Policy::Ask && concerns(rule, request))
}

/// Returns whether the answer to a permission request can be remembered as a rule. A rule has only
/// one path, so answers about calls with several paths cannot be remembered.
pub(crate) fn can_be_remembered(request: &AccessRequest<'_>) -> bool {
    request.paths.len() < 2
}

/// Returns the rule to remember for an answer with `always`. The rule matches this tool, with only
/// this path, only this URL, or only this command line in this directory. A rule that allows an MCP
/// tool has the digest of its definition as its pattern.
pub(crate) fn remembered(policy: Policy, request: &AccessRequest<'_>) -> Rule {
    let definition = request.definition.filter(|_| policy == Policy::Allow);
    let pattern = request.line.as_ref().map(CommandLine::exactly).or_else(|| request.url.or(definition).map(escape));
    Rule {
        tool: Some(escape(request.tool)),
        kind: Some(request.kind),
        path: request.paths.first().map(|place| escape(&place.real.to_string_lossy())),
        pattern,
        directory: None,
        exact: None,
        policy,
    }
}

/// Returns whether a rule concerns the tool call, regardless of its command. For a deny or ask
/// rule, it is enough to match any part of the call; an allow rule must match all parts.
fn concerns(rule: &Rule, request: &AccessRequest<'_>) -> bool {
    let cautious = rule.policy != Policy::Allow;
    // An unknown command may run in any directory.
    let is_unknown = request.line.as_ref().is_some_and(CommandLine::is_unknown);
    let path = match &rule.path {
        Some(_) if is_unknown && cautious && (rule.tool.is_some() || rule.kind.is_some()) => true,
        Some(glob) => {
            let glob = PathGlob::new(glob);
            let fits = |place: &AccessPath| place.names(cautious).any(|name| glob.fits(name, cautious));
            let mut places = request.paths.iter();
            if cautious { places.any(fits) } else { !request.paths.is_empty() && places.all(fits) }
        }
        // A rule without a path never allows guarded paths, and allows commands only inside the
        // session's roots.
        None => cautious || request.paths.iter().all(|place| !place.guarded && (rule.pattern.is_none() || place.inside)),
    };
    let named = request.url.or(request.definition);
    let pattern =
        rule.pattern.as_ref().is_none_or(|pattern| request.line.is_some() || named.is_some_and(|text| wildcard(pattern, text)));
    is_about(rule, request.tool, request.kind) && path && pattern
}

fn is_about(rule: &Rule, tool: &str, kind: AccessKind) -> bool {
    let cautious = rule.policy != Policy::Allow;
    let tool = rule.tool.as_ref().is_none_or(|glob| glob_matches(glob, Path::new(tool), cautious));
    tool && rule.kind.is_none_or(|of_rule| of_rule == kind)
}

/// Returns whether a rule that concerns the call matches this command. A remembered rule allows
/// exactly the command line that the permission request showed, and only the MCP tool whose
/// definition it has.
fn fit(rule: &Rule, request: &AccessRequest<'_>, command: Option<&ShellCommand>, remembered: bool) -> Match {
    let inside = rule.path.is_some() || request.paths.iter().all(|place| place.inside);
    let undefined = request.kind == AccessKind::Mcp && rule.pattern.is_none();
    if remembered && rule.policy == Policy::Allow && (!inside || undefined) {
        return Match::No;
    }
    let (Some(pattern), Some(line), Some(command)) = (&rule.pattern, &request.line, command) else { return Match::Yes };
    if rule.policy != Policy::Allow {
        line.match_command(command, pattern)
    } else if (remembered && request.is_remembered_by(rule))
        || (!remembered && (line.is_allowed_by(pattern) || command.is_allowed_by(pattern)))
    {
        Match::Yes
    } else {
        Match::No
    }
}
