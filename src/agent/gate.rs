//! What the gate looks at and what it says: the pure part, the same for a call of a turn and for one by hand.

use std::path::Path;
use std::sync::Arc;

use crate::config::{AccessKind, Policy};
use crate::content::{PermissionOption, PermissionOptionKind, ToolKind};
use crate::permission::paths::{Hidden, Place};
use crate::permission::rules::{Decision, Mode, Rules, Subject, asks_about, can_be_remembered, decide};
use crate::permission::shell::{Line, assignment, decides_what_runs};
use crate::tools::{Prepared, Reach, ToolContext};
use crate::web::Address;
use crate::workspace::{Except, Placed};

/// The call as rules see it, its paths without symlinks.
pub fn subject<'a>(prepared: &'a Prepared, context: &ToolContext) -> Subject<'a> {
    let (access, workspace) = (&prepared.access, &context.workspace);
    let place = |placed: &Placed| {
        let guarded = access.kind == AccessKind::Write && workspace.is_protected(&placed.real);
        let readable = access.kind == AccessKind::Read && placed.artifact;
        let inside = (placed.inside || readable) && !guarded;
        Place { real: placed.real.clone(), written: placed.path.clone(), cwd: workspace.cwd.clone(), inside, guarded }
    };
    let mut paths: Vec<Place> = prepared.placed.iter().map(place).collect();
    let line = access.command.as_deref().map(|command| Line::read(&(left_behind(context) + &access.environment), command));
    let here = prepared.placed.first().map_or_else(|| context.start.cwd.clone(), |cwd| cwd.real.clone());
    if line.is_some() && paths.is_empty() && here != workspace.cwd {
        paths.push(place(&workspace.resolve(&here.to_string_lossy())));
    }
    let file = |path: &str| place(&workspace.resolve(&here.join(path).to_string_lossy()));
    let writes = line.iter().flat_map(Line::writes).map(|path| path.map(file)).collect();
    Subject { tool: &prepared.name, kind: access.kind, paths, line, writes, url: access.url.as_deref() }
}

/// What earlier commands exported and this one would run differently with, as a shell would write it before it.
fn left_behind(context: &ToolContext) -> String {
    let exported = context.start.exported.iter().map(|(name, value)| {
        (name.to_string_lossy(), value.as_ref().map_or_else(Default::default, |value| value.to_string_lossy()))
    });
    exported.filter(|(name, _)| decides_what_runs(name)).map(|(name, value)| assignment(&name, &value)).collect()
}

/// What rules keep a call that may run from seeing.
pub fn hidden(rules: &Rules, prepared: &Prepared, context: &ToolContext) -> Option<Except> {
    if prepared.kind != ToolKind::Search {
        return None;
    }
    let asked = asks_about(rules, &subject(prepared, context));
    Hidden::of(rules, &prepared.name, &context.workspace.cwd, asked)
        .map(|hidden| Arc::new(move |real: &Path| hidden.hides(real)) as Except)
}

/// Where a call that may run may be redirected: to what it would be allowed by itself, and where it would be asked about, on the host that was
/// asked about already.
pub fn reach(rules: &Rules, mode: Mode, default: Policy, prepared: &Prepared) -> Option<Reach> {
    let asked = Address::parse(prepared.access.url.as_deref()?).ok()?;
    let (rules, tool) = (rules.clone(), prepared.name.clone());
    Some(Arc::new(move |next: &Address| {
        let url = Some(next.as_str());
        let subject = Subject { tool: &tool, kind: AccessKind::Network, paths: Vec::new(), line: None, writes: Vec::new(), url };
        match decide(&rules, mode, default, &subject).policy {
            Policy::Allow => true,
            Policy::Ask => next.host() == asked.host(),
            Policy::Deny => false,
        }
    }))
}

/// What tells about the files that it changes.
const SHOWING: [&str; 2] = ["edit", "apply_patch"];

/// Who decides about the call: about what shows its files, rules that keep them from being read decide too.
pub fn judge(rules: &Rules, mode: Mode, default: Policy, subject: &Subject<'_>) -> Decision {
    let decision = decide(rules, mode, default, subject);
    if !SHOWING.contains(&subject.tool) {
        return decision;
    }
    let read = decide(rules, mode, default, &reading(subject));
    // Who allowed just this always saw it.
    let known = decision.rule.as_ref().is_some_and(|rule| rules.session.contains(rule));
    match (read.policy, decision.policy) {
        (Policy::Deny, Policy::Allow | Policy::Ask) if read.rule.is_some() => read,
        (Policy::Ask, Policy::Allow) if read.rule.is_some() && !known => read,
        _ => decision,
    }
}

fn reading<'a>(subject: &Subject<'a>) -> Subject<'a> {
    Subject { tool: "read", kind: AccessKind::Read, ..subject.clone() }
}

/// Whether the model may read the files of a call: then it may be told what is wrong with the call, and nobody need be asked about it.
pub fn may_read(rules: &Rules, mode: Mode, default: Policy, subject: &Subject<'_>) -> bool {
    decide(rules, mode, default, &reading(subject)).policy == Policy::Allow
}

/// What the model is told of a decision that denies.
pub fn denial(decision: &Decision, mode: Mode) -> String {
    debug_assert_eq!(decision.policy, Policy::Deny);
    match (&decision.rule, mode) {
        (Some(_), _) => "denied by a rule of the settings".into(),
        (None, Mode::Plan) => "denied by the mode plan, in which nothing is changed or run".into(),
        (None, mode) => format!("denied by the mode {}", mode.id()),
    }
}

/// What may be answered; `always` is for this session, and for no more than what was asked.
pub fn options(subject: &Subject<'_>) -> Vec<PermissionOption> {
    let what = match (&subject.line, subject.paths.as_slice()) {
        (Some(_), _) => "this command".to_string(),
        (None, _) if subject.url.is_some() => "this address".to_string(),
        (None, [place]) => format!("{} on {}", subject.tool, place.shown().display()),
        (None, _) => subject.tool.to_string(),
    };
    let option = |id: &str, name: String, kind| PermissionOption { option_id: id.into(), name, kind };
    let mut options = vec![
        option("allow_once", "Allow".into(), PermissionOptionKind::AllowOnce),
        option("allow_always", format!("Always allow {what} in this session"), PermissionOptionKind::AllowAlways),
        option("reject_once", "Reject".into(), PermissionOptionKind::RejectOnce),
        option("reject_always", format!("Always reject {what} in this session"), PermissionOptionKind::RejectAlways),
    ];
    if !can_be_remembered(subject) {
        options.retain(|option| matches!(option.kind, PermissionOptionKind::AllowOnce | PermissionOptionKind::RejectOnce));
    }
    options
}
