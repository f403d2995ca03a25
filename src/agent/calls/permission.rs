//! Permission checks for tool calls, without side effects. Turns and `nuncio tool` share these
//! checks.

use std::path::Path;
use std::sync::Arc;

use crate::config::{AccessKind, Policy};
use crate::content::{PermissionOption, PermissionOptionKind};
use crate::options::Mode;
use crate::permission::hidden::Hidden;
use crate::permission::paths::AccessPath;
use crate::permission::rules::{Decision, PermissionRequest, Rules, asks_about, can_be_remembered, decide};
use crate::permission::shell::{CommandLine, assignment, decides_what_runs};
use crate::toolkit::{PreparedCall, RedirectPolicy, ToolContext};
use crate::web::Address;
use crate::workspace::{PathFilter, ResolvedPath};

/// Builds the permission request of a call, which rules are matched against. Symlinks in its paths
/// are resolved.
pub(crate) fn request<'a>(prepared: &'a PreparedCall, context: &ToolContext) -> PermissionRequest<'a> {
    let (access, workspace) = (&prepared.access, &context.workspace);
    let place = |resolved: &ResolvedPath| {
        let guarded = access.kind == AccessKind::Write && workspace.is_protected(&resolved.real);
        let readable = access.kind == AccessKind::Read && resolved.artifact;
        let inside = (resolved.inside || readable) && !guarded;
        AccessPath { real: resolved.real.clone(), written: resolved.path.clone(), cwd: workspace.cwd.clone(), inside, guarded }
    };
    let mut paths: Vec<AccessPath> = prepared.resolved.iter().map(place).collect();
    let line = access.command.as_deref().map(|command| CommandLine::parse(&(left_behind(context) + &access.environment), command));
    let here = prepared.resolved.first().map_or_else(|| context.start.cwd.clone(), |cwd| cwd.real.clone());
    if line.is_some() && paths.is_empty() && here != workspace.cwd {
        paths.push(place(&workspace.resolve(&here.to_string_lossy())));
    }
    let file = |path: &str| place(&workspace.resolve(&here.join(path).to_string_lossy()));
    let writes = line.iter().flat_map(CommandLine::writes).map(|path| path.map(file)).collect();
    PermissionRequest {
        tool: &prepared.name,
        kind: access.kind,
        paths,
        line,
        writes,
        url: access.url.as_deref(),
        definition: prepared.definition.as_deref(),
    }
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
    Hidden::of(rules, &prepared.name, &context.workspace.cwd, asked)
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
        let request = PermissionRequest { url, ..PermissionRequest::new(&tool, AccessKind::Network) };
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
    request: &PermissionRequest<'_>,
) -> Decision {
    let mut decision = decide(rules, mode, default, request);
    if prepared.properties.runs_commands {
        let as_bash = decide(rules, mode, default, &PermissionRequest { tool: "bash", ..request.clone() });
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

fn reading<'a>(request: &PermissionRequest<'a>) -> PermissionRequest<'a> {
    PermissionRequest { tool: "read", kind: AccessKind::Read, ..request.clone() }
}

/// Returns whether the model may read the files of a call. If so, an error from previewing the call
/// is sent to the model without a permission request.
pub(crate) fn may_read(rules: &Rules, mode: Mode, default: Policy, request: &PermissionRequest<'_>) -> bool {
    decide(rules, mode, default, &reading(request)).policy == Policy::Allow
}

/// The reason of a denial by a rule.
pub(crate) const DENIED_BY_RULE: &str = "denied by a rule in the settings";

/// Returns whether a rule denies calls of the MCP tool `name`.
pub(crate) fn denies_mcp_tool(rules: &Rules, name: &str) -> bool {
    decide(rules, Mode::Auto, Policy::Allow, &PermissionRequest::new(name, AccessKind::Mcp)).policy == Policy::Deny
}

/// Returns the tool result of a denied call.
pub(crate) fn denial(decision: &Decision, mode: Mode) -> String {
    debug_assert_eq!(decision.policy, Policy::Deny);
    match (&decision.rule, mode) {
        (Some(_), _) => DENIED_BY_RULE.into(),
        (None, Mode::Plan) => "denied: mode plan does not allow changes or commands".into(),
        (None, mode) => format!("denied by mode {}", mode.id()),
    }
}

/// Returns the options of a permission request. An `always` option lasts for the session and covers
/// exactly the requested call.
pub(crate) fn options(request: &PermissionRequest<'_>) -> Vec<PermissionOption> {
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
    ];
    if !can_be_remembered(request) {
        options.retain(|option| matches!(option.kind, PermissionOptionKind::AllowOnce | PermissionOptionKind::RejectOnce));
    }
    options
}
