//! The permission check of a tool call: evaluates the rules and the mode, and requests a decision
//! if they require one. Turns and `nuncio tool` share these checks.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::call_host::{CallOutcome, ServedCall};
use crate::config::{AccessKind, Policy, Rule, worktree_origin};
use crate::content::{ALLOW_PROJECT, PermissionOption, PermissionOptionKind, ReviewAnswer, ToolContent, ToolLabel};
use crate::event::{Actor, Body, Notice, PermissionDecision, PermissionOutcome, Severity};
use crate::id::PermissionId;
use crate::options::Mode;
use crate::permission::git_acts::GitActs;
use crate::permission::hidden::Hidden;
use crate::permission::paths::AccessPath;
use crate::permission::rules::{AccessRequest, Decision, Rules, asks_about, can_be_remembered, decide, remembered};
use crate::permission::shell::{CommandLine, assignment, decides_what_runs};
use crate::session::{PermissionAnswer, TurnQuestion};
use crate::task;
use crate::toolkit::{CallReview, PreparedCall, RedirectPolicy, ToolContext, offer};
use crate::web::Address;
use crate::workspace::{PathFilter, ResolvedPath, Workspace, is_read_only};

/// The permission check of one call.
pub(in crate::runtime) struct Check<'a> {
    pub call: &'a ServedCall<'a>,
    pub label: &'a ToolLabel,
    /// True if nuncio makes the call: it is allowed unless a rule or the mode denies it.
    pub automatic: bool,
    pub prepared: &'a PreparedCall,
    pub mode: Mode,
    /// True if the mode should confine commands and the system cannot.
    pub unconfined: bool,
    pub rules: &'a Rules,
    pub default: Policy,
}

impl Check<'_> {
    /// Evaluates the rules and the mode, and requests permission if they require it. Returns the
    /// user's decisions about parts of an allowed call, or how a refused call ends.
    pub(in crate::runtime) async fn decide(&self) -> Result<Option<CallReview>, CallOutcome> {
        let request = request(self.prepared, self.call.context);
        // If commands cannot be confined, they are asked about as in the mode `accept-edits`.
        let mode = if self.exposes_files() { Mode::AcceptEdits } else { self.mode };
        let mut decision = evaluate(self.rules, mode, self.default, self.prepared, &request);
        let unasked = self.unasked_git_acts(&request).await;
        if decision.policy == Policy::Allow && !unasked.is_empty() {
            let request = AccessRequest { unasked, ..request.clone() };
            decision = evaluate(self.rules, mode, self.default, self.prepared, &request);
            if decision.policy == Policy::Ask {
                return self.ask_about_git(unasked, &request).await;
            }
        }
        match decision.policy {
            Policy::Allow => {
                if let Some(rule) = decision.rule {
                    self.record(PermissionOutcome::AllowOnce, Actor::Rule, Some(json!(rule))).await;
                }
                Ok(None)
            }
            Policy::Deny => {
                let why = denial(&decision, self.mode);
                let by = if decision.rule.is_some() { Actor::Rule } else { Actor::Mode };
                self.record(PermissionOutcome::Denied, by, decision.rule.map(|rule| json!(rule))).await;
                Err(CallOutcome::Denied(why))
            }
            Policy::Ask if self.automatic => {
                self.record(PermissionOutcome::AllowOnce, Actor::VerifyAuto, None).await;
                Ok(None)
            }
            Policy::Ask => {
                let content = match self.prepared.preview(self.call.context).await {
                    Ok(content) => content,
                    // Return the error without asking: the call would fail, and the model may read
                    // the cause.
                    Err(error) if may_read(self.rules, self.mode, self.default, &request) => {
                        return Err(CallOutcome::Failed(error.0));
                    }
                    Err(error) => vec![ToolContent::text(error.0)],
                };
                self.ask(content, &request).await
            }
        }
    }

    /// Returns the acts of git in the model's call that no message or instruction asks for.
    async fn unasked_git_acts(&self, request: &AccessRequest<'_>) -> GitActs {
        let unasked = request.git_acts().without(self.call.host.asked_git_acts());
        if unasked.is_empty() || self.automatic {
            return GitActs::NONE;
        }
        unasked.without(self.call.environment.asked_git_acts().await)
    }

    /// Asks whether git may do what no message asks for. Without a client that can answer, the call
    /// is denied, which is no failure of the turn.
    async fn ask_about_git(&self, unasked: GitActs, request: &AccessRequest<'_>) -> Result<Option<CallReview>, CallOutcome> {
        let names = unasked.names();
        let why = ToolContent::text(format!("No message asks to {names}."));
        let content = [vec![why], self.prepared.preview(self.call.context).await.unwrap_or_default()].concat();
        let (permission_id, mut answer) = self.question(content, request).await;
        if answer.is_unattended() {
            answer.by = Actor::Unasked;
        }
        self.answered(permission_id, answer, Vec::new(), request).await.map_err(|refused| match refused {
            CallOutcome::Denied(why) => CallOutcome::Denied(format!(
                "{why}: the user did not ask to {names}. Leave the changes in the working tree, and say in your answer what is not done."
            )),
            ended => ended,
        })
    }

    /// Returns whether the mode `auto` would let a command change files that the sandbox protects:
    /// all of them, or git's control files.
    fn exposes_files(&self) -> bool {
        let runs = self.mode == Mode::Auto && !self.automatic && self.prepared.access.kind == AccessKind::Exec;
        let sandbox = self.call.context.sandbox.as_ref().filter(|_| runs);
        (runs && self.unconfined) || sandbox.is_some_and(|sandbox| sandbox.exposes_git(|| self.call.context.launcher.can_mount()))
    }

    /// Records a decision of a rule or of the mode.
    async fn record(&self, outcome: PermissionOutcome, by: Actor, rule: Option<Value>) {
        self.resolve(None, PermissionAnswer::without_choice(outcome, by, None), rule).await;
    }

    /// Records how the permission was decided. No need to wait: events are committed in order, and
    /// the next commit of the call is awaited.
    async fn resolve(&self, permission_id: Option<PermissionId>, answer: PermissionAnswer, rule: Option<Value>) {
        let decision = PermissionDecision { rule, ..answer.decision(permission_id, self.call.id, self.label) };
        let starts = decision.outcome.allows() && self.prepared.access.kind != AccessKind::Read;
        let resolved = Body::PermissionResolved(decision);
        // The start of a call with an effect is synced, and this event with it.
        match starts {
            true => self.call.host.emit_before_commit(resolved).await,
            false => self.call.host.emit(resolved).await,
        }
    }

    /// Returns whether an answer can become a rule of the user's settings. That of a workspace of
    /// nuncio would remain when the workspace is deleted.
    fn can_keep(&self) -> bool {
        let (services, cwd) = (&self.call.environment.services, &self.call.context.workspace.cwd);
        services.user_rules.can_change() && worktree_origin(&services.places.worktrees(), cwd).is_none()
    }

    /// Adds a rule for the directory of the session to the user's settings, and returns it. If that
    /// fails, returns the rule for the session alone.
    async fn save(&self, rule: Rule) -> Rule {
        let services = self.call.environment.services.clone();
        let directory = Some(self.call.context.workspace.cwd.clone());
        let kept = Rule { directory, exact: Some(true), ..rule.clone() };
        let added = kept.clone();
        match task::blocking("saving a rule", move || services.user_rules.add(added)).await.flatten() {
            Ok(()) => kept,
            Err(error) => {
                let description = Some(format!("{error}. It applies to this session."));
                let notice = Notice { description, ..Notice::new(Severity::Warning, "The permission rule was not saved") };
                self.call.host.emit(Body::Notice(notice)).await;
                rule
            }
        }
    }

    async fn ask(&self, content: Vec<ToolContent>, request: &AccessRequest<'_>) -> Result<Option<CallReview>, CallOutcome> {
        let (permission_id, answer) = self.question(content.clone(), request).await;
        self.answered(permission_id, answer, content, request).await
    }

    async fn question(&self, content: Vec<ToolContent>, request: &AccessRequest<'_>) -> (Option<PermissionId>, PermissionAnswer) {
        let review = self.prepared.properties.edits_files.then(|| offer(&content, self.prepared.resolved.len())).flatten();
        let question = TurnQuestion {
            tool_call_id: self.call.id.clone(),
            tool: self.label.clone(),
            content,
            options: options(request, self.can_keep()),
            review,
            timeout: self.call.timeout,
            ends_turn: true,
            cancel: self.call.context.cancel.clone(),
        };
        self.call.host.ask(question).await
    }

    /// Records an answer. `content` is what the answer's decisions about parts are about.
    async fn answered(
        &self,
        permission_id: Option<PermissionId>,
        answer: PermissionAnswer,
        content: Vec<ToolContent>,
        request: &AccessRequest<'_>,
    ) -> Result<Option<CallReview>, CallOutcome> {
        let rule = match answer.outcome {
            PermissionOutcome::AllowAlways => Some(remembered(Policy::Allow, request)),
            PermissionOutcome::RejectAlways => Some(remembered(Policy::Deny, request)),
            _ => None,
        };
        let rule = match rule {
            Some(rule) if answer.option_id.as_deref() == Some(ALLOW_PROJECT) => Some(self.save(rule).await),
            rule => rule,
        };
        self.resolve(permission_id, answer.clone(), rule.map(|rule| json!(rule))).await;
        let because = answer.reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        match answer.outcome {
            PermissionOutcome::AllowOnce | PermissionOutcome::AllowAlways => {
                let has_decisions = answer.review != ReviewAnswer::default();
                Ok(has_decisions.then_some(CallReview { content, answer: answer.review }))
            }
            PermissionOutcome::RejectOnce | PermissionOutcome::RejectAlways => {
                Err(CallOutcome::Denied(format!("denied by the user{because}")))
            }
            PermissionOutcome::Denied if self.call.host.is_unanswered() => Err(CallOutcome::Cancelled),
            PermissionOutcome::Denied => Err(CallOutcome::Denied(format!("denied{because}"))),
            PermissionOutcome::Cancelled => Err(CallOutcome::Cancelled),
        }
    }
}

/// Builds the permission request of a call, which rules are matched against. Symlinks in its paths
/// are resolved.
pub(crate) fn request<'a>(prepared: &'a PreparedCall, context: &ToolContext) -> AccessRequest<'a> {
    let (access, workspace) = (&prepared.access, &context.workspace);
    let place = |resolved: ResolvedPath| {
        let readable = access.kind == AccessKind::Read && resolved.artifact;
        let path = access_path(resolved, access.kind, workspace);
        AccessPath { inside: path.inside || readable, ..path }
    };
    let mut paths: Vec<AccessPath> = prepared.resolved.iter().cloned().map(place).collect();
    let mut line =
        access.command.as_deref().map(|command| CommandLine::parse(&(left_behind(context) + &access.environment), command));
    let here = prepared.resolved.first().map_or_else(|| context.start.cwd.clone(), |cwd| cwd.real.clone());
    if line.is_some() && paths.is_empty() && here != workspace.cwd {
        paths.push(place(workspace.resolve(&here.to_string_lossy())));
    }
    if let Some(line) = &mut line {
        line.check_repositories(&here, |directory| workspace.has_own_repository(directory));
    }
    let file = |path: &str| place(workspace.resolve(&here.join(path).to_string_lossy()));
    let writes = line.iter().flat_map(CommandLine::writes).map(|path| path.map(file)).collect();
    AccessRequest {
        tool: &prepared.name,
        kind: access.kind,
        paths,
        line,
        writes,
        url: access.url.as_deref(),
        definition: prepared.definition.as_deref(),
        unasked: GitActs::NONE,
    }
}

/// Describes a path of a call with this kind of access, for the rules.
pub(crate) fn access_path(resolved: ResolvedPath, kind: AccessKind, workspace: &Workspace) -> AccessPath {
    let ResolvedPath { path: written, real, inside, artifact: _ } = resolved;
    let writes = kind == AccessKind::Write;
    let read_only = writes && is_read_only(&real);
    let guarded = read_only || writes && workspace.is_protected(&real);
    AccessPath { inside: inside && !guarded, real, written, cwd: workspace.cwd.clone(), guarded, read_only }
}

/// Returns shell assignments of the exported variables that decide which program a command runs.
/// The assignments are put before the command.
fn left_behind(context: &ToolContext) -> String {
    let exported = context.start.exported.iter().map(|(name, value)| {
        (name.to_string_lossy(), value.as_ref().map_or_else(Default::default, |value| value.to_string_lossy()))
    });
    exported.filter(|(name, _)| decides_what_runs(name)).map(|(name, value)| assignment(&name, &value)).collect()
}

/// Returns the filter for paths that rules hide from an allowed call that lists files.
pub(crate) fn path_filter(rules: &Rules, prepared: &PreparedCall, context: &ToolContext) -> Option<PathFilter> {
    if !prepared.properties.lists_files {
        return None;
    }
    let asked = asks_about(rules, &request(prepared, context));
    Hidden::from_rules(rules, &prepared.name, &context.workspace.cwd, asked)
        .map(|hidden| Arc::new(move |real: &Path| hidden.hides(real)) as PathFilter)
}

/// Returns the policy for redirects of an allowed call. The call may follow redirects to addresses
/// that the rules allow. Where the rules ask, it may follow only redirects to the host of the
/// original request.
pub(crate) fn redirect_policy(rules: &Rules, mode: Mode, default: Policy, prepared: &PreparedCall) -> Option<RedirectPolicy> {
    let asked = Address::parse(prepared.access.url.as_deref()?).ok()?;
    let (rules, tool) = (rules.clone(), prepared.name.clone());
    Some(Arc::new(move |next: &Address| {
        let url = Some(next.as_str());
        let request = AccessRequest { url, ..AccessRequest::new(&tool, AccessKind::Network) };
        match decide(&rules, mode, default, &request).policy {
            Policy::Allow => true,
            Policy::Ask => next.host() == asked.host(),
            Policy::Deny => false,
        }
    }))
}

/// Evaluates the rules for a call. If the call runs commands, rules for `bash` apply too, and
/// denials and questions take precedence; a rule without a pattern does not allow its commands. If
/// the call's result reveals file contents, rules that restrict reading those files apply too.
pub(crate) fn evaluate(
    rules: &Rules,
    mode: Mode,
    default: Policy,
    prepared: &PreparedCall,
    request: &AccessRequest<'_>,
) -> Decision {
    let mut decision = decide(rules, mode, default, request);
    if prepared.properties.runs_commands {
        let as_bash = decide(rules, mode, default, &AccessRequest { tool: "bash", ..request.clone() });
        decision = match (decision.policy, as_bash.policy) {
            (Policy::Deny, _) => decision,
            (_, Policy::Deny) => as_bash,
            (_, Policy::Ask) if as_bash.rule.is_some() => as_bash,
            (Policy::Allow, Policy::Ask) if decision.rule.as_ref().is_some_and(|rule| rule.pattern.is_none()) => as_bash,
            _ if decision.rule.is_some() => decision,
            _ => as_bash,
        };
    }
    if !prepared.properties.shows_content {
        return decision;
    }
    let read = decide(rules, mode, default, &reading(request));
    // The user was already shown this content when allowing the call in this session.
    let known = decision.rule.as_ref().is_some_and(|rule| rules.session.contains(rule));
    match (read.policy, decision.policy) {
        (Policy::Deny, Policy::Allow | Policy::Ask) if read.rule.is_some() => read,
        (Policy::Ask, Policy::Allow) if read.rule.is_some() && !known => read,
        _ => decision,
    }
}

fn reading<'a>(request: &AccessRequest<'a>) -> AccessRequest<'a> {
    AccessRequest { tool: "read", kind: AccessKind::Read, ..request.clone() }
}

/// Returns whether the model may read the files that a call names. If so, an error from previewing
/// the call is sent to the model without a permission request.
pub(in crate::runtime) fn may_read(rules: &Rules, mode: Mode, default: Policy, request: &AccessRequest<'_>) -> bool {
    decide(rules, mode, default, &reading(request)).policy == Policy::Allow
}

/// The reason of a denial by a rule.
pub(crate) const DENIED_BY_RULE: &str = "denied by a rule in the settings";

pub(crate) fn denies_mcp_tool(rules: &Rules, name: &str) -> bool {
    decide(rules, Mode::Auto, Policy::Allow, &AccessRequest::new(name, AccessKind::Mcp)).policy == Policy::Deny
}

/// Returns the tool result of a denied call.
fn denial(decision: &Decision, mode: Mode) -> String {
    debug_assert_eq!(decision.policy, Policy::Deny);
    match (&decision.rule, mode) {
        (Some(_), _) => DENIED_BY_RULE.into(),
        (None, Mode::Plan) => "denied: mode plan does not allow changes or commands".into(),
        (None, mode) => format!("denied by mode {}", mode.id()),
    }
}

/// Returns the options of a permission request. An `always` option lasts for the session, or by the
/// user's settings if it `can_be_kept`, and covers exactly the requested call.
fn options(request: &AccessRequest<'_>, can_be_kept: bool) -> Vec<PermissionOption> {
    let what = match (&request.line, request.paths.as_slice()) {
        (Some(_), _) => "this command".to_string(),
        (None, _) if request.url.is_some() => "this address".to_string(),
        (None, [place]) => format!("{} on {}", request.tool, place.shown().display()),
        (None, _) => request.tool.to_string(),
    };
    let option = |id: &str, name: String, kind| PermissionOption { option_id: id.into(), name, kind };
    let mut options = vec![
        option("allow_once", "Allow".into(), PermissionOptionKind::AllowOnce),
        option("allow_always", format!("Always allow {what} in this session"), PermissionOptionKind::AllowAlways),
        option("reject_once", "Reject".into(), PermissionOptionKind::RejectOnce),
        option("reject_always", format!("Always reject {what} in this session"), PermissionOptionKind::RejectAlways),
        option(
            ALLOW_PROJECT,
            format!("Always allow {what} in this directory, by your settings"),
            PermissionOptionKind::AllowAlways,
        ),
    ];
    options.retain(|option| can_be_kept || option.option_id != ALLOW_PROJECT);
    if !can_be_remembered(request) {
        options.retain(|option| matches!(option.kind, PermissionOptionKind::AllowOnce | PermissionOptionKind::RejectOnce));
    }
    options
}
